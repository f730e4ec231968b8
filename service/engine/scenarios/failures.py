"""Time that failures and checkpoints take of runs, drawn: the process whose mean `reliability.goodput` gives (Daly 2006).

Work is done in segments of an interval and its checkpoint's write. A segment is tried until it passes without failure; each failure loses
what was done of the segment and adds a recovery, itself tried until it passes. So the failed attempts of n segments are negative binomial,
the time lost in each is exponential cut off at the segment's length, and recoveries are the same on a smaller scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from service.domain.scenarios import Floats, Ints, Singles
from service.engine.scenarios.distributions import normal_cdf

# Where more failures are expected, the sum is as good as its first three cumulants; fewer are drawn one by one.
MOST_ONE_BY_ONE = 10.0
# So many failures in a trial that expects ten or fewer: less than one in a billion, even of a single segment.
MOST_COUNTED = 300
# A skewness below it is none: what is left of it then is rounding.
LEAST_BEND = 1e-3
# Failures in a length: below it rounding would be all that is left of an exponential time's moments.
RAREST = 1e-4
# Above it a segment never ends; hours stay numbers.
LARGEST_EXPONENT = 50.0


@dataclass(frozen=True, slots=True)
class CheckpointPolicy:
    """How a run saves and recovers [h]: time between checkpoints, what a write takes of it, detection and restart (one a trial, or one)."""

    interval_hours: float
    write_hours: float
    recovery_hours: Floats | float

    @property
    def segment_hours(self) -> float:
        return self.interval_hours + self.write_hours


@dataclass(frozen=True, slots=True)
class SegmentCumulants:
    """Cumulants of the time one segment takes beyond its own length [h, h^2], and the failures expected in it."""

    failures: Floats
    mean: Floats
    variance: Floats


@dataclass(frozen=True, slots=True)
class LostTime:
    """Hours beside the useful ones in each trial, and those that were to be expected there."""

    hours: Floats
    expected: Floats


def draw_lost_hours(
    useful_hours: Floats, failures_per_hour: Floats, policy: CheckpointPolicy, z: Singles, rng: np.random.Generator
) -> LostTime:
    """Hours beside the useful ones, one a trial: writes, repeated work, recoveries. `z`: standard normal scores, of how many failures."""
    segments = useful_hours / policy.interval_hours
    one = segment_cumulants(failures_per_hour, policy)
    expected, variance = segments * one.mean, segments * one.variance
    few = np.flatnonzero(segments * one.failures < MOST_ONE_BY_ONE)
    all_few = few.size == segments.size
    extra = np.empty(few.size) if all_few else _by_cumulants(expected, variance, _skewness(failures_per_hour, segments, policy), z)
    if few.size:
        recovery = np.broadcast_to(policy.recovery_hours, segments.shape)[few]
        extra[few] = _one_by_one(segments[few], failures_per_hour[few], policy.segment_hours, recovery, normal_cdf(z[few]), rng)
    writes = segments * policy.write_hours
    extra += writes
    expected += writes
    return LostTime(extra, expected)


def segment_cumulants(failures_per_hour: Floats, policy: CheckpointPolicy) -> SegmentCumulants:
    """What failures add to one segment: the failed attempts are geometric, each an attempt cut off and a recovery.

    With m the mean time to a failure, a length L that is tried until it passes takes m (exp(L / m) - 1) hours in the mean: the segment F m
    with F failed attempts, a recovery R of r hours. Together that is a mean of F (m + R) - L beyond L, and a variance of
    2 (m + R) (mean - F r) - L^2 + mean^2.
    """
    length, recovery = policy.segment_hours, policy.recovery_hours
    mean_hours = 1 / failures_per_hour
    failed = np.expm1(np.minimum(failures_per_hour * length, LARGEST_EXPONENT))
    recovered = np.expm1(np.minimum(failures_per_hour * recovery, LARGEST_EXPONENT))
    recovered *= mean_hours
    mean = failed * (mean_hours + recovered)
    mean -= length
    mean_hours += recovered
    variance = mean - failed * recovery
    variance *= mean_hours
    variance *= 2
    variance += np.square(mean) - length**2
    return SegmentCumulants(failed, mean, np.maximum(variance, 0.0, out=variance))


def _by_cumulants(mean: Floats, variance: Floats, skewness: float, z: Singles) -> Floats:
    """Sums with this mean, variance and skewness: a shifted gamma distribution, by Wilson and Hilferty (1931)."""
    bend = max(skewness / 6, LEAST_BEND)
    root = z * np.float32(bend) + np.float32(1 - bend**2)
    shape: Floats = (root * root * root - 1).astype(np.float64)
    shape *= np.sqrt(variance) / (3 * bend)
    shape += mean
    return np.maximum(shape, 0.0, out=shape)


def _skewness(failures_per_hour: Floats, segments: Floats, policy: CheckpointPolicy) -> float:
    """Skewness of what failures add, at the mean rate and recovery."""
    rate, recovery = (float(f"{np.mean(each):.2g}") for each in (failures_per_hour, policy.recovery_hours))
    return _segment_skewness(rate, policy.segment_hours, recovery) / math.sqrt(float(np.mean(segments)))


@lru_cache(maxsize=1024)
def _segment_skewness(rate: float, length: float, recovery: float) -> float:
    """Skewness of what failures add to one segment, in which each loses an attempt and makes a recovery that may fail itself."""
    mean, variance, third = _repeated(rate, recovery, _cut_off_moments(rate, recovery))
    mean += recovery
    square, cube = variance + mean**2, third + 3 * mean * variance + mean**3
    lost, lost_square, lost_cube = _cut_off_moments(rate, length)
    both = (lost + mean, lost_square + 2 * lost * mean + square, lost_cube + 3 * lost_square * mean + 3 * lost * square + cube)
    _, variance, third = _repeated(rate, length, both)
    return max(0.0, third / variance**1.5) if variance > 0 else 0.0


def _repeated(rate: float, length: float, moments: tuple[float, float, float]) -> tuple[float, float, float]:
    """First three cumulants of what is added to a length that is tried until it passes, a failure adding what has these moments."""
    failed = math.expm1(min(rate * length, LARGEST_EXPONENT))
    one, two, three = (failed * moment for moment in moments)
    return one, two + one**2, three + 3 * one * two + 2 * one**3


def _cut_off_moments(rate: float, length: float) -> tuple[float, float, float]:
    """Mean, mean square and mean cube of an exponential time below `length`; of a uniform one where failures are so rare."""
    if rate * length < RAREST:
        return length / 2, length**2 / 3, length**3 / 4
    failed = math.expm1(min(rate * length, LARGEST_EXPONENT))
    first = 1 / rate - length / failed
    second = 2 * first / rate - length**2 / failed
    return first, second, 3 * second / rate - length**3 / failed


def _one_by_one(segments: Floats, rate: Floats, length: float, recovery: Floats, shares: Floats, rng: np.random.Generator) -> Floats:
    """Every failure drawn: how many attempts fail, when each does, how often its recovery fails, and when that does."""
    attempts = _failed_attempts(segments, np.minimum(rate * length, LARGEST_EXPONENT), shares)
    found = np.zeros(segments.shape)
    hit = np.flatnonzero(attempts)
    if not hit.size:
        return found
    count, often, back = attempts[hit], rate[hit], recovery[hit]
    again = rng.negative_binomial(count, np.exp(-np.minimum(often * back, LARGEST_EXPONENT)))
    found[hit] = _cut_off(count, often, np.broadcast_to(length, often.shape), rng) + count * back + _cut_off(again, often, back, rng)
    return found


def _failed_attempts(segments: Floats, expected: Floats, shares: Floats) -> Ints:
    """The negative binomial number that this share of trials does not exceed, by adding up probabilities: with few failures most are 0.

    `expected`: failures in a segment's length if none of them ended it.
    """
    found = np.zeros(segments.shape, dtype=np.int64)
    term = np.exp(-segments * expected)
    left = shares - term
    rows = np.flatnonzero(left > 0)
    term, left, number, failing = term[rows], left[rows], segments[rows], -np.expm1(-expected[rows])
    for count in range(1, MOST_COUNTED):
        if not rows.size:
            break
        found[rows] = count
        term = term * failing * (number + (count - 1)) / count
        left = left - term
        on = left > 0
        rows, term, left, number, failing = rows[on], term[on], left[on], number[on], failing[on]
    return found


def _cut_off(counts: Ints, rate: Floats, length: Floats, rng: np.random.Generator) -> Floats:
    """Sums of so many exponential times below `length` each."""
    owner = np.repeat(np.arange(counts.size), counts)
    within = -np.expm1(-rate * length)
    times = -np.log1p(-rng.random(owner.size) * within[owner]) / rate[owner]
    return np.asarray(np.bincount(owner, times, minlength=counts.size), dtype=np.float64)
