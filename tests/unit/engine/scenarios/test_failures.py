"""Failures: many at once are as good as one by one, rhythm and rate move the mean as the closed form says, and extremes stay numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.scenarios import Floats
from service.engine.scenarios.failures import MOST_ONE_BY_ONE, CheckpointPolicy, draw_lost_hours, segment_cumulants
from service.engine.scenarios.trials import block_streams
from service.engine.training.reliability import goodput

TRIALS = 100_000


def lost(segments: float, rate: float, rhythm: CheckpointPolicy, seed: int) -> Floats:
    fixed_rng, variable_rng = block_streams(seed, 0)
    z = fixed_rng.standard_normal(TRIALS, dtype=np.float32)
    useful = np.full(TRIALS, segments * rhythm.interval_hours)
    return draw_lost_hours(useful, np.full(TRIALS, rate), rhythm, z, variable_rng)[0]


def skewness(values: Floats) -> float:
    return float(np.mean((values - values.mean()) ** 3) / values.std() ** 3)


@pytest.mark.parametrize(("rate", "recovery"), [(0.3, 0.2), (0.3, 1.5), (0.05, 4.0)])
def test_many_failures_have_the_cumulants_of_few_added_up(rate: float, recovery: float) -> None:
    """A run with so many failures that they are summed is four runs in which each is drawn: mean, variance and skewness."""
    rhythm = CheckpointPolicy(1.0, 0.1, recovery)
    segments = 4 * 0.99 * MOST_ONE_BY_ONE / math.expm1(rate * rhythm.segment_hours)
    one_by_one = np.sum([lost(segments / 4, rate, rhythm, seed) for seed in range(1, 5)], axis=0)
    summed = lost(segments, rate, rhythm, 9)
    error = math.hypot(float(one_by_one.std()), float(summed.std())) / math.sqrt(TRIALS)
    assert abs(one_by_one.mean() - summed.mean()) <= 3 * error
    assert summed.var() == pytest.approx(one_by_one.var(), rel=0.025)
    assert skewness(summed) == pytest.approx(skewness(one_by_one), abs=0.07)
    for share in (0.05, 0.5, 0.95):
        assert np.quantile(summed, share) == pytest.approx(np.quantile(one_by_one, share), rel=0.01)


@given(st.floats(1e-6, 2.0), st.floats(0.1, 5.0), st.floats(0.0, 1.0), st.floats(0.0, 3.0))
def test_the_mean_is_that_of_the_estimates_goodput(rate: float, interval: float, write: float, recovery: float) -> None:
    """Useful hours over all hours, for any rhythm."""
    one = segment_cumulants(np.array([rate]), CheckpointPolicy(interval, write, recovery))
    assert interval / (interval + write + float(one.mean[0])) == pytest.approx(goodput(rate, interval, write, recovery), rel=1e-6)


@given(st.floats(1e-12, 100.0), st.floats(0.01, 100.0), st.floats(0.0, 100.0))
def test_no_rate_makes_anything_else_than_numbers(rate: float, interval: float, recovery: float) -> None:
    """Never less than the writes take, never infinite."""
    fixed_rng, variable_rng = block_streams(1, 0)
    z = fixed_rng.standard_normal(200, dtype=np.float32)
    found, _ = draw_lost_hours(np.full(200, 50.0), np.full(200, rate), CheckpointPolicy(interval, 0.1, recovery), z, variable_rng)
    assert np.isfinite(found).all()
    assert (found >= 50.0 / interval * 0.1 - 1e-9).all()


def test_each_trial_has_its_own_recovery() -> None:
    """Restart minutes may be uncertain: twice the recovery on half of the trials."""
    fixed_rng, variable_rng = block_streams(2, 0)
    recovery = np.repeat([0.5, 1.0], TRIALS // 2)
    z = fixed_rng.standard_normal(TRIALS, dtype=np.float32)
    found = draw_lost_hours(np.full(TRIALS, 100.0), np.full(TRIALS, 0.02), CheckpointPolicy(1.0, 0.0, recovery), z, variable_rng)[0]
    for part, hours in ((found[: TRIALS // 2], 0.5), (found[TRIALS // 2 :], 1.0)):
        expected = 100.0 / goodput(0.02, 1.0, 0.0, hours) - 100.0
        assert abs(part.mean() - expected) <= 3 * part.std() / math.sqrt(part.size)


def cumulants(log_generating: Callable[[float], float], step: float) -> tuple[float, float, float]:
    """Mean, variance and third cumulant of a time by differences of the logarithm of its moment-generating function."""
    two_below, below, at, above, two_above = (log_generating(multiple * step) for multiple in (-2, -1, 0, 1, 2))
    return (above - below) / (2 * step), (above - 2 * at + below) / step**2, (two_above - 2 * above + 2 * below - two_below) / (2 * step**3)


@pytest.mark.parametrize(("rate", "recovery"), [(0.3, 1.5), (0.3, 0.0), (0.05, 4.0), (5e-5, 0.0), (5e-5, 1.0)])
def test_many_failures_scatter_as_their_generating_function_says(rate: float, recovery: float) -> None:
    """Segments fail a geometric number of times; each loses a truncated exponential time and a recovery that may fail itself.

    Sums are a shifted gamma distribution with their three cumulants: mean + sd / (3 s) ((z s + 1 - s^2)^3 - 1), s a sixth of the skewness.
    """
    segments = 40 / math.expm1(rate)

    def lost_part(t: float, length: float) -> float:
        """Moment-generating function of a time that a failure ends within a length."""
        return rate * -math.expm1((t - rate) * length) / ((rate - t) * -math.expm1(-rate * length))

    def repeated(t: float, length: float, one: float) -> float:
        """Of what failures add to a length that is repeated until it passes."""
        passing = math.exp(-rate * length)
        return passing / (1 - (1 - passing) * one)

    def recovering(t: float) -> float:
        return math.exp(t * recovery) * repeated(t, recovery, lost_part(t, recovery)) if recovery else 1.0

    mean, variance, third = cumulants(lambda t: segments * math.log(repeated(t, 1.0, lost_part(t, 1.0) * recovering(t))), 3e-3 * (1 + rate))
    z = np.array([-2.0, 0.0, 1.0, 3.0], dtype=np.float32)
    _, rng = block_streams(1, 0)
    _, expected_with_writes = draw_lost_hours(np.full(4, segments), np.full(4, rate), CheckpointPolicy(1.0, 0.25, recovery), z, rng)
    # With the writes the segments are longer; without them they are as above.
    hours, expected_bare = draw_lost_hours(np.full(4, segments), np.full(4, rate), CheckpointPolicy(1.0, 0.0, recovery), z, rng)
    sixth = third / variance**1.5 / 6
    expected = mean + math.sqrt(variance) / (3 * sixth) * ((z * sixth + 1 - sixth**2) ** 3 - 1)
    assert expected_bare == pytest.approx(np.full(4, mean), rel=1e-4)
    assert hours == pytest.approx(expected, rel=2e-3)
    assert (expected_with_writes > expected_bare + segments * 0.25).all()


def test_what_is_expected_counts_the_writes() -> None:
    """100 segments' failures, and a quarter of an hour of writing in each."""
    policy = CheckpointPolicy(1.0, 0.25, 0.5)
    _, expected = draw_lost_hours(np.full(3, 100.0), np.full(3, 0.01), policy, np.zeros(3, dtype=np.float32), block_streams(1, 0)[1])
    assert expected == pytest.approx(100 * segment_cumulants(np.full(3, 0.01), policy).mean + 25.0)
