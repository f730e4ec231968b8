"""What finished runs teach: drawn towards what was seen, the further the more runs there are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.tracking.feedback import FeedbackRules, RunOutcome
from service.engine.tracking.feedback import RATES, feedback_factors, make_lessons, mean_overhead, scale_throughput
from service.presets.hardware.accelerators import find_accelerator
from service.presets.training.utilisation import find_utilisation

RULES = FeedbackRules(prior_runs=1.0, min_hours=24.0, source="here")
ONE = RunOutcome("r1", "H100", 0.8, 10_000.0, 3, {"evaluation": 0.1})


def test_one_run_goes_half_of_the_way_and_many_nearly_all_of_it() -> None:
    """The model counts as one run."""
    assert feedback_factors([ONE], "H100", 50_000.0, RULES).throughput_ratio == pytest.approx(0.8**0.5)
    assert feedback_factors([ONE] * 99, "H100", 50_000.0, RULES).throughput_ratio == pytest.approx(0.8**0.99)


def test_failures_are_counted_beside_one_of_the_usual_rate() -> None:
    """A gamma prior of one failure in the usual MTTF."""
    found = feedback_factors([ONE, replace(ONE, interruptions=0)], "H100", 50_000.0, RULES)
    assert found.mttf_hours_per_accelerator == (50_000.0 + 20_000.0) / (1 + 3)
    assert found.failure_runs == 2


def test_another_accelerator_teaches_overheads_alone() -> None:
    """People work the same on any."""
    found = feedback_factors([ONE], "A100", 50_000.0, RULES)
    assert (found.throughput_ratio, found.mttf_hours_per_accelerator, mean_overhead([ONE])) == (None, None, ({"evaluation": 0.1}, 1))


def test_nobody_taught_anything() -> None:
    """Then nothing is learned."""
    found = feedback_factors([], "H100", 50_000.0, RULES)
    assert (found.throughput_ratio, found.mttf_hours_per_accelerator, mean_overhead([])) == (None, None, ({}, 0))
    assert make_lessons([]) is None


def test_the_version_names_the_content_in_any_order() -> None:
    """Equal for equal outcomes, another one for any other figure or run."""
    other = replace(ONE, run="r2")
    first, again, changed, fewer = (
        make_lessons(outcomes) for outcomes in ([ONE, other], [other, ONE], [ONE, replace(other, interruptions=4)], [ONE])
    )
    assert first == again
    assert len({lessons.version for lessons in (first, changed, fewer) if lessons}) == 3


def test_a_run_without_a_plan_teaches_failures_alone() -> None:
    """It has no ratio."""
    found = feedback_factors([replace(ONE, throughput_ratio=None)], "H100", 50_000.0, RULES)
    assert (found.throughput_ratio, found.throughput_runs, found.failure_runs) == (None, 0, 1)


@given(st.lists(st.floats(0.3, 1.5), min_size=1, max_size=30))
def test_the_ratio_lies_between_the_model_and_the_runs(ratios: list[float]) -> None:
    """Never beyond what was seen, never on the other side of the model."""
    found = feedback_factors([replace(ONE, throughput_ratio=ratio) for ratio in ratios], "H100", 50_000.0, RULES).throughput_ratio
    assert found is not None
    assert min(1.0, *ratios) - 1e-12 <= found <= max(1.0, *ratios) + 1e-12


@given(st.floats(0.2, 3.0))
def test_no_share_of_a_peak_goes_above_the_peak(ratio: float) -> None:
    """However fast the runs were."""
    used = scale_throughput(find_utilisation(find_accelerator("H100").accelerator, "bf16", "layout", 8), ratio)
    assert all(0 < getattr(used, name) <= 1 + 1e-12 for name in RATES)
