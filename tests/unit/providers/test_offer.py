"""What every offer promises, whoever made it."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from providers.offer import Offer, Provider


def offer(**changes: object) -> Offer:
    fields: dict[str, object] = {
        "provider": "azure",
        "region": "eastus",
        "instance_type": "Standard_ND96isr_H100_v5",
        "accelerator": "NVIDIA-H100-80GB-SXM",
        "accelerator_count": 8,
        "pricing": "on_demand",
        "usd_per_hour": Decimal("98.32"),
        "observed_at": datetime(2026, 9, 16, tzinfo=UTC),
        "source": "Azure Retail Prices API",
    }
    return Offer(**{**fields, **changes})  # type: ignore[arg-type]


def test_price_of_one_accelerator_is_the_instance_price_over_their_count() -> None:
    """98.32 USD for 8 accelerators is 12.29 USD for one, to the last digit."""
    assert offer().usd_per_accelerator_hour == Decimal("12.29")


@pytest.mark.parametrize("usd", ["0", "-1", "NaN", "Infinity"])
def test_a_price_is_above_zero_and_finite(usd: str) -> None:
    """Zero stands for unknown in many feeds and is never taken for free."""
    with pytest.raises(ValueError, match="above zero"):
        offer(usd_per_hour=Decimal(usd))


def test_an_offer_has_at_least_one_accelerator() -> None:
    """A host without accelerators is not sold here."""
    with pytest.raises(ValueError, match="at least one accelerator"):
        offer(accelerator_count=0)


def test_the_time_of_observation_has_a_time_zone() -> None:
    """A time without zone could not be compared with now."""
    with pytest.raises(ValueError, match="time zone"):
        offer(observed_at=datetime(2026, 9, 16))  # noqa: DTZ001


def test_offers_compare_and_hash_by_value_without_extras_in_the_hash() -> None:
    """Equal offers are one in a set, though a vendor's extras are a dict."""
    assert len({offer(extras={"zone": "1"}), offer(extras={"zone": "1"})}) == 1


def test_an_offer_is_a_list_price_that_is_merely_listed_unless_it_says_more() -> None:
    """A price claims no stock."""
    assert (offer().market, offer().availability) == ("list", "listed")


def test_a_provider_without_fetch_cannot_be_made() -> None:
    """The interface demands the one method it has."""

    class Mute(Provider):
        name = "mute"

    with pytest.raises(TypeError, match="fetch"):
        Mute()  # type: ignore[abstract]
