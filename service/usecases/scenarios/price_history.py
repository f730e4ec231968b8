"""A price's distribution from its history: each price weighted by its duration."""

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
OFFER_FIELDS = ("provider", "region", "instance_type", "accelerator", "pricing", "market")


def load_price_history(context: AppContext, request: ScenarioRequest, stated: Any, pointer: str) -> dict[str, Any]:
    """Prices over the last `stated["days"]` of the offer that the base request uses, as a `choice`. Raises InvalidRequest."""
    days = stated.get("days") if isinstance(stated, Mapping) and set(stated) == {"days"} else None
    if not isinstance(days, int | float) or isinstance(days, bool) or not 0 < days <= MOST_DAYS:
        raise InvalidRequest(f"history takes days, above 0 and at most {MOST_DAYS}", pointer)
    if request.shape != "estimate":
        raise InvalidRequest("the runs of a program may use different offers: state a distribution, or ask about one run", pointer)
    try:
        price = resolve_machine(context, request.base, AssumptionLog()).price
    except DomainError as problem:
        raise problem.below("/base") from problem
    if price is None or price.provider is None:
        raise InvalidRequest(
            "the base request states a price or has none, so there is no history: name a provider instead",
            pointer,
        )
    hours = _hours_by_price(_price_changes(context, price, days), context.clock())
    if len(hours) < 2:
        raise InvalidRequest(
            f"the history of the last {days:g} days has no second price of {price.provider} {price.instance_type}", pointer
        )
    return {"choice": list(hours), "weights": list(hours.values())}


def _price_changes(context: AppContext, price: Price, days: float) -> Sequence[PriceChange]:
    """The offer's price changes, newest first: the team's own where it has a price, else those of the provider that saw it last."""
    among = {name: (value,) for name in OFFER_FIELDS if (value := getattr(price, name)) is not None}
    changes = context.store.price_changes(HistoryFilter(among, team=context.team), MOST_CHANGES)
    own = [change for change in changes if change.own]
    if own and own[0].usd_per_hour is not None:
        used = own
    else:
        shared = [change for change in changes if not change.own]
        used = [change for change in shared if change.asked == shared[0].asked]
    since = context.clock() - timedelta(days=days)
    return [change for change in used if change.observed_at >= since]


def _hours_by_price(changes: Sequence[PriceChange], now: datetime) -> dict[float, float]:
    """Hours for which each price of an accelerator-hour [USD] held; none while the offer was unavailable."""
    hours: dict[float, float] = defaultdict(float)
    until = now
    for change in changes:
        if change.usd_per_hour is not None:
            usd = float(change.usd_per_hour / change.accelerator_count)
            hours[usd] += max((until - change.observed_at) / timedelta(hours=1), 0.0)
        until = change.observed_at
    return {usd: duration for usd, duration in sorted(hours.items()) if duration > 0}
