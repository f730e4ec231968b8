"""Commitments beside what is published of them when a fleet is bought or rented."""

from __future__ import annotations

from typing import Any

import pytest

from service.config import Settings
from service.container import build_context
from service.domain.procurement.answer import BuyOrRent, RentedOffer
from service.usecases.procurement.buy_or_rent import buy_or_rent
from tests.unit.usecases.comparison.comparing import NOW, offer, selling

MARKET = (offer("6.88"), offer("4.34", pricing="reserved_1y"))


def answered(settings: Settings, *quotes: dict[str, Any], offers: tuple[Any, ...] = MARKET, **rent: Any) -> BuyOrRent:
    """256 H100 for three years."""
    context = selling(build_context(settings), offers)
    demand = {"accelerator": "H100", "count": 256, "start": NOW.date(), "years": 3, "utilisation": 0.9}
    return buy_or_rent(context, {"demand": demand, "rent": {"quotes": list(quotes), **rent}, "trials": 100, "seed": 1})


def rented(answer: BuyOrRent, pricing: str, source: str = "") -> RentedOffer:
    return next(
        each.offer for each in answer.options if each.offer and each.offer.pricing == pricing and each.offer.source.startswith(source)
    )


def quote(name: str, usd: float, pricing: str = "reserved_3y") -> dict[str, Any]:
    return {"name": name, "pricing": pricing, "usd_per_accelerator_hour": usd}


def test_a_quote_stands_beside_its_published_band(settings: Settings) -> None:
    """1.89 for three years lies within 1.75 to 3.90 of specialists; a price by the hour has no band."""
    answer = answered(settings, quote("lambda 3y", 1.89))
    quoted = rented(answer, "reserved_3y", "caller").published
    assert quoted is not None
    assert (quoted.beyond_share, quoted.is_far) == (0, False)
    assert quoted.text.startswith("within the published band of 3y contracts of specialists: 1.75 to 3.90")
    assert rented(answer, "on_demand").published is None
    assert not any("published band" in warning for warning in answer.warnings)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            quote("cheap 3y", 0.99),
            "cheap 3y at 0.99 USD per accelerator-hour lies 43 % under the published band of 3y contracts of specialists",
        ),
        (
            quote("gcp 3y", 12.0),
            "gcp 3y at 12.00 USD per accelerator-hour lies 56 % over the published band of 3y contracts of hyperscalers",
        ),
    ],
)
def test_a_quote_far_outside_is_warned_of(settings: Settings, asked: dict[str, Any], words: str) -> None:
    """Its seller is what its name begins with."""
    assert any(warning.startswith(words) for warning in answered(settings, asked).warnings)


def test_a_reservation_that_is_a_discount_says_so(settings: Settings) -> None:
    """The cheapest reservation is AWS's, which holds no capacity."""
    answer = answered(settings)
    assert rented(answer, "reserved_1y").holds_capacity is False
    assert any("is only a discount and reserves no capacity" in warning for warning in answer.warnings)


def test_what_the_book_lacks_is_said_where_a_commitment_was_wanted(settings: Settings) -> None:
    """With who publishes it and how it is brought; not where a quote is stated or prices by the hour alone are asked for."""
    lacks = "has no reserved price of NVIDIA-H100-80GB-SXM: aws, azure, gcp, runpod, verda publish commitments"
    found = [
        any(lacks in warning for warning in answer.warnings)
        for answer in (
            answered(settings, offers=MARKET[:1]),
            answered(settings, quote("lambda 3y", 1.89), offers=MARKET[:1]),
            answered(settings, offers=MARKET[:1], pricing=["on_demand"]),
            answered(settings),
        )
    ]
    assert found == [True, False, False, False]
