"""Snapshots as bytes for the cache."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from providers.offer import PRICINGS, Discount, Fetched, Offer
from service.prices.snapshot_codec import pack, unpack

TIMES = st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - st.just gives it
OFFERS = st.builds(
    Offer,
    provider=st.text(),
    region=st.text(),
    instance_type=st.text(),
    accelerator=st.text(),
    accelerator_count=st.integers(1, 10**6),
    pricing=st.sampled_from(PRICINGS),
    usd_per_hour=st.decimals(min_value=Decimal("1e-9"), max_value=Decimal("1e9"), allow_nan=False, places=9),
    observed_at=TIMES,
    source=st.text(),
    extras=st.dictionaries(st.text(), st.text(), max_size=3),
    available_since=st.none() | TIMES,
)
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
