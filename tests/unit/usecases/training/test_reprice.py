"""Re-pricing: what moved since an earlier estimate, with causes that add up, on recorded prices in a real store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.config import load_settings
from service.context import AppContext
from service.domain.errors import NoOffer, UnknownName
from service.usecases.training.estimate import estimate
from service.usecases.training.levers import apply_change
from service.usecases.training.reprice import MoveCause, RepriceAnswer, reprice
from tests.unit.usecases.market import A100, later, offer, open_context, sell

Request = dict[str, Any]
OLD, NEW = "november", "january"
BASE: Request = {"model": {"preset": "llama-2-7b"}, "data": {"tokens": 10**12}, "hardware": {"accelerator": "H100", "count": 64}}
CHANGES = {
    "data.tokens": [10**12, 2 * 10**12],
    "hardware.count": [64, 128],
    "hardware.accelerator": ["H100", "A100-80GB"],
    "training.precision": [None, "bf16"],
    "price.region": [None, "europe-north1"],
    "price.usd_per_accelerator_hour": [None, 1.5, 2.5],
}
REQUESTS = [
    apply_change(BASE, dict(zip(CHANGES, values, strict=True)))
    for values in product(*CHANGES.values())
    if values[-1] is None or values[-2] is None  # a stated price takes no filter
]


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppContext]:
    """Prices that have moved: Iowa's dearer and overtaken by a newcomer, Finland's the same, A100 gone from its old seller."""
    made = open_context(load_settings({"OUTLAY_DATA_DIR": str(tmp_path_factory.mktemp("data")), "OUTLAY_OFFLINE": "1"}))
    with closing(made.store):
        finland = offer(2.2, region="europe-north1")
        finland_a100 = offer(1.6, region="europe-north1", accelerator=A100)
        sell(made, OLD, offer(2.0), finland, finland_a100, offer(1.2, accelerator=A100, provider="vultr", region="ewr"))
        moved = [offer(2.5, observed_at=later(60)), offer(1.9, provider="vultr", region="ewr", observed_at=later(60))]
        sell(made, NEW, *moved, finland, finland_a100, at=later(60))
        yield made


def causes(found: RepriceAnswer) -> dict[str, MoveCause]:
    return {cause.cause: cause for cause in found.moved.causes}


@given(
    request_=st.sampled_from(REQUESTS),
    before=st.sampled_from(REQUESTS),
    stated=st.none() | st.floats(0, 1e9, allow_nan=False),
    since=st.sampled_from([OLD, NEW]),
)
def test_causes_add_up(context: AppContext, request_: Request, before: Request, stated: float | None, since: str) -> None:
    """To the whole move, to the cent, from the total stated then (or else computed for then) to the present one."""
    asked = {"request": request_, "before": before, "since": since} | ({} if stated is None else {"before_total_usd": stated})
    moved = reprice(context, asked).moved
    assert sum(cause.usd for cause in moved.causes) == moved.usd == moved.to_usd - moved.from_usd
    then = estimate(context, apply_change(before, {"price.snapshot": since})).estimate.cost.total_usd.p50 if stated is None else stated
    assert moved.from_usd == Decimal(repr(then)).quantize(Decimal("0.01"))
    assert float(moved.to_usd) == estimate(context, request_).estimate.cost.total_usd.p50


@pytest.mark.parametrize("request_", REQUESTS[:6])
def test_the_same_request_at_the_same_prices_moves_nothing(context: AppContext, request_: Request) -> None:
    """Whether the prices are the present ones or pinned."""
    total = estimate(context, request_).estimate.cost.total_usd.p50
    for pinned in (request_, apply_change(request_, {"price.snapshot": NEW})):
        found = reprice(context, {"request": pinned, "since": NEW, "before_total_usd": total})
        assert found.before == found.now
        assert [(cause.cause, cause.usd, cause.changes) for cause in found.moved.causes] == [
            (cause, 0, ()) for cause in ("engine", "price", "workload")
        ]


def test_both_standings_are_whole_estimates(context: AppContext) -> None:
    """Totals, hours and prices are those of the earlier request at the earlier prices and of the present one at the present."""
    request = apply_change(BASE, {"data.tokens": 2 * 10**12})
    found = reprice(context, {"request": request, "before": BASE, "since": OLD})
    for standing, asked, snapshot in ((found.before, BASE, OLD), (found.now, request, context.catalog.current.name)):
        own = estimate(context, apply_change(asked, {"price.snapshot": snapshot}))
        assert standing.total_usd == own.estimate.cost.total_usd.p50
        assert standing.wall_clock_hours == own.estimate.time.wall_clock_hours.p50
        assert standing.accelerator_hours == own.estimate.time.accelerator_hours.p50
        assert (standing.price, standing.price_snapshot, standing.engine_version) == (own.price, snapshot, own.engine_version)
    assert found.price_snapshot == found.now.price_snapshot


class TestPrice:
    """What is said of the price."""

    def test_another_offer_may_be_the_cheapest(self, context: AppContext) -> None:
        """Both are named with their dates, and what became of the earlier one."""
        price = causes(reprice(context, {"request": BASE, "since": OLD}))["price"]
        assert price.usd < 0
        assert price.detail == (
            "another offer is the cheapest: gcp us-central1 eight on_demand at 2.0000 USD an accelerator-hour, read 2026-11-21;"
            " now vultr ewr eight on_demand at 1.9000 USD an accelerator-hour, read 2027-01-20;"
            " the earlier offer is at 2.5000 USD, read 2027-01-20"
        )
        assert {change.field: (change.before, change.now) for change in price.changes} == {
            "price.usd_per_accelerator_hour": (2.0, 1.9),
            "price.provider": ("gcp", "vultr"),
            "price.region": ("us-central1", "ewr"),
            "price.observed_at": ("2026-11-21T00:00:00Z", "2027-01-20T00:00:00Z"),
        }

    def test_an_offer_may_be_gone(self, context: AppContext) -> None:
        """Then the next cheapest is taken."""
        price = causes(reprice(context, {"request": apply_change(BASE, {"hardware.accelerator": "A100-80GB"}), "since": OLD}))["price"]
        assert price.usd > 0
        assert price.detail.endswith("the earlier offer is not listed any more")

    def test_the_same_offer_may_have_another_price(self, context: AppContext) -> None:
        """It is still the one the filter leaves."""
        request = apply_change(BASE, {"price.region": "us-central1"})
        price = causes(reprice(context, {"request": request, "since": OLD}))["price"]
        assert price.detail == (
            "the same offer, another price: gcp us-central1 eight on_demand at 2.0000 USD an accelerator-hour, read 2026-11-21;"
            " now 2.5000 USD an accelerator-hour, read 2027-01-20"
        )
        assert float(price.usd) == pytest.approx(estimate(context, request).estimate.cost.total_usd.p50 * 0.2, rel=0.01)

    def test_a_stated_price_is_a_price(self, context: AppContext) -> None:
        """Its move counts as the price's, not as the workload's."""
        before, now = (apply_change(BASE, {"price.usd_per_accelerator_hour": usd}) for usd in (2.0, 2.5))
        found = causes(reprice(context, {"request": now, "before": before, "since": OLD}))
        assert found["price"].usd > 0 == found["workload"].usd
        assert found["price"].detail == "your own price: 2.0000 USD an accelerator-hour, now 2.5000 USD an accelerator-hour"
        assert found["workload"].changes == ()

    @pytest.mark.parametrize("before", [BASE, apply_change(BASE, {"price.usd_per_accelerator_hour": 2.0})])
    def test_another_seller_asked_for_is_a_price(self, context: AppContext, before: Request) -> None:
        """The workload's move is what the same machine costs more there."""
        now = apply_change(BASE, {"price.region": "europe-north1", "data.tokens": 2 * 10**12})
        found = causes(reprice(context, {"request": now, "before": before, "since": NEW}))
        there = [
            estimate(context, apply_change(BASE, {"price.region": "europe-north1", "data.tokens": count})) for count in (10**12, 2 * 10**12)
        ]
        fewer, more = (answer.estimate.cost.total_usd.p50 for answer in there)
        assert float(found["workload"].usd) == pytest.approx(more - fewer, abs=0.011)
        assert [change.field for change in found["workload"].changes] == ["data.tokens"]
        assert found["price"].detail.startswith("asked for otherwise: ")
        assert "now gcp europe-north1 eight on_demand at 2.2000 USD" in found["price"].detail

    def test_a_machine_nobody_sells_so_is_bought_as_before(self, context: AppContext) -> None:
        """Then who sells it is part of what is run."""
        a100 = apply_change(BASE, {"hardware.accelerator": "A100-80GB"})
        found = causes(reprice(context, {"request": apply_change(BASE, {"price.provider": "vultr"}), "before": a100, "since": NEW}))
        assert found["price"].usd == 0
        assert {change.field for change in found["workload"].changes} == {"hardware.accelerator", "price.provider"}


class TestWorkload:
    """What is said of the workload."""

    def test_changed_fields_are_listed_with_both_values(self, context: AppContext) -> None:
        """Those left out have none; what only says how to answer is no change."""
        request = apply_change(
            BASE, {"data.tokens": 2 * 10**12, "training.precision": "bf16", "model": {"params": 7 * 10**9}, "levers": True}
        )
        found = causes(reprice(context, {"request": request, "before": BASE, "since": NEW}))["workload"]
        assert [(change.field, change.before, change.now) for change in found.changes] == [
            ("data.tokens", 10**12, 2 * 10**12),
            ("model.params", None, 7 * 10**9),
            ("model.preset", "llama-2-7b", None),
            ("training.precision", None, "bf16"),
        ]
        assert "data.tokens from 1,000,000,000,000 to 2,000,000,000,000" in found.detail
        assert "training.precision from nothing stated to bf16" in found.detail

    def test_it_is_priced_at_the_present_prices(self, context: AppContext) -> None:
        """Twice the tokens cost as much again as the earlier run costs now."""
        request = apply_change(BASE, {"data.tokens": 2 * 10**12})
        found = causes(reprice(context, {"request": request, "before": BASE, "since": OLD}))["workload"]
        assert float(found.usd) == pytest.approx(estimate(context, BASE).estimate.cost.total_usd.p50, rel=0.01)


class TestEngine:
    """What is said of the engine."""

    def test_it_is_what_the_earlier_request_would_have_cost_more(self, context: AppContext) -> None:
        """At its own prices; with both totals."""
        then = estimate(context, apply_change(BASE, {"price.snapshot": OLD})).estimate.cost.total_usd.p50
        found = causes(reprice(context, {"request": BASE, "since": OLD, "before_total_usd": then - 100}))["engine"]
        assert found.usd == 100
        assert f"{then:,.2f} USD where {then - 100:,.2f} USD were stated" in found.detail

    def test_without_a_stated_total_nothing_is_known_of_it(self, context: AppContext) -> None:
        """And nothing is said."""
        assert set(causes(reprice(context, {"request": BASE, "since": OLD}))) == {"price", "workload"}


class TestProblems:
    """Where a problem points."""

    def test_an_unknown_snapshot_is_told_where_it_stands(self, context: AppContext) -> None:
        """The earlier one, and the one that the request pins."""
        for asked, pointer in (
            ({"request": BASE, "since": "nope"}, "/since"),
            ({"request": apply_change(BASE, {"price.snapshot": "nope"}), "since": OLD}, "/request/price/snapshot"),
        ):
            with pytest.raises(UnknownName) as caught:
                reprice(context, asked)
            assert caught.value.pointer == pointer

    def test_a_request_that_has_no_estimate_is_told_apart_from_the_other(self, context: AppContext) -> None:
        """The pointer begins with its name."""
        unknown = apply_change(BASE, {"hardware.accelerator": "H10"})
        for asked, pointer in (
            ({"request": unknown}, "/request/hardware/accelerator"),
            ({"request": BASE, "before": unknown}, "/before/hardware/accelerator"),
            ({"request": unknown, "before": BASE}, "/request/hardware/accelerator"),
        ):
            with pytest.raises(UnknownName) as caught:
                reprice(context, asked | {"since": OLD})
            assert caught.value.pointer == pointer

    def test_a_price_that_is_gone_for_good_is_a_problem(self, context: AppContext) -> None:
        """Nothing can be said of what it is now."""
        request = apply_change(BASE, {"hardware.accelerator": "A100-80GB", "price.provider": "vultr"})
        with pytest.raises(NoOffer) as caught:
            reprice(context, {"request": request, "since": OLD})
        assert caught.value.pointer == "/request/price"
