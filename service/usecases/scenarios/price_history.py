"""A price's distribution from its own history: what it was, each price by how long it was asked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from service.context import AppContext
from service.domain.errors import DomainError, InvalidRequest
from service.domain.prices import PriceChange
from service.store import HistoryFilter
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.machine import resolve_machine
from service.usecases.resolution.price import Price
from service.usecases.scenarios.registry import ScenarioRequest

MOST_CHANGES = 1000
MOST_DAYS = 3650
OF_AN_OFFER = ("provider", "region", "instance_type", "accelerator", "pricing", "market")


def load_price_history(context: AppContext, given: ScenarioRequest, stated: Any, pointer: str) -> dict[str, Any]:
    """The prices of the offer that the base request takes, over the last days asked for, as a `choice`. Raises InvalidRequest."""
    days = stated.get("days") if isinstance(stated, Mapping) and set(stated) == {"days"} else None
    if not isinstance(days, int | float) or isinstance(days, bool) or not 0 < days <= MOST_DAYS:
        raise InvalidRequest(f"history takes days, above 0 and at most {MOST_DAYS}", pointer)
    if given.shape != "estimate":
        raise InvalidRequest("the runs of a program may take different offers: give a distribution, or ask for one run", pointer)
    try:
        price = resolve_machine(context, given.base, AssumptionLog()).price
    except DomainError as problem:
        raise problem.below("/base") from problem
    if price.provider is None:
        raise InvalidRequest("the base request states its price, which has no history: leave it out or name a provider", pointer)
    lasted = _hours_at(_changes(context, price, days), context.clock())
    if len(lasted) < 2:
        raise InvalidRequest(f"no other price of {price.provider} {price.instance_type} was seen in {days:g} days", pointer)
    return {"choice": list(lasted), "weights": list(lasted.values())}


def _changes(context: AppContext, price: Price, days: float) -> Sequence[PriceChange]:
    """The newest first: the team's own where it has a price of its own, else by whoever saw the offer last; several may tell of it."""
    among = {name: (value,) for name in OF_AN_OFFER if (value := getattr(price, name)) is not None}
    found = context.store.price_changes(HistoryFilter(among, team=context.team), MOST_CHANGES)
    own = [change for change in found if change.own]
    if own and own[0].usd_per_hour is not None:
        told = own
    else:
        shared = [change for change in found if not change.own]
        told = [change for change in shared if change.asked == shared[0].asked]
    since = context.clock() - timedelta(days=days)
    return [change for change in told if change.observed_at >= since]


def _hours_at(changes: Sequence[PriceChange], now: datetime) -> dict[float, float]:
    """For how many hours each price of an accelerator-hour was asked; where the offer was away, none was."""
    found: dict[float, float] = defaultdict(float)
    until = now
    for change in changes:
        if change.usd_per_hour is not None:
            usd = float(change.usd_per_hour / change.accelerator_count)
            found[usd] += max((until - change.observed_at) / timedelta(hours=1), 0.0)
        until = change.observed_at
    return {usd: hours for usd, hours in sorted(found.items()) if hours > 0}
