"""Random time that failures and checkpoints add to a run: the process whose mean is `reliability.goodput` (Daly 2006).

Work is done in segments: a checkpoint interval and the checkpoint's write. A segment is repeated until it passes without failure; each
failure loses the work of the segment so far and adds a recovery, which is itself repeated until it passes. So the number of failed attempts
of n segments is negative binomial, the time lost in each is exponential truncated at the segment's length, and recoveries follow the same
process on a smaller scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from service.domain.scenarios import Floats, Ints, Singles
from service.engine.scenarios.distributions import normal_cdf

# With more expected failures the sum is well described by its first three cumulants; fewer are drawn one by one.
MOST_ONE_BY_ONE = 10.0
# More failures in a trial that expects at most ten have a probability below 1e-9, even with a single segment.
MOST_COUNTED = 300
# Smaller values of skewness / 6 are rounding errors.
LEAST_SKEWNESS_SIXTH = 1e-3
# With fewer expected failures in a length, an exponential time's moments would be rounding errors: it is taken for uniform.
FEWEST_EXPECTED = 1e-4
# Larger exponents are cut off so that hours stay finite: such a segment practically never passes.
LARGEST_EXPONENT = 50.0


@dataclass(frozen=True, slots=True)
class CheckpointPolicy:
    """Checkpoint and recovery times [h]: interval, blocking write time, detection and restart (scalar or one a trial)."""

    interval_hours: float
    write_hours: float
    recovery_hours: Floats | float

    @property
    def segment_hours(self) -> float:
        """Length of a segment [h]."""
        return self.interval_hours + self.write_hours


@dataclass(frozen=True, slots=True)
class SegmentCumulants:
    """Expected failed attempts of a segment, and mean [h] and variance [h^2] of the time they add."""

    failures: Floats
    mean: Floats
    variance: Floats


def draw_lost_hours(
    useful_hours: Floats, failures_per_hour: Floats, policy: CheckpointPolicy, z: Singles, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Hours lost to checkpoint writes, repeated work and recoveries.

    Parameters
    ----------
    useful_hours : (trials,) float array
        Training alone [h].
    failures_per_hour : (trials,) float array
        Failure rate of the whole job [1/h].
    policy : CheckpointPolicy
        Checkpoint interval, write and recovery times [h].
    z : (trials,) float array
        Standard normal scores of the number of failures [1].
    rng : Generator
        Source of what is drawn for each failure.

    Returns
    -------
    (trials,) float array, (trials,) float array
        Drawn and expected lost hours [h].

    References
    ----------
    Daly 2006 (expected time); Wilson and Hilferty 1931 (sums of many failures).
    """
    segments = useful_hours / policy.interval_hours
    single = segment_cumulants(failures_per_hour, policy)
    expected, variance = segments * single.mean, segments * single.variance
    few = np.flatnonzero(segments * single.failures < MOST_ONE_BY_ONE)
    all_few = few.size == segments.size
    extra = np.empty(few.size) if all_few else _by_cumulants(expected, variance, _skewness(failures_per_hour, segments, policy), z)
    if few.size:
        recovery = np.broadcast_to(policy.recovery_hours, segments.shape)[few]
        extra[few] = _one_by_one(segments[few], failures_per_hour[few], policy.segment_hours, recovery, normal_cdf(z[few]), rng)
    writes = segments * policy.write_hours
    extra += writes
    expected += writes
    return extra, expected


def segment_cumulants(failures_per_hour: Floats, policy: CheckpointPolicy) -> SegmentCumulants:
    """Mean and variance of the time that failures add to one segment.

    The number of failed attempts is geometric; each adds a truncated attempt and a recovery. With m the mean time to a failure, a length L
    that is repeated until it passes takes m (exp(L / m) - 1) hours on average: F m for the segment with F failed attempts, R for a recovery
    of r hours. The added time has mean F (m + R) - L and variance 2 (m + R) (mean - F r) - L^2 + mean^2.

    Parameters
    ----------
    failures_per_hour : (trials,) float array
        Failure rate of the whole job [1/h].
    policy : CheckpointPolicy
        Checkpoint interval, write and recovery times [h].

    Returns
    -------
    SegmentCumulants
        Expected failures [1], mean [h] and variance [h^2] of the added time.

    References
    ----------
    Daly 2006, expected time of a segment.
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
    sixth = max(skewness / 6, LEAST_SKEWNESS_SIXTH)
    root = z * np.float32(sixth) + np.float32(1 - sixth**2)
    shape: Floats = (root * root * root - 1).astype(np.float64)
    shape *= np.sqrt(variance) / (3 * sixth)
    shape += mean
    return np.maximum(shape, 0.0, out=shape)


def _skewness(failures_per_hour: Floats, segments: Floats, policy: CheckpointPolicy) -> float:
    """Skewness of the time that failures add, at the mean rate and recovery, rounded so that the cache is hit."""
    rate, recovery = (float(f"{np.mean(values):.2g}") for values in (failures_per_hour, policy.recovery_hours))
    return _segment_skewness(rate, policy.segment_hours, recovery) / math.sqrt(float(np.mean(segments)))


@lru_cache(maxsize=1024)
def _segment_skewness(rate: float, length: float, recovery: float) -> float:
    """Skewness of the time that failures add to one segment; each loses an attempt and adds a recovery that may fail itself."""
    mean, variance, third = _added_cumulants(rate, recovery, _truncated_moments(rate, recovery))
    mean += recovery
    square, cube = variance + mean**2, third + 3 * mean * variance + mean**3
    lost, lost_square, lost_cube = _truncated_moments(rate, length)
    both = (lost + mean, lost_square + 2 * lost * mean + square, lost_cube + 3 * lost_square * mean + 3 * lost * square + cube)
    _, variance, third = _added_cumulants(rate, length, both)
    return max(0.0, third / variance**1.5) if variance > 0 else 0.0


def _added_cumulants(rate: float, length: float, moments: tuple[float, float, float]) -> tuple[float, float, float]:
    """First three cumulants of the time added to a length that is repeated until it passes; `moments` are those of one failure's time."""
    failed = math.expm1(min(rate * length, LARGEST_EXPONENT))
    first, second, third = (failed * moment for moment in moments)
    return first, second + first**2, third + 3 * first * second + 2 * first**3


def _truncated_moments(rate: float, length: float) -> tuple[float, float, float]:
    """Mean, mean square and mean cube of an exponential time truncated at `length`; of a uniform one where failures are rare."""
    if rate * length < FEWEST_EXPECTED:
        return length / 2, length**2 / 3, length**3 / 4
    failed = math.expm1(min(rate * length, LARGEST_EXPONENT))
    first = 1 / rate - length / failed
    second = 2 * first / rate - length**2 / failed
    return first, second, 3 * second / rate - length**3 / failed


def _one_by_one(segments: Floats, rate: Floats, length: float, recovery: Floats, shares: Floats, rng: np.random.Generator) -> Floats:
    """Lost hours with every failure drawn: number of failed attempts, time of each, failed recoveries, and time of each of these."""
    attempts = _failed_attempts(segments, np.minimum(rate * length, LARGEST_EXPONENT), shares)
    lost = np.zeros(segments.shape)
    hit = np.flatnonzero(attempts)
    if not hit.size:
        return lost
    count, rate, recovery = attempts[hit], rate[hit], recovery[hit]
    again = rng.negative_binomial(count, np.exp(-np.minimum(rate * recovery, LARGEST_EXPONENT)))
    in_segments = _sum_truncated(count, rate, np.broadcast_to(length, rate.shape), rng)
    lost[hit] = in_segments + count * recovery + _sum_truncated(again, rate, recovery, rng)
    return lost


def _failed_attempts(segments: Floats, expected: Floats, shares: Floats) -> Ints:
    """Negative binomial quantile at `shares`, by adding up probabilities: with few failures most are 0.

    `expected`: failures in a segment's length if none of them ended it.
    """
    attempts = np.zeros(segments.shape, dtype=np.int64)
    term = np.exp(-segments * expected)
    left = shares - term
    rows = np.flatnonzero(left > 0)
    term, left, number, failing = term[rows], left[rows], segments[rows], -np.expm1(-expected[rows])
    for count in range(1, MOST_COUNTED):
        if not rows.size:
            break
        attempts[rows] = count
        term = term * failing * (number + (count - 1)) / count
        left = left - term
        more = left > 0
        rows, term, left, number, failing = rows[more], term[more], left[more], number[more], failing[more]
    return attempts


def _sum_truncated(counts: Ints, rate: Floats, length: Floats, rng: np.random.Generator) -> Floats:
    """Sums of `counts` exponential times, each truncated at `length`."""
    owner = np.repeat(np.arange(counts.size), counts)
    within = -np.expm1(-rate * length)
    times = -np.log1p(-rng.random(owner.size) * within[owner]) / rate[owner]
    return np.asarray(np.bincount(owner, times, minlength=counts.size), dtype=np.float64)
