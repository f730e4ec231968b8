"""Which prices are believed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.offer import Fetched, Offer, Rejected
from providers.quarantine import CheckedOffers, check_offers, rules

NOW = datetime(2027, 1, 4, tzinfo=UTC)


def offer(usd: str | Decimal = "40", **changes: Any) -> Offer:
    row: dict[str, Any] = {
        "provider": "nimbus",
        "region": "east",
        "instance_type": "h100x8",
        "accelerator": "NVIDIA-H100-80GB-SXM",
        "accelerator_count": 8,
        "pricing": "on_demand",
        "usd_per_hour": Decimal(usd),
        "observed_at": NOW,
        "source": "api",
    }
    return Offer(**row | changes)


def checked(*offers: Offer, before: tuple[Offer, ...] = (), accept_jumps: bool = False) -> CheckedOffers:
    return check_offers(Fetched(offers, "s"), {old.identity: old for old in before}, accept_jumps=accept_jumps)


def reasons(found: CheckedOffers) -> list[str]:
    return [each.reason for each in found.quarantined]


@pytest.mark.parametrize(("usd", "believed"), [("399.99", True), ("400", False), ("4.01", True), ("4", False), ("40000", False)])
def test_a_price_that_moved_tenfold_is_not_believed(usd: str, believed: bool) -> None:
    """Up or down; the last good one stays as it was."""
    old = offer("40", observed_at=NOW - timedelta(days=1))
    found = checked(offer(usd), before=(old,))
    assert found.offers == ((offer(usd),) if believed else (old,))
    assert reasons(found) == ([] if believed else [f"the price jumped from 5.0000 to {Decimal(usd) / 8:.4f} USD an accelerator-hour"])


def test_a_new_thing_is_measured_by_what_its_kind_cost() -> None:
    """An offer in a region that had none, at a thousand times the price of the others, is not believed either."""
    before = (offer("40"), offer("42", region="west"))
    new = offer("44000", region="south")
    found = checked(*before, new, before=before)
    assert found.offers == before
    assert [each.offer for each in found.quarantined] == [new]
    assert checked(offer("44", region="south"), before=before).quarantined == ()


@pytest.mark.parametrize(("usd", "believed"), [("40", True), ("1199", True), ("4000", False), ("40000", False), ("0.4", False)])
def test_the_first_prices_of_a_source_are_measured_by_those_of_others(usd: str, believed: bool) -> None:
    """A feed in cents or in thousands has nothing of its own to be measured by; an honest bargain is far from a wrong unit."""
    known = tuple(offer(price, provider="cirrus", region=price) for price in ("38", "40", "42"))
    first = Fetched((offer(usd), offer("7", accelerator="Unheard-Of")), "s")
    found = check_offers(first, {}, known)
    assert (first.offers[0] in found.offers, len(found.quarantined)) == (believed, 0 if believed else 1)
    assert check_offers(first, {}, known, accept_jumps=True).offers == first.offers
    assert check_offers(first, {o.identity: o for o in first.offers}, known).offers == first.offers


def test_an_operator_may_believe_it() -> None:
    """The other rules hold all the same."""
    assert checked(offer("400"), before=(offer("40"),), accept_jumps=True) == CheckedOffers((offer("400"),), ())
    spot = offer("500", pricing="spot")
    assert checked(offer("400"), spot, before=(offer("40"),), accept_jumps=True).offers == (offer("400"),)


def test_one_price_for_three_sizes_is_a_placeholder() -> None:
    """Two sizes at one price do occur, and hosts of a marketplace may ask what they like."""
    sizes = tuple(offer("10", instance_type=f"h100x{n}", accelerator_count=n) for n in (1, 2, 4))
    assert checked(*sizes).offers == ()
    assert reasons(checked(*sizes)) == ["one price for every size: a placeholder"] * 3
    assert checked(*sizes[:2]).offers == sizes[:2]
    hosts = tuple(offer("10", instance_type=f"host{n}", accelerator_count=n, market="marketplace") for n in (1, 2, 4))
    assert checked(*hosts).offers == hosts


def test_a_price_ten_times_off_the_usual_one_is_not_believed() -> None:
    """Of at least three for the same accelerator and kind of price."""
    usual = tuple(offer(usd, region=f"r{usd}") for usd in ("38", "40", "42"))
    found = checked(*usual, offer("0.41", region="west"))
    assert found.offers == usual
    assert reasons(found) == ["tenfold off the median of 4.8750 USD an accelerator-hour"]
    assert len(checked(usual[0], offer("0.41", region="west")).offers) == 2


@pytest.mark.parametrize("pricing", ["spot", "reserved_1y", "reserved_3y"])
def test_spot_and_reserved_are_not_above_on_demand(pricing: str) -> None:
    """Of the very same thing; elsewhere they may be dearer."""
    found = checked(offer("40"), offer("40.01", pricing=pricing), offer("41", pricing=pricing, region="west"))
    assert [(o.region, o.pricing) for o in found.offers] == [("east", "on_demand"), ("west", pricing)]
    assert reasons(found) == [f"{pricing} price above on-demand (40)"]


def test_a_last_good_price_is_held_to_the_same_rules() -> None:
    """A spot price that was good under a dearer on-demand price does not come back above a cheaper one."""
    old = offer("35", pricing="spot", observed_at=NOW - timedelta(days=1))
    found = checked(offer("30"), offer("400", pricing="spot"), before=(offer("40"), old))
    assert found.offers == (offer("30"),)
    assert reasons(found) == [
        "the price jumped from 4.3750 to 50.0000 USD an accelerator-hour",
        "spot price above on-demand (30)",
    ]


def test_rows_that_could_not_be_read_keep_their_last_prices() -> None:
    """Named by provider, region or instance type; those that were read and are gone are gone."""
    before = (offer(), offer(region="west"), offer(instance_type="b200x8"), offer(provider="cirrus"), offer(region="south"))
    unread = (Rejected("west", "timed out"), Rejected("b200x8", "price is null"), Rejected("cirrus", "cannot be read"))
    found = check_offers(Fetched((offer("41"),), "s", unread), {old.identity: old for old in before})
    assert set(found.offers) == {offer("41"), *before[1:4]}


def test_where_a_part_could_not_be_read_nothing_is_gone() -> None:
    """A page that failed may have held any of them; those that came are as they came."""
    before = (offer(), offer(region="west"), offer(instance_type="b200x8"))
    unread = (Rejected("further pages", "timed out"),)
    found = check_offers(Fetched((offer("41"),), "s", unread, partial=True), {old.identity: old for old in before})
    assert set(found.offers) == {offer("41"), *before[1:]}


def test_every_threshold_has_a_reason() -> None:
    """They are data, above one and whole where they count."""
    assert set(rules()) == {"jump_factor", "outlier_factor", "unit_factor", "placeholder_sizes", "median_of"}
    assert all(value > 1 for value in rules().values())


PRICES = st.decimals(min_value=Decimal("0.01"), max_value=Decimal(10_000), places=2)


@given(st.lists(st.tuples(PRICES, st.sampled_from(["on_demand", "spot"]), st.sampled_from(["a", "b", "c"])), max_size=12), PRICES)
def test_whatever_comes_what_is_served_is_plausible(rows: list[tuple[Decimal, str, str]], last: Decimal) -> None:
    """Nothing served jumped tenfold, nothing is served twice, and every offer is served, replaced or reported."""
    before = tuple(offer(last, region=region) for region in "abc")
    offers = {o.identity: o for o in (offer(usd, pricing=pricing, region=region) for usd, pricing, region in rows)}
    found = checked(*offers.values(), before=before)
    served = {o.identity: o for o in found.offers}
    assert len(served) == len(found.offers)
    assert all(last / 10 < o.usd_per_hour < last * 10 for o in found.offers if o.pricing == "on_demand")
    on_demand = {o.region: o.usd_per_hour for o in found.offers if o.pricing == "on_demand"}
    assert all(o.usd_per_hour <= on_demand.get(o.region, o.usd_per_hour) for o in found.offers)
    assert {each.offer.identity for each in found.quarantined} | {key for key, o in served.items() if offers.get(key) == o} == set(offers)
