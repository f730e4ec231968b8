"""The price of an answer: the caller's own, or that of an offer that matches the filter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, TypeVar

from providers.offer import AVAILABILITIES, MARKETS, PRICINGS, Offer
from service.domain.answer_fields import Doc
from service.domain.errors import InvalidRequest, NoOffer, UnpricedAccelerator
from service.domain.prices import (
    PROVIDER_SYNONYMS,
    CommitmentTerms,
    commitment_terms,
    end_warning,
    ended_warning,
    near_names,
    offer_key,
    term_hours,
)
from service.presets.hardware.regions import region_of_offer
from service.prices.catalog import PriceBook, matches_filters
from service.usecases.resolution.assumption_log import AssumptionLog

Figure = TypeVar("Figure")

DEFAULT_PRICING = "on_demand"
# Ends the text of a price that is not known, where all but the cost is answered.
STATE_PRICE = "the price in a vendor's quote, or the cost of an hour on your own hardware; without it the cost is not known"
OLD_AFTER = timedelta(days=365)
FILTERS = ("provider", "region", "pricing", "snapshot")
DISCOUNTED = "USD per accelerator-hour before the discounts of your price files; each discount applies to the price after the one before"


@dataclass(frozen=True, slots=True)
class Price:
    """The price of an answer. `source` is "caller" where the caller stated it; then the fields of an offer are None.

    `list_usd_per_accelerator_hour` and `discounts` say what a contract's discounts were taken off, and which; None where there were none.
    """

    usd_per_accelerator_hour: Annotated[float, Doc("Price of one accelerator for an hour", "USD per accelerator-hour")]
    source: Annotated[str, Doc('"caller" for a stated price, else where the offer was read', max_length=1000)]
    stale: Annotated[bool, Doc("Whether the price is older than its provider promises")]
    provider: Annotated[str | None, Doc("Name of the provider; null for the caller's own price")] = None
    region: Annotated[str | None, Doc("Region as the provider names it")] = None
    pricing: Annotated[str | None, Doc("Kind of pricing", choices=PRICINGS)] = None
    observed_at: Annotated[datetime | None, Doc("When the price was read")] = None
    instance_type: Annotated[str | None, Doc("Instance type as the provider names it")] = None
    accelerator: Annotated[str | None, Doc("Canonical name of the accelerator")] = None
    accelerators_per_instance: Annotated[int, Doc("Accelerators of one instance", minimum=1)] = 1
    market: Annotated[str | None, Doc("Kind of market", choices=MARKETS)] = None
    availability: Annotated[str | None, Doc("What is known of its availability", choices=AVAILABILITIES)] = None
    list_usd_per_accelerator_hour: Annotated[
        float | None, Doc("Price before discounts; null where none was taken", "USD per accelerator-hour")
    ] = None
    discounts: Annotated[str | None, Doc("Discounts taken off the list price, in their order; null where none was", max_length=5000)] = None
    terms: Annotated[CommitmentTerms | None, Doc("Terms that the offer states; absent: none", optional=True)] = None

    @property
    def term_hours(self) -> float:
        """Hours paid for whether used or not [h]; 0 by the hour and for the caller's own price."""
        return term_hours(self.pricing, self.terms)


def require_priced(figure: Figure | None) -> Figure:
    """A price or a cost, for answers that are sums or differences of dollars. Raises UnpricedAccelerator where it is not known."""
    if figure is None:
        text = "the cost is not known because no price of the accelerator is known: state price.usd_per_accelerator_hour"
        raise UnpricedAccelerator(text, "/price")
    return figure


def find_stated_price(given: Mapping[str, Any], accelerator: str) -> Price | None:
    """The caller's own price; None where the caller states none. Raises InvalidRequest for a price with a filter."""
    stated = given.get("usd_per_accelerator_hour")
    if stated is None:
        return None
    beside = [name for name in FILTERS if given.get(name) is not None and name != "snapshot"]
    if beside:
        raise InvalidRequest(f"a stated price needs no filter: leave out {beside[0]}", f"/price/{beside[0]}")
    return Price(float(stated), "caller", stale=False, accelerator=accelerator)


def find_offers(given: Mapping[str, Any], accelerator: str, book: PriceBook) -> list[Offer]:
    """Eligible offers of the accelerator, at least one. Raises NoOffer where nothing is left."""
    offers = find_eligible_offers(given, accelerator, book)
    if not offers:
        raise _no_offer(given, accelerator, book)
    return offers


def sold_for(offers: Sequence[Offer], count: int) -> Sequence[Offer]:
    """The offers whose price is for so few accelerators; all of them where none is."""
    fitting = [offer for offer in offers if (offer.terms.minimum_accelerators or 0) <= count]
    return fitting if fitting and len(fitting) < len(offers) else offers


def find_price(given: Mapping[str, Any], accelerator: str, count: int, book: PriceBook, now: datetime, notes: AssumptionLog) -> Price:
    """The caller's price, else the lowest price of `count` accelerators among the eligible offers: for what runs within a node.

    Raises InvalidRequest for a price with a filter, NoOffer where nothing is left.
    """
    stated = find_stated_price(given, accelerator)
    if stated is not None:
        return stated
    offers = sold_for(find_offers(given, accelerator, book), count)
    offer = find_cheapest(offers, count) or offers[0]
    notes.assume("price", describe_offer(offer), f"the cheapest of {len(offers)} known {offer.pricing} offers, the newest of each provider")
    return note_offer_price(offer, book, now, notes)


def note_offer_price(offer: Offer, book: PriceBook, now: datetime, notes: AssumptionLog) -> Price:
    """The price of an offer, with its discounts and its age noted."""
    price = price_from_offer(offer, book, now)
    warn_ends([(offer.provider, offer.terms.valid_until)], book, (offer.accelerator,), now.date(), notes)
    if price.discounts is not None:
        notes.assume("price.discounts", f"{price.list_usd_per_accelerator_hour:.4f} list, {price.discounts}", DISCOUNTED)
    if price.stale:
        age = (now - offer.observed_at).days
        notes.warn(f"the price of {offer.provider} was read {age} days ago ({offer.observed_at:%Y-%m-%d}): check it before you rely on it")
    return price


def warn_ends(
    ends: Iterable[tuple[str, date | None]], book: PriceBook, accelerators: Iterable[str], today: date, notes: AssumptionLog
) -> None:
    """Warns of offers that end soon, by provider and last day, and of the team's quotes for the accelerators that have ended."""
    texts = (end_warning(provider, until, today) for provider, until in ends)
    for text in dict.fromkeys((*texts, ended_warning(book.ended, accelerators))):
        if text is not None:
            notes.warn(text)


def price_from_offer(offer: Offer, book: PriceBook, now: datetime) -> Price:
    """The price of an offer, with its staleness at `now`."""
    return Price(
        usd_per_accelerator_hour=float(offer.usd_per_accelerator_hour),
        source=offer.source,
        stale=book.is_stale(offer, now),
        provider=offer.provider,
        region=offer.region,
        pricing=offer.pricing,
        observed_at=offer.observed_at,
        instance_type=offer.instance_type,
        accelerator=offer.accelerator,
        accelerators_per_instance=offer.accelerator_count,
        market=offer.market,
        availability=offer.availability,
        list_usd_per_accelerator_hour=_list_usd_per_accelerator_hour(offer),
        discounts=offer.extras.get("discounts"),
        terms=commitment_terms(offer),
    )


def find_country(offer: Offer) -> str:
    """Country of an offer (ISO 3166-1 alpha-3, empty where unknown): from its price sheet, else from its region."""
    return offer.extras.get("country") or region_of_offer(offer.provider, offer.region).country


def _list_usd_per_accelerator_hour(offer: Offer) -> float | None:
    """List price before discounts [USD per accelerator-hour]; None without discounts."""
    whole = offer.extras.get("list_usd_per_hour")
    return None if whole is None else float(Decimal(whole) / offer.accelerator_count)


def find_eligible_offers(given: Mapping[str, Any], accelerator: str, book: PriceBook) -> list[Offer]:
    """Offers of the accelerator that match the filter; by default on-demand list prices.

    Of each provider only the newest, none a year older than the book's newest price while there is another: a book gives
    the same answer whenever it is asked.

    A named provider's marketplace is taken, auction floors never are: nobody is sold capacity at them.
    """
    wanted = {"pricing": given.get("pricing") or DEFAULT_PRICING, "provider": given.get("provider"), "region": given.get("region")}
    if wanted["provider"] or wanted["region"]:
        return _select_offers(wanted, accelerator, book)
    key = accelerator, str(wanted["pricing"])
    if key not in book.eligible_by_kind:
        book.eligible_by_kind[key] = _select_offers(wanted, accelerator, book)
    return book.eligible_by_kind[key]


def _select_offers(wanted: Mapping[str, Any], accelerator: str, book: PriceBook) -> list[Offer]:
    """`find_eligible_offers` for a whole filter."""
    markets = ("list", "marketplace") if wanted["provider"] else ("list",)
    matching = [offer for offer in book.by_accelerator.get(accelerator, ()) if matches_filters(offer, wanted) and offer.market in markets]
    newest = newest_per_provider(matching, book)
    recent = [offer for offer in newest if not book.is_shipped(offer) or book.newest - offer.observed_at <= OLD_AFTER]
    return recent or newest


def newest_per_provider(offers: Iterable[Offer], book: PriceBook) -> list[Offer]:
    """Shipped prices of each provider's newest day, and all prices that were fetched."""
    offers = list(offers)
    newest: dict[str, datetime] = {}
    for offer in offers:
        if book.is_shipped(offer):
            newest[offer.provider] = max(newest.get(offer.provider, offer.observed_at), offer.observed_at)
    return [offer for offer in offers if not book.is_shipped(offer) or offer.observed_at == newest[offer.provider]]


def find_cheapest(offers: Iterable[Offer], count: int) -> Offer | None:
    """The offer with the lowest price of `count` accelerators in whole instances; of equals the larger instance. None without offers."""

    def order(offer: Offer) -> tuple[Any, ...]:
        instances = -(-count // offer.accelerator_count)
        return (offer.usd_per_hour * instances, -offer.accelerator_count, offer_key(offer))

    return min(offers, key=order, default=None)


def describe_offer(offer: Offer) -> str:
    """Text that names an offer and its price."""
    per_hour = offer.usd_per_accelerator_hour.quantize(Decimal("0.0001"))
    return f"{offer.provider} {offer.region} {offer.instance_type} {offer.pricing} {per_hour} USD an accelerator-hour"


def describe_priced(offers: Iterable[Offer]) -> str:
    """Providers of offers with their kinds of pricing: "aws (on_demand, spot), lambda (on_demand)"."""
    kinds: dict[str, set[str]] = {}
    for offer in offers:
        kinds.setdefault(offer.provider, set()).add(offer.pricing)
    return ", ".join(f"{provider} ({', '.join(sorted(kinds[provider]))})" for provider in sorted(kinds))


def _no_offer(given: Mapping[str, Any], accelerator: str, book: PriceBook) -> NoOffer:
    """The refusal of a filter that leaves no offer, or what says that without any filter there is none."""
    asked = ", ".join(f"{name} {given[name]}" for name in FILTERS if given.get(name) and name != "snapshot") or DEFAULT_PRICING
    known = describe_priced(book.by_accelerator.get(accelerator, ()))
    near = near_names(str(given["provider"]), book.columns.provider.names, PROVIDER_SYNONYMS) if given.get("provider") else ()
    asked += f" (did you mean {', '.join(near)}?)" if near else ""
    others = f"; known: {known}. Widen the filter or" if known else ";"
    text = f"no price of {accelerator} for {asked} is known in {book.name}{others} state price.usd_per_accelerator_hour"
    return NoOffer(text, "/price") if is_filtered(given) else UnpricedAccelerator(text, "/price")


def is_filtered(given: Mapping[str, Any]) -> bool:
    """Whether the caller says which offers to take: then it is refused that there are none."""
    return any(given.get(name) for name in FILTERS if name != "snapshot")
