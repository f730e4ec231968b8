"""What serving is computed with: every figure within reason, with a source, and nothing left open."""

from __future__ import annotations

import re

import pytest

from service.domain.errors import UnknownName
from service.domain.serving.requirements import MeanRequest, Replicas
from service.domain.training.hardware import Accelerator
from service.engine.training.inference.model import ServingSetup, describe_served_model
from service.engine.training.inference.roofline import arithmetic_peak_flop_per_s, replica_speed
from service.presets.hardware.accelerators import load_accelerators
from service.presets.serving import (
    BORROWED,
    default_shape,
    find_format,
    load_achieved,
    load_compression_methods,
    load_formats,
    servable_formats,
    serving_assumptions,
    serving_defaults,
    serving_limits,
    serving_machine,
)
from service.presets.training.models import find_model
from tests.support.rows import for_each

PARTS = load_accelerators()
H100, A100 = PARTS["NVIDIA-H100-80GB-SXM"], PARTS["NVIDIA-A100-80GB-SXM"]


@pytest.mark.parametrize("family", load_achieved())
def test_engines_reach_a_part_of_the_data_sheet(family: str) -> None:
    """Shares between 0 and 1, fixed times of microseconds to milliseconds, ranges around the middle, mixtures' the wider."""
    found = load_achieved()[family]
    for share in (found.bandwidth_share, found.compute_share, found.routed_share, found.link_share):
        assert 0.1 < share < 1
    assert 1e-6 < found.layer_s < 1e-4
    assert 1e-6 < found.hop_s < 1e-4
    assert 1e-4 < found.host_s < 1e-2
    assert found.spread.p10 < found.spread.p50 < found.spread.p90
    widths = [spread.p90 / spread.p10 for spread in (found.spread, found.routed_spread, found.many_experts_spread)]
    assert widths[0] < 1.05 * widths[1]
    assert widths[1] < widths[2]
    assert len(found.source) > 20


def test_unmeasured_families_borrow_and_are_less_certain() -> None:
    """A TPU has the middle of all families, and a range wider than theirs."""
    borrowed = serving_machine(PARTS["Google-TPU-v5p"]).achieved
    measured = serving_machine(H100).achieved
    assert (borrowed.family, measured.family) == (BORROWED, "hopper")
    assert borrowed.spread.p90 / borrowed.spread.p10 > measured.spread.p90 / measured.spread.p10


def test_formats_from_wide_to_narrow() -> None:
    """A weight takes its bits and its scales' share, which is below a bit; every format says where that is from."""
    bits = [one.bits for one in load_formats().values()]
    assert bits == sorted(bits, reverse=True)
    for one in load_formats().values():
        assert 0 <= one.weight_bytes - one.bits / 8 < 1 / 8
        assert one.kv_bytes >= 1
        assert len(one.source) > 10


def test_scales_of_int4_and_nvfp4() -> None:
    """An fp16 scale and a 4-bit zero for 128 weights; an fp8 scale for 16."""
    assert find_format("int4").weight_bytes == pytest.approx(0.5 + 2.5 / 128, abs=1e-4)
    assert find_format("nvfp4").weight_bytes == 0.5 + 1 / 16


def test_arithmetic_is_the_formats_where_the_machine_has_it() -> None:
    """fp8 multiplies in fp8 on an H100 and in 16 bit on an A100; int4's weights are widened on both."""
    model, asked = describe_served_model(find_model("llama-3.1-8b").model), MeanRequest(1000, 500)
    rates = {
        (part.name, name): arithmetic_peak_flop_per_s(ServingSetup(model, find_format(name), serving_machine(part), asked))
        for part in (H100, A100)
        for name in ("fp8", "int4")
    }
    assert list(rates.values()) == [1978.9e12, 989.4e12, 312e12, 312e12]


def test_a_machine_serves_what_it_computes_in_and_what_its_family_may_store() -> None:
    """No bf16 on Volta and Turing; fp8 and nvfp4 are computed in or stored, and on Volta neither."""
    served = {name: servable_formats(PARTS[name]) for name in ("NVIDIA-V100-32GB-SXM2", "NVIDIA-T4", A100.name, "Google-TPU-v5e")}
    assert served == {
        "NVIDIA-V100-32GB-SXM2": ("fp16", "int8", "int4"),
        "NVIDIA-T4": ("fp16", "fp8", "int8", "int4"),
        A100.name: tuple(load_formats()),
        "Google-TPU-v5e": ("bf16", "int8"),
    }


def test_an_unknown_format_is_answered_with_those_there_are() -> None:
    """The message lists them."""
    with pytest.raises(UnknownName, match="int8, int4, nvfp4"):
        find_format("int3")


@for_each("part", PARTS.values(), ids=lambda part: part.name)
def test_every_accelerator_with_16_bit_arithmetic_can_serve(part: Accelerator) -> None:
    """A billion weights give tokens on every machine of the catalogue but those of fp32 alone, in every format it serves."""
    model = describe_served_model(find_model("llama-3.2-1b").model)
    formats = [find_format(name) for name in servable_formats(part)]
    assert bool(formats) == (set(part.peak_tflops) != {"fp32"})
    for stored in formats:
        one = ServingSetup(model, stored, serving_machine(part), MeanRequest(100, 100))
        assert 1 < replica_speed(one, Replicas(1.0, 1.0, 1.0)).output_tokens_per_s < 1e5


@pytest.mark.parametrize(("name", "lever"), load_compression_methods().items())
def test_levers_say_what_they_cost_and_risk(name: str, lever: object) -> None:
    """Known formats, tokens, a range of what is lost, a risk and a source that can be looked up."""
    found = load_compression_methods()[name]
    assert set(found.formats) <= set(load_formats())
    assert found.tokens > 1e5
    assert found.quality_loss.p10 < found.quality_loss.p50 < found.quality_loss.p90
    assert len(found.risk) > 20
    assert "arXiv" in found.source or "judgement" in found.source


def test_every_narrow_format_has_a_lever_and_training_takes_more_tokens() -> None:
    """Nothing is quantised for free, and calibration is far below training."""
    levers = load_compression_methods().values()
    assert {name for lever in levers for name in lever.formats} == set(load_formats()) - {"bf16", "fp16"}
    assert max(lever.tokens for lever in levers if not lever.trains) * 100 < min(lever.tokens for lever in levers if lever.trains)


def test_defaults_have_sources_and_are_reported() -> None:
    """Every default has a source and a date, and stands in the assumptions."""
    for default in serving_defaults().values():
        assert len(default.source) > 20
        assert re.search(r", 20\d\d-\d\d$", default.source)
    fields = {assumption.field for assumption in serving_assumptions(serving_machine(H100))}
    assert {f"serving.{name}" for name in serving_defaults()} | {"serving.achieved"} == fields
    assert serving_limits().max_batch == serving_defaults()["max_batch"].value
    assert default_shape() == {"kv_heads": 8}
