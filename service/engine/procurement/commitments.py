"""What a purchase must keep to under the terms of a commitment: sizes, term, booking horizon."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from providers.offer import OfferTerms
from service.domain.procurement.commitments import CommitmentFault, CommitmentProduct

HOURS_PER_DAY = 24


def commitment_faults(
    product: CommitmentProduct, accelerators: int, accelerators_per_instance: int, duration_hours: float, days_ahead: float
) -> tuple[CommitmentFault, ...]:
    """What rules a purchase out under the terms of a product.

    Parameters
    ----------
    product : CommitmentProduct
        The commitment with its published terms.
    accelerators : int
        Accelerators of the purchase, at least 1.
    accelerators_per_instance : int
        Accelerators of one instance, at least 1.
    duration_hours : float
        Time for which they are needed without a break [h].
    days_ahead : float
        Time from the purchase to the start; below 0 counts as now [days].

    Returns
    -------
    tuple of CommitmentFault
        Empty where the purchase can be made. A shorter time than the shortest term is no fault: the whole term is paid.
    """
    return (
        *_size_faults(product, accelerators, accelerators_per_instance),
        *_time_faults(product, duration_hours, days_ahead),
    )


def quote_faults(terms: OfferTerms, accelerators: int, today: date) -> tuple[CommitmentFault, ...]:
    """What rules a purchase on a day out under the terms that the offer itself states: its smallest size and its expiry."""
    return tuple(_quote_faults(terms, accelerators, today))


def _size_faults(product: CommitmentProduct, accelerators: int, per_instance: int) -> Iterator[CommitmentFault]:
    whose, most = f"{product.name} of {product.provider}", product.most_accelerators(per_instance)
    if accelerators > most:
        several = f"; {product.several}" if product.several else ""
        yield CommitmentFault(
            "over_block_size", f"{accelerators:,} accelerators are more than the {most:,.0f} of one purchase: {whose}{several}"
        )
    if product.min_accelerators is not None and accelerators < product.min_accelerators:
        yield CommitmentFault(
            "under_minimum_size", f"{accelerators:,} accelerators are fewer than the {product.min_accelerators:,} of {whose}"
        )


def _time_faults(product: CommitmentProduct, hours: float, days_ahead: float) -> Iterator[CommitmentFault]:
    whose = f"{product.name} of {product.provider}"
    if product.max_term_hours is not None and hours > product.max_term_hours:
        days = f"{hours / HOURS_PER_DAY:,.1f} days are more than the {product.max_term_hours / HOURS_PER_DAY:,.0f} of the longest purchase"
        yield CommitmentFault("over_longest_term", f"{days}: {whose}")
    if product.booking_horizon_days is not None and days_ahead > product.booking_horizon_days:
        away = f"the start is {days_ahead:,.0f} days away, more than the {product.booking_horizon_days:,.0f} that can be booked ahead"
        yield CommitmentFault("beyond_booking_horizon", f"{away}: {whose}")


def _quote_faults(terms: OfferTerms, accelerators: int, today: date) -> Iterator[CommitmentFault]:
    least = terms.minimum_accelerators
    if least is not None and accelerators < least:
        yield CommitmentFault("under_minimum_size", f"{accelerators:,} accelerators are fewer than the {least:,} that this price is for")
    if terms.valid_until is not None and terms.valid_until < today:
        yield CommitmentFault("quote_expired", f"the price could be accepted until {terms.valid_until}")
