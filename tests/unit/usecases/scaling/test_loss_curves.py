"""A running run's end against its plan, and what the rest of it costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.errors import DomainError
from service.domain.scaling.loss_curves import LearningRateSchedule
from service.engine.scaling.loss_curve import make_schedule, schedule_areas
from service.presets.scaling.law_fit import curve_prior
from service.usecases.scaling.loss_curves import CurveAnswer, extrapolate_curve
from service.usecases.training.estimate import estimate
from tests.unit.usecases.requests import pointer_of

END = 10**11
COSINE = {"decay": "cosine", "warmup_tokens": 10**9, "final_share": 0.1}
PLAN = make_schedule("cosine", END, 1e9, final_share=0.1)
MACHINE: dict[str, Any] = {
    "model": {"params": 4 * 10**8},
    "hardware": {"accelerator": "H100", "count": 8},
    "price": {"usd_per_accelerator_hour": 2.5},
}


def law(plan: LearningRateSchedule, tokens: Any) -> Any:
    forward, annealed = schedule_areas(plan, tokens, curve_prior().relaxation_share * END)
    return 2.2 + 0.12 * (forward / END) ** -0.4 - 0.1 * annealed


TRUTH = float(law(PLAN, np.array([float(END)]))[0])


def points(done: float, count: int = 300) -> list[dict[str, float]]:
    tokens = np.linspace(1e8, done * END, count)
    loss = law(PLAN, tokens) * np.exp(np.random.default_rng(5).normal(0, 0.002, count))
    return [{"tokens": at, "loss": measured} for at, measured in zip(tokens.tolist(), loss.tolist(), strict=True)]


@pytest.fixture
def context(settings: Settings) -> AppContext:
    """The service's own context, on the shipped prices."""
    return build_context(settings)


def told(context: AppContext, done: float = 0.6, **asked: Any) -> CurveAnswer:
    return extrapolate_curve(context, {"points": points(done), "schedule": COSINE, "plan": {"tokens": END}} | asked)


def test_the_end_is_foretold_against_the_plan(context: AppContext) -> None:
    """The true end lies in the interval; a plan at it is met about as likely as not, and the distance is told."""
    found = told(context, plan={"tokens": END, "loss": TRUTH})
    assert found.final_loss.p10 < TRUTH < found.final_loss.p90
    assert found.against_plan is not None
    assert 0.05 < found.against_plan.probability < 0.95
    assert found.against_plan.above.p50 == pytest.approx(found.final_loss.p50 - TRUTH)
    assert (found.state, found.done) == ("falling", pytest.approx(0.6))


def test_every_end_stands_among_the_options_once(context: AppContext) -> None:
    """Stop, three shorter ends, the plan's, and longer ones, in order of tokens; the rest is not priced, and that is said."""
    found = told(context)
    actions = [option.action for option in found.options]
    assert actions == ["stop", "shrink", "shrink", "shrink", "continue", "extend", "extend", "extend"]
    assert [option.tokens for option in found.options] == sorted(option.tokens for option in found.options)
    assert all(option.usd is None and option.saves_usd is None for option in found.options)
    assert any("not priced" in warning for warning in found.warnings)


def test_alternatives_take_the_place_of_the_usual_ends(context: AppContext) -> None:
    """Beside now and the plan's end; the plan's own named again changes nothing."""
    found = told(context, alternatives=[int(0.8 * END), END])
    assert [option.tokens for option in found.options] == pytest.approx([0.6 * END, 0.8 * END, END])
    assert "alternatives" not in {each.field for each in found.assumptions}


def test_what_is_left_costs_what_its_estimate_says(context: AppContext) -> None:
    """Each end's dollars are those of an estimate of the tokens left; stopping costs nothing and saves all of the plan's rest."""
    found = told(context, **MACHINE)
    by_action = {option.action: option for option in found.options}
    rest = estimate(context, {**MACHINE, "data": {"tokens": int(0.4 * END)}}).estimate
    stop, plan, extend = by_action["stop"], by_action["continue"], by_action["extend"]
    assert plan.usd == rest.cost.total_usd
    assert plan.accelerator_hours == rest.time.accelerator_hours
    assert stop.usd is not None
    assert (stop.usd.p90, stop.saves_usd) == (0.0, rest.cost.total_usd.p50)
    assert extend.saves_usd is not None
    assert extend.saves_usd < 0
    assert {"training.parallelism", "schedule.relaxation_tokens"} <= {each.field for each in found.assumptions}


def test_a_finished_run_has_nothing_left(context: AppContext) -> None:
    """At the plan's end the rest costs nothing, and the loss is where it is."""
    found = told(context, done=1.0, **MACHINE)
    plan = next(option for option in found.options if option.tokens == END)
    assert (plan.action, plan.tokens_left) == ("stop", 0.0)
    assert plan.usd is not None
    assert plan.usd.p90 == 0.0
    assert found.final_loss.p50 == pytest.approx(TRUTH, rel=0.005)


@pytest.mark.parametrize(("factor", "actions"), [(0.8, {"stop"}), (0.994, {"extend"}), (1.02, {"continue", "shrink"}), (1.5, {"stop"})])
def test_advice_follows_the_target(context: AppContext, factor: float, actions: set[str]) -> None:
    """Out of reach: stop; a little under the plan's end: extend; a little above it: go on or shrink; met already: stop."""
    assert told(context, plan={"tokens": END, "loss": factor * TRUTH}).advice.action in actions


def test_without_a_target_the_tolerance_decides(context: AppContext) -> None:
    """A run may lose a tenth of its loss: it is cut short; by default a thousandth: it goes on, and that is an assumption."""
    assert told(context, tolerance=0.1).advice.action in {"stop", "shrink"}
    found = told(context)
    assert found.advice.action == "continue"
    assert "tolerance" in {each.field for each in found.assumptions}


def test_stated_rates_are_the_decay_they_follow(context: AppContext) -> None:
    """The cosine's own rates, in any unit, lead to the same end."""
    at = np.linspace(0, END, 201)
    rates = [{"tokens": int(tokens), "rate": 3e-4 * float(np.interp(tokens, PLAN.tokens, PLAN.rate))} for tokens in at]
    stated = told(context, schedule={"rates": rates})
    assert stated.final_loss.p50 == pytest.approx(told(context).final_loss.p50, rel=1e-3)


def test_losses_that_are_null_are_left_out_and_said(context: AppContext) -> None:
    """As NaN in a log; the run is where its last point is."""
    whole = points(0.6)
    whole[-1] = {"tokens": whole[-1]["tokens"], "loss": None}  # type: ignore[dict-item]
    found = told(context, points=whole)
    assert found.tokens == pytest.approx(0.6 * END)
    assert any("1 losses that are not positive numbers" in warning for warning in found.warnings)


def test_a_run_whose_loss_rises_is_told_to_stop(context: AppContext) -> None:
    """Its interval reaches up to where it is."""
    rising = [{**point, "loss": point["loss"] * (1.4 if point["tokens"] > 0.55 * END else 1.0)} for point in points(0.6)]
    found = told(context, points=rising)
    assert (found.state, found.advice.action) == ("diverging", "stop")
    assert found.final_loss.p90 >= found.loss_now


@pytest.mark.parametrize(
    ("asked", "pointer"),
    [
        ({"points": points(0.6)[:9]}, "/points"),
        ({"points": [{"tokens": 2.0 * END, "loss": 2.0}]}, "/points"),
        ({"schedule": {}}, "/schedule"),
        ({"schedule": {**COSINE, "rates": [{"tokens": 0, "rate": 1}, {"tokens": END, "rate": 1}]}}, "/schedule"),
        ({"schedule": {"decay": "cosine", "warmup_tokens": 2 * END}}, "/schedule"),
        ({"schedule": {"decay": "exponential", "warmup_tokens": 0}}, "/schedule/final_share"),
        ({"schedule": {"rates": [{"tokens": 0, "rate": 1}, {"tokens": 2 * END, "rate": 1}]}}, "/schedule/rates"),
        ({"schedule": {"rates": [{"tokens": 0, "rate": 0}, {"tokens": END, "rate": 0}]}}, "/schedule/rates"),
        ({"schedule": {"rates": [{"tokens": 0, "rate": 1}, {"tokens": END, "rate": 1}], "final_share": 0.1}}, "/schedule/final_share"),
        ({"alternatives": [END, int(0.3 * END)]}, "/alternatives/1"),
        ({"model": MACHINE["model"]}, "/hardware"),
        ({"price": MACHINE["price"]}, "/model"),
        (MACHINE | {"hardware": {"accelerator": "H1000", "count": 8}}, "/hardware/accelerator"),
    ],
)
def test_what_cannot_be_answered_is_refused_where_it_stands(context: AppContext, asked: dict[str, Any], pointer: str) -> None:
    """With a pointer to it."""
    assert pointer_of(lambda: told(context, **asked), DomainError) == pointer
