"""Change points: changes of level are found where they are, chance and single days are left alone, and too many failures are told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.tracking.monitoring.change_point import (
    FailureRules,
    Floats,
    SplitRules,
    change_point,
    failure_evidence,
    more_failures,
    split_statistics,
    threshold,
)
from service.presets.tracking.forecast import drift_rules

RULES = drift_rules()
SPLITS, LIMITS = RULES.splits, RULES.limits["throughput"]


def days(count: int, changed_after: int, factor: float, seed: int = 0, noise: float = 0.01) -> Floats:
    """Days of one level and, after so many, of another."""
    values = 100 * np.random.default_rng(seed).normal(1, noise, count)
    values[changed_after:] *= factor
    return values


@given(st.integers(0, 30), st.integers(10, 60), st.sampled_from([0.7, 0.85, 1.2]))
def test_a_lasting_change_is_found_where_it_is(seed: int, before: int, factor: float) -> None:
    """Ten days after it, within a day, by its size."""
    found = change_point(days(before + 10, before, factor, seed), SPLITS, LIMITS)
    assert found is not None
    assert abs(found.index - before) <= 1
    assert found.ratio == pytest.approx(factor, rel=0.02)
    assert 1 - LIMITS.false_alarm_share < found.confidence <= 1


@given(st.integers(0, 1000), st.integers(1, 120))
def test_even_days_hold_no_change(seed: int, count: int) -> None:
    """Days that differ by a hundredth and nothing else."""
    assert change_point(days(count, count, 1.0, seed), SPLITS, LIMITS) is None


@given(st.floats(1e-6, 1e6), st.integers(0, 20))
def test_the_unit_does_not_matter(factor: float, seed: int) -> None:
    """Statistics of a series in another unit are the same."""
    values = days(40, 30, 0.9, seed)
    assert split_statistics(values * factor, SPLITS, 0.04) == pytest.approx(split_statistics(values, SPLITS, 0.04), rel=1e-6)


def test_many_series_at_once_are_judged_as_each_alone() -> None:
    """Series along the last axis do not touch each other."""
    rows = np.stack([days(30, 20, 0.9, seed) for seed in range(4)])
    together = split_statistics(rows, SPLITS, 0.04)
    assert together == pytest.approx(np.stack([split_statistics(row, SPLITS, 0.04) for row in rows]))


@pytest.mark.parametrize("bad", [1, 2])
def test_single_bad_days_are_no_change(bad: int) -> None:
    """A day or two at half the pace pass by."""
    values = days(40, 40, 1.0)
    values[-bad:] *= 0.5
    assert change_point(values, SPLITS, LIMITS) is None


def test_days_that_remember_need_more_to_be_a_change() -> None:
    """The same ups and downs say less of a level when each day resembles the one before."""
    rng = np.random.default_rng(4)
    shocks = rng.normal(0, 0.08, 60)
    remembering = np.zeros(60)
    for day in range(1, 60):
        remembering[day] = 0.7 * remembering[day - 1] + np.sqrt(1 - 0.49) * shocks[day]
    splits = replace(SPLITS, max_autocorrelation=0.0)
    believed = split_statistics(1 + remembering, splits, 0.04).max()
    assert split_statistics(1 + remembering, SPLITS, 0.04).max() < 0.7 * believed


def test_too_few_days_say_nothing() -> None:
    """Seven before and three after are the fewest."""
    values = np.array([100.0] * 7 + [50.0] * 3)
    assert change_point(values[:-1], SPLITS, LIMITS) is None
    assert change_point(values, SPLITS, LIMITS) is not None


def test_a_level_of_nothing_has_no_ratio() -> None:
    """What comes after days of nothing is no share of it."""
    assert change_point(np.array([0.0] * 20 + [1.0] * 20), SPLITS, LIMITS) is None


def test_each_number_of_days_has_its_threshold() -> None:
    """That of the last span it has reached; before the first one, the first."""
    found = [threshold(count, LIMITS) for count in (1, LIMITS.days[0], LIMITS.days[1] - 1, LIMITS.days[1], 10_000)]
    assert found == [LIMITS.thresholds[place] for place in (0, 0, 0, 1, -1)]


def test_interruptions_as_planned_are_no_drift() -> None:
    """As many as planned, or none at all."""
    assert more_failures(np.ones(60), 1.0, RULES.failures) is None
    assert more_failures(np.zeros(60), 1.0, RULES.failures) is None
    assert more_failures(np.zeros(0), 1.0, RULES.failures) is None


def test_more_interruptions_are_told_since_when() -> None:
    """Three times as many as planned from a day on."""
    found = more_failures(np.array([1.0] * 40 + [3.0] * 15), 1.0, RULES.failures)
    assert found is not None
    assert abs(found.index - 40) <= 1
    assert found.ratio == pytest.approx(3, rel=0.1)
    assert found.confidence > 1 - RULES.failures.false_alarm_share


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.floats(0.1, 5))
def test_another_interruption_never_speaks_for_the_plan(counts: list[int], planned: float) -> None:
    """Evidence of more interruptions than planned grows with each."""
    values = np.array(counts, dtype=np.float64)
    before, after = (failure_evidence(more, planned, RULES.failures).sum() for more in (values, values + np.eye(len(counts))[0]))
    assert after > before


def test_evidence_of_failures_by_hand() -> None:
    """Twice the plan of one a day: (n ln 2 - 1) / dispersion for each day since, half of the prior on the first and the rest falling."""
    rules = FailureRules(ratios=(2.0,), dispersion=1.5, false_alarm_share=0.01)
    counts = np.array([1.0, 3.0, 4.0])
    each = (counts * np.log(2) - 1) / 1.5
    weights = [0.5, 0.5 * 8**0.5 * (8**-0.5 - 9**-0.5), 0.5 * 8**0.5 * (9**-0.5 - 10**-0.5)]
    expected = [weight * np.exp(each[since:].sum()) for since, weight in enumerate(weights)]
    assert failure_evidence(counts, 1.0, rules) == pytest.approx(expected)
    two = replace(rules, ratios=(2.0, 3.0))
    others = (counts * np.log(3) - 2) / 1.5
    expected = [weight * (np.exp(each[since:].sum()) + np.exp(others[since:].sum())) / 2 for since, weight in enumerate(weights)]
    assert failure_evidence(counts, 1.0, two) == pytest.approx(expected)


def test_the_confidence_in_more_failures_is_one_less_the_inverse_evidence() -> None:
    """Ten a day in place of one: since the first day, ten times the plan."""
    rules = FailureRules(ratios=(2.0, 4.0), dispersion=1.0, false_alarm_share=0.01)
    counts = np.full(4, 10.0)
    found = more_failures(counts, 1.0, rules)
    assert found is not None
    assert (found.index, found.ratio) == (0, 10.0)
    few = np.array([3.0, 3.0, 3.0])
    evidence = float(failure_evidence(few, 1.0, rules).sum())
    assert evidence > 2
    lenient = more_failures(few, 1.0, replace(rules, false_alarm_share=0.5))
    assert lenient is not None
    assert lenient.confidence == pytest.approx(1 - 1 / evidence)
    assert more_failures(few, 1.0, replace(rules, false_alarm_share=0.9 / evidence)) is None


def test_the_confidence_in_a_change_falls_like_a_normal_tail() -> None:
    """1 less the false alarms' share times e to (limit^2 - statistic^2) / 2."""
    values = days(12, 8, 1.15, seed=3, noise=0.05)
    largest = float(split_statistics(values, SPLITS, LIMITS.typical_scatter).max())
    near = replace(LIMITS, days=(0,), thresholds=(largest - 0.2,))
    found = change_point(values, SPLITS, near)
    assert found is not None
    expected = 1 - LIMITS.false_alarm_share * np.exp(((largest - 0.2) ** 2 - largest**2) / 2)
    assert found.confidence == pytest.approx(expected)
    assert change_point(values, SPLITS, replace(near, thresholds=(largest,))) is None


def test_a_split_statistic_by_hand() -> None:
    """Two levels of three days, uncorrelated: the difference of the means over the moderated error, all by the module's own formulas."""
    splits = SplitRules(3, 3, widening=2.0, clip=100.0, typical_autocorrelation=0.0, autocorrelation_weight=1e12, max_autocorrelation=0.5)
    values = np.array([10.0, 14.0, 9.0, 50.0, 44.0, 55.0])
    middle, between = 29.0, 6.0  # the median of the differences 4, 5, 41, 6, 11
    z = (values - middle) / (2.0 * 1.4826 / 2**0.5 * between)
    within = sum((z[part] - z[part].mean()) @ (z[part] - z[part].mean()) for part in (slice(0, 3), slice(3, 6)))
    error = (max(within / (6 - 2), 1) * (1 / 3 + 1 / 3)) ** 0.5
    assert split_statistics(values, splits, 0.0) == pytest.approx([abs(z[3:].mean() - z[:3].mean()) / error])
    wild = np.array([10.0, 10.0, 10.0, 400.0, 400.5, 900.0])
    between = 0.5  # of 0, 0, 390, 0.5, 499.5
    z = (wild - 205.0) / (2.0 * 1.4826 / 2**0.5 * between)
    far = replace(splits, clip=1e9)
    within = (z[3:] - z[3:].mean()) @ (z[3:] - z[3:].mean())
    assert within / 4 > 1
    assert split_statistics(wild, far, 0.0) == pytest.approx([abs(z[3:].mean() - z[:3].mean()) / (within / 4 * 2 / 3) ** 0.5], rel=1e-6)


def test_correlated_days_have_a_wider_mean() -> None:
    """With an autocorrelation of 0.5 the variance of a mean of n days is (3 - (1 - 0.5^n) 4 / n) / n, for 3 days 11 / 18."""
    splits = SplitRules(3, 3, widening=2.0, clip=100.0, typical_autocorrelation=0.5, autocorrelation_weight=1e12, max_autocorrelation=0.9)
    values = np.array([10.0, 14.0, 9.0, 50.0, 44.0, 55.0])
    independent = split_statistics(values, replace(splits, typical_autocorrelation=0.0), 0.0)
    assert split_statistics(values, splits, 0.0) == pytest.approx(independent * ((1 / 3) / (11 / 18)) ** 0.5, rel=1e-6)
