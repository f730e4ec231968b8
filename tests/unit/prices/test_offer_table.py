"""Offers as columns."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.prices.offer_table import highest_of, make_offer_columns
from tests.unit.usecases.comparison.comparing import A100, MARKET, offer


def test_every_row_is_its_offer() -> None:
    """In the offers' order; names by their codes, a place by provider and region, an instance by its type too, the term by the pricing."""
    columns = make_offer_columns(MARKET)
    assert len(columns) == len(MARKET)
    for row, each in enumerate(MARKET):
        for name in ("accelerator", "provider", "region", "pricing", "market", "availability", "source"):
            column = getattr(columns, name)
            assert column.names[column.codes[row]] == getattr(each, name)
        assert columns.place.names[columns.place.codes[row]] == f"{each.provider}\t{each.region}"
        instance = f"{each.provider}\t{each.instance_type}\t{each.accelerator}"
        assert columns.instance.names[columns.instance.codes[row]] == instance
        assert columns.usd_per_accelerator_hour[row] == pytest.approx(float(each.usd_per_hour) / each.accelerator_count)
        assert columns.accelerator_count[row] == each.accelerator_count
        assert columns.term_hours[row] == {"reserved_1y": 8760.0}.get(each.pricing, 0.0)
        assert columns.observed_s[row] == each.observed_at.timestamp()


def test_names_are_found_whatever_their_case() -> None:
    """And names that nothing has find nothing."""
    regions = make_offer_columns(MARKET).region
    assert regions.among(["EU-Central-1"]).tolist() == [each.region == "eu-central-1" for each in MARKET]
    assert not regions.among(["mars"]).any()
    assert not regions.among([]).any()


def test_a_price_is_the_newest_of_what_is_sold_the_same_way_in_the_same_place() -> None:
    """Read within a day of the latest; other places, pricings, markets and accelerators have their own."""
    latest = offer("2.00")
    columns = make_offer_columns(
        [
            latest,
            offer("2.10", instance_type="other", observed_at=latest.observed_at - timedelta(hours=23)),
            offer("2.20", instance_type="old", observed_at=latest.observed_at - timedelta(hours=24)),
            *(offer("2.30", days=90, **other) for other in ({"region": "x"}, {"pricing": "spot"}, {"accelerator": A100})),
            offer("2.40", "gcp", days=90),
            offer("2.50", days=90, market="marketplace"),
        ]
    )
    assert columns.newest.tolist() == [True, True, False, True, True, True, True, True]


def test_no_offers_are_no_rows() -> None:
    """A book may be empty."""
    columns = make_offer_columns([])
    assert len(columns) == 0
    assert columns.newest.tolist() == []
    assert columns.region.among(["x"]).tolist() == []


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(-10, 10)), min_size=1))
def test_the_highest_of_a_group_is_its_maximum(rows: list[tuple[int, float]]) -> None:
    """At every position of the group."""
    group, values = (np.array(column) for column in zip(*rows, strict=True))
    assert highest_of(values, group).tolist() == [max(value for other, value in rows if other == own) for own, _ in rows]
