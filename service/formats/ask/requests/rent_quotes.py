"""Stated prices of an hour as quotes of a request of buying or renting: who asks how much, for what term, and what is paid at its start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date

from service.formats.ask.grammar.machines.priced_machines import FOR_SEVERAL
from service.formats.ask.grammar.money.quoted import QUOTE_TERM, QUOTED_BY, UPFRONT_OF_ALL
from service.formats.ask.grammar.money.rates import EACH, Rate
from service.formats.ask.grammar.money.single_quotes import EXPIRES
from service.formats.ask.grammar.money.upfront import UPFRONT
from service.formats.ask.grammar.quantities import LEAST_PER_HOUR_USD, MOST_PER_HOUR_USD
from service.formats.ask.grammar.slots import Doubt, Slot
from service.formats.ask.lexing.durations import Duration
from service.formats.ask.lexing.vocabulary import Name
from service.formats.ask.requests.draft import WORDS, Draft, Request, stated
from service.formats.ask.requests.sections import (
    HOURS_PER_DAY,
    MOST_BESIDE_NODES_USD,
    OF_ONE_OR_NODE,
    ask_of_one,
    machine_size,
)
from service.formats.ask.requests.texts import MONTHS_PER_YEAR

PRICING = "rent.pricing"
BY_THE_HOUR = "on_demand"
HOURLY = frozenset({BY_THE_HOUR, "spot"})
PRICE = "price_per_hour"
PRICING_OF_YEARS: Mapping[float, str] = {1.0: "reserved_1y", 3.0: "reserved_3y"}
LEASED = "leased as long as it is used"
UNSAID_TERM = "the price is quoted without a term: taken for the length of the demand where there is such a one"
TERM_BESIDE = "the time beside the price is its term"
OF_PRICE = frozenset({"accelerator", "count", "provider"})
"""What a price may be followed by, before its term."""
MOST_BEFORE_TERM = 10
"""Words from a price to its term at most."""
LEAST_DAYS = 27
"""A shorter time is no term of a price."""
RESERVED_AS_USED = "reserved as long as it is used"
PAID_AT_START = "what is paid in part at its start is reserved, for the time that is said"


def quotes_of(draft: Draft, years: Duration | None) -> list[Request]:
    """Stated prices of an hour, for the term beside each, else for the one where there is one of that length."""
    pricings = [slot for slot in draft.slots.all if slot.name == "pricing" and slot.value != "reserved"]
    prices = draft.slots.each(PRICE)
    quotes, quoted = [], []
    for at, slot in enumerate(prices, 1):
        term = _term_of(draft, slot, prices)
        read = _of_term(term) if term is not None else _of_pricing(draft, slot, at, pricings, years)
        if read is None:
            continue
        _ask_of_machine(draft, slot)
        if slot.note:
            draft.note("rent.quotes", slot.value, slot.note)
        quotes.append({"name": _seller_of(draft, slot) or f"quote {at}", **read})
        quoted.append(slot)
    return _with_expiry(draft, _with_upfront(draft, quotes, quoted, years), quoted)


def _ask_of_machine(draft: Draft, price: Slot) -> None:
    """A price too high for one accelerator, where machines are counted, is asked back: p5.48xlarge at $55 an hour."""
    if FOR_SEVERAL in price.note or float(str(price.value)) <= MOST_BESIDE_NODES_USD:
        return
    machine = machine_size(draft)
    if machine > 1:
        texts = (f"${float(str(price.value)) / machine:,.4g} an hour", f"${price.value:,} an hour")
        draft.doubts.append(Doubt(f"${price.value:,}", texts, OF_ONE_OR_NODE))
    else:
        ask_of_one(draft, float(str(price.value)))


def with_terms_of_quotes(draft: Draft) -> None:
    """Of two times the shorter as the term of the one price before it: $1.95 for 256 H200 over 24 months, better over three years."""
    spans = [slot for slot in draft.slots.all if slot.name in ("span", "limit") and isinstance(slot.value, Duration)]
    prices = [slot for slot in draft.slots.all if slot.name == PRICE]
    lengths = sorted({slot.value.years for slot in spans if isinstance(slot.value, Duration)})
    if len(lengths) != 2 or len(prices) != 1 or draft.slots.has(QUOTE_TERM):
        return
    price = prices[0]
    behind = (slot for slot in spans if slot.first >= price.last)
    term = next((slot for slot in behind if isinstance(slot.value, Duration) and slot.value.years == lengths[0]), None)
    between = [slot for slot in draft.slots.all if term is not None and price.last <= slot.first < term.first]
    if term is None or term.first - price.last > MOST_BEFORE_TERM or any(slot.name not in OF_PRICE for slot in between):
        return
    own = replace(term, name=QUOTE_TERM, first=price.last)
    draft.slots.all = tuple(own if slot is term else slot for slot in draft.slots.all)


def longest_term(draft: Draft) -> Duration | None:
    """The longest term of the stated prices."""
    terms = [slot.value for slot in draft.slots.all if slot.name == QUOTE_TERM and isinstance(slot.value, Duration)]
    return max(terms, key=lambda term: term.years, default=None)


def _term_of(draft: Draft, price: Slot, prices: Sequence[Slot]) -> Duration | str | None:
    """The term that touches a price, or stands between it and the next one with what is paid at its start."""
    terms = [slot for slot in draft.slots.all if slot.name == QUOTE_TERM]
    kinds = [slot for slot in draft.slots.all if slot.name == "pricing"]
    touching = [slot for slot in terms if _touch(slot, price)]
    end = min((other.first for other in prices if other.first > price.first), default=max((slot.last for slot in terms), default=0))
    apart = [slot for slot in terms if price.last <= slot.first and slot.last <= end and not any(_touch(slot, other) for other in prices)]
    own = touching or ([] if any(_touch(slot, price) for slot in kinds) else apart)
    return own[0].value if own and isinstance(own[0].value, Duration | str) else None


def _touch(one: Slot, other: Slot) -> bool:
    return one.first == other.last or one.last == other.first


def _of_term(term: Duration | str) -> Request:
    """A quote of a term, or of a kind of pricing."""
    if isinstance(term, str):
        return {"pricing": term}
    pricing = PRICING_OF_YEARS.get(term.years)
    return {"pricing": pricing} if pricing else {"pricing": "reserved", "term_months": round(term.years * MONTHS_PER_YEAR)}


def _of_pricing(draft: Draft, slot: Slot, at: int, pricings: Sequence[Slot], years: Duration | None) -> Request | None:
    """A quote of the kind of pricing beside its price, or of the demand's length; None where several kinds are said and none beside it."""
    beside = [other for other in pricings if _touch(slot, other)]
    own = beside or ([] if slot.implied else _of_no_other(draft, slot, pricings))
    if len({other.value for other in pricings}) > 1 and len(beside) != 1 and not slot.implied:
        words = tuple(WORDS.get(str(other.value), str(other.value)) for other in pricings)
        draft.doubts.append(Doubt(f"${slot.value:,}", words, "of which pricing is this the price?"))
        return None
    if own:
        return {"pricing": str(own[0].value)}
    pricing = PRICING_OF_YEARS.get(years.years if years else 0.0, BY_THE_HOUR)
    beside_term = _time_beside(draft, slot)
    if beside_term is not None:
        read = _of_term(beside_term)
        draft.note(f"rent.quotes.{at - 1}.pricing", read["pricing"], TERM_BESIDE)
        return read
    reserved = any(other.value == "reserved" for other in draft.slots.all if other.name == "pricing")
    if years and (reserved or (slot.implied and pricing == BY_THE_HOUR)):
        months = round(years.years * MONTHS_PER_YEAR)
        draft.note(f"rent.quotes.{at - 1}.term_months", months, RESERVED_AS_USED if reserved else LEASED)
        return {"pricing": "reserved", "term_months": months}
    if not (years and draft.slots.has(UPFRONT) and len(draft.slots.each(PRICE)) == 1):
        draft.note("rent.quotes.0.pricing", pricing, UNSAID_TERM)
    return {"pricing": pricing}


def _of_no_other(draft: Draft, price: Slot, pricings: Sequence[Slot]) -> list[Slot]:
    """The kinds of pricing, without those beside another price where a time is beside this one: $1.85 3 years vs $2.40 on demand."""
    others = [slot for slot in draft.slots.each(PRICE) if slot is not price]
    if _time_beside(draft, price) is None:
        return list(pricings)
    return [pricing for pricing in pricings if not any(_touch(pricing, other) for other in others)]


def _time_beside(draft: Draft, price: Slot) -> Duration | None:
    """The time of a month or more right behind a price, or behind what it is the price of: $1.95 for 2 years, $1.95 h100 2 yr."""
    between = {at for slot in draft.slots.all if slot.name in OF_PRICE for at in range(slot.first, slot.last)}
    spans = [slot for slot in draft.slots.all if slot.name in ("span", "limit") and slot.first >= price.last]
    near = [slot.value for slot in spans if between.issuperset(range(price.last, slot.first)) and isinstance(slot.value, Duration)]
    return near[0] if len(near) == 1 and near[0].days >= LEAST_DAYS else None


def _with_upfront(draft: Draft, quotes: list[Request], prices: Sequence[Slot], years: Duration | None) -> list[Request]:
    """The quotes with the part of a term's price that is paid at its start: of the one reservation, or each behind its own price."""
    priced = [{**quote, "usd_per_accelerator_hour": slot.value} for quote, slot in zip(quotes, prices, strict=True)]
    priced = [_in_order(quote) for quote in priced]
    termed = [at for at, quote in enumerate(priced) if len(priced) == 1 or str(quote["pricing"]).startswith("reserved")]
    shares = [slot for slot in draft.slots.all if slot.name == UPFRONT]
    if not shares or not termed:
        return priced
    if len(termed) == 1:
        return [_paid_upfront(draft, quote, years) if at == termed[0] else quote for at, quote in enumerate(priced)]
    draft.slots.taken.update({UPFRONT, UPFRONT_OF_ALL})
    for share in shares:
        whole = any(slot.first == share.first for slot in draft.slots.all if slot.name == UPFRONT_OF_ALL)
        before = [at for at, slot in enumerate(prices) if slot.first < share.first]
        own = termed if whole else [at for at in before[-1:] if at in termed]
        for at in own:
            priced[at] |= {"upfront_share": share.value}
        if not own:
            names = tuple(str(priced[at]["name"]) for at in termed)
            draft.doubts.append(
                Doubt(f"{float(str(share.value)) * 100:g}% upfront", names, "of which quote is this the part paid upfront?")
            )
    return priced


def _with_expiry(draft: Draft, quotes: Sequence[Request], prices: Sequence[Slot]) -> list[Request]:
    """The quotes with the last day on which each can be taken: said behind its price, of all of them, or of the only one."""
    found = list(quotes)
    for day in draft.slots.each(EXPIRES) if found else ():
        before = [at for at, price in enumerate(prices) if price.first < day.first]
        for at in before[-1:] or range(len(found)):
            found[at] = {**found[at], "expires": day.value.isoformat()} if isinstance(day.value, date) else found[at]
    return found


def _in_order(quote: Request) -> Request:
    """A quote with its parts in the order of the schema."""
    order = ("name", "pricing", "usd_per_accelerator_hour", "term_months")
    return {name: quote[name] for name in order if name in quote}


def _seller_of(draft: Draft, price: Slot) -> str:
    """Who states a price; empty where that is not said."""
    sellers = [slot.value for slot in draft.slots.each(QUOTED_BY) if (slot.first, slot.last) == (price.first, price.last)]
    return sellers[0].value if sellers and isinstance(sellers[0], Name) else ""


def _paid_upfront(draft: Draft, quote: Request, years: Duration | None) -> Request:
    """The quote with the part of its term's price that is paid at once; what has one is reserved, for the time that is said."""
    share = draft.one(UPFRONT, "rent.quotes.0.upfront_share")
    hourly = any(slot.name == "pricing" and slot.value == BY_THE_HOUR for slot in draft.slots.all)
    if (share or (share is not None and not hourly)) and quote["pricing"] == BY_THE_HOUR and years is not None:
        months = round(years.years * MONTHS_PER_YEAR)
        draft.note("rent.quotes.0.term_months", months, PAID_AT_START)
        quote = quote | {"pricing": "reserved", "term_months": months}
    return quote | stated(upfront_share=share)


def price_leases(draft: Draft) -> bool:
    """A sum of money for each accelerator in each of a time as the price of its hour ($1,150 per GPU a month); whether one is said."""
    slots: list[Slot] = []
    leased = False
    for slot in draft.slots.all:
        rate = slot.value
        usd = round(rate.usd / (rate.every.days * HOURS_PER_DAY), 4) if slot.name == EACH and isinstance(rate, Rate) else 0.0
        if slot.implied or not LEAST_PER_HOUR_USD <= usd < MOST_PER_HOUR_USD or not isinstance(rate, Rate):
            slots.append(slot)
            continue
        note = f"${rate.usd:,} a {rate.every.unit.removesuffix('s')} each"
        slots.append(replace(slot, name=PRICE, value=usd, note=note, implied=True))
        leased = True
    draft.slots.all = tuple(slots)
    for slot in draft.slots.each("pricing") if leased else ():
        draft.note(PRICING, slot.value, "offers of every kind of pricing are weighed")
    return leased
