"""Terms of commitments by provider, from `data/commitments.toml`: which are capacity and which a discount."""

from __future__ import annotations

import functools
from datetime import date

from providers.offer import BY_THE_HOUR, Offer
from service.domain.procurement.commitments import CommitmentFault, CommitmentProduct
from service.engine.procurement.commitments import commitment_faults, quote_faults
from service.presets.documents import build, dated_source, load_document
from service.presets.hardware.accelerators import load_accelerators


def holds_capacity(offer: Offer) -> bool | None:
    """Whether an offer's accelerators are held for the buyer: as it states, else as its provider publishes; None where not known."""
    if offer.pricing in BY_THE_HOUR or offer.terms.capacity is not None:
        return bool(offer.terms.capacity)
    product = offer_product(offer)
    return None if product is None else product.holds_capacity


def offer_product(offer: Offer) -> CommitmentProduct | None:
    """The published commitment that an offer is sold under; None by the hour, where none is published, or where its terms are others."""
    known = load_accelerators().get(offer.accelerator)
    vendors = ("", known.vendor) if known else ("",)
    return next((each for each in _products(offer.provider, offer.pricing) if each.vendor in vendors and _fits(offer, each)), None)


def _fits(offer: Offer, product: CommitmentProduct) -> bool:
    """Whether the offer's own terms can be those of the product: a longer one, or capacity where it is a discount, is another contract."""
    short_enough = product.max_term_hours is None or offer.term_hours <= product.max_term_hours
    return short_enough and offer.terms.capacity in (None, product.holds_capacity)


@functools.cache
def _products(provider: str, pricing: str) -> tuple[CommitmentProduct, ...]:
    return tuple(product for product in load_commitments() if product.provider == provider and pricing in product.pricings)


def offer_faults(offer: Offer, accelerators: int, duration_hours: float, start: date, today: date) -> tuple[CommitmentFault, ...]:
    """What rules a purchase of an offer out under its own terms and those its provider publishes; empty where none are known.

    Parameters
    ----------
    offer : Offer
        Offer; on demand and spot have no terms.
    accelerators : int
        Accelerators of the purchase, at least 1.
    duration_hours : float
        Time for which they are needed [h].
    start, today : date
        Days of the start and of the purchase.
    """
    own = quote_faults(offer.terms, accelerators, today)
    product = offer_product(offer)
    if product is None:
        return own
    return own + commitment_faults(product, accelerators, offer.accelerator_count, duration_hours, (start - today).days)


def fewest_accelerators(offer: Offer) -> int:
    """Fewest accelerators that an offer can be bought for, by its own terms and those its provider publishes."""
    product = offer_product(offer)
    return max(1, offer.terms.minimum_accelerators or 1, (product.min_accelerators if product else None) or 1)


def live_publishers() -> tuple[str, ...]:
    """Providers whose interfaces publish prices of commitments, read by the price source of the same name."""
    return tuple(load_document("commitments")["live"]["providers"])


@functools.cache
def load_commitments() -> tuple[CommitmentProduct, ...]:
    """All terms in the order of the data file."""
    return tuple(build(CommitmentProduct, row, source=dated_source(row)) for row in load_document("commitments")["commitment"])
