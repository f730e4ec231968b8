"""What an evaluation can detect: power of a two-sided comparison of two means or shares, and the samples and seeds that reach one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

NORMAL = NormalDist()
# Beyond this no suite and no program goes.
MOST = 10**12
BISECTIONS = 60


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two values of a metric to be told apart.

    Attributes
    ----------
    baseline, target : float
        [unit of the metric].
    deviation : float or None
        Standard deviation of one sample's score [unit of the metric]; None: binomial, for a metric that is a share.
    seed_deviation : float
        Standard deviation of the metric between trainings that differ in their seed alone [unit of the metric].
    significance : float
        Probability to find a difference where there is none, two-sided [1].
    """

    baseline: float
    target: float
    deviation: float | None
    seed_deviation: float
    significance: float


def detection_power(comparison: Comparison, samples: float, seeds: float) -> float:
    """Probability that the difference is found significant.

    Parameters
    ----------
    comparison : Comparison
        Values to be told apart.
    samples : float
        Samples of each of the two evaluations. Seeds are judged on the same ones, so they do not average these out.
    seeds : float
        Trainings behind each of the two values.

    Returns
    -------
    float
        Phi((|difference| - z sqrt(v0)) / sqrt(v1)) [1], z the quantile at 1 - significance / 2. v1 is the variance of the difference,
        s1^2 / samples + s2^2 / samples + 2 seed_deviation^2 / seeds; v0 the same where both have their mean value. Of a share p,
        s^2 = p (1 - p). Samples are not paired: where both models answer the same ones the power is higher.

    References
    ----------
    Fleiss, Levin and Paik 2003, Statistical Methods for Rates and Proportions, section 4.2; Miller 2024 (arXiv 2411.00640), sections 2
    and 5.
    """
    null, alternative = _variances(comparison, samples, seeds)
    distance = abs(comparison.target - comparison.baseline) - NORMAL.inv_cdf(1 - comparison.significance / 2) * sqrt(null)
    if alternative == 0:
        return float(distance > 0)
    return NORMAL.cdf(distance / sqrt(alternative))


def samples_needed(comparison: Comparison, seeds: int, power: float) -> int | None:
    """Fewest samples of each evaluation that reach a power with a number of seeds; None where no number does."""
    return _fewest(lambda samples: detection_power(comparison, samples, seeds) >= power)


def seeds_needed(comparison: Comparison, samples: int, power: float) -> int | None:
    """Fewest trainings behind each value that reach a power with a number of samples; None where no number does."""
    return _fewest(lambda seeds: detection_power(comparison, samples, seeds) >= power)


def smallest_difference(comparison: Comparison, samples: int, seeds: int, power: float) -> float | None:
    """Smallest difference from the baseline, in the target's direction, that reaches a power.

    Parameters
    ----------
    comparison : Comparison
        Baseline, direction and noise.
    samples, seeds : int
        Of each of the two values.
    power : float
        [1].

    Returns
    -------
    float or None
        [unit of the metric]; None where a share has no such value left.
    """
    direction = 1.0 if comparison.target >= comparison.baseline else -1.0

    def reaches(difference: float) -> bool:
        value = comparison.baseline + direction * difference
        known = Comparison(comparison.baseline, value, comparison.deviation, comparison.seed_deviation, comparison.significance)
        return detection_power(known, samples, seeds) >= power

    if comparison.deviation is None:
        high = 1 - comparison.baseline if direction > 0 else comparison.baseline
    else:
        high = 1e3 * (comparison.deviation + comparison.seed_deviation)
    if not reaches(high):
        return None
    low = 0.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high


def _variances(comparison: Comparison, samples: float, seeds: float) -> tuple[float, float]:
    """Variance of the difference where both values are the same, and where they are as stated [squared unit of the metric]."""
    between = 2 * comparison.seed_deviation**2 / seeds
    if comparison.deviation is not None:
        variance = 2 * comparison.deviation**2 / samples + between
        return variance, variance
    mean = (comparison.baseline + comparison.target) / 2
    apart = sum(value * (1 - value) for value in (comparison.baseline, comparison.target))
    return 2 * mean * (1 - mean) / samples + between, apart / samples + between


def _fewest(enough: Callable[[int], bool]) -> int | None:
    """The smallest number from 1 on that is enough, where every larger one is too."""
    if not enough(MOST):
        return None
    low, high = 0, 1
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
