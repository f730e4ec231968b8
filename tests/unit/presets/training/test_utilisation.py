"""Fitted utilisation: physical, sourced, and there for every accelerator and precision."""

from __future__ import annotations

import itertools
import tomllib
from dataclasses import replace
from importlib import resources
from types import MappingProxyType

import pytest

from service.presets.hardware.accelerators import find_accelerator, load_accelerators
from service.presets.training.throughput_parameters import UNPUBLISHED, LayoutKnowledge, MatmulShare, load_parameters
from service.presets.training.utilisation import (
    attention_share,
    find_utilisation,
    has_fused_experts,
    nearest,
    plan_calibration,
    utilisation,
    watts_per_tflop,
)
from tests.support.rows import for_each

PAIRS = [(name, precision) for name, part in load_accelerators().items() for precision in part.peak_tflops]
AMPERE = ("ampere", "16-bit")


@for_each(("name", "precision"), PAIRS)
def test_every_accelerator_has_a_physical_utilisation(name: str, precision: str) -> None:
    """Shares lie between nothing and their limit, times are not negative, the spread holds 1, the source is named."""
    found = find_utilisation(load_accelerators()[name], precision)
    assert 0 < found.matmul_share <= load_parameters().largest_share
    for share in (found.link_share, found.network_share, found.attention_share, found.routed_share, found.other_share):
        assert share is not None
        assert 0 < share <= 1
    assert 0 <= found.overlap_share <= 1
    assert 0 <= found.tensor_overlap <= 1
    assert 0 <= found.operand_share <= 1
    assert min(found.tile_s, found.hop_s, found.layer_overhead_s, found.routing_overhead_s, found.straggler_share) >= 0
    assert found.activation_passes >= 1
    assert found.launch_power >= 1
    assert found.source


@for_each(("name", "precision"), PAIRS)
def test_every_answer_has_a_range(name: str, precision: str) -> None:
    """With the layout given and the goal alone, on machines of any size, p10 and p90 are on their side of the plan."""
    part = load_accelerators()[name]
    modes: tuple[LayoutKnowledge, ...] = ("layout", "goal")
    for known, count in itertools.product(modes, (1, 8, 64, 65, 1024, 1025, 100_000)):
        spread = find_utilisation(part, precision, known, count).spread
        assert 0 < spread.p10 <= spread.p50 == 1 <= spread.p90
        assert spread.p10 < spread.p90


def test_a_measured_family_is_not_borrowed() -> None:
    """H100 at bf16 has rows of its own."""
    found = find_utilisation(find_accelerator("H100").accelerator, "bf16")
    assert not found.borrowed
    assert "rows" in found.source


def test_a_family_without_rows_borrows_and_is_less_certain() -> None:
    """MI355X has no published row: it says whose figure it takes, scaled by what the best products reach, with a wider spread."""
    parameters = load_parameters()
    found = find_utilisation(find_accelerator("MI355X").accelerator, "bf16")
    lender = find_utilisation(find_accelerator("H100").accelerator, "bf16")
    assert found.borrowed
    assert found.source.startswith("borrowed from cdna3 at 16-bit")
    ratio = parameters.matmul_peaks["cdna4", "16-bit"] / parameters.matmul_peaks["cdna3", "16-bit"]
    assert found.matmul_share <= parameters.matmul["cdna3", "16-bit"].share * ratio
    assert found.attention_share == parameters.attention[UNPUBLISHED]
    assert found.spread.p10 < lender.spread.p10
    assert found.spread.p90 > lender.spread.p90


def test_attention_goes_by_whom_its_kernels_were_written_for() -> None:
    """On Hopper 16-bit software took Ampere's kernels up to 2024, which are slower there; 8-bit recipes bring the family's own."""
    parameters, part = load_parameters(), find_accelerator("H100").accelerator
    first, earlier, own = (attention_share(parameters, part, "bf16", kernels) for kernels in ("first", "earlier", "own"))
    assert find_utilisation(part, "fp8").attention_share == attention_share(parameters, part, "fp8", "own")
    assert find_utilisation(part, "bf16", software_year=2023).attention_share == first
    assert find_utilisation(part, "bf16", software_year=2024).attention_share == earlier
    assert find_utilisation(part, "bf16", software_year=2025).attention_share == own
    assert first < earlier < own


def test_kernels_that_are_not_known_are_taken_for_newer_ones() -> None:
    """No family is earlier than Ampere in flash attention: its earlier kernels are its own."""
    parameters, part = load_parameters(), find_accelerator("A100-80GB").accelerator
    assert attention_share(parameters, part, "bf16", "earlier") == attention_share(parameters, part, "bf16", "own")


def test_attention_follows_the_power_of_the_board() -> None:
    """A board with the same peak and half of the power clocks lower in attention too, as in products."""
    parameters, part = load_parameters(), find_accelerator("H100").accelerator
    capped = replace(part, tdp_w=(part.tdp_w or 0.0) / 2)
    full, slow = find_utilisation(part, "bf16"), find_utilisation(capped, "bf16")
    assert slow.attention_share / full.attention_share == pytest.approx(0.5 ** parameters.shared["power_exponent"])


def test_a_precision_without_rows_borrows_within_the_family() -> None:
    """A100's int8 has no row; its own 16-bit figure is nearer than another family's."""
    parameters = load_parameters()
    assert nearest(parameters, parameters.matmul, ("ampere", "int8")) == ("ampere", "16-bit")


def test_an_unknown_family_still_gets_an_answer() -> None:
    """A family added without a line among the relatives falls back to the most measured one."""
    parameters = load_parameters()
    assert nearest(parameters, parameters.matmul, ("unheard-of", "16-bit")) == ("ampere", "16-bit")


def powered(family: str, watts: float | None, share: float = 0.5, reference: float = 1.25, exponent: float = 0.7) -> float:
    """The matmul share of a part of 312 TFLOP/s with so many watts, where Ampere's was measured on parts of `reference` W a TFLOP/s."""
    part = replace(find_accelerator("A100-80GB").accelerator, family=family, tdp_w=watts)
    known = load_parameters()
    shared = {**known.shared, "power_exponent": exponent}
    parameters = replace(known, shared=shared, matmul={AMPERE: MatmulShare(share, reference, "these")})
    return utilisation(parameters, part, "bf16").matmul_share


def test_more_power_for_its_peak_is_more_of_the_peak() -> None:
    """A board of a measured family holds its clock the longer the more power it has, by the fitted power of it."""
    shares = [powered("ampere", watts) for watts in (150.0, 250.0, 300.0, 390.0, 400.0, 500.0)]
    assert shares == sorted(shares)
    assert len(set(shares)) == len(shares)
    assert powered("ampere", 390.0) == pytest.approx(0.5)
    assert powered("ampere", 195.0) == pytest.approx(0.5 * 0.5**0.7)


def test_power_never_takes_a_share_past_its_limit() -> None:
    """However many watts there are, a board does not reach more than the largest share that is believed."""
    assert powered("ampere", 4000.0) == load_parameters().largest_share


def test_a_borrowed_share_is_lowered_by_less_power_and_never_raised_by_more() -> None:
    """Of a relative's figure only what costs is taken over: a generous board of an unmeasured family proves nothing."""
    assert powered("volta", 195.0) == pytest.approx(powered("ampere", 195.0))
    assert powered("volta", 390.0) == powered("volta", 800.0) == 0.5


def test_without_published_power_the_share_is_as_measured() -> None:
    """TPUs publish none: neither their own boards nor those measured move the share."""
    assert powered("ampere", None) == 0.5
    assert powered("ampere", 250.0, reference=0.0) == 0.5


def test_watts_a_tflop_are_those_of_the_data_sheet() -> None:
    """A100 SXM: 400 W over 312 TFLOP/s; nothing where no power or no 16-bit rate is published."""
    part = find_accelerator("A100-80GB").accelerator
    assert watts_per_tflop(part) == pytest.approx(400 / 312)
    assert watts_per_tflop(replace(part, tdp_w=None)) == 0
    assert watts_per_tflop(replace(part, peak_tflops=MappingProxyType({"fp32": 19.5}))) == 0


def test_only_software_that_overlaps_tensor_exchanges_hides_them() -> None:
    """Of Hopper and Blackwell part of them is hidden, of all others none."""
    parameters = load_parameters()
    for name, part in load_accelerators().items():
        precision = next(iter(part.peak_tflops))
        hides = find_utilisation(part, precision).tensor_overlap > 0
        assert hides == (part.family in parameters.overlapping), name


def test_only_eager_software_waits_for_its_host() -> None:
    """Where a whole step is one program no layer has a launch time, elsewhere each has."""
    parameters = load_parameters()
    for name, part in load_accelerators().items():
        found = find_utilisation(part, next(iter(part.peak_tflops)))
        eager = part.family not in parameters.compiled
        assert (found.layer_overhead_s > 0) == eager, name
        assert (found.routing_overhead_s > 0) == eager, name


def test_families_named_by_the_frame_exist() -> None:
    """Who is compiled, who overlaps and who borrows from whom are families of the catalogue; a class has all others as neighbours."""
    parameters = load_parameters()
    families = {part.family for part in load_accelerators().values()}
    named = parameters.compiled | parameters.overlapping | (parameters.relatives.keys() - {"*"})
    assert named | set(itertools.chain.from_iterable(parameters.relatives.values())) <= families
    classes = set(parameters.classes.values())
    assert {kind: {kind, *others} for kind, others in parameters.neighbours.items()} == dict.fromkeys(classes, classes)


def test_whole_runs_lose_more_on_many_nodes_and_with_older_software() -> None:
    """Large machines are better kept, and nothing is said beyond the machines and years that were measured."""
    found = plan_calibration()
    assert found.coefficients.off_node > 0 > found.coefficients.scale
    assert found.coefficients.age > 0
    assert found.measured.from_count < found.measured.to_count
    assert found.measured.first_year < found.measured.last_year


@pytest.mark.parametrize("known", ["layout", "goal"])
def test_what_is_less_measured_is_no_narrower(known: LayoutKnowledge) -> None:
    """A family without rows has the widest range of all, at every size; so has another part of a family over the measured part."""
    parameters, parts = load_parameters(), load_accelerators().values()
    pairs = [(part, precision) for part in parts for precision in part.peak_tflops]
    own = {(part.family, parameters.classes[precision]) in parameters.matmul for part, precision in pairs}
    assert own == {True, False}
    for count in (1, 64, 4096):
        spreads = {(part.name, precision): find_utilisation(part, precision, known, count).spread for part, precision in pairs}
        without_rows, with_rows = (
            [
                spreads[part.name, precision]
                for part, precision in pairs
                if ((part.family, parameters.classes[precision]) in parameters.matmul) is measured
            ]
            for measured in (False, True)
        )
        assert max(spread.p10 for spread in without_rows) <= min(spread.p10 for spread in with_rows)
        assert min(spread.p90 for spread in without_rows) >= max(spread.p90 for spread in with_rows)


@for_each(("name", "precision"), PAIRS)
def test_ranges_narrow_with_what_is_known(name: str, precision: str) -> None:
    """The goal alone leaves as much open as a layout, about another median; a large machine as much as a small one, to either side."""
    part = load_accelerators()[name]
    for count in (1, 8, 64):
        given, alone = (find_utilisation(part, precision, known, count).spread for known in ("layout", "goal"))
        assert alone.p90 / alone.p10 >= 0.99 * given.p90 / given.p10
        larger = find_utilisation(part, precision, "layout", 64 * count).spread
        assert larger.p10 <= given.p10
        assert larger.p90 >= given.p90


def test_every_publication_behind_a_figure_is_named_in_full() -> None:
    """Each source of a share is one of the publications at the end of the data file."""
    document = tomllib.loads(resources.files("service.presets").joinpath("data", "utilisation.toml").read_text(encoding="utf-8"))
    named = {part.split(" (")[0] for row in document["matmul"] for part in row["source"].split(", ")}
    assert named <= document["publications"].keys()


@pytest.mark.parametrize(
    ("family", "precision", "year", "fused"),
    [("blackwell", "mxfp8", 2026, True), ("blackwell", "nvfp4", 9999, True), ("blackwell", "mxfp8", 2025, False),
     ("blackwell", "bf16", 2026, False), ("hopper", "fp8", 2026, False)],
)  # fmt: skip
def test_fused_experts_are_of_a_year_a_family_and_a_precision(family: str, precision: str, year: int, fused: bool) -> None:
    """Recipes of mid-2026 for Blackwell in 8 and 4 bits; a whole year counts with its end."""
    assert has_fused_experts(load_parameters(), family, precision, year) == fused
