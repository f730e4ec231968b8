"""Quantities of scenarios: quantiles at scores by their closed forms, and factors of correlation matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import pytest

from service.domain.errors import InvalidRequest
from service.domain.scenarios import Floats, LogNormal, Normal, Pert, Triangular, Uniform
from service.engine.scenarios.distributions import correlation_factor, normal_cdf, normal_quantile, quantile_at_score


@pytest.mark.parametrize("correlation", [-1.0, -0.4, 0.0, 0.9, 1.0])
def test_a_factor_gives_back_its_correlations(correlation: float) -> None:
    """L Lᵀ is the matrix, also where two quantities move together entirely."""
    wanted = np.array([[1.0, correlation], [correlation, 1.0]])
    factor = correlation_factor(wanted)
    assert factor @ factor.T == pytest.approx(wanted, abs=1e-12)


def test_correlations_that_nothing_can_have_are_refused() -> None:
    """Two quantities cannot both move with a third and against each other."""
    impossible = np.array([[1.0, 0.9, 0.9], [0.9, 1.0, -0.9], [0.9, -0.9, 1.0]])
    with pytest.raises(InvalidRequest, match="bring the correlations nearer to 0") as refused:
        correlation_factor(impossible)
    assert refused.value.pointer == "/correlations"


SCORES = np.array([-2.5, -1.0, -0.3, 0.0, 0.4, 1.7])
SHARES = np.array([NormalDist().cdf(float(score)) for score in SCORES])


def test_shares_of_scores() -> None:
    """Φ to a millionth, and 0 and 1 beyond the table."""
    assert normal_cdf(SCORES) == pytest.approx(SHARES, abs=1e-6)
    assert normal_cdf(np.array([-50.0, 50.0])) == pytest.approx([0.0, 1.0], abs=1e-12)
    assert normal_cdf(np.array([0.0]))[0] == pytest.approx(0.5, abs=1e-9)


def test_scores_of_shares() -> None:
    """The score with a share below it; none has nothing or everything below it."""
    assert normal_quantile(0.9) == pytest.approx(1.2815515655)
    assert [normal_quantile(share) for share in (-0.1, 0.0, 1.0, 1.1)] == [-math.inf, -math.inf, math.inf, math.inf]


def test_normal_and_lognormal_quantiles() -> None:
    """Mean plus z deviations; the median times e to z sigmas."""
    assert quantile_at_score(Normal(10.0, 3.0), SCORES) == pytest.approx(10 + 3 * SCORES)
    assert quantile_at_score(LogNormal(10.0, 0.5), SCORES) == pytest.approx([10 * math.exp(0.5 * score) for score in SCORES])


def test_uniform_quantiles() -> None:
    """As far between the ends as the share."""
    assert quantile_at_score(Uniform(4.0, 9.0), SCORES) == pytest.approx(4 + 5 * SHARES, abs=1e-5)


@pytest.mark.parametrize("mode", [4.0, 5.0, 8.0, 9.0])
def test_triangular_quantiles(mode: float) -> None:
    """(x - low)^2 / (width (mode - low)) of the distribution lie below x before the mode; beyond it the same from above."""
    values = quantile_at_score(Triangular(4.0, mode, 9.0), SCORES)
    assert np.all(np.diff(values) > 0)
    assert 4 <= values[0] < values[-1] <= 9
    rising = (values - 4) ** 2 / (5 * max(mode - 4, 1e-300))
    falling = 1 - (9 - values) ** 2 / (5 * max(9 - mode, 1e-300))
    assert np.where(values < mode, rising, falling) == pytest.approx(SHARES, abs=1e-4)


@pytest.mark.parametrize(
    ("mode", "share_below"),
    [
        (10.0, lambda x: 1 - (1 - x) ** 5),
        (12.5, lambda x: 1 - (1 - x) ** 4 * (1 + 4 * x)),
        (15.0, lambda x: 10 * x**3 - 15 * x**4 + 6 * x**5),
        (20.0, lambda x: x**5),
    ],
)
def test_pert_quantiles_are_those_of_beta_distributions(mode: float, share_below: Callable[[Floats], Floats]) -> None:
    """From 10 to 20: beta(1, 5), beta(2, 4), beta(3, 3) and beta(5, 1) (Malcolm et al. 1959: weight 4 on the mode)."""
    values = quantile_at_score(Pert(10.0, mode, 20.0), SCORES)
    assert share_below((values - 10) / 10) == pytest.approx(SHARES, abs=1e-4)


def test_a_pert_distribution_without_width_is_its_value() -> None:
    """Nothing is divided by the width of 0."""
    assert quantile_at_score(Pert(7.0, 7.0, 7.0), SCORES) == pytest.approx(np.full(6, 7.0))
