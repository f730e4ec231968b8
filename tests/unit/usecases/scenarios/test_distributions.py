"""Distributions as requests state them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from service.usecases.scenarios.distributions import bounds, parse_distribution, quantiles
from tests.unit.usecases.requests import pointer_of

SHARES = np.array([0.1, 0.5, 0.9])


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({"uniform": [0, 10]}, [1.0, 5.0, 9.0]),
        ({"triangular": [0, 5, 10]}, [2.2360680, 5.0, 7.7639320]),
        ({"pert": [0, 5, 10]}, [2.4663653, 5.0, 7.5336347]),  # scipy.stats.beta(3, 3).ppf(0.1) = 0.24663653
        ({"normal": {"mean": 10, "sd": 2}}, [7.4368969, 10.0, 12.5631031]),
        ({"lognormal": {"median": 10, "sigma": 0.5}}, [5.2690, 10.0, 18.9790]),
        ({"p10": 5, "p50": 10, "p90": 30}, [5.0, 10.0, 30.0]),
        ({"choice": [4, 1, 2], "weights": [3, 2, 2]}, [1.0, 2.0, 4.0]),
        ({"choice": [3]}, [3.0, 3.0, 3.0]),
    ],
)
def test_quantiles_are_those_of_the_distribution(stated: dict[str, Any], expected: list[float]) -> None:
    """The 10th, 50th and 90th percentile."""
    assert quantiles(parse_distribution(stated, ""), SHARES) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("stated", "low", "high"),
    [
        ({"pert": [1, 2, 7]}, 1.0, 7.0),
        ({"choice": [4, 1, 2]}, 1.0, 4.0),
        ({"normal": {"mean": 10, "sd": 1}}, 10 - 3.719, 10 + 3.719),  # the standard normal's 1e-4 quantile
    ],
)
def test_values_reach_from_end_to_end(stated: dict[str, Any], low: float, high: float) -> None:
    """Tails are cut off at one in ten thousand, and no quantile lies beyond."""
    distribution = parse_distribution(stated, "")
    assert bounds(distribution) == pytest.approx((low, high), abs=5e-3)
    found = quantiles(distribution, np.array([0.0, 1e-9, 1 - 1e-9]))
    assert bounds(distribution)[0] <= found.min() <= found.max() <= bounds(distribution)[1]


@pytest.mark.parametrize(
    "stated",
    [
        {"normal": {"mean": 1, "sd": -1}},
        {"normal": {"mean": 1, "sd": 0}},
        {"normal": {"mean": 1}},
        {"normal": {"mean": 1, "sd": 1, "skew": 1}},
        {"normal": [1, 1]},
        {"lognormal": {"median": 0, "sigma": 1}},
        {"lognormal": {"median": 1, "sigma": True}},
        {"uniform": [2, 1]},
        {"uniform": [1, 1]},
        {"uniform": [1]},
        {"uniform": "12"},
        {"triangular": [1, 9, 3]},
        {"pert": [1, 2]},
        {"p10": 1, "p50": 2},
        {"p10": 0, "p50": 2, "p90": 3},
        {"p10": 3, "p50": 2, "p90": 1},
        {"choice": []},
        {"choice": [1, "2"]},
        {"choice": [1, 2], "weights": [1]},
        {"choice": [1, 2], "weights": [1, -1]},
        {"choice": [1, 2], "weights": [0, 0]},
        {"choice": [float("inf")]},
        {"choice": [1, 1e301]},
        {"uniform": [-1e308, 1e308]},
        {"normal": {"mean": 1e308, "sd": 1e308}},
        {"lognormal": {"median": 1e300, "sigma": 1000}},
        {"p10": 1, "p50": 2, "p90": 1e300},
        {"uniform": [1, 2], "weights": [1]},
        {"uniform": [1, 2], "pert": [1, 2, 3]},
        {"cauchy": [1, 2]},
        {},
        [1, 2],
        7,
    ],
)
def test_what_is_no_distribution_is_refused_with_its_place(stated: Any) -> None:
    """A negative variance among them."""
    assert pointer_of(lambda: parse_distribution(stated, "/inputs/x")) == "/inputs/x"
