"""What can be rented: offers of the price book and quotes that the caller states, with what rules them out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime
from typing import Any

from providers.offer import BY_THE_HOUR, PRICINGS, TERM_HOURS, Offer
from service.domain.errors import InvalidRequest
from service.domain.procurement.answer import OptionKind, RentedOffer
from service.engine.procurement.cash_flows import RentTerms
from service.engine.procurement.price_paths import HOURS_PER_MONTH
from service.formats.option_words import rented_words
from service.presets.procurement.commitments import fewest_accelerators, holds_capacity, offer_faults
from service.presets.procurement.contract_prices import compare_with_published
from service.prices.book import PriceBook
from service.usecases.comparison.commitments import published_beside
from service.usecases.comparison.offer_selection import matching_rows
from service.usecases.prices.commitments import describe_missing_commitments
from service.usecases.procurement.demand import ResolvedDemand
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.price import describe_priced

Request = Mapping[str, Any]
CALLER, SPOT, ON_DEMAND = "caller", "spot", "on_demand"
STALE = "its price is older than its provider promises; options with fresh prices are preferred"


@dataclass(frozen=True, slots=True)
class RentChoice:
    """A price at which the demand can be rented: how it is paid, what it is for, and what rules it out of the verdict.

    `overhead`: hours paid for each of work; `minimum`: fewest accelerators; `most_utilisation`: part of the time in which they can be had.
    """

    name: str
    kind: OptionKind
    offer: RentedOffer
    terms: RentTerms
    ruled_out: str | None
    overhead: float = 1.0
    minimum: int = 1
    most_utilisation: float = math.inf

    @property
    def words(self) -> str:
        """The price as people read it."""
        return rented_words(self.name, asdict(self.offer))

    @property
    def usd_per_hour(self) -> float:
        """Price of an accelerator-hour of work [USD]: `overhead` hours are paid for each, more than one where work is lost."""
        return self.offer.usd_per_accelerator_hour * self.overhead

    @property
    def group(self) -> tuple[object, ...]:
        """What options with proportional costs have in common."""
        return self.kind, self.terms.term_months, self.terms.upfront_share, self.terms.fixed, self.terms.count


def rent_choices(request: Request, demand: ResolvedDemand, book: PriceBook, now: datetime, notes: AssumptionLog) -> list[RentChoice]:
    """All prices, each name once. Stale ones take part in the verdict only where no price of their kind is fresh."""
    section = request.get("rent", {})
    found: dict[str, RentChoice] = {}
    choices = (*_quoted(section, demand, now.date(), notes), *_offered(section, demand, book, now, notes))
    for choice in sorted(choices, key=lambda choice: (choice.ruled_out is not None, choice.usd_per_hour)):
        found.setdefault(choice.name, choice)
    return _prefer_fresh(list(found.values()), notes)


def cheapest(choices: Sequence[RentChoice], *kinds: str) -> RentChoice | None:
    """The eligible choice of the kinds with the lowest price of an hour; None without one."""
    eligible = [choice for choice in choices if choice.kind in kinds and choice.ruled_out is None]
    return min(eligible, key=lambda choice: choice.usd_per_hour, default=None)


def _prefer_fresh(choices: Sequence[RentChoice], notes: AssumptionLog) -> list[RentChoice]:
    """The choices; stale ones are ruled out where a fresh one of their kind is there."""
    fresh = {choice.kind for choice in choices if choice.ruled_out is None and not choice.offer.stale}
    result = []
    for choice in choices:
        stale = choice.offer.stale and choice.ruled_out is None
        if stale and choice.kind in fresh:
            result.append(replace(choice, ruled_out=STALE))
        else:
            result.append(choice)
    for kind in sorted({choice.kind for choice in choices if choice.offer.stale and choice.ruled_out is None} - fresh):
        notes.warn(f"every {kind.replace('_', ' ')} price is stale: ask for a quote before you rely on the verdict")
    return result


def _offered(section: Request, demand: ResolvedDemand, book: PriceBook, now: datetime, notes: AssumptionLog) -> Iterator[RentChoice]:
    """Offers of the price book, in instances of a whole node at least where the fleet has several."""
    if section.get("providers") == []:
        return
    candidates = {name: section[name] for name in ("providers", "regions", "pricing") if section.get(name)}
    rows = matching_rows(candidates, (demand.accelerator.name,), book)
    _warn_without_commitment(section, demand, book, notes)
    least = min(demand.count, demand.accelerator.accelerators_per_node)
    whole = [row for row in rows.tolist() if book.offers[row].accelerator_count >= least]
    if len(whole) < len(rows):
        notes.assume("rent.instances", f"at least {least} accelerators", "smaller instances have no known network between them")
    if not whole and candidates.get("providers"):
        known = describe_priced(book.by_accelerator.get(demand.accelerator.name, ()))
        raise InvalidRequest(
            f"no price of {demand.accelerator.name} matches these filters in {book.name}; known: {known}", "/rent/providers"
        )
    stale = book.stale_mask(now)
    for row in whole:
        yield _offer_choice(book.offers[row], demand, now.date(), stale=bool(stale[row]))


def _warn_without_commitment(section: Request, demand: ResolvedDemand, book: PriceBook, notes: AssumptionLog) -> None:
    """Warns where the book knows no commitment and the caller neither quotes one nor asks for prices by the hour alone."""
    quoted = any(quote["pricing"] not in BY_THE_HOUR for quote in section.get("quotes", ()))
    wanted = any(pricing not in BY_THE_HOUR for pricing in section.get("pricing") or PRICINGS)
    lacks = describe_missing_commitments(book, (demand.accelerator.name,))
    if lacks and wanted and not quoted:
        notes.warn(lacks)


def _offer_choice(offer: Offer, demand: ResolvedDemand, today: date, *, stale: bool) -> RentChoice:
    faults = offer_faults(offer, demand.count, demand.months * HOURS_PER_MONTH, demand.start, today)
    market = () if offer.market == "list" else (offer.market,)
    rented = RentedOffer(
        provider=offer.provider,
        region=offer.region,
        instance_type=offer.instance_type,
        accelerator=offer.accelerator,
        accelerators_per_instance=offer.accelerator_count,
        pricing=offer.pricing,
        usd_per_accelerator_hour=float(offer.usd_per_accelerator_hour),
        term_hours=offer.term_hours,
        upfront_share=offer.terms.upfront_share or 0.0,
        contract=offer.pricing not in BY_THE_HOUR,
        valid_until=offer.terms.valid_until,
        observed_at=offer.observed_at,
        source=offer.source,
        stale=stale,
        holds_capacity=holds_capacity(offer),
        published=published_beside(offer),
    )
    name = " ".join((offer.provider, offer.region, offer.instance_type, offer.pricing, *market, *filter(None, (offer.terms.key,))))
    return _choice(name, rented, demand, "; ".join(fault.text for fault in faults) or None, fewest_accelerators(offer))


def _quoted(section: Request, demand: ResolvedDemand, today: date, notes: AssumptionLog) -> Iterator[RentChoice]:
    """The caller's quotes."""
    for index, quote in enumerate(section.get("quotes", ())):
        pricing, months = quote["pricing"], quote.get("term_months")
        reserved = pricing not in BY_THE_HOUR
        if months is not None and not reserved:
            raise InvalidRequest(f"{pricing} is a price by the hour and has no term", f"/rent/quotes/{index}/term_months")
        if reserved and months is None and pricing not in TERM_HOURS:
            raise InvalidRequest(f"{pricing} needs the length of its term", f"/rent/quotes/{index}/term_months")
        contract = quote.get("contract")
        if contract is None and not reserved:
            notes.assume(f"rent.quotes.{quote['name']}.contract", value=False, source="not stated: it follows list prices")
        term_hours = months * HOURS_PER_MONTH if months else TERM_HOURS[pricing]
        price = quote["usd_per_accelerator_hour"]
        offer = RentedOffer(
            provider=quote["name"],
            region=None,
            instance_type=None,
            accelerator=demand.accelerator.name,
            accelerators_per_instance=1,
            pricing=pricing,
            usd_per_accelerator_hour=price,
            term_hours=term_hours,
            upfront_share=quote.get("upfront_share") or 0.0,
            contract=reserved or bool(contract),
            valid_until=quote.get("expires"),
            observed_at=None,
            source=CALLER,
            stale=False,
            holds_capacity=None if reserved else False,
            published=compare_with_published(price, demand.accelerator.name, term_hours, _seller(quote["name"])) if reserved else None,
        )
        yield _choice(quote["name"], offer, demand, _quote_fault(quote, demand, today), quote.get("minimum_accelerators") or 1)
        _warn_expiry(offer, today, notes)


def _seller(quote: str) -> str:
    """The seller that a quote's name begins with, as `aws private pricing`."""
    return quote.split(maxsplit=1)[0].casefold()


def _quote_fault(quote: Request, demand: ResolvedDemand, today: date) -> str | None:
    expires, least = quote.get("expires"), quote.get("minimum_accelerators")
    if expires is not None and expires < today:
        return f"the quote ended on {expires}"
    return f"the quote is for at least {least:,} accelerators" if least is not None and demand.count < least else None


def _warn_expiry(offer: RentedOffer, today: date, notes: AssumptionLog) -> None:
    if offer.valid_until is None:
        return
    days = (offer.valid_until - today).days
    if days < 0:
        notes.warn(f"the quote {offer.provider} ended on {offer.valid_until} and is left out: ask for a new one")
    else:
        notes.warn(f"the quote {offer.provider} ends in {days} days, on {offer.valid_until}")


def _choice(name: str, offer: RentedOffer, demand: ResolvedDemand, ruled_out: str | None, minimum: int) -> RentChoice:
    """A price with how the fleet pays it: reserved instances are whole, for whole terms."""
    if not offer.term_hours:
        kind: OptionKind = "spot" if offer.pricing == SPOT else "on_demand"
        return RentChoice(name, kind, offer, RentTerms(fixed=offer.contract, count=float(demand.count)), ruled_out)
    instance = offer.accelerators_per_instance
    count = -(-demand.count // instance) * instance
    months = max(1, round(offer.term_hours / HOURS_PER_MONTH))
    terms = RentTerms(months, offer.upfront_share, fixed=True, count=float(count))
    return RentChoice(name, "reserved", offer, terms, ruled_out, minimum=minimum)
