"""Distributions as requests state them, and how far they reach.

`{"uniform": [low, high]}`, `{"triangular": [low, mode, high]}`, `{"pert": [low, mode, high]}`, `{"normal": {"mean", "sd"}}`,
`{"lognormal": {"median", "sigma"}}`, `{"p10", "p50", "p90"}` (log-normal to either side), `{"choice": [values], "weights": [...]}`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np

from service.domain.errors import InvalidRequest
from service.domain.quantities import Range
from service.domain.scenarios import (
    Discrete,
    Distribution,
    Floats,
    LogNormal,
    Normal,
    Percentiles,
    Pert,
    Triangular,
    Uniform,
)
from service.engine.scenarios.distributions import FARTHEST_SCORE, quantile_at_score

# Tails beyond it are cut off: no distribution without ends says anything there, and a price below nothing has no meaning.
TAIL = 1e-4
FARTHEST = abs(NormalDist().inv_cdf(TAIL))
MOST_CHOICES = 1000
LARGEST = 1e300
"""So that sums and differences of two values are numbers."""


def parse_distribution(given: object, pointer: str) -> Distribution:
    """The distribution that is stated. Raises InvalidRequest."""
    if not isinstance(given, Mapping):
        raise InvalidRequest("a distribution is an object", pointer)
    stated = set(given) - {"weights"}
    kind = "range" if stated == {"p10", "p50", "p90"} else next(iter(stated)) if len(stated) == 1 else ""
    if kind not in _READ or ("weights" in given and kind != "choice"):
        raise InvalidRequest("state one of uniform, triangular, pert, normal, lognormal, choice, or p10, p50 and p90", pointer)
    try:
        found = _READ[kind](given)
    except ValueError as error:
        raise InvalidRequest(str(error), pointer) from error
    if not all(abs(value) <= LARGEST for value in _farthest(found)):
        raise InvalidRequest(f"it reaches values beyond {LARGEST:g}, which nothing can be calculated with", pointer)
    return found


def bounds(distribution: Distribution) -> tuple[float, float]:
    """The least and greatest value that is taken; of tails to four digits."""
    match distribution:
        case Uniform(low, high) | Triangular(low, _, high) | Pert(low, _, high):
            return low, high
        case Discrete(values, _):
            return min(values), max(values)
    low, high = quantile_at_score(distribution, np.array([-FARTHEST, FARTHEST])).tolist()
    return float(f"{low:.4g}"), float(f"{high:.4g}")


def _farthest(distribution: Distribution) -> tuple[float, float]:
    """The least and greatest value that any trial may draw; infinite where it is too large for a number."""
    match distribution:
        case Normal() | LogNormal() | Percentiles():
            with np.errstate(over="ignore"):
                low, high = quantile_at_score(distribution, np.array([-FARTHEST_SCORE, FARTHEST_SCORE])).tolist()
            return low, high
    return bounds(distribution)


def quantiles(distribution: Distribution, shares: Floats) -> Floats:
    """The values that so much of the distribution lies below, tails cut off; for workers: it loads scipy."""
    from scipy.special import ndtri

    found = quantile_at_score(distribution, np.clip(ndtri(shares), -FARTHEST, FARTHEST))
    return np.asarray(np.clip(found, *bounds(distribution)))


def _numbers(values: Any, what: str) -> list[float]:
    """Finite numbers. Raises ValueError."""
    if not isinstance(values, Sequence) or isinstance(values, str) or not all(map(_is_number, values)):
        raise ValueError(f"{what} must be numbers")
    return [float(value) for value in values]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _rising(given: Mapping[str, Any], name: str, count: int) -> list[float]:
    """So many numbers that rise. Raises ValueError."""
    values = _numbers(given[name], name)
    if len(values) != count or any(before > after for before, after in itertools.pairwise(values)) or values[0] == values[-1]:
        raise ValueError(f"{name} takes {count} numbers in ascending order, the first below the last")
    return values


def _pair(given: Mapping[str, Any], kind: str, centre: str, spread: str) -> tuple[float, float]:
    """A distribution's centre and spread. Raises ValueError."""
    stated = given[kind]
    if not isinstance(stated, Mapping) or set(stated) != {centre, spread}:
        raise ValueError(f"{kind} takes {centre} and {spread}")
    middle, width = _numbers([stated[centre], stated[spread]], f"{centre} and {spread}")
    if width <= 0:
        raise ValueError(f"{spread} must be above 0, not {width:g}")
    if centre == "median" and middle <= 0:
        raise ValueError(f"median must be above 0, not {middle:g}")
    return middle, width


def _range(given: Mapping[str, Any]) -> Percentiles:
    values = _numbers([given[name] for name in ("p10", "p50", "p90")], "p10, p50 and p90")
    if not 0 < values[0] <= values[1] <= values[2]:
        raise ValueError("p10, p50 and p90 must be above 0 and stand in ascending order")
    return Percentiles(Range(*values))


def _choice(given: Mapping[str, Any]) -> Discrete:
    values = _numbers(given["choice"], "choice")
    weights = _numbers(given.get("weights") or [1.0] * len(values), "weights")
    if not 1 <= len(values) <= MOST_CHOICES:
        raise ValueError(f"choice takes 1 to {MOST_CHOICES} numbers")
    if len(weights) != len(values) or min(weights) < 0 or sum(weights) <= 0:
        raise ValueError("weights takes a number for each value, none below 0 and one above")
    pairs = sorted(zip(values, weights, strict=True))
    return Discrete(tuple(value for value, _ in pairs), tuple(weight / sum(weights) for _, weight in pairs))


_READ: Mapping[str, Callable[[Mapping[str, Any]], Distribution]] = {
    "uniform": lambda given: Uniform(*_rising(given, "uniform", 2)),
    "triangular": lambda given: Triangular(*_rising(given, "triangular", 3)),
    "pert": lambda given: Pert(*_rising(given, "pert", 3)),
    "normal": lambda given: Normal(*_pair(given, "normal", "mean", "sd")),
    "lognormal": lambda given: LogNormal(*_pair(given, "lognormal", "median", "sigma")),
    "range": _range,
    "choice": _choice,
}
