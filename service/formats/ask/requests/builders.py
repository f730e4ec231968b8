"""Requests of the endpoints, by kind of question."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from service.domain.ask import Kind
from service.formats.ask.grammar.asking.intents import AFFORDED, GRID, LEVERS, MONEY, asks_figure
from service.formats.ask.grammar.days.times import SHORT
from service.formats.ask.grammar.keyed import PER_NODE
from service.formats.ask.grammar.machines.nodes import UNCLEAR
from service.formats.ask.grammar.machines.priced_machines import pairs_of
from service.formats.ask.grammar.money.quoted import QUOTED_BY
from service.formats.ask.grammar.money.rates import EACH, OF_ALL, Rate
from service.formats.ask.grammar.money.reservations import HELD_FOR, OF_CONTRACT, RESERVED_FOR, TERMS
from service.formats.ask.grammar.quantities import LEAST_PER_HOUR_USD, MOST_PER_HOUR_USD
from service.formats.ask.grammar.slots import ALL_OFFERS, HOURLY, Doubt, unique
from service.formats.ask.lexing.durations import Duration
from service.formats.ask.lexing.vocabulary import Name
from service.formats.ask.requests.choices import TRAINING_MACHINES, machine_choices
from service.formats.ask.requests.data import data_section
from service.formats.ask.requests.draft import Draft, Request, stated
from service.formats.ask.requests.energy import energy_section
from service.formats.ask.requests.failures import failures_section
from service.formats.ask.requests.fields import stated_fields
from service.formats.ask.requests.ownership import YEARS_OF_TERM, buy_or_rent_request, owned_already
from service.formats.ask.requests.sections import (
    HOURS_PER_DAY,
    MOST_BESIDE_NODES_USD,
    accelerator_counts,
    accelerator_names,
    ask_of_one,
    check_future,
    dollars,
    hardware_section,
    many_pricings,
    model_section,
    one_pricing,
    overhead_section,
    price_section,
    schedule_section,
    training_section,
    waits,
)
from service.formats.ask.requests.speeds import efficiency_section
from service.formats.ask.requests.variants import variants_of

ENDPOINTS: Mapping[Kind, str] = {
    "estimate": "POST /v1/estimate",
    "compare": "POST /v1/compare",
    "optimal": "POST /v1/optimal",
    "buy_or_rent": "POST /v1/buy-or-rent",
    "chance": "POST /v1/scenarios",
    "price": "GET /v1/offers",
    "status": "GET /v1/track/programs/{id}/status",
    "help": "POST /v1/ask",
}

LEAST_LIMIT_DAYS = 0.5
"""A shorter time without a word of a limit is not the time that a run may take [days]."""
MOST_HOURS_PRICED = 10**6
"""More accelerator-hours than GET /v1/offers prices at once."""
SEVERAL = ","
"""What parts several values of a filter of offers."""
BUDGETS = (*MONEY, "flops", "accelerator_hours", "limit", "span", "deadline")
"""What an optimal size may be asked for; several of one are asked back already."""


def estimate_request(draft: Draft) -> Request:
    """POST /v1/estimate."""
    _spans_as_limits(draft)
    hardware = hardware_section(draft, choices=machine_choices(draft))
    levers = LEVERS in {slot.value for slot in draft.slots.all if slot.name == "intent"}
    carbon = draft.slots.has("objective") and asks_figure(draft.slots)
    draft.slots.taken.update({"objective"} if levers or carbon or draft.slots.has(GRID) else ())
    energy = energy_section(draft, carbon=carbon)
    return stated(
        model=model_section(draft),
        data=data_section(draft),
        training=training_section(draft),
        hardware=hardware,
        efficiency=efficiency_section(draft),
        price=price_section(draft),
        failures=failures_section(draft, hardware.get("count")),
        energy=energy,
        **_kept_data(draft),
        personnel=stated_fields(draft, "personnel"),
        overhead=overhead_section(draft),
        schedule=schedule_section(draft),
        levers=levers or None,
    )


def chance_request(draft: Draft) -> Request:
    """POST /v1/scenarios of kind monte_carlo; of a program, the id of its status."""
    program = draft.one("program", "id")
    if program is not None:
        draft.slots.taken.update({"deadline", *MONEY} if not draft.slots.has("deadline", *MONEY) else ())
        return {"id": program.id}
    draft.rename("lower_bound", "budget_usd", "the chance to stay under it: that to go over it is the rest")
    budget = dollars(draft, "budget_usd")
    _spans_as_limits(draft)
    draft.rename("date", "deadline", "read as the deadline")
    base = estimate_request(draft)
    if budget is None and "deadline" not in base.get("schedule", {}) and not draft.asks:
        draft.missing("the chance of what: a deadline (by 2027-06-30) or a budget (under $2M)?")
    return stated(kind="monte_carlo", base=base, budget_usd=budget)


def compare_request(draft: Draft) -> Request:
    """POST /v1/compare."""
    _spans_as_limits(draft)
    limit = draft.one("limit", "constraints.max_wall_clock_days")
    start, deadline = draft.one("start", "constraints.start"), draft.one("deadline", "constraints.deadline")
    check_future(draft, start, deadline)
    candidates = _machines(draft) | stated(
        providers=unique(name.value for name in draft.many("provider", "candidates.providers")),
        regions=unique(name.value for name in draft.many("region", "candidates.regions")),
        pricing=many_pricings(draft, "candidates.pricing"),
    )
    draft.slots.taken.update({PER_NODE} if draft.slots.has("nodes") else ())
    constraints = stated(
        start=start and start.isoformat(),
        deadline=deadline and deadline.isoformat(),
        min_deadline_probability=draft.one("probability", "constraints.min_deadline_probability") if deadline else None,
        max_cost_usd=dollars(draft, "constraints.max_cost_usd"),
        max_wall_clock_days=None if limit is None else limit.days,
        max_tco2e=draft.one("max_tco2e", "constraints.max_tco2e"),
        jurisdictions=[name.value for name in draft.many("jurisdiction", "constraints.jurisdictions")],
        require_available=draft.one("require_available", "constraints.require_available"),
    )
    axis = draft.slots.peek("ways")
    make = functools.partial(_workload, draft)
    workload, variants = (make(), []) if axis is None else variants_of(draft, str(axis), make)
    owned, objective = owned_already(draft), draft.one("objective", "objective")
    return stated(workload=workload, variants=variants, candidates=candidates, constraints=constraints, on_prem=owned, objective=objective)


def _machines(draft: Draft) -> Request:
    """Accelerators and their numbers, each of both, or each accelerator with its own."""
    pairs = pairs_of(draft.slots.all)
    names = accelerator_names(draft, "candidates.accelerators")
    counts = accelerator_counts(draft, "candidates.machines" if pairs else "candidates.counts")
    if pairs:
        return {"machines": [{"accelerator": name.value, "count": count} for name, count in pairs]}
    return stated(accelerators=names, counts=counts)


def _spans_as_limits(draft: Draft, *, bare_only: bool = False) -> None:
    """Times as limits of the run; the term of a contract is none, a bare one of some hours is of something else, and is asked back."""
    terms = [slot for slot in draft.slots.all if slot.name == "span" and slot.note == OF_CONTRACT]
    for slot in terms:
        draft.note("price.pricing", slot.value, OF_CONTRACT)
    draft.slots.all = tuple(slot for slot in draft.slots.all if slot not in terms)
    short = [
        slot
        for slot in draft.slots.all
        if slot.name == "span" and slot.implied and isinstance(slot.value, Duration) and slot.value.days < LEAST_LIMIT_DAYS
    ]
    draft.slots.all = tuple(replace(slot, name=SHORT) if slot in short else slot for slot in draft.slots.all)
    draft.rename("span", "limit", "read as a limit", bare_only=bare_only)


def _kept_data(draft: Draft) -> Request:
    """Storage and traffic around a run."""
    return stated(storage=stated_fields(draft, "storage"), network=stated_fields(draft, "network"))


def _workload(draft: Draft) -> Request:
    """The run that is compared."""
    return stated(
        model=model_section(draft),
        data=data_section(draft),
        training=training_section(draft),
        efficiency=efficiency_section(draft),
        failures=stated_fields(draft, "failures"),
        energy=stated_fields(draft, "energy"),
        **_kept_data(draft),
        overhead=overhead_section(draft),
        schedule=waits(draft),
    )


def optimal_request(draft: Draft) -> Request:
    """POST /v1/optimal."""
    days = _days(draft)
    deadline = draft.one("deadline", "budget.deadline")
    budget = stated(
        usd=dollars(draft, "budget.usd"),
        flops=draft.one("flops", "budget.flops"),
        accelerator_hours=draft.one("accelerator_hours", "budget.accelerator_hours"),
        days=days,
        deadline=deadline and deadline.isoformat(),
    )
    if not budget and not draft.slots.has(*BUDGETS):
        draft.missing("with what: dollars ($1M), accelerator-hours, days, or FLOPs (1e24 flops)?")
    machine = draft.slots.has("accelerator", "count", "nodes", "racks")
    start = draft.one("start", "schedule.start")
    afforded = any(slot.name == "intent" and slot.value == AFFORDED for slot in draft.slots.all)
    return stated(
        budget=budget,
        model=model_section(draft) if afforded else None,
        hardware=hardware_section(draft, required=machine or (bool(budget) and "flops" not in budget), choices=TRAINING_MACHINES),
        training=training_section(draft),
        efficiency=efficiency_section(draft),
        price=price_section(draft),
        overhead=overhead_section(draft),
        schedule=stated(start=start and start.isoformat(), **waits(draft)),
        law=draft.one("law", "law"),
        **_kept_data(draft),
        lifetime_inference_tokens=draft.one("lifetime_inference_tokens", "lifetime_inference_tokens"),
        max_unique_tokens=draft.one("max_unique_tokens", "max_unique_tokens"),
    )


def _days(draft: Draft) -> float | None:
    limit, span = draft.one("limit", "budget.days"), draft.one("span", "budget.days")
    duration = limit or span
    return None if duration is None else duration.days


def price_request(draft: Draft) -> Request:
    """GET /v1/offers: its filters."""
    if not draft.slots.has("span", "paid_time"):
        draft.rename(UNCLEAR, "count", "read as the accelerators of a node")
    names = accelerator_names(draft, "accelerator")
    draft.slots.taken.update({"rent", "objective"} if draft.slots.peek("objective") == "cost" else {"rent"})
    counts = _counts_held(draft)
    stating = _stating(draft)
    providers, regions, places = (unique(name.value for name in draft.many(what, what)) for what in ("provider", "region", "jurisdiction"))
    providers = [name for name in providers if name not in stating]
    draft.slots.taken.add(ALL_OFFERS)
    if not names and not providers and not regions and not draft.slots.has("max_price_per_hour", ALL_OFFERS):
        draft.missing("the price of which accelerator, such as H100?")
    hours = _hours_held(draft, counted=bool(counts))
    return stated(
        accelerator=SEVERAL.join(names) or None,
        provider=SEVERAL.join(providers) or None,
        region=SEVERAL.join(regions) or None,
        jurisdiction=SEVERAL.join(places) or None,
        pricing=_pricings(draft),
        max_usd_per_accelerator_hour=_most_per_hour(draft, counts, hours),
        count=counts[0] if len(counts) == 1 else None,
        hours=hours,
        usd_per_accelerator_hour=_price_held(draft, counts),
    )


def _stating(draft: Draft) -> list[str]:
    """Sellers that state the price which is asked about: it is held against the offers of all, or of those that are named besides."""
    found = [(slot.value.value, slot) for slot in draft.slots.each(QUOTED_BY) if isinstance(slot.value, Name)]
    for name, slot in found:
        price = next(other.value for other in draft.slots.all if (other.first, other.last) == (slot.first, slot.last) and other is not slot)
        draft.note("usd_per_accelerator_hour", price, f"the price of {name}, held against those of all")
    return [name for name, _ in found]


def _most_per_hour(draft: Draft, counts: Sequence[int], hours: float | None) -> float | None:
    """The highest price of an hour, or what a budget for a number of accelerators and a time allows of one."""
    usd: float | None = draft.one("max_price_per_hour", "max_usd_per_accelerator_hour")
    if usd is not None or hours is None or len(counts) != 1 or not draft.slots.has(*MONEY):
        return usd
    budget = dollars(draft, "max_usd_per_accelerator_hour")
    if budget is None:
        return None
    most: float = round(budget / (counts[0] * hours), 4)
    draft.note("max_usd_per_accelerator_hour", most, f"${budget:,} for {counts[0]:,} of them for {hours:,.10g} hours")
    return most


def _price_held(draft: Draft, counts: Sequence[int]) -> float | None:
    """A stated price of an hour; one that may be that of all of them is asked back: 8 H100 for $20 an hour."""
    usd: float | None = draft.one("price_per_hour", "usd_per_accelerator_hour")
    usd = _price_of_time(draft, counts) if usd is None else usd
    count = counts[0] if len(counts) == 1 else 1
    if usd is not None and count > 1 and usd > MOST_BESIDE_NODES_USD:
        texts = (f"${usd / count:,.4g} an hour", f"${usd:,} an hour")
        draft.doubts.append(Doubt(f"${usd:,}", texts, f"is it the price of one accelerator, or of {count:,}?"))
    else:
        ask_of_one(draft, usd)
    return usd


def _price_of_time(draft: Draft, counts: Sequence[int]) -> float | None:
    """The price of an accelerator-hour that a sum of a time is: $80k a month for 40 H100; None where it is none, or a limit."""
    said = [slot for slot in draft.slots.all if slot.name in (OF_ALL, EACH)]
    each = len(said) == 1 and said[0].name == EACH
    if len(said) != 1 or said[0].implied or not (each or len(counts) == 1):
        return None
    rate, number = said[0].value, 1 if each else counts[0]
    assert isinstance(rate, Rate)
    usd = round(rate.usd / (rate.every.days * HOURS_PER_DAY * number), 4)
    if not LEAST_PER_HOUR_USD <= usd < MOST_PER_HOUR_USD:
        return None
    draft.slots.taken.add(said[0].name)
    of_what = "each" if each else f"for {number:,}"
    draft.note("usd_per_accelerator_hour", usd, f"${rate.usd:,} a {rate.every.unit.removesuffix('s')} {of_what}")
    return usd


def _counts_held(draft: Draft) -> list[int]:
    """Accelerators whose price is asked for; several are asked back."""
    draft.slots.all = tuple(slot for slot in draft.slots.all if not (slot.name == "count" and slot.implied and slot.value == 1))
    counts = accelerator_counts(draft, "count")
    if len(counts) > 1:
        shown = tuple(str(count) for count in counts)
        draft.doubts.append(Doubt(", ".join(shown), shown, "how many are to be held: one of these?"))
    return counts


def _hours_held(draft: Draft, *, counted: bool) -> float | None:
    """How long accelerators are held: a time, per month, or from one day to another; of one reserved accelerator it is the term alone."""
    held: Duration | None = draft.one("paid_time", "hours") or draft.one("span", "hours")
    stated_hours = draft.slots.peek("accelerator_hours")
    if not counted and isinstance(stated_hours, int | float) and stated_hours <= MOST_HOURS_PRICED:
        if held is not None:
            draft.note("hours", stated_hours, f"all accelerator-hours of {float(held.value):g} {held.unit}")
        return _plain_hours(draft.one("accelerator_hours", "hours"))
    if held is not None and (counted or not _is_term(draft)):
        return _hours_paid(draft, held)
    terms = {slot.value for slot in draft.slots.all if slot.name == "pricing"} & set(YEARS_OF_TERM)
    hourly = any(slot.name == "intent" and slot.note == HOURLY for slot in draft.slots.all)
    alone = len({slot.value for slot in draft.slots.all if slot.name == "pricing"}) == 1 or draft.slots.has(HELD_FOR)
    counted = counted and not all(slot.implied for slot in draft.slots.all if slot.name == "count")  # of one instance type the rate
    if held is None and counted and alone and not hourly and len(terms) == 1 and not draft.slots.has("start", "deadline"):
        return _hours_paid(draft, Duration(Fraction(YEARS_OF_TERM[str(*terms)]), "years"))
    if held is None and draft.slots.has("start") and draft.slots.has("deadline"):
        start, end = draft.one("start", "hours"), draft.one("deadline", "hours")
        if start is not None and end is not None and end >= start:
            hours = _plain_hours(((end - start).days + 1) * HOURS_PER_DAY)
            draft.note("hours", hours, f"from {start.isoformat()} to {end.isoformat()}; prices are those of now")
            return hours
    return None


def _hours_paid(draft: Draft, held: Duration) -> float:
    """Hours of a time; on demand the used share of them is paid for."""
    hours, words = held.days * HOURS_PER_DAY, f"{float(held.value):g} {held.unit}"
    reserved = any(str(slot.value).startswith("reserved") for slot in draft.slots.all if slot.name == "pricing")
    used: float | None = None if reserved else draft.one("utilisation", "hours")
    if used is not None:
        hours, words = hours * used, f"{used * 100:g}% of {words}: on demand and spot are paid for used hours alone"
    draft.note("hours", _plain_hours(hours), words)
    return _plain_hours(hours)


def _plain_hours(hours: float) -> float:
    return int(hours) if hours == int(hours) else round(hours, 2)


def _pricings(draft: Draft) -> str | None:
    """The kind of pricing of a filter, or those that are weighed: spot vs on demand."""
    said = {slot.value for slot in draft.slots.all if slot.name == "pricing"}
    if (
        said == {"reserved"}
        and draft.slots.has("price_per_hour")
        and any(slot.note == RESERVED_FOR for slot in draft.slots.each("pricing"))
    ):
        draft.note("pricing", "all", "no offers are for a term of that length: those of all kinds are shown")
        return None
    if len(said) < 2 and not draft.slots.has("without_pricing"):
        return one_pricing(draft, "pricing")
    return SEVERAL.join(many_pricings(draft, "pricing"))


def _is_term(draft: Draft) -> bool:
    """Whether the time that is said is that of the one reservation: reserved H100 for one year."""
    spans, pricings = ({slot.value for slot in draft.slots.all if slot.name == name} for name in ("span", "pricing"))
    return len(spans) == 1 and pricings == {TERMS.get(span.years) for span in spans if isinstance(span, Duration)}


def status_request(draft: Draft) -> Request:
    """GET /v1/track/programs/{id}/status."""
    program = draft.one("program", "id")
    as_of = draft.one("as_of", "as_of") or draft.one("start", "as_of") or draft.one("date", "as_of") or draft.one("deadline", "as_of")
    if program is None and not draft.asks:
        draft.missing("of which program?")
    end = None if as_of is None else f"{as_of.isoformat()}T23:59:59Z"
    return stated(id=program and program.id, as_of=end)


def help_request(draft: Draft) -> Request:
    """Nothing: the answer shows what can be asked."""
    del draft
    return {}


BUILDERS: Mapping[Kind, Callable[[Draft], Request]] = {
    "estimate": estimate_request,
    "compare": compare_request,
    "optimal": optimal_request,
    "buy_or_rent": buy_or_rent_request,
    "chance": chance_request,
    "price": price_request,
    "status": status_request,
    "help": help_request,
}
