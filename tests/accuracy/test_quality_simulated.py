"""Drops of evaluation metrics on 2,000 simulated series: how rare false alarms are, and how soon a drop of two deviations is found."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from service.engine.tracking.monitoring.quality_drops import find_drops
from service.presets.tracking.status import quality_rules

Floats = NDArray[np.float64]
RULES = quality_rules()
SERIES, EVALUATIONS = 2000, 60
NOISES = (0.01, 0.03)
DROP = 2.0  # standard deviations


@cache
def metrics() -> tuple[Floats, Floats, Floats]:
    """Means, noise and its deviation: a quarter of the series each stand still, improve slowly, saturate, follow a power law."""
    draw, place = np.random.default_rng(22), np.arange(EVALUATIONS)
    each = SERIES // 4
    deviation = draw.choice(NOISES, size=(SERIES, 1))
    means = np.vstack([
        np.full((each, EVALUATIONS), 0.6),
        0.5 + draw.uniform(0.05, 0.3, (each, 1)) * deviation[each : 2 * each] * place,
        0.25 + 0.45 * (1 - np.exp(-place / draw.uniform(3, 15, (each, 1)))),
        0.75 - 0.5 * (place + 1.0) ** -draw.uniform(0.2, 0.8, (each, 1)),
    ])  # fmt: skip
    return means, deviation * draw.standard_normal(means.shape), deviation


def dropped(means: Floats, *, stated: bool) -> NDArray[np.bool_]:
    """Whether an alarm holds after each evaluation."""
    _, noise, deviation = metrics()
    errors = np.broadcast_to(deviation if stated else np.nan, noise.shape)
    return find_drops(means + noise, errors, RULES).dropped


@pytest.mark.parametrize("stated", [False, True])
def test_false_alarms_are_as_rare_as_stated(stated: bool) -> None:
    """Alarms that begin, over evaluations of metrics that never fall; a stated noise has fewer."""
    found = dropped(metrics()[0], stated=stated)
    begun = (found[:, 1:] & ~found[:, :-1]).mean()
    assert RULES.false_alarm_share / 4 < begun <= RULES.false_alarm_share
    assert (found[: SERIES // 4, 1:] & ~found[: SERIES // 4, :-1]).mean() <= RULES.false_alarm_share


@pytest.mark.parametrize("stated", [False, True])
def test_half_of_the_drops_of_two_deviations_are_found_by_the_second_evaluation(stated: bool) -> None:
    """After 10 to 40 evaluations the metric falls below the level it had reached, and stays there."""
    means, _, deviation = metrics()
    at = np.random.default_rng(23).integers(10, 40, SERIES)
    rows = np.arange(SERIES)
    fallen = np.arange(EVALUATIONS) >= at[:, None]
    found = dropped(np.where(fallen, means[rows, at - 1][:, None] - DROP * deviation, means), stated=stated)
    calm = ~found[rows, at - 1]
    seen = (found & fallen)[calm]
    delay = np.where(seen.any(axis=1), seen.argmax(axis=1) - at[calm] + 1, EVALUATIONS)
    assert np.median(delay) <= 2
