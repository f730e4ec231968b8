"""Published rows as inputs of the engine: software, hybrids and machines that are not like others of their part."""

from __future__ import annotations

import pytest

from service.domain.training.model import Transformer
from service.presets.hardware.accelerators import find_accelerator
from tools.calibration.cases import MeasuredCase, throughput_cases


@pytest.fixture(scope="module")
def cases() -> list[MeasuredCase]:
    return [case for case in throughput_cases() if not case.each]


def test_fused_experts_are_those_of_mid_2026(cases: list[MeasuredCase]) -> None:
    """Releases of June 2026 and later on Blackwell in 8 bits, and no earlier ones, in 16 bit or on Hopper."""
    fused = [case for case in cases if case.training.fused_experts]
    assert {case.accelerator.family for case in fused} == {"blackwell"}
    assert {case.training.precision for case in fused} <= {"fp8", "mxfp8", "nvfp4"}
    assert all(", 26.06" in case.document or ", 26.08" in case.document for case in fused)


def test_hybrids_have_the_shape_of_their_preset(cases: list[MeasuredCase]) -> None:
    """Rows of Nemotron 3 Nano print no shape that the columns hold."""
    hybrids = [case.model for case in cases if isinstance(case.model, Transformer) and case.model.state_space]
    assert len(hybrids) == 21


def test_a_machine_of_slower_products_has_less_of_everything_that_computes(cases: list[MeasuredCase]) -> None:
    """SimuMax's B200: arithmetic and power, not memory and links."""
    usual = find_accelerator("B200").accelerator
    slower = next(case.accelerator for case in cases if case.table == "simumax")
    assert slower.peak_tflops["bf16"] == pytest.approx(0.7 * usual.peak_tflops["bf16"])
    assert slower.tdp_w == pytest.approx(0.7 * (usual.tdp_w or 0))
    assert (slower.memory_bandwidth_gb_per_s, slower.link_gb_per_s) == (usual.memory_bandwidth_gb_per_s, usual.link_gb_per_s)
