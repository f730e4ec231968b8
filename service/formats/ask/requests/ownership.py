"""The request of buying or renting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.formats.ask.grammar.intents import MONEY
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.dates import Duration
from service.formats.ask.requests.draft import Draft, Request, stated
from service.formats.ask.requests.sections import hardware_section, many_pricings

PRICING_OF_YEARS: Mapping[float, str] = {1.0: "reserved_1y", 3.0: "reserved_3y"}


def buy_or_rent_request(draft: Draft) -> Request:
    """POST /v1/buy-or-rent."""
    draft.slots.each("rent")
    years = draft.one("span", "demand.years") or draft.one("limit", "demand.years")
    start = draft.one("start", "demand.start")
    hardware = hardware_section(draft)
    demand = hardware | stated(
        start=start and start.isoformat(),
        years=None if years is None else _plain(years.years),
        utilisation=_utilisation(draft),
        growth_per_year=draft.one("growth_per_year", "demand.growth_per_year"),
    )
    if years is None:
        draft.missing("for how many years?")
    if not draft.slots.has("capex", *MONEY):
        draft.missing("what does one accelerator cost to buy, such as $32k each?")
    own = stated(
        capex_usd_per_accelerator=_capex(draft, hardware.get("count")),
        residual_share=draft.one("residual_share", "own.0.residual_share"),
        kw_per_accelerator=draft.one("kw_per_accelerator", "own.0.kw_per_accelerator"),
        pue=draft.one("pue", "own.0.pue"),
        usd_per_kwh=draft.one("usd_per_kwh", "own.0.usd_per_kwh"),
    )
    quotes = _quotes(draft, years)
    rent = stated(
        providers=[name.value for name in draft.many("provider", "rent.providers")],
        regions=[name.value for name in draft.many("region", "rent.regions")],
        quotes=quotes,
        pricing=many_pricings(draft, "rent.pricing") if not quotes or len(draft.slots.each("pricing")) > 1 else None,
    )
    capital = draft.one("cost_of_capital", "cost_of_capital")
    return stated(demand=demand, own=[{"name": "own", **own}] if own else [], rent=rent, cost_of_capital=capital)


def _plain(value: float) -> float | int:
    return int(value) if value == int(value) else round(value, 4)


def _utilisation(draft: Draft) -> Any:
    stated, at = draft.one("utilisation", "demand.utilisation"), draft.one("share", "demand.utilisation")
    if stated is None and at is not None:
        draft.note("demand.utilisation", at, "read as the utilisation")
    return at if stated is None else stated


def _capex(draft: Draft, count: int | None) -> Any:
    """Price of one accelerator; money far above that of one is asked back, as it may be that of all."""
    said = [slot for name in ("capex", *MONEY) for slot in draft.slots.each(name)]
    values = list(dict.fromkeys(slot.value for slot in said))
    if len(values) > 1:
        shown = tuple(f"${value:,}" for value in values)
        draft.doubts.append(Doubt(", ".join(shown), shown, "which of these does one accelerator cost?"))
        return None
    if not values:
        return None
    if said[0].name != "capex":
        most = 200_000  # of one accelerator with its share of a machine
        if isinstance(values[0], int | float) and values[0] > most:
            each = f"${values[0] / count:,.0f} each" if count else "… each"
            draft.doubts.append(Doubt(f"${values[0]:,}", (each, f"${values[0]:,} each"), "for all of them, or for each accelerator?"))
            return None
        draft.note("own.0.capex_usd_per_accelerator", values[0], "read as the price of one accelerator")
    return values[0]


def _quotes(draft: Draft, years: Duration | None) -> list[Request]:
    """Stated prices of an hour as quotes, for the term where there is one of that length."""
    prices = draft.many("price_per_hour", "rent.quotes")
    stated = draft.slots.peek("pricing")
    pricing = str(stated) if isinstance(stated, str) and stated != "reserved" else None
    if prices and pricing is None:
        pricing = PRICING_OF_YEARS.get(years.years if years else 0.0, "on_demand")
        draft.note(
            "rent.quotes.0.pricing",
            pricing,
            "the price is quoted without a term: taken for the length of the demand where there is such a one",
        )
    return [{"name": f"quote {at}", "pricing": pricing, "usd_per_accelerator_hour": usd} for at, usd in enumerate(prices, 1)]
