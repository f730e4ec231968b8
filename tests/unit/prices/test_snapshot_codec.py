"""Snapshots as bytes for the cache."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from providers.offer import BY_THE_HOUR, NO_TERMS, TERM_HOURS, Discount, Fetched, Offer, OfferTerms, Pricing
from service.prices.snapshot_codec import pack, unpack

TIMES = st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - st.just gives it
TERMS = st.builds(
    OfferTerms,
    term_hours=st.floats(1, 100_000),
    upfront_share=st.none() | st.floats(0, 1),
    valid_until=st.none() | st.dates(date(2020, 1, 1), date(2100, 1, 1)),
    minimum_accelerators=st.none() | st.integers(1, 10**5),
    committed_usd=st.none() | st.decimals(Decimal("0.01"), Decimal(10**9), places=2),
    capacity=st.none() | st.booleans(),
)


FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "provider": st.text(),
    "region": st.text(),
    "instance_type": st.text(),
    "accelerator": st.text(),
    "accelerator_count": st.integers(1, 10**6),
    "usd_per_hour": st.decimals(min_value=Decimal("1e-9"), max_value=Decimal("1e9"), allow_nan=False, places=9),
    "observed_at": TIMES,
    "source": st.text(),
    "extras": st.dictionaries(st.text(), st.text(), max_size=3),
    "available_since": st.none() | TIMES,
}


def offers_of(pricing: tuple[Pricing, ...], terms: st.SearchStrategy[OfferTerms]) -> st.SearchStrategy[Offer]:
    """Offers of these kinds of pricing under these terms."""
    return st.builds(Offer, pricing=st.sampled_from(pricing), terms=terms, **FIELDS)


OFFERS = offers_of((*BY_THE_HOUR, *TERM_HOURS), st.just(NO_TERMS)) | offers_of(("reserved_1y", "reserved_3y", "reserved"), TERMS)
DISCOUNTS = st.builds(Discount, st.text(), st.decimals(Decimal("0.001"), Decimal("0.999"), places=3), st.none() | st.text())


@given(st.lists(OFFERS, max_size=5), st.lists(DISCOUNTS, max_size=3), st.text())
def test_a_snapshot_comes_back_as_it_was(offers: list[Offer], discounts: list[Discount], name: str) -> None:
    """Every field of it, decimals to the last digit."""
    snapshot = Fetched(tuple(offers), name, discounts=tuple(discounts))
    assert unpack(pack(snapshot), name) == snapshot


@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=1))
def test_bytes_that_were_touched_are_not_used(place: int, byte: bytes) -> None:
    """Wherever, and also those of another snapshot."""
    blob = pack(Fetched((), "s"))
    place %= len(blob)
    changed = blob[:place] + byte + blob[place + 1 :]
    assert (unpack(changed, "s") is None) == (changed != blob)
    assert unpack(blob, "other") is None
    assert unpack(b"", "s") is None
