"""Price history, and names of providers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import date, datetime
from decimal import Decimal
from difflib import get_close_matches
from types import MappingProxyType
from typing import Annotated, Any

from providers.offer import NO_TERMS, PRICINGS, TERM_HOURS, Offer, OfferTerms
from service.domain.answer_fields import HIDDEN, Doc

LONGEST_COMPARED = 100
SOON_DAYS = 30
"""An answer says of a quote that it ends in so many days or fewer."""
PROVIDER_SYNONYMS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("amazon", "amazon web services", "ec2", "sagemaker"), "aws")
    | dict.fromkeys(("google", "google cloud", "gce"), "gcp")
    | dict.fromkeys(("microsoft", "ms azure"), "azure")
    | dict.fromkeys(("oracle", "oracle cloud"), "oci")
    | {"lambda labs": "lambda", "lambdalabs": "lambda", "datacrunch": "verda"}
)
"""Providers by other names for them, in lower case."""
NO_SYNONYMS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitmentTerms:
    """Terms of a commitment or quote, as far as the source states them. `key` tells offers of one thing apart."""

    term_hours: Annotated[float | None, Doc("Hours paid for whether used or not", "h", optional=True)] = None
    upfront_share: Annotated[float | None, Doc("Share of the whole term's price paid at its start", "1", optional=True)] = None
    valid_until: Annotated[date | None, Doc("Last day (UTC) on which the offer can be accepted", optional=True)] = None
    minimum_accelerators: Annotated[int | None, Doc("Fewest accelerators that the price is for", minimum=1, optional=True)] = None
    committed_usd: Annotated[Decimal | None, Doc("Spend over the term that the buyer commits to", "USD", optional=True)] = None
    capacity: Annotated[
        bool | None, Doc("True: the accelerators are held for the buyer; false: a discount only, capacity is not held", optional=True)
    ] = None
    key: Annotated[str, HIDDEN] = ""


@dataclass(frozen=True, slots=True)
class FleetCost:
    """What accelerators cost that are held for a time, at the prices of the offers that match and at one that is stated."""

    count: Annotated[int, Doc("Accelerators that are held", minimum=1)]
    hours: Annotated[float, Doc("How long they are held", "h")]
    accelerator_hours: Annotated[float, Doc("Accelerator-hours that are paid for", "h")]
    least_usd: Annotated[float | None, Doc("At the lowest price that can be had; null: no price is known", "USD")]
    median_usd: Annotated[float | None, Doc("At the median of these prices; null: no price is known", "USD")]
    most_usd: Annotated[float | None, Doc("At the highest price; null: no price is known", "USD")]
    stated_usd: Annotated[float | None, Doc("At the price that is stated; null: none is", "USD")]


@dataclass(frozen=True, slots=True)
class PriceChange:
    """Price of a thing from `observed_at` on. `asked`: the provider that was fetched."""

    id: Annotated[int, HIDDEN]
    asked: Annotated[str, HIDDEN]
    provider: Annotated[str, Doc("Name of the provider")]
    region: Annotated[str, Doc("Region as the provider names it")]
    instance_type: Annotated[str, Doc("Instance type as the provider names it")]
    accelerator: Annotated[str, Doc("Canonical name of the accelerator")]
    accelerator_count: Annotated[int, Doc("Accelerators of the instance", minimum=1)]
    pricing: Annotated[str, Doc("Kind of pricing", choices=PRICINGS)]
    market: Annotated[str, Doc("Kind of market")]
    usd_per_hour: Annotated[Decimal | None, Doc("Price of the whole instance; null: no longer sold", "USD per hour")]
    availability: Annotated[str, Doc("What is known of its availability")]
    observed_at: Annotated[datetime, Doc("When the price was read")]
    source: Annotated[str, Doc("Where this comes from", max_length=1000)]
    terms_key: Annotated[str, Doc("Terms that tell offers of one thing apart, as term_hours=4380; empty where none are stated")]
    usd_per_hour_before: Annotated[Decimal | None, Doc("Price in the previous row of the same thing; null: there is none", "USD per hour")]

    @property
    def own(self) -> bool:
        """Whether it is the price of one team: ids of such rows count down from -1."""
        return self.id < 0


def commitment_terms(offer: Offer) -> CommitmentTerms | None:
    """The stated terms of an offer for answers; None where there are none."""
    return None if offer.terms == NO_TERMS else CommitmentTerms(**asdict(offer.terms), key=offer.terms.key)


def term_hours(pricing: str | None, terms: CommitmentTerms | None) -> float:
    """Hours paid for whether used or not [h]: the stated term's, else those of the kind of pricing; 0 where that has none."""
    stated = None if terms is None else terms.term_hours
    return TERM_HOURS.get(pricing or "", 0.0) if stated is None else stated


def end_warning(provider: str, until: date | None, today: date) -> str | None:
    """What to say of a quote whose last day is `until` and near or past; None of another."""
    if until is None or (until - today).days > SOON_DAYS:
        return None
    days = (until - today).days
    if days < 0:
        return f"the quote of {provider} ended on {until}: ask for a new one"
    return f"the quote of {provider} ends {'today' if not days else 'in 1 day' if days == 1 else f'in {days} days'}, on {until}"


def ended_warning(ended: Iterable[Offer], accelerators: Iterable[str]) -> str | None:
    """What to say of quotes for these accelerators that have ended and are not used; None without any."""
    wanted = set(accelerators)
    found = [offer for offer in ended if offer.accelerator in wanted]
    if not found:
        return None
    last = max(offer.terms.valid_until for offer in found if offer.terms.valid_until is not None)
    sellers = ", ".join(sorted({offer.provider for offer in found}))
    return f"quotes of {sellers} have ended, the last on {last}, and are not used: ask for new ones"


def pack_terms(terms: OfferTerms) -> dict[str, Any] | None:
    """Stated terms as plain JSON values; None where there are none."""
    stated = {name: value for name, value in asdict(terms).items() if value is not None}
    texts: dict[str, Any] = {name: str(stated[name]) for name in ("valid_until", "committed_usd") if name in stated}
    return {**stated, **texts} or None


def unpack_terms(packed: Mapping[str, Any] | None) -> OfferTerms:
    """The terms that `pack_terms` made plain."""
    if not packed:
        return NO_TERMS
    until, committed = packed.get("valid_until"), packed.get("committed_usd")
    typed = {"valid_until": until and date.fromisoformat(until), "committed_usd": committed and Decimal(committed)}
    return OfferTerms(**{**packed, **typed})


def offer_key(offer: Offer) -> tuple[str, ...]:
    """Key of an offer, in the order of listings."""
    sold = (offer.accelerator, offer.provider, offer.region, offer.instance_type, offer.pricing, str(offer.accelerator_count), offer.market)
    return (*sold, offer.terms.key)


def near_names(wanted: str, known: Iterable[str], synonyms: Mapping[str, str] = NO_SYNONYMS) -> tuple[str, ...]:
    """Known names that are meant by another name for them, else the most similar to it, else those that contain it; at most three."""
    by_fold = {each.casefold(): each for each in known}
    asked = wanted[:LONGEST_COMPARED].casefold()
    if asked in by_fold:
        return ()
    if (meant := synonyms.get(asked)) in by_fold:
        return (by_fold[str(meant)],)
    similar = get_close_matches(asked, list(by_fold), n=3) or [each for each in sorted(by_fold) if asked in each][:3]
    return tuple(by_fold[each] for each in similar)
