"""Failure rates by family, each figure with the arithmetic that gives it."""

from __future__ import annotations

import re

import pytest

from service.domain.training.hardware import Accelerator
from service.presets.hardware.accelerators import load_accelerators
from service.presets.training.reliability import FailureSystem, find_failure_rate, load_failure_systems, recovery_defaults
from tests.support.rows import for_each

PARTS = load_accelerators()


def _evaluated(basis: str) -> float:
    """`16384 x 54 x 24 / 419` worked out."""
    product, _, divisor = basis.partition("/")
    result = 1.0
    for factor in re.findall(r"[\d.]+", product):
        result *= float(factor)
    return result / float(divisor or 1)


@pytest.mark.parametrize("system", load_failure_systems(), ids=lambda system: system.name)
def test_every_figure_follows_from_its_stated_arithmetic(system: FailureSystem) -> None:
    """The basis is the calculation, and the source is named."""
    assert system.accelerator_hours == pytest.approx(_evaluated(system.basis), rel=1e-3)
    assert len(system.source) > 10
    assert system.family in {part.family for part in PARTS.values()}


def test_llama_3_sets_the_middle_of_its_generation() -> None:
    """419 unexpected interruptions in 54 days on 16,384 H100: one in 50,678 accelerator-hours, 3.1 h for the job."""
    found = find_failure_rate(PARTS["NVIDIA-H100-80GB-SXM"])
    assert found.mttf_hours.p50 == pytest.approx(16384 * 54 * 24 / 419, rel=1e-4)
    assert found.mttf_hours.p50 / 16384 == pytest.approx(3.09, abs=0.01)
    assert not found.borrowed
    assert "16384 x 54 x 24 / 419" in found.source


def test_older_accelerators_failed_more_often() -> None:
    """Published A100 systems were interrupted about twice as often an accelerator-hour as H100 ones."""
    ampere, hopper = (find_failure_rate(PARTS[name]).mttf_hours for name in ("NVIDIA-A100-80GB-SXM", "NVIDIA-H100-80GB-SXM"))
    assert 1.3 < hopper.p50 / ampere.p50 < 3


@for_each("part", PARTS.values(), ids=lambda part: part.name)
def test_every_accelerator_has_a_rate(part: Accelerator) -> None:
    """Between a month and 15 years an accelerator, sourced."""
    found = find_failure_rate(part)
    assert 720 < found.mttf_hours.p10 < found.mttf_hours.p50 < found.mttf_hours.p90 < 131_400
    assert found.source


@pytest.mark.parametrize("name", ["NVIDIA-B200-SXM", "Google-TPU-v5p", "AMD-MI300X", "AWS-Trainium2"])
def test_a_family_without_data_borrows_the_widest_spread_and_says_so(name: str) -> None:
    """Nothing published with a count: all systems together, wider in ratio than any family of its own."""
    found = find_failure_rate(PARTS[name])
    assert found.borrowed
    assert found.source.startswith(f"no published figure for {PARTS[name].family}")
    own = [find_failure_rate(PARTS[known]).mttf_hours for known in ("NVIDIA-A100-80GB-SXM", "NVIDIA-H100-80GB-SXM")]
    assert found.mttf_hours.p90 / found.mttf_hours.p10 > max(mttf.p90 / mttf.p10 for mttf in own)


def test_what_an_interruption_costs_by_default() -> None:
    """The contract's defaults for software of old, each with its source."""
    defaults = recovery_defaults(2022)
    assert {name: default.value for name, default in defaults.items()} == {
        "detection_minutes": 5,
        "restart_minutes": 15,
        "checkpoint_write_minutes": 2,
        "checkpoint_blocking_share": 1,
        "spare_share": 0.02,
    }
    assert all(len(default.source) > 20 for default in defaults.values())


def test_newer_software_never_recovers_more_slowly() -> None:
    """Detection, restart and the blocking part of a checkpoint fall from year to year; every field stays sourced."""
    years = [recovery_defaults(year) for year in range(2015, 2031)]
    for name in ("detection_minutes", "restart_minutes", "checkpoint_write_minutes", "checkpoint_blocking_share"):
        values = [defaults[name].value for defaults in years]
        assert values == sorted(values, reverse=True)
    assert {frozenset(defaults) for defaults in years} == {frozenset(years[0])}
    assert years[-1]["checkpoint_blocking_share"].value < 0.1
