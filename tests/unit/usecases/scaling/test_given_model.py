"""A budget with a stated model: its tokens agree with an estimate, rise with the budget, and stand against the law's optimum."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.context import AppContext
from service.domain.errors import DoesNotFit, InvalidRequest, UnpricedAccelerator
from service.domain.scaling.laws import ParametricLaw
from service.engine.scaling.laws import loss
from service.formats.documents.results.optimum import tables
from service.presets.scaling.laws import default_law
from service.serialization import to_builtins
from service.usecases.scaling.optimum import optimal
from service.usecases.scaling.optimum_answer import OptimalAnswer
from service.usecases.training.estimate import EstimateAnswer, estimate

DENSE, MIXTURE = {"preset": "llama-3-8b"}, {"preset": "mixtral-8x7b"}
PRICE: dict[str, Any] = {"price": {"usd_per_accelerator_hour": 2.0}}
PEOPLE: dict[str, Any] = {"personnel": {"oncall_hours": 1000.0, "usd_per_hour": 100.0}}


def machine(count: int = 256, accelerator: str = "H100") -> dict[str, Any]:
    return {"hardware": {"accelerator": accelerator, "count": count}}


def asked(context: AppContext, **request: Any) -> OptimalAnswer:
    return optimal(context, request)


def estimated(context: AppContext, tokens: float, **request: Any) -> EstimateAnswer:
    return estimate(context, {**request, "data": {"tokens": int(tokens)}})


def spent(found: EstimateAnswer, budget: dict[str, Any], quantile: str = "p50") -> float:
    """What an estimate takes of a budget, over the budget."""
    time, usd = found.estimate.time, found.estimate.cost.total_usd
    assert usd is not None
    takes = {"usd": usd, "accelerator_hours": time.accelerator_hours, "days": time.wall_clock_hours}
    ((kind, amount),) = budget.items()
    return float(getattr(takes[kind], quantile)) / (24 * amount if kind == "days" else amount)


@pytest.mark.parametrize("sections", [PRICE, {}, PRICE | PEOPLE], ids=["a price", "an offer", "people"])
@pytest.mark.parametrize("budget", [{"usd": 1e6}, {"accelerator_hours": 5e4}, {"days": 30.0}], ids=lambda each: next(iter(each)))
@pytest.mark.parametrize("model", [DENSE, {"params": 7_000_000_000}, MIXTURE, {"params": 30_000_000_000, "active_params": 3_000_000_000}])
def test_the_tokens_are_those_whose_estimate_costs_the_budget(
    context: AppContext, model: dict[str, Any], budget: dict[str, float], sections: dict[str, Any]
) -> None:
    """To a thousandth from below at the p50, and to a hundredth at the other end of each range."""
    run = {"model": model, **machine(), **sections}
    answer = asked(context, budget=budget, **run)
    assert 0.999 < spent(estimated(context, answer.tokens.p50, **run), budget) <= 1.0 + 1e-9
    assert spent(estimated(context, answer.tokens.p10, **run), budget, "p90") == pytest.approx(1.0, rel=0.01)
    assert spent(estimated(context, answer.tokens.p90, **run), budget, "p10") == pytest.approx(1.0, rel=0.01)
    assert answer.tokens.p10 < answer.tokens.p50 < answer.tokens.p90
    assert answer.training is not None
    assert answer.estimate is not None
    assert answer.training.usd == answer.estimate.estimate.cost.total_usd


@pytest.mark.parametrize(("model", "active"), [(DENSE, 8.03e9), (MIXTURE, 12.9e9)])
def test_flops_are_six_for_each_active_parameter_and_token(context: AppContext, model: dict[str, Any], active: float) -> None:
    """Without a machine there are no dollars; with one they are those of the estimate."""
    answer = asked(context, budget={"flops": 1e23}, model=model)
    assert answer.flops == pytest.approx(1e23)
    assert answer.params.p50 == pytest.approx(active, rel=0.01)
    assert answer.tokens.p10 == answer.tokens.p50 == answer.tokens.p90
    assert (answer.training, answer.estimate) == (None, None)
    priced = asked(context, budget={"flops": 1e23}, model=model, **machine(), **PRICE)
    assert priced.tokens == answer.tokens
    assert priced.training is not None
    assert priced.training.usd == estimated(context, answer.tokens.p50, model=model, **machine(), **PRICE).estimate.cost.total_usd


def test_a_deadline_is_the_time_until_the_end_of_its_day(context: AppContext) -> None:
    """30 days from the start are as 30 days, and about half of the runs are in time."""
    run = {"model": DENSE, **machine(), **PRICE}
    until = asked(context, budget={"deadline": date(2027, 2, 2)}, schedule={"start": date(2027, 1, 4)}, **run)
    days = asked(context, budget={"days": 30.0}, **run)
    assert until.tokens == days.tokens
    assert until.estimate is not None
    assert until.estimate.estimate.time.deadline_probability == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("model", [DENSE, MIXTURE])
@settings(max_examples=settings().max_examples // 4)
@given(share=st.floats(0, 1), more=st.floats(1.001, 3))
def test_more_money_never_affords_fewer_tokens(context: AppContext, model: dict[str, Any], share: float, more: float) -> None:
    """And the loss falls."""
    usd = 1e4 * 1000**share
    less, richer = (asked(context, budget={"usd": amount}, model=model, **machine(), **PRICE) for amount in (usd, usd * more))
    assert richer.tokens.p10 > less.tokens.p10
    assert richer.tokens.p50 > less.tokens.p50
    assert richer.tokens.p90 > less.tokens.p90
    assert less.loss is not None
    assert richer.loss is not None
    assert richer.loss < less.loss


@settings(max_examples=settings().max_examples // 4)
@given(
    billions=st.floats(0.5, 40), larger=st.floats(1.3, 4), kind=st.sampled_from([{"usd": 5e5}, {"days": 20.0}, {"accelerator_hours": 1e5}])
)
def test_a_larger_model_never_gets_more_tokens(context: AppContext, billions: float, larger: float, kind: dict[str, float]) -> None:
    """By three tenths at least: layers and heads of nearly one size divide differently well."""
    small, large = (
        asked(context, budget=kind, model={"params": int(size * 1e9)}, **machine(), **PRICE) for size in (billions, billions * larger)
    )
    assert large.tokens.p50 < small.tokens.p50


def test_the_optimum_beside_is_that_of_the_request_without_a_model(context: AppContext) -> None:
    """Size, tokens, loss and curves; the model's loss is the law's, and above it."""
    request = {"budget": {"usd": 1e6}, **machine(), **PRICE}
    answer, best = asked(context, model=DENSE, **request), asked(context, **request)
    given_model = answer.given_model
    assert given_model is not None
    assert best.given_model is None
    assert given_model.optimum is not None
    assert (given_model.optimum.params, given_model.optimum.tokens, given_model.optimum.loss) == (
        best.params.p50,
        best.tokens.p50,
        best.loss,
    )
    assert (answer.curve, answer.iso_loss_curve, answer.smaller) == (best.curve, best.iso_loss_curve, best.smaller)
    law = default_law().law
    assert isinstance(law, ParametricLaw)
    assert answer.loss == pytest.approx(float(loss(law, answer.params.p50, answer.tokens.p50)))
    assert given_model.loss_excess == pytest.approx(answer.loss - best.loss)
    assert answer.loss_range is not None
    assert answer.loss_range.p10 < answer.loss < answer.loss_range.p90


def test_the_budget_of_its_best_tokens_makes_a_size_the_optimum(context: AppContext) -> None:
    """Trained on its compute-optimal tokens a size is the best for those FLOPs; five times the FLOPs are five times too many tokens."""
    size = 8_000_000_000
    first = asked(context, budget={"flops": 1e23}, model={"params": size}).given_model
    assert first is not None
    assert first.optimal_tokens is not None
    flops = 6 * size * first.optimal_tokens
    at_best = asked(context, budget={"flops": flops}, model={"params": size}).given_model
    assert at_best is not None
    assert at_best.optimum is not None
    assert at_best.tokens_over_optimal == pytest.approx(1.0)
    assert at_best.optimum.params == pytest.approx(size)
    assert at_best.loss_excess == pytest.approx(0.0, abs=1e-9)
    assert "about the compute-optimal" in at_best.text
    longer = asked(context, budget={"flops": 5 * flops}, model={"params": size})
    assert longer.given_model is not None
    assert longer.given_model.tokens_over_optimal == pytest.approx(5.0)
    assert "about 5 times the compute-optimal" in longer.given_model.text
    assert longer.given_model.text in longer.summary.text


def test_losses_that_are_the_same_when_rounded_are_told_as_about_the_same(context: AppContext) -> None:
    """8B on two hundredths more than its best tokens: an optimum of nearly this size."""
    answer = asked(context, budget={"flops": 8.03e21}, model={"params": 8_000_000_000})
    assert answer.given_model is not None
    assert answer.given_model.text.endswith(", with about the same loss")


def test_repeated_data_are_worth_less(context: AppContext) -> None:
    """As many tokens, in epochs, with a higher loss and a warning; the estimate agrees."""
    request = {"budget": {"usd": 3e5}, "model": DENSE, **machine(), **PRICE}
    free, limited = asked(context, **request), asked(context, max_unique_tokens=10**11, **request)
    assert limited.tokens.p50 == pytest.approx(free.tokens.p50, rel=1e-3)
    assert free.loss is not None
    assert limited.loss is not None
    assert limited.loss > free.loss
    assert limited.suggestion is not None
    assert limited.suggestion.data["tokens"] == 10**11
    assert limited.suggestion.data["epochs"] == pytest.approx(limited.tokens.p50 / 1e11)
    assert any("repeated" in warning for warning in limited.warnings)


def test_evaluation_is_paid_of_the_budget(context: AppContext) -> None:
    """Suites at every so many tokens: fewer tokens, and the estimate with the suites costs the budget."""
    run = {"model": DENSE, **machine(), **PRICE}
    suites = {"evaluation": {"suites": [{"name": "all", "samples": 10**6, "every_tokens": 10**10}]}}
    plain, evaluated = asked(context, budget={"usd": 1e6}, **run), asked(context, budget={"usd": 1e6}, **run, **suites)
    assert evaluated.tokens.p50 < 0.99 * plain.tokens.p50
    assert spent(estimated(context, evaluated.tokens.p50, **run, **suites), {"usd": 1e6}) == pytest.approx(1.0, rel=0.02)
    best = asked(context, budget={"usd": 1e6}, **machine(), **PRICE, **suites)
    for answer in (evaluated, best):
        assert any("evaluation" in warning for warning in answer.warnings)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"model": DENSE, "training": {"method": "lora"}}, "lora"),
        ({"model": {"preset": "bert-large"}}, "decoders"),
    ],
)
def test_no_loss_is_told_of_what_the_laws_are_not_of(context: AppContext, request_: dict[str, Any], words: str) -> None:
    """Tokens are, with what they cost."""
    answer = asked(context, budget={"usd": 1e4}, **machine(8), **PRICE, **request_)
    assert answer.tokens.p50 > 0
    assert (answer.loss, answer.loss_range, answer.curve, answer.other_laws) == (None, None, (), ())
    assert answer.given_model is not None
    assert (answer.given_model.optimum, answer.given_model.optimal_tokens) == (None, None)
    assert any(words in warning for warning in answer.warnings)


def test_a_law_of_optima_knows_the_best_tokens_but_no_loss(context: AppContext) -> None:
    """Llama 3's."""
    answer = asked(context, budget={"flops": 1e23}, model=DENSE, law="llama-3")
    assert answer.loss is None
    assert answer.given_model is not None
    assert answer.given_model.loss_excess is None
    assert answer.given_model.tokens_over_optimal == pytest.approx(answer.tokens.p50 / answer.given_model.optimal_tokens)


def test_laws_and_models_of_other_kinds_are_told_apart(context: AppContext) -> None:
    """A dense law for a mixture and a mixture of other proportions are warned of; a dense model by the law of mixtures is refused."""
    by_dense = asked(context, budget={"flops": 1e23}, model=MIXTURE)
    assert any("active parameters of the mixture" in warning for warning in by_dense.warnings)
    by_mixtures = asked(context, budget={"flops": 1e23}, model=MIXTURE, law="krajewski-moe")
    assert any("43 times" in warning for warning in by_mixtures.warnings)
    with pytest.raises(InvalidRequest, match="mixtures of experts") as refused:
        asked(context, budget={"flops": 1e23}, model=DENSE, law="krajewski-moe")
    assert refused.value.pointer == "/law"


@pytest.mark.parametrize(
    ("request_", "pointer"),
    [
        ({"model": DENSE, "lifetime_inference_tokens": 10**12}, "/lifetime_inference_tokens"),
        ({"model": {"preset": "resnet-50"}}, "/model"),
        ({"model": {}}, "/model"),
    ],
)
def test_what_cannot_be_answered_says_where(context: AppContext, request_: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        asked(context, budget={"usd": 1e6}, **machine(), **PRICE, **request_)
    assert refused.value.pointer == pointer


def test_a_machine_that_does_not_hold_the_model_says_what_would(context: AppContext) -> None:
    """Of a budget in FLOPs the tokens stand all the same."""
    large = {"model": {"preset": "llama-3.1-405b"}, **machine(64), **PRICE}
    with pytest.raises(DoesNotFit, match="What would fit"):
        asked(context, budget={"usd": 1e6}, **large)
    answer = asked(context, budget={"flops": 1e24}, **large)
    assert answer.estimate is None
    assert any("cannot be trained on this hardware" in warning for warning in answer.warnings)


def test_an_accelerator_without_a_price_has_tokens_for_hours_and_days(context: AppContext) -> None:
    """And no dollars; a budget in dollars is refused."""
    run = {"model": DENSE, **machine(64, "H800")}
    answer = asked(context, budget={"days": 30.0}, **run)
    assert answer.training is not None
    assert answer.training.usd is None
    assert answer.training.wall_clock_hours.p50 == pytest.approx(720.0)
    with pytest.raises(UnpricedAccelerator):
        asked(context, budget={"usd": 1e6}, **run)


def test_costs_besides_training_may_take_the_budget(context: AppContext) -> None:
    """The problem names them; a budget of three times the people's cost is answered, with and without a model."""
    with pytest.raises(InvalidRequest, match=r"besides training take \$1[0-9.]+") as refused:
        asked(context, budget={"usd": 10.0}, model=DENSE, **machine(8), **PRICE)
    assert refused.value.pointer == "/budget"
    people = {"personnel": {"oncall_hours": 10_000.0, "usd_per_hour": 100.0}}
    for request in ({}, {"model": DENSE}):
        answer = asked(context, budget={"usd": 3e6}, **machine(512), **PRICE, **people, **request)
        assert answer.training is not None
        assert answer.training.usd is not None
        assert 0.9 * 3e6 < answer.training.usd.p50 <= 3e6


def test_the_tightest_of_several_limits_counts(context: AppContext) -> None:
    """Dollars leave more tokens than days here."""
    run = {"model": DENSE, **machine(64), **PRICE}
    both, days = asked(context, budget={"usd": 1e6, "days": 20.0}, **run), asked(context, budget={"days": 20.0}, **run)
    assert both.tokens == days.tokens
    assert both.assumptions[0].value == "days"


def test_tables_have_the_model_against_the_optimum(context: AppContext) -> None:
    """In exports of a kept result, with the figures of the answer."""
    answer = asked(context, budget={"usd": 1e6}, model=DENSE, **machine(), **PRICE)
    rows = {row[0]: row[2] for row in tables(to_builtins(answer))[0].rows}
    assert answer.given_model is not None
    assert answer.given_model.optimum is not None
    assert rows["tokens"] == answer.tokens.p50
    assert rows["compute-optimal tokens of this size"] == answer.given_model.optimal_tokens
    assert rows["compute-optimal parameters for the budget"] == answer.given_model.optimum.params
