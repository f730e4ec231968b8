"""What tallies say: percentiles and means with their standard errors, probabilities, days, causes, and whether that is sure enough."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from service.domain.scenarios import Aggregate, Histogram, QuantitySums
from service.engine.scenarios.aggregates import MOST_UNITS, bin_edge, bin_midpoints
from service.engine.scenarios.attribution import first_order_shares

QUANTILES: Mapping[str, float] = {
    "p05": 0.05, "p10": 0.1, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p80": 0.8, "p90": 0.9, "p95": 0.95,
}  # fmt: skip
STOPPING_QUANTILES = ("p10", "p50", "p90")
# Of fewer trials above a limit nothing is said: their shares would be off by ten points and more.
LEAST_CASES = 30
# The rarest trials, whose part in the variance says whether it means anything.
TAIL = 1e-3


@dataclass(frozen=True, slots=True)
class QuantitySummary:
    """A quantity's percentiles and mean, in its own unit, each with its standard error."""

    quantiles: Mapping[str, float]
    quantile_errors: Mapping[str, float]
    mean: float
    standard_error: float
    sd: float


def summarise_quantity(found: QuantitySums) -> QuantitySummary:
    """What a tally says of one quantity. Errors of percentiles by order statistics (David and Nagaraja 2003, 7.1)."""
    mean, sd = mean_and_sd(found)
    return QuantitySummary(
        {name: quantile(found.histogram, share) for name, share in QUANTILES.items()},
        {name: quantile_error(found.histogram, share) for name, share in QUANTILES.items()},
        mean,
        sd / math.sqrt(found.moments.trials),
        sd,
    )


def mean_and_sd(found: QuantitySums) -> tuple[float, float]:
    """Exact sums, rounded once."""
    trials, total, squares = found.moments.trials, found.moments.total, found.moments.squares
    variance = Fraction(squares * trials - total**2, trials * max(1, trials - 1))
    return float(Fraction(total, trials) * Fraction(found.unit)), math.sqrt(variance) * float(found.unit)


def quantile(found: Histogram, share: float) -> float:
    """The value that a share of the trials does not exceed, evenly spread within its bin."""
    passed = np.cumsum(found.counts)
    rank = share * int(passed[-1])
    at = int(np.searchsorted(passed, rank, side="left"))
    inside = (rank - (int(passed[at]) - int(found.counts[at]))) / int(found.counts[at])
    low, high = bin_edge(found.first + at), bin_edge(found.first + at + 1)
    return low + (high - low) * inside


def quantile_error(found: Histogram, share: float) -> float:
    """Half the distance between the quantiles a standard error of the share to either side."""
    trials = int(found.counts.sum())
    off = math.sqrt(share * (1 - share) / trials)
    return (quantile(found, min(1.0, share + off)) - quantile(found, max(0.5 / trials, share - off))) / 2


def tail_share(found: QuantitySums) -> float:
    """The share of the variance that the greatest thousandth of the trials makes: 1 % of a normal quantity's, half of a log-normal one's
    with a sigma of 1.5. What is cut off in the mean is so here.
    """
    mean, sd = mean_and_sd(found)
    if not sd:
        return 0.0
    squares = np.square(np.minimum(bin_midpoints(found.histogram), float(found.unit) * MOST_UNITS) - mean)
    counts = found.histogram.counts
    above = np.concatenate((np.cumsum(counts[::-1])[::-1][1:], [0]))
    in_tail = np.clip(counts.sum() * TAIL - above, 0, counts)
    # No matrix library: its sums depend on how many threads it has, and wait for all of them where others work.
    return float(np.sum(in_tail * squares)) / float(np.sum(counts * squares))


def day_quantile(found: Histogram, share: float) -> int:
    """The first day by whose end a share of the trials is over, 0 the first."""
    passed = np.cumsum(found.counts)
    return found.first + int(np.searchsorted(passed, share * int(passed[-1]) - 1e-9, side="left"))


def day_mean(found: Histogram) -> tuple[float, float]:
    """The mean day and its standard error."""
    days = np.arange(found.first, found.first + found.counts.size)
    trials = int(found.counts.sum())
    mean = int(days @ found.counts) / trials
    variance = float(np.sum((days - mean) ** 2 * found.counts)) / max(1, trials - 1)
    return mean, math.sqrt(variance / trials)


def is_precise(found: Aggregate, relative_error: float) -> bool:
    """Whether mean and percentiles of cost and hours are known to a relative standard error, and probabilities to the same of 1."""
    return all(_sure(spread, relative_error) for spread in found.quantities.values()) and all(
        _probability_error(times / found.trials, found.trials) <= relative_error for times in found.counts.values()
    )


def estimate_probability(times: int, trials: int) -> tuple[float, float]:
    """A share of trials and its standard error."""
    return times / trials, _probability_error(times / trials, trials)


def variance_shares(found: Aggregate, name: str) -> dict[str, float]:
    """Shares of a quantity's variance by cause, the largest first; nothing where no causes were looked at."""
    if name not in found.attributions:
        return {}
    made = first_order_shares(found.attributions[name])
    return dict(sorted(made.items(), key=lambda item: (-item[1], item[0])))


def largest_cause_shares(found: Aggregate, name: str) -> dict[str, float]:
    """In what share of the trials above the limit each cause did most, the largest first; nothing where too few were looked at."""
    if name not in found.attributions:
        return {}
    blamed = found.attributions[name].largest_cause_counts
    together = sum(blamed.values())
    if together < LEAST_CASES:
        return {}
    return {cause: times / together for cause, times in sorted(blamed.items(), key=lambda item: (-item[1], item[0]))}


def _sure(found: QuantitySums, relative_error: float) -> bool:
    mean, sd = mean_and_sd(found)
    if sd / math.sqrt(found.moments.trials) > relative_error * mean:
        return False
    rows = [(quantile_error(found.histogram, QUANTILES[name]), quantile(found.histogram, QUANTILES[name])) for name in STOPPING_QUANTILES]
    return all(error <= relative_error * value for error, value in rows)


def _probability_error(share: float, trials: int) -> float:
    return math.sqrt(share * (1 - share) / trials)
