"""Waiting for a place in a pool, against the closed forms of the M/M/c queue."""

from __future__ import annotations

import math

import numpy as np
import pytest

from service.domain.scenarios import QueueWait
from service.engine.scenarios.distributions import spare_capacity_per_hour, wait_quantile, waiting_probability


def queue(slots: int, arrivals_per_hour: float, mean_hours: float = 2.0) -> QueueWait:
    return QueueWait(slots=slots, mean_hours=mean_hours, arrivals_per_hour=arrivals_per_hour)


def test_with_one_place_as_many_wait_as_it_is_busy() -> None:
    """M/M/1: the probability of waiting is the load."""
    assert waiting_probability(queue(1, 0.3)) == pytest.approx(0.6)


def test_erlangs_c_of_two_places() -> None:
    """Offered load a = 1.5: C = (a^2 / 2) / (1 - a / 2) / (1 + a + (a^2 / 2) / (1 - a / 2)) = 4.5 / 7 = 9/14."""
    assert waiting_probability(queue(2, 0.75)) == pytest.approx(9 / 14)


def test_those_who_wait_leave_at_the_rate_that_places_are_freed_above_arrivals() -> None:
    """Four places of two hours free two an hour; 1.5 come."""
    assert spare_capacity_per_hour(queue(4, 1.5)) == pytest.approx(0.5)


def test_quantiles_of_a_wait_are_those_of_its_distribution() -> None:
    """M/M/1: P(W > t) = load x exp(-(freed - arrivals) t); the share that finds a free place does not wait."""
    one = queue(1, 0.3)
    shares = np.array([0.2, 0.4, 0.7, 0.94])
    assert wait_quantile(one, shares) == pytest.approx([0, 0, math.log(0.6 / 0.3) / 0.2, math.log(0.6 / 0.06) / 0.2])
