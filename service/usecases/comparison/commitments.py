"""What the terms of commitments rule out, which of them hold capacity, and their prices beside what is published of contracts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np

from providers.offer import BY_THE_HOUR, Offer
from service.domain.comparison.options import Constraints, Option
from service.domain.procurement.contract_prices import BandComparison
from service.presets.procurement.commitments import holds_capacity, offer_product
from service.presets.procurement.contract_prices import compare_with_published
from service.prices.book import PriceBook
from service.prices.offer_table import Flags, Floats
from service.usecases.comparison.capacity import rented_accelerators
from service.usecases.comparison.option_table import OptionTable
from service.usecases.comparison.timed_configurations import TimedConfiguration
from service.usecases.resolution.assumption_log import AssumptionLog


@dataclass(frozen=True, slots=True)
class _Limits:
    """Limits of the terms of each row of a table: accelerators, time [h], days ahead, and whether its price can no longer be accepted."""

    most: Floats
    fewest: Floats
    hours: Floats
    days_ahead: Floats
    expired: Flags


def apply_commitments(
    table: OptionTable, configurations: Sequence[TimedConfiguration], book: PriceBook, constraints: Constraints, today: date
) -> OptionTable:
    """The table with the options that the terms of their commitment rule out."""
    limits = _limits(table, book, today)
    rented = np.array([rented_accelerators(configuration) for configuration in configurations], dtype=np.float64)[table.configuration]
    timings = [configuration.timing for configuration in configurations]
    hours = np.array([np.nan if timing is None else timing.wall_clock_hours.p50 for timing in timings])[table.configuration]
    ruled_out = {
        "over_block_size": rented > limits.most,
        "under_minimum_size": rented < limits.fewest,
        "over_longest_term": hours > limits.hours,
        "beyond_booking_horizon": (constraints.start - today).days > limits.days_ahead,
        "quote_expired": limits.expired,
    }
    return replace(table, ruled_out={**table.ruled_out, **{reason: flags for reason, flags in ruled_out.items() if flags.any()}})


def _limits(table: OptionTable, book: PriceBook, today: date) -> _Limits:
    rows, at = np.unique(table.row, return_inverse=True)
    found = [_offer_limits(book.offers[row], today) if row >= 0 else UNLIMITED for row in rows.tolist()]
    most, fewest, hours, days_ahead, expired = (np.array(column) for column in zip(*found, strict=True))
    return _Limits(most[at], fewest[at], hours[at], days_ahead[at], expired.astype(bool)[at])


UNLIMITED = (np.inf, 0.0, np.inf, np.inf, False)


def _offer_limits(offer: Offer, today: date) -> tuple[float, float, float, float, bool]:
    """Most and fewest accelerators, longest time [h], longest time ahead [days] and expiry of an offer."""
    fewest, until = float(offer.terms.minimum_accelerators or 0), offer.terms.valid_until
    expired = until is not None and until < today
    product = None if offer.pricing in BY_THE_HOUR else offer_product(offer)
    if product is None:
        return (np.inf, fewest, np.inf, np.inf, expired)
    return (
        product.most_accelerators(offer.accelerator_count),
        max(fewest, product.min_accelerators or 0),
        _or_unlimited(product.max_term_hours),
        _or_unlimited(product.booking_horizon_days),
        expired,
    )


def _or_unlimited(limit: float | None) -> float:
    return np.inf if limit is None else limit


def discount_rows(book: PriceBook) -> Flags:
    """Rows of commitments that are known to be a discount and to hold no capacity."""
    found = np.zeros(len(book.offers), dtype=bool)
    for row in np.flatnonzero(~book.columns.pricing.among(BY_THE_HOUR)).tolist():
        found[row] = holds_capacity(book.offers[row]) is False
    return found


def published_beside(offer: Offer) -> BandComparison | None:
    """The price of a commitment beside what is published of such contracts; None by the hour or where nothing is."""
    if not offer.term_hours:
        return None
    return compare_with_published(float(offer.usd_per_accelerator_hour), offer.accelerator, offer.term_hours, offer.provider)


def warn_commitments(options: Sequence[Option], notes: AssumptionLog) -> None:
    """Warns of feasible commitments that hold no capacity, and of those whose price is far from what is published."""
    reserved = [option for option in options if option.commitment and option.feasible]
    discounts = sorted({option.offer.provider for option in reserved if option.commitment and option.commitment.holds_capacity is False})
    if discounts:
        notes.warn(
            f"reservations of {', '.join(discounts)} are only a discount and reserve no capacity: the accelerators must be available on"
            " demand when the run starts; capacity blocks, calendar reservations and clusters do reserve them"
        )
    for text in dict.fromkeys(_far_text(option) for option in reserved):
        if text:
            notes.warn(text)


def _far_text(option: Option) -> str:
    published = option.commitment.published if option.commitment else None
    if published is None or not published.is_far:
        return ""
    offer = option.offer
    asked = f"{offer.provider} {offer.region} {offer.pricing} at {offer.usd_per_accelerator_hour:.2f} USD per accelerator-hour"
    return f"{asked} lies {published.text}: check its date and terms"
