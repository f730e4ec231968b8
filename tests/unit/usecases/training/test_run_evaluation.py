"""A run's own evaluation: what a program's costs and takes, in the estimate, its dates and every door that takes the run."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from marshmallow import ValidationError

from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.errors import InvalidRequest
from service.domain.programs.evaluation import EvaluationPlan
from service.domain.scenarios import RunModel
from service.engine.scenarios.program import draw_inputs, random_spec
from service.engine.scenarios.run import simulate_single_run
from service.schemas.programs.request import ProgramRequestSchema
from service.schemas.training.request import EstimateRequestSchema
from service.usecases.programs.plan import ProgramAnswer, plan_program
from service.usecases.scenarios.trial_models import build_trial_model
from service.usecases.training.estimate import EstimateAnswer, estimate

RUN: dict[str, Any] = {
    "model": {"params": "7B"},
    "data": {"tokens": "400B"},
    "hardware": {"accelerator": "H100", "count": 64},
    "price": {"usd_per_accelerator_hour": 2.5},
}
DATES = {"schedule": {"start": "2027-01-04", "deadline": "2027-01-14"}}
SCORED = {"name": "mmlu", "samples": 14_042, "every_tokens": "10B"}
CHAT = {"name": "chat", "samples": 800, "generated": True, "blocking": False}


@pytest.fixture
def context(settings: Settings) -> AppContext:
    """A context with the shipped prices."""
    found = build_context(settings)
    found.store.migrate()
    return found


def estimated(context: AppContext, *suites: dict[str, Any], checks: tuple[dict[str, Any], ...] = (), **sections: Any) -> EstimateAnswer:
    evaluation = {"evaluation": {"suites": [*suites], "checks": [*checks]}} if suites or checks else {}
    return estimate(context, EstimateRequestSchema().load(RUN | evaluation | sections))


def planned(context: AppContext, run: dict[str, Any], **sections: Any) -> ProgramAnswer:
    tiers = [{"tier": "production", "runs": [{"name": "main", "estimate": RUN | run}]}]
    return plan_program(context, ProgramRequestSchema().load({"name": "p", "start": "2027-01-04", "tiers": tiers} | sections))


def usd(answer: EstimateAnswer) -> float:
    assert answer.estimate.cost.total_usd is not None
    return answer.estimate.cost.total_usd.p50


def plan_of(answer: EstimateAnswer) -> EvaluationPlan:
    assert answer.evaluation is not None
    return answer.evaluation


def chance(answer: EstimateAnswer) -> float:
    assert answer.estimate.time.deadline_probability is not None
    return answer.estimate.time.deadline_probability


# Cost


def test_a_run_without_evaluation_stays_as_it_is(context: AppContext) -> None:
    """No block, no line, no assumption; the same for empty lists."""
    plain, empty = estimated(context), estimate(context, EstimateRequestSchema().load(RUN | {"evaluation": {"suites": []}}))
    assert plain.evaluation is None
    assert empty == plain
    assert not any(entry.field.startswith("evaluation") for entry in plain.assumptions)


def test_a_suite_takes_what_it_takes_in_a_program(context: AppContext) -> None:
    """The same accelerator-hours, FLOPs and dollars as in a program of this run alone."""
    evaluation = {"suites": [SCORED, CHAT], "checks": [{"name": "fresh questions", "kind": "holdout", "hours": 40}]}
    own, whole = plan_of(estimated(context, SCORED, CHAT, checks=tuple(evaluation["checks"]))), planned(context, {}, evaluation=evaluation)
    assert whole.evaluation is not None
    assert own.usd == whole.evaluation.usd
    for mine, theirs in zip(own.suites, whole.evaluation.suites, strict=True):
        assert (mine.accelerator_hours, mine.hours, mine.flops, mine.usd) == (
            theirs.accelerator_hours,
            theirs.hours,
            theirs.flops,
            theirs.usd,
        )
        assert mine.tier is None


def test_a_run_that_ends_before_its_first_evaluation_pays_for_none(context: AppContext) -> None:
    """5B tokens, evaluated each 10B."""
    short = {"data": {"tokens": "5B"}}
    assert usd(estimated(context, SCORED, **short)) == pytest.approx(usd(estimated(context, **short)), rel=0.01)


def test_lines_add_up_to_the_total(context: AppContext) -> None:
    """Suites, checks, sign-offs and weights are lines of their own, and the total is their sum to the cent."""
    plain = estimated(context)
    whole = estimated(
        context, SCORED | {"sign_off": {"name": "Ada", "days": 2}}, checks=({"name": "n-grams", "kind": "contamination", "usd": 1200.5},)
    )
    lines = {line.line: line.usd for line in whole.estimate.cost.lines}
    own = {name: amount for name, amount in lines.items() if name.startswith(("evaluation: ", "storage: evaluated"))}
    assert set(own) == {"evaluation: mmlu", "evaluation: n-grams", "evaluation: sign-off by Ada", "storage: evaluated checkpoints"}
    assert sum(own.values()) == plan_of(whole).usd
    assert float(sum(lines.values())) == pytest.approx(usd(whole), abs=0.001)
    assert usd(whole) - usd(plain) == pytest.approx(float(sum(own.values())), abs=0.001)
    per_million = whole.estimate.cost.usd_per_million_tokens
    assert per_million == pytest.approx(usd(whole) / 400e9 * 1e6)


def test_a_run_without_a_price_pays_its_people_alone(context: AppContext) -> None:
    """What a suite costs is not known; the check is."""
    answer = estimated(
        context,
        SCORED,
        checks=({"name": "fresh", "kind": "holdout", "usd": 100},),
        hardware={"accelerator": "H800", "count": 64},
        price={},
    )
    assert answer.estimate.cost.total_usd is None
    assert plan_of(answer).usd is None
    lines = {line.line for line in answer.estimate.cost.lines}
    assert "evaluation: fresh" in lines
    assert "evaluation: mmlu" not in lines


def test_a_term_that_is_paid_anyway_is_used(context: AppContext) -> None:
    """The machine waits within the reserved month: the unused rest is what the suite takes less."""
    reserved = {"price": {"pricing": "reserved_1y"}, "hardware": {"accelerator": "A100-80GB", "count": 64}}
    plain, whole = (estimated(context, *suites, **reserved) for suites in ((), (SCORED,)))
    before, after = ({line.line: line.usd for line in each.estimate.cost.lines} for each in (plain, whole))
    assert after["evaluation: mmlu"] > 0
    saved = before["unused commitment"] - after["unused commitment"]
    assert saved == pytest.approx(after["evaluation: mmlu"], abs=Decimal("0.05"))
    assert usd(whole) - usd(plain) == pytest.approx(float(after["storage: evaluated checkpoints"]), abs=0.05)


# Time


def test_a_blocking_suite_delays_the_finish(context: AppContext) -> None:
    """By the hours in which the machine waits; what runs beside moves no date, and the run's own hours stay."""
    slow = SCORED | {"samples": 4_000_000}
    plain, waited, beside = (estimated(context, *suites, **DATES) for suites in ((), (slow,), (slow | {"blocking": False},)))
    hours = plan_of(waited).suites[0].hours.p50
    assert hours > 24
    assert 24 * (waited.summary.p50_finish_days - plain.summary.p50_finish_days) == pytest.approx(hours)
    assert waited.estimate.time.wall_clock_hours == plain.estimate.time.wall_clock_hours
    assert beside.summary.p50_finish_days == plain.summary.p50_finish_days
    assert chance(waited) < chance(plain)
    assert chance(beside) == chance(plain)


def test_an_approval_delays_the_finish(context: AppContext) -> None:
    """By the days of the person who has most to do."""
    suites = (SCORED | {"sign_off": {"name": "Ada", "days": 2}}, CHAT | {"sign_off": {"name": "Grace", "days": 3}})
    plain, approved = (estimated(context, *suites, **DATES) for suites in ((SCORED, CHAT), suites))
    assert approved.summary.p50_finish_days - plain.summary.p50_finish_days == pytest.approx(3)


@given(fewer=st.integers(1, 10**6), more=st.integers(1, 10**6), deadline=st.integers(6, 20))
@hypothesis_settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_more_samples_never_cost_less_or_meet_a_deadline_sooner(context: AppContext, fewer: int, more: int, deadline: int) -> None:
    """Dollars and the chance of the deadline move one way with the samples."""
    schedule = {"schedule": {"start": "2027-01-04", "deadline": f"2027-01-{4 + deadline:02}"}}
    low, high = (estimated(context, SCORED | {"samples": samples}, **schedule) for samples in sorted((fewer, more)))
    assert usd(low) <= usd(high)
    assert chance(low) >= chance(high)
    assert chance(high) <= chance(estimated(context, **schedule))


# What it can see


def test_a_suite_with_too_few_samples_is_named(context: AppContext) -> None:
    """A stated difference and deviation: how likely the suite sees it, and the samples that it takes."""
    answer = estimated(context, CHAT | {"difference": 0.03, "deviation": 0.4})
    (seen,) = plan_of(answer).detection
    assert not seen.enough
    assert seen.samples_needed == 2791
    assert any("chat sees a difference of 0.03" in warning for warning in answer.warnings)


# Refusals


def test_what_contradicts_itself_is_refused(context: AppContext) -> None:
    """A share for evaluation beside suites; a tier, of which a run has none."""
    with pytest.raises(InvalidRequest, match="would count them again"):
        estimated(context, SCORED, overhead={"evaluation": 0.1})
    with pytest.raises(ValidationError, match="tier"):
        estimated(context, SCORED | {"tier": "production"})


# Trials


def test_trials_take_as_long_and_cost_as_much(context: AppContext) -> None:
    """The medians of trials move by what the evaluation takes."""
    slow = SCORED | {"samples": 2_000_000, "sign_off": {"name": "Ada", "days": 2}}
    whole = EstimateRequestSchema().load(RUN | {"evaluation": {"suites": [slow], "checks": []}})
    answer, built = estimate(context, whole), build_trial_model(context, "estimate", whole, (), {})
    assert built.planned["wall_clock_hours"] == pytest.approx(24 * answer.summary.p50_finish_days)
    assert isinstance(built.model, RunModel)
    rng = np.random.default_rng(3)
    inputs = draw_inputs(random_spec(built.model), 4000, rng)
    trials = simulate_single_run(built.model, {name: rows[0] for name, rows in inputs.own.items()}, {}, rng, causes=False)
    assert np.median(trials.hours) / 24 == pytest.approx(answer.summary.p50_finish_days, rel=0.03)
    assert np.median(trials.usd) == pytest.approx(usd(answer), rel=0.03)


# Programs


def test_a_program_has_its_runs_own_evaluation(context: AppContext) -> None:
    """In the run's cost and its time on the calendar, with every repeat; the program then has an evaluation to speak of."""
    slow = {"evaluation": {"suites": [SCORED | {"samples": 2_000_000}]}}
    plain, whole = (planned(context, run) for run in ({}, slow))
    own = plan_of(estimated(context, SCORED | {"samples": 2_000_000}))
    assert own.usd is not None
    assert whole.plan.tiers[0].cost_usd - plain.plan.tiers[0].cost_usd == own.usd
    assert (whole.schedule.finish.p50 - plain.schedule.finish.p50).days == pytest.approx(own.suites[0].hours.p50 / 24, abs=1)
    assert any(warning.startswith("no evaluation") for warning in plain.plan.warnings)
    assert not any(warning.startswith("no evaluation") for warning in whole.plan.warnings)


def test_a_program_s_own_suites_take_the_place_of_the_runs(context: AppContext) -> None:
    """As its other sections do, and an assumption says so; a share for evaluation beside the runs' suites is refused."""
    own = {"evaluation": {"suites": [SCORED]}}
    both, alone = (planned(context, run, evaluation={"suites": [CHAT]}) for run in (own, {}))
    assert both.plan.lines == alone.plan.lines
    assert any(entry.field == "estimate.evaluation" for entry in both.assumptions)
    with pytest.raises(InvalidRequest, match="would count them again"):
        planned(context, own, overhead={"evaluation": 0.1})
    at_checkpoints = {"name": "mmlu", "samples": 100, "at": "checkpoints"}
    with pytest.raises(InvalidRequest, match="which checkpoints are kept"):
        planned(context, {"evaluation": {"suites": [at_checkpoints]}}, storage={"dataset_tb": 1})


def test_people_of_a_run_s_evaluation_have_the_program_s_price(context: AppContext) -> None:
    """The hours of its check at what the program pays an hour."""
    run = {"evaluation": {"checks": [{"name": "fresh", "kind": "holdout", "hours": 10}]}}
    plain, whole = (planned(context, each, personnel={"usd_per_hour": 150, "analysis_hours": 1}) for each in ({}, run))
    assert whole.plan.tiers[0].cost_usd - plain.plan.tiers[0].cost_usd == 1500
