"""Activities that may take place: together where their correlation says so."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.quantities import Range
from service.domain.schedule import Activity, ActivityNetwork
from service.engine.programs.risk_register import mixing_matrix
from service.engine.scheduling.activity_network import order_network
from service.engine.scheduling.durations import Floats, draw_deviations, sample_durations
from tests.unit.engine.networks import MONDAY

NAMES = ("spike", "leak", "outage")
HOURS = 100.0


def sampled(probability: float, correlation: float | None) -> Floats:
    """Hours of three risks of 100 hours each in every draw; None: no correlation is stated."""
    weights: dict[str, tuple[tuple[str, float], ...]] = dict.fromkeys(NAMES, ())
    if correlation is not None:
        matrix = np.full((3, 3), correlation)
        np.fill_diagonal(matrix, 1.0)
        rows = mixing_matrix(matrix).tolist()
        weights = {name: tuple(zip(NAMES, row, strict=True)) for name, row in zip(NAMES, rows, strict=True)}
    activities = [Activity(name, Range.exactly(HOURS), probability=probability, occurs_with=weights[name]) for name in NAMES]
    net = order_network(ActivityNetwork(MONDAY, tuple(activities)))
    return sample_durations(net, draw_deviations(activities, 5))


@given(probability=st.floats(0.05, 0.95), correlation=st.floats(0, 1))
def test_correlation_leaves_the_mean(probability: float, correlation: float) -> None:
    """Each risk happens as often as it does alone."""
    assert np.mean(sampled(probability, correlation) > 0, axis=1) == pytest.approx([probability] * 3, abs=0.02)


@given(probability=st.floats(0.12, 0.35))
def test_full_correlation_widens_the_sum(probability: float) -> None:
    """All of them happen or none: the p90 is that of three times one risk, which independent ones do not reach."""
    apart, together = (sampled(probability, correlation).sum(axis=0) for correlation in (None, 1.0))
    assert set(np.unique(together)) == {0.0, 3 * HOURS}
    assert np.quantile(together, 0.9) == 3 * HOURS > np.quantile(apart, 0.9)
    assert together.mean() == pytest.approx(apart.mean(), rel=0.1)


def test_no_correlation_is_a_correlation_of_zero() -> None:
    """Number by number."""
    np.testing.assert_array_equal(sampled(0.3, None), sampled(0.3, 0.0))
