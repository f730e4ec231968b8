"""When an offer is stale: older than its source's policy allows, or dated in the future."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

CLOCK_TOLERANCE = timedelta(minutes=5)
"""A price dated further in the future has an invalid date: its age is unknown."""
Origin = tuple[str, str, str]
"""An offer's provider and source, and the team whose own it is: a team's file may name the source of a list price."""


@dataclass(frozen=True, slots=True)
class FreshnessPolicy:
    """Freshness of one source's offers.

    `provider` fetched them, prices count as fresh for `fresh_for`, `reached`: the last fetch succeeded.
    """

    provider: str
    fresh_for: timedelta
    reached: bool = True


def is_stale(observed_at: datetime | None, now: datetime, fresh_for: timedelta) -> bool:
    """Whether a price observed then is too old now, dated in the future, or was never observed."""
    return observed_at is None or not -CLOCK_TOLERANCE <= now - observed_at <= fresh_for
