"""Bands of published contract prices, and a price beside them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.procurement.contract_prices import PublishedPrice
from service.engine.procurement.contract_bands import compare_with_band, find_band, make_bands


def published(low: float, high: float, mid: float | None = None, **changes: Any) -> PublishedPrice:
    """A price of H100 for a year, of a specialist, unless told otherwise."""
    row: dict[str, Any] = {
        "provider": "a",
        "accelerator": "H100",
        "term": "1y",
        "term_months": 12.0,
        "seller": "specialist",
        "kind": "reserved_list",
        "prices": 1,
        "upfront": None,
        "observed_at": "2026-06",
        "source": "a page",
    }
    ends = {"low_usd_per_accelerator_hour": low, "mid_usd_per_accelerator_hour": mid, "high_usd_per_accelerator_hour": high}
    return PublishedPrice(**row | ends | changes)


def test_a_band_spans_its_prices_and_states_what_they_are() -> None:
    """Ends are extremes, the middle the median of medians; bounds alone have none."""
    prices = (published(2, 4, 3), published(1, 2, 1.5, kind="press"), published(5, 6, kind="derived", observed_at="2025-03-06"))
    (band,) = make_bands(prices)
    assert (band.low_usd_per_accelerator_hour, band.mid_usd_per_accelerator_hour, band.high_usd_per_accelerator_hour) == (1, 2.25, 6)
    assert band.kinds == ("reserved_list", "press", "derived")
    assert (band.oldest_observed_at, band.observed_at) == ("2025-03-06", "2026-06")
    assert (band.record, len(band.published)) == ("band", 3)
    assert make_bands([prices[2]])[0].mid_usd_per_accelerator_hour is None


def test_the_middle_of_market_levels_is_the_newest() -> None:
    """1.70 in October 2025 and 2.65 in June 2026 are a trend, whose middle is no price of today."""
    levels = [published(usd, usd, usd, kind="market_level", observed_at=at) for usd, at in ((2.65, "2026-06"), (1.7, "2025-10"))]
    (band,) = make_bands([*levels, published(9, 9, 9, observed_at="2026-09")])
    assert band.mid_usd_per_accelerator_hour == 2.65


def test_terms_and_classes_of_sellers_are_bands_of_their_own() -> None:
    """A hyperscaler's reservation says nothing of a specialist's contract."""
    bands = make_bands([published(2, 3), published(7, 8, seller="hyperscaler"), published(1, 2, term="3y"), published(4, 5, term="other")])
    assert [(band.term, band.seller) for band in bands] == [
        ("1y", "hyperscaler"),
        ("1y", "specialist"),
        ("3y", "specialist"),
        ("other", "specialist"),
    ]
    found = find_band(bands, "H100", "3y", "specialist")
    assert found is not None
    assert found.high_usd_per_accelerator_hour == 2
    unpublished = find_band(bands, "H100", "capacity_block", "specialist")
    assert unpublished is not None
    assert unpublished.term == "other"
    assert find_band(bands, "H100", "3y", "hyperscaler") is None
    assert find_band(bands, "A100", "1y", "specialist") is None


@pytest.mark.parametrize(
    ("usd", "beyond", "far", "words"),
    [
        (2.0, 0.0, False, "within the published band of 1y contracts of specialists: 2.00 to 4.00 USD"),
        (4.0, 0.0, False, "within"),
        (1.76, -0.12, False, "12 % under the published band"),
        (5.0, 0.25, False, "25 % over the published band"),
        (1.0, -0.5, True, "50 % under the published band"),
    ],
)
def test_a_price_is_compared_with_the_nearest_end(usd: float, beyond: float, far: bool, words: str) -> None:
    """Ends belong to the band; the limit of far does not."""
    found = compare_with_band(usd, make_bands([published(2, 4)])[0], 0.25)
    assert found.beyond_share == pytest.approx(beyond)
    assert found.is_far is far
    assert found.text.startswith(words)


@given(st.floats(0.01, 100), st.floats(0.01, 100), st.floats(0.01, 100))
def test_the_distance_has_the_sign_of_its_side(usd: float, one: float, other: float) -> None:
    """Zero inside, negative under, positive over, and the price is the nearest end times one plus it, to the rounding of prices."""
    low, high = sorted((one, other))
    beyond = compare_with_band(usd, make_bands([published(low, high)])[0], 0.25).beyond_share
    assert (beyond < 0) <= (usd < low)
    assert (beyond > 0) <= (usd > high)
    assert min(max(usd, low), high) * (1 + beyond) == pytest.approx(usd, abs=0.00005 + 1e-9)


def test_the_rounding_of_published_prices_is_no_distance() -> None:
    """17.401365 USD for eight is 2.1752 to four digits."""
    assert compare_with_band(17.401365 / 8, make_bands([published(2.1752, 3.0593)])[0], 0.25).text.startswith("within")
