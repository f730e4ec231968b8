"""Which price an estimate is made with: the caller's own, or the cheapest offer that may be taken."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from providers.offer import Discount, Offer
from service.domain.errors import InvalidRequest, NoOffer
from service.prices.catalog import PriceBook, make_price_book
from service.prices.precedence import apply_discounts
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.price import (
    Price,
    find_cheapest,
    find_country,
    find_eligible_offers,
    find_price,
    newest_per_provider,
    price_from_offer,
)

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
H100 = "NVIDIA-H100-80GB-SXM"
A100 = "NVIDIA-A100-80GB-SXM"
HALF_A_YEAR = timedelta(days=180)


def offer(usd_per_accelerator: str, *, days: int = 30, **changes: Any) -> Offer:
    """An 8 x H100 on demand at so much an accelerator-hour, read so many days ago, but for `changes`."""
    count = changes.get("accelerator_count", 8)
    row: dict[str, Any] = {
        "provider": "aws",
        "region": "us-east-1",
        "instance_type": "p5.48xlarge",
        "accelerator": H100,
        "accelerator_count": count,
        "pricing": "on_demand",
        "usd_per_hour": Decimal(usd_per_accelerator) * count,
        "observed_at": NOW - timedelta(days=days),
        "source": "the provider's price list",
    }
    return Offer(**row | changes)


def book(*offers: Offer) -> PriceBook:
    return make_price_book("prices-1", offers, HALF_A_YEAR)


def find(given: dict[str, Any], *offers: Offer, count: int = 64, notes: AssumptionLog | None = None) -> Price:
    return find_price(given, H100, count, book(*offers), NOW, notes or AssumptionLog())


def test_the_cheapest_on_demand_list_price_is_taken() -> None:
    """Of several clouds the lowest price an accelerator-hour, whatever the size of the instance."""
    found = find({}, offer("6.88"), offer("2.95", provider="nebius"), offer("3.99", provider="lambda", accelerator_count=1))
    assert (found.provider, found.usd_per_accelerator_hour, found.accelerators_per_instance) == ("nebius", 2.95, 8)


def test_a_price_says_where_and_when_it_was_read() -> None:
    """Everything the contract names stands in the price."""
    found = find({}, offer("2.95", provider="nebius", region="eu-north1", days=3))
    assert found == Price(
        usd_per_accelerator_hour=2.95,
        source="the provider's price list",
        stale=False,
        provider="nebius",
        region="eu-north1",
        pricing="on_demand",
        observed_at=NOW - timedelta(days=3),
        instance_type="p5.48xlarge",
        accelerator=H100,
        accelerators_per_instance=8,
        market="list",
        availability="listed",
    )


def test_a_price_with_discounts_says_what_they_were_taken_off() -> None:
    """The list price of one accelerator, the discounts in their order, and a line among the assumptions."""
    notes, contract = AssumptionLog(), (Discount("enterprise", Decimal("0.12")), Discount("volume", Decimal("0.03"), provider="aws"))
    found = find({}, apply_discounts(offer("6.88"), contract), notes=notes)
    assert found.usd_per_accelerator_hour == pytest.approx(6.88 * 0.88 * 0.97)
    assert (found.list_usd_per_accelerator_hour, found.discounts) == (6.88, "enterprise 12 %, volume 3 %")
    assert {line.field: line.value for line in notes.assumptions}["price.discounts"] == "6.8800 list, enterprise 12 %, volume 3 %"


def test_a_price_without_discounts_says_nothing_of_any() -> None:
    """Nor does one that the caller states."""
    for given in ({}, {"usd_per_accelerator_hour": 2.0}):
        notes = AssumptionLog()
        found = find(given, offer("6.88"), notes=notes)
        assert (found.list_usd_per_accelerator_hour, found.discounts) == (None, None)
        assert "price.discounts" not in {line.field for line in notes.assumptions}


@pytest.mark.parametrize(
    ("changes", "country"),
    [
        ({}, "USA"),
        ({"region": "eu-central-1"}, "DEU"),
        ({"extras": {"country": "CHE"}}, "CHE"),
        ({"provider": "colo", "region": "rack 7"}, ""),
    ],
)
def test_an_offer_stands_where_its_sheet_says_else_where_its_region_is(changes: dict[str, Any], country: str) -> None:
    """Own names of regions tell nobody a country."""
    assert find_country(offer("6.88", **changes)) == country


def test_spot_and_reserved_prices_are_taken_only_when_asked_for() -> None:
    """They are cheaper, and not what somebody means who says nothing."""
    offers = offer("6.88"), offer("2.10", pricing="spot"), offer("3.10", pricing="reserved_3y")
    assert find({}, *offers).pricing == "on_demand"
    assert find({"pricing": "spot"}, *offers).usd_per_accelerator_hour == 2.10
    assert find({"pricing": "reserved_3y"}, *offers).usd_per_accelerator_hour == 3.10


def test_only_a_providers_newest_prices_count() -> None:
    """A price of last spring is not the provider's price any more, though it is lower; other providers are not affected by that."""
    old, new = offer("4.10", days=200), offer("6.88", days=20)
    other = offer("7.50", provider="gcp", days=100)
    assert find({}, old, new, other).usd_per_accelerator_hour == 6.88
    assert newest_per_provider([old, new, other], book(old, new, other)) == [new, other]


def test_newest_is_judged_among_the_offers_that_answer_the_filter() -> None:
    """A newer price of another region does not hide the only one of the region asked for."""
    here, elsewhere = offer("6.88", region="eu-west-1", days=90), offer("5.00", region="us-west-2", days=1)
    assert find({"region": "eu-west-1"}, here, elsewhere).usd_per_accelerator_hour == 6.88


def test_a_marketplace_counts_only_where_its_provider_is_named() -> None:
    """One host's offer is not a list price."""
    host, cloud = offer("1.50", provider="vast", market="marketplace"), offer("6.88")
    assert find({}, host, cloud).provider == "aws"
    assert find({"provider": "vast"}, host, cloud).market == "marketplace"


@pytest.mark.parametrize("given", [{}, {"provider": "mithril"}, {"provider": "mithril", "pricing": "spot"}, {"pricing": "spot"}])
def test_the_floor_of_an_auction_is_never_a_price(given: dict[str, Any]) -> None:
    """Nobody is sold capacity at it, so there is no price rather than that one."""
    floors = [offer("1.00", provider="mithril", market="auction_floor", pricing=pricing) for pricing in ("on_demand", "spot")]
    with pytest.raises(NoOffer):
        find(given, *floors)


def test_prices_older_than_a_year_count_only_where_there_is_nothing_else() -> None:
    """A year to the day, from the book's newest price, is still recent: a book gives the same answer whenever it is asked."""
    ancient, recent = offer("0.50", provider="old", days=367), offer("6.88", days=1)
    later = NOW + timedelta(days=900)
    assert find_price({}, H100, 64, book(ancient, recent), later, AssumptionLog()).provider == "aws"
    assert find({}, ancient, recent).provider == "aws"
    assert find({}, ancient).provider == "old"


@pytest.mark.parametrize(
    ("given", "usd"),
    [
        ({"provider": "aws"}, 6.88),
        ({"region": "us-central1"}, 9.00),
        ({"provider": "gcp", "region": "europe-west4"}, 9.50),
        ({"provider": "aws", "region": "us-east-1", "pricing": "spot"}, 4.00),
        ({"provider": None, "region": None, "pricing": None}, 6.88),
    ],
)
def test_filters_leave_what_answers_all_of_them(given: dict[str, Any], usd: float) -> None:
    """Provider, region and pricing; null is the same as left out."""
    offers = (
        offer("6.88"),
        offer("4.00", pricing="spot"),
        offer("9.00", provider="gcp", region="us-central1"),
        offer("9.50", provider="gcp", region="europe-west4"),
    )
    assert find(given, *offers).usd_per_accelerator_hour == usd


def test_other_accelerators_are_never_taken() -> None:
    """An A100 at half the price does not train an H100 run."""
    assert find({}, offer("6.88"), offer("1.20", accelerator=A100)).accelerator == H100


def test_no_offer_says_what_was_asked_and_what_is_known() -> None:
    """The caller can widen the filter from the message; an unknown price is never zero."""
    with pytest.raises(NoOffer) as caught:
        find({"provider": "azure", "region": "eastus"}, offer("6.88"), offer("2.10", pricing="spot"))
    assert caught.value.pointer == "/price"
    for word in (H100, "provider azure", "region eastus", "prices-1", "aws (on_demand, spot)", "price.usd_per_accelerator_hour"):
        assert word in caught.value.message


def test_no_offer_of_an_accelerator_says_to_state_a_price() -> None:
    """Where nothing is known of a part there is nothing to widen."""
    with pytest.raises(NoOffer, match=rf"no price of {H100} for on_demand is known in prices-1; state price.usd_per_accelerator_hour"):
        find({}, offer("1.20", accelerator=A100))


def test_a_stated_price_is_the_callers_and_needs_no_offer() -> None:
    """It is neither stale nor an assumption, and carries no offer's fields."""
    notes = AssumptionLog()
    found = find({"usd_per_accelerator_hour": 2}, notes=notes)
    assert found == Price(2.0, "caller", stale=False, accelerator=H100)
    assert (notes.assumptions, notes.warnings) == ((), [])


@pytest.mark.parametrize(("name", "value"), [("provider", "aws"), ("region", "us-east-1"), ("pricing", "spot")])
def test_a_stated_price_beside_a_filter_is_refused(name: str, value: str) -> None:
    """One of them is not meant; the message points at the filter."""
    with pytest.raises(InvalidRequest) as caught:
        find({"usd_per_accelerator_hour": 2, name: value}, offer("6.88"))
    assert caught.value.pointer == f"/price/{name}"


def test_a_stated_price_may_name_the_snapshot_it_is_repeated_against() -> None:
    """The snapshot is no filter of offers."""
    assert find({"usd_per_accelerator_hour": 2, "snapshot": "prices-1"}).source == "caller"


def test_between_equal_prices_the_one_that_leaves_fewest_idle_is_taken() -> None:
    """Three accelerators fit instances of one; sixty-four fit instances of eight, which are fewer."""
    one, eight = offer("2", instance_type="a", accelerator_count=1), offer("2", instance_type="b", accelerator_count=8)
    assert find_cheapest([one, eight], 3) is one
    assert find_cheapest([one, eight], 64) is eight
    assert find_cheapest([], 64) is None


def test_what_is_paid_decides_not_what_an_accelerator_would_cost() -> None:
    """One accelerator in an instance of its own beats a quarter of an instance that must be paid whole."""
    own, shared = offer("0.14", accelerator_count=1), offer("0.1375", accelerator_count=4)
    assert find_cheapest([own, shared], 1) is own
    assert find_cheapest([own, shared], 4) is shared


def test_the_same_book_gives_the_same_price_in_any_order() -> None:
    """Full ties are broken by name."""
    offers = [offer("2", region=region, provider=provider) for region in "ba" for provider in "yx"]
    assert find_cheapest(offers, 64) == find_cheapest(offers[::-1], 64)


def test_a_price_older_than_its_providers_promise_is_stale_and_warned_about() -> None:
    """The warning has the age and the date; a price within the promise has none."""
    notes = AssumptionLog()
    assert find({}, offer("6.88", days=181), notes=notes).stale is True
    assert notes.warnings == ["the price of aws was read 181 days ago (2026-05-24): check it before you rely on it"]
    fresh = AssumptionLog()
    assert find({}, offer("6.88", days=180), notes=fresh).stale is False
    assert fresh.warnings == []


@pytest.mark.parametrize("given", [{}, {"provider": "aws"}, {"region": "us-east-1"}, {"pricing": "on_demand"}])
def test_the_offer_that_was_chosen_is_an_assumption(given: dict[str, Any]) -> None:
    """The instance at least was not the caller's choice; the note names it and its price."""
    notes = AssumptionLog()
    find(given, offer("6.88"), notes=notes)
    assert [(note.field, note.value) for note in notes.assumptions] == [
        ("price", "aws us-east-1 p5.48xlarge on_demand 6.8800 USD an accelerator-hour")
    ]
    assert "cheapest" in notes.assumptions[0].source


def test_an_offer_reads_the_same_wherever_it_is_shown() -> None:
    """`price_from_offer` is what estimates show of any offer."""
    row = offer("6.88", days=200)
    assert price_from_offer(row, book(row), NOW).stale is True
    assert find_eligible_offers({}, H100, book(row)) == [row]
