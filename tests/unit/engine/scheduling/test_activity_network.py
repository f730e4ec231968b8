"""Which durations, queues and shares an activity may have."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from service.domain.errors import InvalidRequest
from service.domain.quantities import Range
from service.domain.schedule import Activity, ActivityNetwork
from service.engine.scheduling.activity_network import MAX_DURATION_HOURS, order_network

PLAIN = Activity("train", Range.exactly(1.0))
TOO_LONG = 1.01 * MAX_DURATION_HOURS


def ordered(**changes: Any) -> tuple[str, ...]:
    network = ActivityNetwork(date(2027, 1, 4), (replace(PLAIN, **changes),))
    return tuple(activity.name for activity in order_network(network).activities)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"duration": Range(-1.0, 1.0, 2.0)}, "a duration must be at least 0"),
        ({"duration": Range(1.0, 2.0, TOO_LONG)}, "a duration must be at least 0"),
        ({"queue_hours": Range(-1.0, 1.0, 2.0)}, "a queue must be at least 0"),
        ({"queue_hours": Range(0.0, 1.0, TOO_LONG)}, "a queue must be at least 0"),
        ({"common_share": -0.01}, "must be 0 % to 100 %"),
        ({"common_share": 1.01}, "must be 0 % to 100 %"),
    ],
)
def test_what_no_activity_can_have_is_refused(changes: dict[str, Any], message: str) -> None:
    """Less than nothing, or more hours than the calendar has."""
    with pytest.raises(InvalidRequest, match=message):
        ordered(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"duration": Range.exactly(0.0)},
        {"duration": Range(0.0, 1.0, MAX_DURATION_HOURS), "unit": "hours"},
        {"queue_hours": Range(0.0, 1.0, MAX_DURATION_HOURS)},
        {"common_share": 0.0},
        {"common_share": 1.0},
    ],
)
def test_the_limits_themselves_are_allowed(changes: dict[str, Any]) -> None:
    """Nothing, the longest, and either end of the share."""
    assert ordered(**changes) == ("train",)
