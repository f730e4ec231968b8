"""Fitted utilisation: physical, sourced, and there for every accelerator and precision."""

from __future__ import annotations

import tomllib
from importlib import resources

import pytest

from service.presets.accelerators import find_accelerator, load_accelerators
from service.presets.utilisation import find_utilisation, load_parameters, nearest, planning_spread

PAIRS = [(name, precision) for name, part in load_accelerators().items() for precision in part.peak_tflops]


@pytest.mark.parametrize(("name", "precision"), PAIRS)
def test_every_accelerator_has_a_physical_utilisation(name: str, precision: str) -> None:
    """Shares lie between nothing and the peak, times are not negative, the spread holds 1, the source is named."""
    found = find_utilisation(load_accelerators()[name], precision)
    for share in (found.matmul_share, found.link_share, found.attention_share, found.other_share):
        assert share is not None
        assert 0 < share <= 1
    assert 0 <= found.overlap_share <= 1
    assert min(found.half_width, found.layer_overhead_s, found.collective_latency_s, found.straggler_share) >= 0
    assert found.spread.p10 < found.spread.p50 == 1 < found.spread.p90
    assert found.source


def test_a_measured_family_is_not_borrowed() -> None:
    """H100 at bf16 has rows of its own."""
    found = find_utilisation(find_accelerator("H100").accelerator, "bf16")
    assert not found.borrowed
    assert "rows" in found.source


def test_a_family_without_rows_borrows_and_is_less_certain() -> None:
    """MI300X has no published row: it says whose figure it takes, with a wider spread than the lender's."""
    found = find_utilisation(find_accelerator("MI300X").accelerator, "bf16")
    lender = find_utilisation(find_accelerator("H100").accelerator, "bf16")
    assert found.borrowed
    assert found.source.startswith("borrowed from hopper at 16-bit")
    assert found.matmul_share == lender.matmul_share
    assert found.spread.p10 < lender.spread.p10
    assert found.spread.p90 > lender.spread.p90


def test_a_precision_without_rows_borrows_within_the_family() -> None:
    """A100's int8 has no row; its own 16-bit figure is nearer than another family's."""
    parameters = load_parameters()
    assert nearest(parameters, parameters.matmul, ("ampere", "int8")) == ("ampere", "16-bit")


def test_an_unknown_family_still_gets_an_answer() -> None:
    """A family added without a line among the relatives falls back to the most measured one."""
    parameters = load_parameters()
    assert nearest(parameters, parameters.matmul, ("unheard-of", "16-bit")) == ("ampere", "16-bit")


def test_wide_links_reach_beyond_a_node() -> None:
    """A GB200's NVLink joins the 72 devices of its rack, a B200's those of its node."""
    assert find_utilisation(find_accelerator("GB200").accelerator, "bf16").link_domain == 72
    assert find_utilisation(find_accelerator("B200").accelerator, "bf16").link_domain == 1


def test_narrow_matrices_cost_more_where_arithmetic_outruns_memory() -> None:
    """The width of half the rate grows with peak over bandwidth: wider for H100 than for A100, for fp8 than for bf16."""
    a100, h100 = (find_accelerator(name).accelerator for name in ("A100-80GB", "H100"))
    assert find_utilisation(h100, "bf16").half_width > find_utilisation(a100, "bf16").half_width
    assert find_utilisation(h100, "fp8").half_width > find_utilisation(h100, "bf16").half_width


def test_real_runs_scatter_about_their_plans() -> None:
    """Published runs took both less and more than planned, and more of them more."""
    found = planning_spread()
    assert 0 < found.p10 < found.p50 == 1 < found.p90
    assert found.p90 > 1 / found.p10


def test_every_publication_behind_a_figure_is_named_in_full() -> None:
    """Each source of a share is one of the publications at the end of the data file."""
    document = tomllib.loads(resources.files("service.presets").joinpath("data", "utilisation.toml").read_text(encoding="utf-8"))
    named = {part.split(" (")[0] for row in document["matmul"] for part in row["source"].split(", ")}
    assert named <= document["publications"].keys()
