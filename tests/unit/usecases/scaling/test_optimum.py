"""Use cases of the optimum: what holds whatever the budget, and how sizes are turned into dollars."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.context import AppContext
from service.domain.errors import DoesNotFit, InvalidRequest, NoOffer
from service.engine.training.parameters import count_parameters
from service.formats.documents.results.optimum import tables
from service.presets.scaling.laws import default_law, load_laws, load_mixture_law
from service.presets.scaling.optimum import published_plans
from service.prices.book import make_price_book
from service.serialization import to_builtins
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.scaling.optimum import optimal
from service.usecases.scaling.optimum_answer import OptimalAnswer
from service.usecases.scaling.size_costs import (
    cost_size,
    default_model,
    resolve_setup,
    size_cost_table,
)
from service.usecases.training.estimate import estimate

MACHINE: dict[str, Any] = {"hardware": {"accelerator": "H100", "count": 64}, "price": {"usd_per_accelerator_hour": 2.0}}
CENT = 0.01
"""What rounding may add to a sum [USD]."""
PARAMETRIC = [name for name, law in load_laws().items() if hasattr(law.law, "alpha") and name != "krajewski-moe"]


def asked(context: AppContext, **request: Any) -> OptimalAnswer:
    return optimal(context, request)


@given(st.floats(18, 26), st.floats(0.05, 2), st.sampled_from(PARAMETRIC))
def test_more_budget_never_has_a_higher_loss(context: AppContext, exponent: float, more: float, law: str) -> None:
    """By any law of losses."""
    less, richer = (asked(context, budget={"flops": 10.0**power}, law=law) for power in (exponent, exponent + more))
    assert less.loss is not None
    assert richer.loss is not None
    assert richer.loss < less.loss
    assert richer.params.p50 > less.params.p50


@given(st.floats(20, 24), st.floats(9, 14), st.floats(0.1, 2))
def test_the_more_is_served_the_smaller_and_the_longer_trained(context: AppContext, exponent: float, served: float, more: float) -> None:
    """Within the budget; the plan beyond it is as good as the best for training alone and never costs more."""
    few, many = (
        asked(context, budget={"flops": 10.0**exponent}, lifetime_inference_tokens=round(10.0**power)) for power in (served, served + more)
    )
    assert many.params.p50 < few.params.p50
    assert many.tokens.p50 > few.tokens.p50
    assert many.flops == pytest.approx(few.flops, rel=1e-6)
    assert many.lifetime is not None
    assert few.lifetime is not None
    assert many.lifetime.joint.loss == pytest.approx(few.lifetime.joint.loss)
    assert 0 <= many.lifetime.saves_share < 1


@pytest.mark.parametrize("usd", [1e4, 1e5, 1e6, 1e7])
def test_more_dollars_never_have_a_higher_loss(context: AppContext, usd: float) -> None:
    """Through the step model, whose rates are not smooth."""
    less, richer = (asked(context, **MACHINE, budget={"usd": amount}) for amount in (usd, 1.5 * usd))
    assert less.loss is not None
    assert richer.loss is not None
    assert richer.loss < less.loss


def test_ranges_hold_the_law_s_uncertainty(context: AppContext) -> None:
    """Of size, tokens, loss and dollars; none where nothing is published of it, which is warned of."""
    sure = asked(context, budget={"flops": 1e23}, law="muennighoff", **MACHINE)
    unsure = asked(context, budget={"flops": 1e23}, **MACHINE)
    assert unsure.loss_range is not None
    assert unsure.training is not None
    for quantity in (unsure.params, unsure.tokens, unsure.loss_range, unsure.training.usd):
        assert quantity.p10 < quantity.p90
    assert sure.params.p10 == sure.params.p90
    assert any("uncertainty" in warning for warning in sure.warnings)


def test_curves_lie_around_the_optimum(context: AppContext) -> None:
    """No size of equal cost is better, none of equal loss cheaper; a smaller model costs what was allowed."""
    found = asked(context, budget={"flops": 1e23})
    assert found.loss is not None
    losses = [point.loss for point in found.curve if point.loss is not None]
    assert min(losses) == pytest.approx(found.loss, rel=1e-9)
    assert min(point.flops for point in found.iso_loss_curve) == pytest.approx(1e23, rel=1e-9)
    assert [round(row.extra_share, 2) for row in found.smaller] == [0.01, 0.05, 0.10]
    assert [6 * row.params * row.tokens / 1e23 for row in found.smaller] == pytest.approx([1.01, 1.05, 1.10], rel=1e-6)
    shares = [row.params_share for row in found.smaller]
    assert 1 > shares[0] > shares[1] > shares[2] > 0.5


@pytest.mark.parametrize("flops", [1e21, 1e23, 1e25])
def test_the_suggested_layout_has_the_optimum_s_size(context: AppContext, flops: float) -> None:
    """Within 2 % of whole layers and heads; its tokens use up the budget."""
    found = asked(context, budget={"flops": flops})
    assert found.suggestion is not None
    assert found.suggestion.params == pytest.approx(found.params.p50, rel=0.02)
    assert 6 * found.suggestion.params * found.suggestion.data["tokens"] == pytest.approx(flops, rel=1e-6)


def test_no_layout_of_a_toy_is_suggested(context: AppContext) -> None:
    """Its vocabulary alone would be larger."""
    found = asked(context, budget={"flops": 1e13})
    assert found.suggestion is None
    assert any("no layout is suggested" in warning for warning in found.warnings)


def test_a_setup_is_priced_from_the_book_that_its_answer_names(context: AppContext) -> None:
    """Prices that are refreshed while an answer is made change nothing in it."""
    current, request = context.catalog.current, {"hardware": MACHINE["hardware"]}
    doubled = make_price_book("doubled", [replace(each, usd_per_hour=2 * each.usd_per_hour) for each in current.offers], current.fresh_for)
    prices = []
    for book in (current, doubled):
        setup = resolve_setup(context, request, book, AssumptionLog(), of_mixtures=False)
        assert setup is not None
        prices.append(setup.price.usd_per_accelerator_hour)
    assert prices[1] == pytest.approx(2 * prices[0])


def test_a_row_is_what_an_estimate_says(context: AppContext) -> None:
    """Dollars are fixed and by the token, hours by the token alone."""
    rig = resolve_setup(context, MACHINE, context.catalog.current, AssumptionLog(), of_mixtures=False)
    assert rig is not None
    model = default_model(7e9, of_mixtures=False)
    row = cost_size(rig, 7e9, model)
    run = {**MACHINE, "model": {"params": 7_000_000_000, "kv_heads": 8}, "data": {"tokens": 300_000_000_000}}
    found = estimate(context, run).estimate
    assert row.hours_per_token * 3e11 == pytest.approx(found.time.wall_clock_hours.p50)
    assert row.usd_fixed + row.usd_per_token * 3e11 == pytest.approx(found.cost.total_usd.p50, abs=0.02)


def test_a_table_follows_its_timed_sizes_and_ends_where_memory_does(context: AppContext) -> None:
    """A size costs within a tenth of what its own layout takes; one beyond the largest that fits cannot be had at any price."""
    rig = resolve_setup(context, MACHINE, context.catalog.current, AssumptionLog(), of_mixtures=False)
    assert rig is not None
    table = size_cost_table(rig)
    for params in (3e9, 1e10, 3e10, 7e10):
        row = cost_size(rig, params, rig.model(params))
        at, tokens = np.array([params]), np.array([1e12])
        assert table.usd()(at, tokens) == pytest.approx(row.usd_fixed + row.usd_per_token * 1e12, rel=0.1)
        scaled = table.through(row)
        assert scaled.usd()(at, tokens) == pytest.approx(row.usd_fixed + row.usd_per_token * 1e12, rel=1e-9)
        assert scaled.accelerator_hours()(at, tokens) == pytest.approx(64 * row.hours_per_token * 1e12)
    assert np.isinf(table.usd()(np.array([2 * table.largest, np.inf]), np.array([1e12, 1e12]))).all()


def plan_for(context: AppContext, count: int, usd: float, **request: Any) -> OptimalAnswer:
    hardware = {"accelerator": "H100", "count": count}
    return asked(context, budget={"usd": usd}, hardware=hardware, price={"usd_per_accelerator_hour": 2.0}, **request)


def total_usd(answer: OptimalAnswer) -> float:
    assert answer.estimate is not None
    return float(answer.estimate.estimate.cost.total_usd.p50)


@pytest.mark.parametrize("lifetime", [{}, {"lifetime_inference_tokens": 10**13}])
@pytest.mark.parametrize("count", [64, 16384])
@settings(max_examples=settings().max_examples // 4)
@given(share=st.floats(0, 1), more=st.floats(1.001, 1.6))
def test_plans_are_their_estimates_and_grow_with_the_budget(
    context: AppContext, count: int, lifetime: dict[str, int], share: float, more: float
) -> None:
    """Neither size nor tokens fall, however close the budgets are, although layouts of nearly one size differ in speed by percents.

    Size, tokens and dollars are those of one run, whose median spends nine tenths of the budget or more, and never all and a cent.
    """
    usd = count * 300 * 100**share
    less, richer = (plan_for(context, count, amount, **lifetime) for amount in (usd, usd * more))
    assert richer.params.p50 >= less.params.p50
    assert richer.tokens.p50 >= less.tokens.p50
    assert_is_its_estimate(less, usd)
    assert_is_its_estimate(richer, usd * more)


def assert_is_its_estimate(answer: OptimalAnswer, usd: float) -> None:
    assert answer.suggestion is not None
    assert answer.training is not None
    assert answer.suggestion.params == answer.params.p50
    assert answer.suggestion.data["tokens"] == pytest.approx(answer.tokens.p50, rel=1e-9)
    assert answer.training.usd.p50 == pytest.approx(total_usd(answer), rel=1e-4)
    assert 0.9 * usd <= total_usd(answer) <= usd + CENT


def test_neighbouring_budgets_have_neighbouring_plans(context: AppContext) -> None:
    """From 80 to 110 million dollars on 16,384 H100, in steps of 10: a tenth more dollars make no other model."""
    plans = [plan_for(context, 16384, millions * 1e6) for millions in (80, 90, 100, 110)]
    sizes = [plan.params.p50 for plan in plans]
    tokens = [plan.tokens.p50 for plan in plans]
    for amounts in (sizes, tokens):
        assert all(1 <= after / before < 1.15 for before, after in pairwise(amounts))


def test_mixtures_have_the_law_s_share_of_active_parameters() -> None:
    """43 times as many in all."""
    counts = count_parameters(default_model(1e9, of_mixtures=True))
    assert counts.total / counts.active == pytest.approx(load_mixture_law().total_per_active)


def test_what_is_refused_says_where(context: AppContext) -> None:
    """Prices, machines and laws that cannot be."""
    with pytest.raises(NoOffer):
        asked(context, budget={"usd": 1e5}, hardware=MACHINE["hardware"], price={"provider": "nobody"})
    with pytest.raises(DoesNotFit):
        asked(context, budget={"usd": 1e9}, **MACHINE, training={"seq_len": 100_000_000})
    with pytest.raises(InvalidRequest) as told:
        asked(context, **MACHINE, budget={"deadline": date(2027, 1, 4)}, schedule={"start": date(2027, 1, 4), "queue_hours": 24.0})
    assert told.value.pointer == "/budget/deadline"


def test_published_plans_use_what_they_say() -> None:
    """6 N D within 15 % of the FLOPs, which papers count in their own ways; each with its source."""
    for plan in published_plans():
        assert 6 * plan.params * plan.tokens == pytest.approx(plan.flops, rel=0.15)
        assert plan.source


def test_the_default_law_is_told(context: AppContext) -> None:
    """With its source, among the assumptions."""
    found = asked(context, budget={"flops": 1e22})
    assert [(each.field, each.value, each.source) for each in found.assumptions] == [("law", found.law, default_law().source)]


SERVED: dict[str, Any] = {"tokens_per_day": 1e10, "months": 12.0, "prompt_tokens": 1000.0, "output_tokens": 300.0}
BUDGET: dict[str, Any] = {"budget": {"usd": 2e6}, "hardware": {"accelerator": "H100", "count": 256}, "price": MACHINE["price"]}


def within(context: AppContext, **latency: float) -> OptimalAnswer:
    """The optimum of a budget whose model is served within latencies."""
    return asked(context, **BUDGET, serving=SERVED | {"latency": latency})


def test_shorter_latencies_rule_out_larger_models(context: AppContext) -> None:
    """The budget is spent on a smaller model that is trained for longer and is worse; every size that is shown keeps to them."""
    free, slow, fast = within(context), *(within(context, time_per_output_token_ms=limit) for limit in (20.0, 10.0))
    largest = []
    for answer in (slow, fast):
        assert answer.serving is not None
        assert answer.serving.largest_params is not None
        assert answer.params.p50 <= answer.serving.largest_params
        assert answer.lifetime is not None
        assert answer.lifetime.training_only.params <= answer.serving.largest_params * 1.001
        assert answer.lifetime.within_budget.serving_usd == pytest.approx(
            answer.serving.usd_per_million_tokens * answer.lifetime.inference_tokens / 1e6
        )
        largest.append(answer.serving.largest_params)
    assert largest[1] < largest[0]
    assert fast.params.p50 < slow.params.p50 < free.params.p50
    assert fast.loss > slow.loss > free.loss
    assert 0.9 * 2e6 <= total_usd(fast) <= 2e6
    assert any("latencies of serving" in warning for warning in fast.warnings)
    assert free.serving is not None
    assert free.serving.largest_params is None


def test_daily_traffic_over_months_is_a_lifetime(context: AppContext) -> None:
    """A month has 730 hours; both at once, and half of it, are refused."""
    terms = {name: value for name, value in SERVED.items() if name not in ("tokens_per_day", "months")}
    tokens = round(1e10 * 12 * 730 / 24)
    assert (
        asked(context, **BUDGET, serving=SERVED).params == asked(context, **BUDGET, serving=terms, lifetime_inference_tokens=tokens).params
    )
    with pytest.raises(InvalidRequest, match=r"or serving\.tokens_per_day and months"):
        asked(context, **BUDGET, serving=SERVED, lifetime_inference_tokens=tokens)
    with pytest.raises(InvalidRequest, match="state both"):
        asked(context, **BUDGET, serving=terms | {"months": 3.0})


def test_variants_are_ranked_by_training_and_serving_together(context: AppContext) -> None:
    """Each total is the optimum's training, its preparation and its serving; fp8 serves for less than bf16."""
    answer = within(context, time_per_output_token_ms=20.0)
    assert answer.serving is not None
    assert answer.training is not None
    assert answer.training.usd is not None
    variants = answer.serving.variants
    assert [each.total_usd for each in variants] == sorted(each.total_usd for each in variants)
    for each in variants:
        assert each.total_usd == pytest.approx(answer.training.usd.p50 + each.preparation_usd + each.serving_usd)
    by_name = {each.variant: each for each in variants}
    plain = by_name["as trained"]
    assert plain.serving_usd == pytest.approx(answer.serving.usd_per_million_tokens * answer.lifetime.inference_tokens / 1e6)
    assert plain.preparation_usd == 0
    assert by_name["quantise weights, activations and cache to fp8"].serving_usd < plain.serving_usd
    assert by_name["prune and distil into a smaller model"].preparation_usd > 1000
    shown = next(table for table in tables(to_builtins(answer)) if table.name == "variants")
    assert [row[0] for row in shown.rows] == [each.variant for each in variants]


def test_a_latency_that_leaves_no_model_or_no_machine_is_refused(context: AppContext) -> None:
    """FLOPs know no machine; a tenth of a millisecond keeps none."""
    with pytest.raises(InvalidRequest, match="latency limits depend on a machine"):
        asked(context, **BUDGET | {"budget": {"flops": 1e23}}, serving=SERVED | {"latency": {"time_per_output_token_ms": 20.0}})
    with pytest.raises(DoesNotFit, match="no model of any size meets these latencies") as refused:
        within(context, time_per_output_token_ms=0.01)
    assert refused.value.pointer == "/serving/latency"
