"""Distributions as requests state them, and their bounds.

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

# Tails beyond this probability are cut off: unbounded distributions are guesses there, and a negative price has no meaning.
TAIL = 1e-4
FARTHEST = abs(NormalDist().inv_cdf(TAIL))
MOST_CHOICES = 1000
LARGEST = 1e300
"""Largest magnitude of a value, so that sums and differences stay finite."""


def parse_distribution(stated: object, pointer: str) -> Distribution:
    """The distribution that a request states. Raises InvalidRequest."""
    if not isinstance(stated, Mapping):
        raise InvalidRequest("a distribution is an object", pointer)
    names = set(stated) - {"weights"}
    kind = "range" if names == {"p10", "p50", "p90"} else next(iter(names)) if len(names) == 1 else ""
    if kind not in _PARSERS or ("weights" in stated and kind != "choice"):
        raise InvalidRequest("state one of uniform, triangular, pert, normal, lognormal, choice, or p10, p50 and p90", pointer)
    try:
        distribution = _PARSERS[kind](stated)
    except ValueError as error:
        raise InvalidRequest(str(error), pointer) from error
    if not all(abs(value) <= LARGEST for value in _extremes(distribution)):
        raise InvalidRequest(f"it reaches values above {LARGEST:g}, which are too large to calculate with", pointer)
    return distribution


def bounds(distribution: Distribution) -> tuple[float, float]:
    """Smallest and largest value; of a distribution with tails, at TAIL, to four digits."""
    match distribution:
        case Uniform(low, high) | Triangular(low, _, high) | Pert(low, _, high):
            return low, high
        case Discrete(values, _):
            return min(values), max(values)
    low, high = quantile_at_score(distribution, np.array([-FARTHEST, FARTHEST])).tolist()
    return float(f"{low:.4g}"), float(f"{high:.4g}")


def _extremes(distribution: Distribution) -> tuple[float, float]:
    """Smallest and largest value that any trial can draw; infinite beyond floating point."""
    match distribution:
        case Normal() | LogNormal() | Percentiles():
            with np.errstate(over="ignore"):
                low, high = quantile_at_score(distribution, np.array([-FARTHEST_SCORE, FARTHEST_SCORE])).tolist()
            return low, high
    return bounds(distribution)


def quantiles(distribution: Distribution, shares: Floats) -> Floats:
    """Quantiles at `shares`, any shape, tails cut off; it loads scipy, which takes a second."""
    from scipy.special import ndtri

    values = quantile_at_score(distribution, np.clip(ndtri(shares), -FARTHEST, FARTHEST))
    return np.asarray(np.clip(values, *bounds(distribution)))


def _numbers(values: Any, what: str) -> list[float]:
    """Finite numbers. Raises ValueError."""
    if not isinstance(values, Sequence) or isinstance(values, str) or not all(map(_is_number, values)):
        raise ValueError(f"{what} must be numbers")
    return [float(value) for value in values]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _rising(stated: Mapping[str, Any], name: str, count: int) -> list[float]:
    """This count of ascending numbers. Raises ValueError."""
    values = _numbers(stated[name], name)
    if len(values) != count or any(before > after for before, after in itertools.pairwise(values)) or values[0] == values[-1]:
        raise ValueError(f"{name} takes {count} numbers in ascending order, the first below the last")
    return values


def _pair(stated: Mapping[str, Any], kind: str, centre: str, spread: str) -> tuple[float, float]:
    """A distribution's centre and spread. Raises ValueError."""
    parameters = stated[kind]
    if not isinstance(parameters, Mapping) or set(parameters) != {centre, spread}:
        raise ValueError(f"{kind} takes {centre} and {spread}")
    middle, width = _numbers([parameters[centre], parameters[spread]], f"{centre} and {spread}")
    if width <= 0:
        raise ValueError(f"{spread} must be above 0, not {width:g}")
    if centre == "median" and middle <= 0:
        raise ValueError(f"median must be above 0, not {middle:g}")
    return middle, width


def _range(stated: Mapping[str, Any]) -> Percentiles:
    values = _numbers([stated[name] for name in ("p10", "p50", "p90")], "p10, p50 and p90")
    if not 0 < values[0] <= values[1] <= values[2]:
        raise ValueError("p10, p50 and p90 must be above 0 and in ascending order")
    return Percentiles(Range(*values))


def _choice(stated: Mapping[str, Any]) -> Discrete:
    values = _numbers(stated["choice"], "choice")
    weights = _numbers(stated.get("weights") or [1.0] * len(values), "weights")
    if not 1 <= len(values) <= MOST_CHOICES:
        raise ValueError(f"choice takes 1 to {MOST_CHOICES} numbers")
    if len(weights) != len(values) or min(weights) < 0 or sum(weights) <= 0:
        raise ValueError("weights takes a number for each value: none below 0, and at least one above 0")
    pairs = sorted(zip(values, weights, strict=True))
    return Discrete(tuple(value for value, _ in pairs), tuple(weight / sum(weights) for _, weight in pairs))


_PARSERS: Mapping[str, Callable[[Mapping[str, Any]], Distribution]] = {
    "uniform": lambda stated: Uniform(*_rising(stated, "uniform", 2)),
    "triangular": lambda stated: Triangular(*_rising(stated, "triangular", 3)),
    "pert": lambda stated: Pert(*_rising(stated, "pert", 3)),
    "normal": lambda stated: Normal(*_pair(stated, "normal", "mean", "sd")),
    "lognormal": lambda stated: LogNormal(*_pair(stated, "lognormal", "median", "sigma")),
    "range": _range,
    "choice": _choice,
}
