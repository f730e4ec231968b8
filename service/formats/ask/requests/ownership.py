"""The request of buying or renting."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from fractions import Fraction
from typing import Any

from service.formats.ask.grammar.asking.intents import MONEY
from service.formats.ask.grammar.attributes import DEPRECIATION, LEAD_TIME, PRICE_FALL, PRICE_RISE
from service.formats.ask.grammar.machines.own_machines import OWN_MACHINE, WHOLE, OwnMachine
from service.formats.ask.grammar.money.quoted import QUOTE_TERM, QUOTED_BY
from service.formats.ask.grammar.quantities import LEAST_CAPEX_USD
from service.formats.ask.grammar.slots import Doubt, Slot
from service.formats.ask.lexing.durations import Duration
from service.formats.ask.lexing.vocabulary import Name
from service.formats.ask.requests.choices import BOUGHT_MACHINES, TERM_CHOICES
from service.formats.ask.requests.draft import Draft, Request, stated
from service.formats.ask.requests.rent_quotes import (
    BY_THE_HOUR,
    HOURLY,
    PRICING,
    PRICING_OF_YEARS,
    longest_term,
    price_leases,
    quotes_of,
    with_terms_of_quotes,
)
from service.formats.ask.requests.sections import hardware_section, machine_size, many_pricings
from service.formats.ask.requests.texts import MONTHS_PER_YEAR, usd_text

MOST_ACCELERATOR_USD = 200_000
"""More than one accelerator with its share of a machine costs [USD]."""
MOST_ACCELERATOR_KW = 4
"""More than one accelerator draws with its share of a machine [kW]."""
LIKELY_USD = (5_000, 100_000)
"""What one accelerator with its share of a machine costs, so that a sum is taken for that of all of them [USD]."""
OF_MACHINE = "capex_of_machine"
DAYS_PER_MONTH = 365.25 / MONTHS_PER_YEAR
BOUGHT, OWNED = "own.0", "on_prem.0"
"""Where a request has what is to be bought, and what is owned already."""
CAPEX = "own.0.capex_usd_per_accelerator"
WEIGHED_ALL = "offers of every kind of pricing are weighed"
YEARS_OF_TERM = {"reserved_1y": 1, "reserved_3y": 3}
DEPRECIATED_IN = "the time of depreciation is read as that of use, and the accelerators as depreciated in it"
LEAST_UTILISATION = 0.5
"""A bare percentage below it may as well be growth, the cost of capital or a residual value."""
SHARES_OF_OWNING = ("utilisation", "growth", "cost of capital", "residual value")


def buy_or_rent_request(draft: Draft) -> Request:
    """POST /v1/buy-or-rent."""
    draft.slots.each("rent")
    draft.rename("bare_sum", "money_at", "read as dollars")
    draft.rename("span_after", "span", "")
    draft.rename("bare_rate", "price_per_hour", "read as dollars for an accelerator-hour")
    if not draft.slots.has("span", "limit"):
        draft.rename(DEPRECIATION, "span", DEPRECIATED_IN)
    with_terms_of_quotes(draft)
    years = draft.one("span", "demand.years") or draft.one("limit", "demand.years")
    start = draft.one("start", "demand.start")
    years = years or _years_until(draft, start) or _reserved_years(draft)
    hardware = hardware_section(draft, choices=BOUGHT_MACHINES)
    demand = hardware | stated(
        start=start and start.isoformat(),
        years=None if years is None else _plain(years.years),
        utilisation=_utilisation(draft),
        growth_per_year=draft.one("growth_per_year", "demand.growth_per_year"),
    )
    if years is None and not draft.slots.has("span", "limit"):
        draft.missing("for how many years?", TERM_CHOICES)
    if _is_owned(draft) and not draft.slots.has("capex", "capex_of_all", "capex_of_machine", *MONEY):
        _ask_for_capex(draft)
    own = stated(
        capex_usd_per_accelerator=_capex(draft, hardware.get("count")),
        residual_share=draft.one("residual_share", "own.0.residual_share"),
        **_running(draft, BOUGHT),
        tax_rate=draft.one("tax_rate", "own.0.tax_rate"),
        depreciation_years=_years_of(draft, DEPRECIATION),
        lead_time_months=_months_of(draft, LEAD_TIME),
    )
    leased = price_leases(draft)
    quotes = quotes_of(draft, years)
    stating = {slot.value.value for slot in draft.slots.each(QUOTED_BY) if isinstance(slot.value, Name)}
    weighed = len(draft.slots.each("pricing")) > 1 and not leased and not draft.slots.has(QUOTE_TERM)
    quotes, against = (quotes, []) if weighed else _against_others(draft, quotes)
    rent = stated(
        providers=[name.value for name in draft.many("provider", "rent.providers") if name.value not in stating],
        regions=[name.value for name in draft.many("region", "rent.regions")],
        quotes=quotes,
        pricing=_rented_how(draft) if not quotes or weighed else against,
    )
    capital = draft.one("cost_of_capital", "cost_of_capital")
    return stated(
        demand=demand,
        own=[{"name": "own", **own}] if own else [],
        rent=rent,
        cost_of_capital=capital,
        list_price_change_per_year=_price_change(draft),
    )


def owned_already(draft: Draft) -> list[Request]:
    """What a run is compared on that is owned already: its purchase is spent."""
    owned = [slot.value for slot in draft.slots.each(OWN_MACHINE) if isinstance(slot.value, OwnMachine)]
    if owned:
        draft.note("on_prem.0.capex_usd_per_accelerator", 0, WHOLE)
    return [
        {"name": "own", "accelerator": own.accelerator.value, "count": own.count, "capex_usd_per_accelerator": 0, **_running(draft, OWNED)}
        for own in owned[:1]
    ]


def _rented_how(draft: Draft) -> list[str]:
    """Kinds of pricing; a single reservation that nothing is weighed against stands against renting by the hour."""
    found = many_pricings(draft, PRICING)
    if len(found) == 1 and found[0] in YEARS_OF_TERM and not _is_owned(draft):
        found.append(BY_THE_HOUR)
        draft.note(PRICING, found, "weighed against renting on demand")
    return found


def _against_others(draft: Draft, quotes: Sequence[Request]) -> tuple[list[Request], list[str]]:
    """The quotes, and the kinds of pricing that they are weighed against: worth it against on demand. Other terms stand against all.

    Those of the quotes, where one of them is said and the other is of the time beside its price.
    """
    quoted = list(dict.fromkeys(str(quote["pricing"]) for quote in quotes))
    said = many_pricings(draft, PRICING)
    if len(said) == 1 and set(said) < set(quoted) <= {*HOURLY, *YEARS_OF_TERM} and not draft.slots.has(QUOTE_TERM):
        return list(quotes), quoted
    others = [pricing for pricing in said if pricing not in quoted and pricing in HOURLY] if quotes else []
    whole = [_of_whole_years(quote) for quote in quotes]
    if others and any("term_months" in quote for quote in whole):
        draft.note(PRICING, others[0], WEIGHED_ALL)
        return list(quotes), []
    terms = [quote["pricing"] for quote in whole if quote["pricing"] in YEARS_OF_TERM]
    return (whole, [*others, *terms]) if others else (list(quotes), [])


def _of_whole_years(quote: Request) -> Request:
    """A quote with a term of one year or three as that kind of pricing."""
    months = quote.get("term_months")
    years = months / MONTHS_PER_YEAR if quote["pricing"] == "reserved" and isinstance(months, int) else 0
    if years not in PRICING_OF_YEARS:
        return quote
    return {name: PRICING_OF_YEARS[years] if name == "pricing" else value for name, value in quote.items() if name != "term_months"}


def _price_change(draft: Draft) -> float | None:
    """Signed yearly change of list prices."""
    fall: float | None = draft.one(PRICE_FALL, "list_price_change_per_year")
    rise: float | None = draft.one(PRICE_RISE, "list_price_change_per_year")
    return rise if fall is None else -fall


def _years_of(draft: Draft, name: str) -> float | int | None:
    """A time that an owner states [years]."""
    time = draft.one(name, f"own.0.{name}")
    return None if time is None else _plain(time.years)


def _months_of(draft: Draft, name: str) -> float | int | None:
    """A time that an owner states [months]."""
    time = draft.one(name, f"own.0.{name}")
    if time is None:
        return None
    months = _plain(time.years * MONTHS_PER_YEAR)
    if time.unit != "months":
        draft.note(f"own.0.{name}", months, f"{float(time.value):g} {time.unit}")
    return months


def _years_until(draft: Draft, start: date | None) -> Duration | None:
    """The time to a day on which the demand ends, in whole months: 400 H100 from 1 January until the end of 2027."""
    ends = [slot.value for slot in draft.slots.all if slot.name == "deadline" and (start or slot.implied)]
    begin = start or draft.today
    end = ends[0] if len(ends) == 1 else None
    if draft.slots.has("span", "limit") or not isinstance(end, date) or end <= begin:
        return None
    draft.slots.taken.add("deadline")
    months = max(round((end - begin).days / DAYS_PER_MONTH), 1)
    draft.note("demand.years", f"{months} months", f"from {begin.isoformat()}{'' if start else ', today,'} to {end.isoformat()}")
    return Duration(Fraction(months), "months")


def _reserved_years(draft: Draft) -> Duration | None:
    """The term that is to be reserved, where no other time is said; of several, the longest."""
    terms = {slot.value for slot in draft.slots.all if slot.name == "pricing"} & set(YEARS_OF_TERM)
    quoted = longest_term(draft)
    if not terms and quoted is None:
        return None
    reserved = [Duration(Fraction(YEARS_OF_TERM[str(term)]), "years") for term in terms]
    years = max([*reserved, *([quoted] if quoted else [])], key=lambda term: term.years)
    alone = len(terms) == 1 and quoted is None
    draft.note("demand.years", years, "as long as is reserved" if alone else "as long as the longest term that is weighed")
    return years


def _ask_for_capex(draft: Draft) -> None:
    """What is paid for one accelerator, with the published price of the one that is named."""
    name = draft.slots.peek("accelerator")
    usd, source = name.purchase or (0.0, "") if isinstance(name, Name) else (0.0, "")
    choices = (f"{usd_text(usd)} each",) if usd else ()
    known = f"{choices[0]} (published: {source})" if choices else "$32k each"
    draft.missing(f"what does one accelerator cost to buy, such as {known}?", choices)


def _is_owned(draft: Draft) -> bool:
    """Whether buying is a choice: of reserved or on demand it is not."""
    asked = any(slot.name == "intent" and slot.value == "buy_or_rent" for slot in draft.slots.all)
    return asked or draft.slots.has("capex", "capex_of_all", "capex_of_machine")


def _plain(value: float) -> float | int:
    return int(value) if value == int(value) else round(value, 4)


def _utilisation(draft: Draft) -> Any:
    """The share of hours that are used; a bare percentage is one where it can hardly be anything else."""
    stated = draft.one("utilisation", "demand.utilisation")
    if stated is not None or not draft.slots.has("share"):
        return stated
    share = draft.one("share", "demand.utilisation")
    if share is None:
        return None
    if share < LEAST_UTILISATION:
        text = f"{share * 100:g}%"
        draft.doubts.append(Doubt(text, tuple(f"{text} {noun}" for noun in SHARES_OF_OWNING), "a percentage of what?"))
        return None
    draft.note("demand.utilisation", share, "read as the utilisation")
    return share


def _capex(draft: Draft, count: int | None) -> Any:
    """Price of one accelerator; what may be that of a machine, or of all, is asked back."""
    said = [slot for name in ("capex", "capex_of_all", "capex_of_machine", *MONEY) for slot in draft.slots.each(name)]
    values = list(dict.fromkeys(slot.value for slot in said))
    if len(values) > 1:
        shown = tuple(f"${value:,}" for value in values)
        draft.doubts.append(Doubt(", ".join(shown), shown, "which of these does one accelerator cost?"))
    if len(values) != 1 or not isinstance(values[0], int | float):
        return None
    usd, slot, machine = values[0], said[0], machine_size(draft)
    number, whose = _shared_among(slot, usd, count or 0, machine)
    if number > 1:
        draft.note(CAPEX, _plain(round(usd / number, 2)), f"${usd:,} {whose}")
        return _plain(round(usd / number, 2))
    of_all = slot.name == "capex_of_all"
    if (
        of_all
        or slot.name == OF_MACHINE
        or usd > MOST_ACCELERATOR_USD
        or (machine and not slot.implied and usd > MOST_ACCELERATOR_USD / machine)
    ):
        divisor = count if of_all else machine or count
        each = (f"${usd / divisor:,.0f} each",) if divisor else ()
        draft.doubts.append(Doubt(f"${usd:,}", (*each, f"${usd:,} each"), "what does one accelerator cost, not a machine or all of them?"))
        return None
    if slot.name != "capex" or slot.note:
        draft.note(CAPEX, usd, "read as the price of one accelerator" if slot.name != "capex" else slot.note)
    return usd


def _running(draft: Draft, path: str) -> Request:
    """What owned accelerators draw and cost while they run."""
    return stated(
        kw_per_accelerator=_power(draft, f"{path}.kw_per_accelerator"),
        pue=draft.one("pue", f"{path}.pue"),
        usd_per_kwh=draft.one("usd_per_kwh", f"{path}.usd_per_kwh"),
        opex_share_per_year=draft.one("opex_share_per_year", f"{path}.opex_share_per_year"),
    )


def _power(draft: Draft, path: str) -> float | None:
    """Power of one accelerator; what is more than one draws is that of a machine, and shared among its accelerators [kW]."""
    of_machine: float | None = draft.one("kw_of_machine", path)
    kw: float | None = draft.one("kw_per_accelerator", path) if of_machine is None else of_machine
    if kw is None or (of_machine is None and kw <= MOST_ACCELERATOR_KW):
        return kw
    machine = machine_size(draft)
    if not machine:
        draft.doubts.append(Doubt(f"{kw:g} kW", (f"{kw:g} kW per node",), "what does one accelerator draw, not a machine or all of them?"))
        return None
    draft.note(path, round(kw / machine, 4), f"{kw:g} kW for a node of {machine}")
    return round(kw / machine, 4)


def _shared_among(slot: Slot, usd: float, count: int, machine: int) -> tuple[int, str]:
    """How many accelerators a sum is that of, and how that is known; 1 of one, or where it may be either."""
    if slot.name == OF_MACHINE:
        return (machine, f"for a node of {machine}") if machine and usd <= MOST_ACCELERATOR_USD * machine else (1, "")
    if slot.name == "capex_of_all" and LEAST_CAPEX_USD * count <= usd <= MOST_ACCELERATOR_USD * count:
        return count, f"for all {count:,}"
    if usd <= MOST_ACCELERATOR_USD:
        return 1, ""
    if machine and slot.name in ("capex", "money_at") and not slot.implied and usd <= MOST_ACCELERATOR_USD * machine:
        return machine, f"for a node of {machine}"
    of_all = count and not machine and slot.name in ("capex", *MONEY) and LIKELY_USD[0] * count <= usd <= LIKELY_USD[1] * count
    return (count, f"read as for all {count:,}") if of_all else (1, "")
