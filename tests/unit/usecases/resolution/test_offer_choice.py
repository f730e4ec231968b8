"""The offer of a request without a price: the one on which its run costs least in all, each timed on its own network."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from providers.offer import Offer
from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.training.run import Cluster
from service.formats.headline import money
from service.presets.hardware.accelerators import find_accelerator
from service.prices.book import PriceBook, make_price_book
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.offer_choice import OfferChoice, choose_offer, connected_offers, note_choice

H100 = "NVIDIA-H100-80GB-SXM"
# Instance types of the shipped table of networks: InfiniBand of 3,200 Gbit/s an instance, EFA of the same, Ethernet of 25.
INFINIBAND = {"provider": "crusoe", "instance_type": "h100-80gb-sxm-ib.8x"}
EFA = {"provider": "aws", "instance_type": "p5.48xlarge"}
ETHERNET = {"provider": "verda", "instance_type": "8H100.80S.176V"}


@pytest.fixture
def context(settings: Settings) -> AppContext:
    return build_context(settings)


def offer(context: AppContext, usd_per_accelerator: str, *, days: int = 1, count: int = 8, **changes: Any) -> Offer:
    """Instances of H100 on demand, at so much an accelerator-hour, read so many days ago."""
    row: dict[str, Any] = {
        "region": "north",
        "accelerator": H100,
        "accelerator_count": count,
        "pricing": "on_demand",
        "usd_per_hour": Decimal(usd_per_accelerator) * count,
        "observed_at": context.clock() - timedelta(days=days),
        "source": "a price list",
    }
    return Offer(**row | changes)


def book(offers: Sequence[Offer]) -> PriceBook:
    return make_price_book("prices-1", offers, timedelta(days=30))


def request(count: int = 512, **hardware: Any) -> dict[str, Any]:
    return {
        "model": {"params": 70_000_000_000},
        "data": {"tokens": 10**12},
        "hardware": {"accelerator": "H100", "count": count, **hardware},
    }


def cluster(count: int = 512) -> Cluster:
    return Cluster(find_accelerator("H100").accelerator, count, 8, 400.0)


def choose(context: AppContext, *offers: Offer, count: int = 512) -> OfferChoice:
    return choose_offer(context, request(count), cluster(count), offers, book(offers))


def sources(choice: OfferChoice) -> str:
    notes = AssumptionLog()
    note_choice(choice, cluster(), None, notes)
    return next(each.source for each in notes.assumptions if each.field == "price")


def warnings(choice: OfferChoice, count: int = 512, stated_gbps: float | None = None) -> list[str]:
    notes = AssumptionLog()
    note_choice(choice, cluster(count), stated_gbps, notes)
    return notes.warnings


def test_a_cheap_machine_without_a_cluster_network_is_no_bargain(context: AppContext) -> None:
    """A job on several nodes takes it only where nothing else is offered."""
    cheap, connected = offer(context, "1.00", **ETHERNET), offer(context, "3.90", **INFINIBAND)
    assert choose(context, cheap, connected).offer is connected
    assert choose(context, cheap).offer is cheap


def test_within_a_node_the_network_does_not_matter(context: AppContext) -> None:
    """Eight accelerators of a small model run on the cheapest instance."""
    small = request(8) | {"model": {"params": 7_000_000_000}}
    offers = [offer(context, "1.00", **ETHERNET), offer(context, "3.90", **INFINIBAND)]
    assert choose_offer(context, small, cluster(8), offers, book(offers)).offer is offers[0]


def test_parts_of_nodes_are_taken_only_where_nothing_else_is_offered(context: AppContext) -> None:
    """The links between single accelerators of one node are not known."""
    single, whole = offer(context, "1.00", count=1, **INFINIBAND), offer(context, "3.90", **INFINIBAND)
    assert choose(context, single, whole).offer is whole
    assert choose(context, single).offer is single


def test_idle_accelerators_of_the_last_instance_count(context: AppContext) -> None:
    """Two accelerators on an instance of eight pay for eight."""
    two, eight = offer(context, "3.00", count=2, **EFA), offer(context, "1.00", **INFINIBAND)
    small = request(2) | {"model": {"params": 7_000_000_000}}
    assert choose_offer(context, small, cluster(2), [two, eight], book([two, eight])).offer is two


def test_a_fresh_price_comes_before_a_stale_one(context: AppContext) -> None:
    """Even where the stale one is lower: nobody knows whether it still holds."""
    stale, fresh = offer(context, "2.00", days=90, **EFA), offer(context, "3.90", **INFINIBAND)
    assert choose(context, stale, fresh).offer is fresh


def test_a_cheaper_stale_price_is_named_with_its_age_and_total(context: AppContext) -> None:
    """The reader may call that provider; where none is cheaper, the choice is the least of all that are known."""
    stale, fresh = offer(context, "2.00", days=90, **EFA), offer(context, "4.00", **INFINIBAND)
    choice = choose(context, stale, fresh)
    assert choice.cheaper_stale is not None
    assert (choice.cheaper_stale.offer, choice.cheaper_stale.age_days, choice.cheaper_stale.offers) == (stale, 90, 1)
    assert choice.cheaper_stale.cost_ratio == pytest.approx(0.5, rel=0.01)
    told = sources(choice)
    assert "with a fresh price and the lowest total cost of this run" in told
    assert f"1 cheaper offer has an old price: aws, {money(choice.cheaper_stale.usd)} in all at a price read 90 days ago" in told
    dear = offer(context, "9.00", days=90, **EFA)
    for offers in ((dear, fresh), (stale,), (fresh,)):
        assert choose(context, *offers).cheaper_stale is None
    assert "old price" not in sources(choose(context, dear, fresh))


def test_a_stated_provider_is_compared_with_the_same_others(context: AppContext) -> None:
    """Those with a fresh price, also where the stated one's is stale."""
    stale, fresh, old = (
        offer(context, "2.00", days=90, **EFA),
        offer(context, "4.00", **INFINIBAND),
        offer(context, "3.00", days=90, **INFINIBAND | {"provider": "nebius"}),
    )
    offers = [stale, fresh, old]
    assert set(choose(context, *offers).cost_by_provider) == {"crusoe"}
    stated = choose_offer(context, request(), cluster(), [stale], book(offers), others=offers)
    assert list(stated.cost_by_provider) == ["aws", "crusoe"]


def test_of_equal_costs_the_newer_price_is_taken_not_the_first_name(context: AppContext) -> None:
    """The alphabet decides nothing that anything else can."""
    older, newer = offer(context, "3.00", days=9, **EFA), offer(context, "3.00", days=2, **INFINIBAND)
    assert choose(context, older, newer).offer is newer
    assert choose(context, newer, older).offer is newer


def test_the_choice_says_what_other_providers_would_cost(context: AppContext) -> None:
    """The same network at twice the price costs twice as much, but for what is the same everywhere (storage)."""
    choice = choose(context, offer(context, "2.00", **INFINIBAND), offer(context, "4.00", **EFA))
    assert list(choice.cost_by_provider) == ["crusoe", "aws"]
    assert choice.cost_by_provider["crusoe"] == 1.0
    assert choice.cost_by_provider["aws"] == pytest.approx(2.0, rel=0.01)


def test_a_network_that_binds_is_a_warning_that_names_a_faster_one(context: AppContext) -> None:
    """Of two providers with a cluster network the cheaper may be the slower one."""
    offers = [offer(context, "0.40", **ETHERNET), offer(context, "3.90", **INFINIBAND)]
    assert warnings(choose(context, *offers)) == []
    alone = choose_offer(context, request(), cluster(), offers[:1], book(offers), others=offers)
    assert alone.offer is offers[0]
    assert alone.slowdown > 2
    (told,) = warnings(alone)
    fabric = "at verda the nodes are linked by 25 Gbit/s, without a network made for exchanges between them"
    assert told == f"{fabric}: {alone.slowdown:.2g} times slower than at crusoe"


def test_a_stated_network_that_contradicts_the_offer_is_a_warning(context: AppContext) -> None:
    """A caller who states what the offer has, or a job within a node, is not warned."""
    choice = choose(context, offer(context, "3.90", **INFINIBAND))
    (told,) = warnings(choice, stated_gbps=100.0)
    assert "hardware.inter_node_gbps says 100 Gbit/s a node, but crusoe h100-80gb-sxm-ib.8x has 3200" in told
    assert warnings(choice, stated_gbps=3200.0) == []
    assert warnings(choice, count=8, stated_gbps=100.0) == []


def test_a_run_that_fits_nowhere_still_has_a_price(context: AppContext) -> None:
    """That nothing fits is said by the estimate, with what would."""
    huge = request(8) | {"model": {"params": 10**12}}
    offers = [offer(context, "3.00", **EFA), offer(context, "2.00", **INFINIBAND)]
    assert choose_offer(context, huge, cluster(8), offers, book(offers)).offer is offers[1]


def test_an_unknown_network_counts_as_connected(context: AppContext) -> None:
    """Its data sheet's is assumed, which the estimate notes."""
    unknown = offer(context, "2.00", provider="colo", instance_type="rack 7")
    assert connected_offers([unknown, offer(context, "1.00", **ETHERNET)], cluster()) == [unknown]


def test_the_choice_depends_on_the_clock_through_age_alone(context: AppContext) -> None:
    """Prices of one day are compared by cost."""
    assert context.clock() > datetime(2026, 1, 1, tzinfo=UTC)
    cheap, dear = offer(context, "2.00", **EFA), offer(context, "2.01", **INFINIBAND)
    assert choose(context, dear, cheap).offer is cheap
