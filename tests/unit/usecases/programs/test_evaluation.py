"""Evaluation as a plan: suites cost what serving costs on the runs' machine, take its time where they block, and say what they can see."""

from __future__ import annotations

import copy
import re
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.errors import DomainError, InvalidRequest
from service.domain.programs.evaluation import EvaluationPlan
from service.engine.scenarios.program import draw_inputs, random_spec, simulate_program
from service.schemas.programs.request import ProgramRequestSchema
from service.usecases.programs.plan import ProgramAnswer, plan_program
from service.usecases.scenarios.trial_models import build_trial_model

RUN = {"model": {"params": "7B"}, "data": {"tokens": "400B"}}
PROGRAM: dict[str, Any] = {
    "name": "assistant",
    "start": "2027-01-04",
    "outcome": {"metric": "helpdesk-eval", "baseline": 0.61, "target": 0.70},
    "defaults": {"hardware": {"accelerator": "H100", "count": 128}, "price": {"usd_per_accelerator_hour": 2.5}},
    "tiers": [
        {"tier": "validation", "runs": [{"name": "small", "estimate": RUN}], "gate": {"decides": "to go on"}},
        {"tier": "production", "runs": [{"name": "main", "estimate": {**RUN, "data": {"tokens": "2T"}}}], "gate": {"decides": "release"}},
    ],
}
SUITE = {"name": "helpdesk-eval", "samples": 2000, "generated": True}
LONG = {"name": "books", "samples": 500, "prompt_tokens": 100_000, "generated": True}


@pytest.fixture
def context(settings: Settings) -> AppContext:
    """A context with the shipped prices."""
    found = build_context(settings)
    found.store.migrate()
    return found


def asked(*suites: dict[str, Any], **sections: Any) -> dict[str, Any]:
    evaluation = {"suites": [*suites]} | sections.pop("evaluation", {})
    found: dict[str, Any] = ProgramRequestSchema().load(copy.deepcopy(PROGRAM) | {"evaluation": evaluation} | sections)
    return found


def planned(context: AppContext, *suites: dict[str, Any], **sections: Any) -> ProgramAnswer:
    return plan_program(context, asked(*suites, **sections))


def evaluated(context: AppContext, *suites: dict[str, Any], **sections: Any) -> EvaluationPlan:
    found = planned(context, *suites, **sections).evaluation
    assert found is not None
    return found


def with_runs(**run: Any) -> list[dict[str, Any]]:
    return [{"tier": "production", "runs": [{"name": "main", "estimate": RUN} | run], "gate": {"decides": "release"}}]


def usd(plan: EvaluationPlan) -> Decimal:
    assert plan.usd is not None
    return plan.usd


def dates(answer: ProgramAnswer) -> dict[str, tuple[date, date]]:
    return {entry.what: (entry.start, entry.finish) for entry in answer.schedule.calendar}


# Cost


def test_a_program_without_evaluation_stays_as_it_is(context: AppContext) -> None:
    """No plan, no line, no assumption; the same for empty lists."""
    plain = plan_program(context, ProgramRequestSchema().load(copy.deepcopy(PROGRAM)))
    assert plain.evaluation is None
    assert not any("evaluation" in entry.field for entry in plain.assumptions if entry.field.startswith("evaluation"))
    assert planned(context).plan.lines == plain.plan.lines


def test_lines_are_the_plan_to_the_cent(context: AppContext) -> None:
    """Suites in each tier, checks, sign-offs and stored weights; the budget's lines add up as before."""
    checks = [
        {"name": "fresh questions", "kind": "holdout", "hours": 40, "tier": "validation"},
        {"name": "n-grams of the test sets", "kind": "contamination", "usd": 1200.5},
    ]
    suites = [SUITE | {"every_tokens": "20B", "sign_off": {"name": "Ada", "days": 2}}, {"name": "mmlu", "samples": 14_042}]
    answer = planned(context, *suites, evaluation={"checks": checks})
    plan = answer.evaluation
    assert plan is not None
    own = [line for line in answer.plan.lines if line.line.startswith(("evaluation:", "storage: evaluated"))]
    assert sum(line.usd for line in own) == usd(plan)
    assert float(sum(line.usd for line in answer.plan.lines)) == pytest.approx(answer.plan.total_usd.p50, abs=0.001)
    assert {check.name: check.usd for check in plan.checks} == {
        "fresh questions": Decimal("3600.00"),
        "n-grams of the test sets": Decimal("1200.50"),
    }
    assert [(each.tier, each.name, each.usd) for each in plan.sign_offs] == [
        ("validation", "Ada", Decimal("1440.00")),
        ("production", "Ada", Decimal("1440.00")),
    ]


def test_a_suite_costs_its_accelerator_hours_at_the_run_s_price(context: AppContext) -> None:
    """All of the machine while it waits; a node of it beside."""
    waiting, beside = (evaluated(context, SUITE | {"tier": "production", "blocking": blocking}).suites[0] for blocking in (True, False))
    for cost in (waiting, beside):
        assert cost.usd is not None
        assert float(cost.usd) == pytest.approx(2.5 * cost.accelerator_hours.p50, abs=0.005)
    assert waiting.hours.p50 == pytest.approx(waiting.accelerator_hours.p50 / 128)
    assert beside.hours.p90 == 0
    assert beside.accelerator_hours.p50 < waiting.accelerator_hours.p50


def test_flops_are_twice_the_parameters_a_token(context: AppContext) -> None:
    """And the attention on top: 7 billion parameters, a thousand tokens and 256 more."""
    cost = evaluated(context, SUITE | {"tier": "production"}).suites[0]
    assert cost.tokens == 2000 * 1256
    assert 2 * 7e9 * 0.9 < cost.flops / cost.tokens < 2 * 7e9 * 1.1


def test_generating_costs_more_than_scoring_and_long_contexts_more_than_short(context: AppContext) -> None:
    """Of as many tokens."""
    base = {"name": "suite", "samples": 20_000, "prompt_tokens": 500, "output_tokens": 500, "blocking": False}
    scored, generated = (evaluated(context, base | {"generated": generated}).suites[0] for generated in (False, True))
    assert generated.accelerator_hours.p50 > 1.5 * scored.accelerator_hours.p50
    short, long = (
        evaluated(context, {"name": "suite", "tokens": "100M", "prompt_tokens": length, "blocking": False}).suites[0]
        for length in (1000, 100_000)
    )
    assert long.tokens == short.tokens
    assert long.accelerator_hours.p50 > 1.2 * short.accelerator_hours.p50


def test_cadences(context: AppContext) -> None:
    """By tokens, at the checkpoints that are kept, or once for each run that reaches its end."""
    suite = SUITE | {"tier": "production"}
    assert evaluated(context, suite | {"every_tokens": "300B"}).suites[0].evaluations == 6
    assert evaluated(context, suite | {"at": "checkpoints"}).suites[0].evaluations == 5
    assert evaluated(context, suite | {"at": "checkpoints"}, storage={"checkpoints_kept": 12}).suites[0].evaluations == 12
    assert evaluated(context, suite).suites[0].evaluations == 1
    stopped = with_runs(repeat=16, early_stopping={"factor": 2, "least_share": 0.25})
    assert evaluated(context, suite, tiers=stopped).suites[0].evaluations == 4


def test_only_weights_beyond_the_stored_checkpoints_are_stored(context: AppContext) -> None:
    """A hundred evaluations of 7 billion parameters in 16 bit, less the 5 checkpoints that are kept anyway; for two suites once."""
    frequent = SUITE | {"tier": "production", "every_tokens": "20B"}
    plan = evaluated(context, frequent, frequent | {"name": "other"})
    assert plan.checkpoint_tb == pytest.approx(95 * 7e9 * 2 / 1e12, rel=0.02)
    assert float(plan.checkpoints_usd) == pytest.approx(plan.checkpoint_tb * 20, abs=0.01)
    assert evaluated(context, SUITE).checkpoint_tb == 0


@hypothesis_settings(max_examples=hypothesis_settings().max_examples // 2)
@given(samples=st.integers(1, 1_000_000), more=st.integers(0, 1_000_000), generated=st.booleans(), blocking=st.booleans())
def test_cost_and_time_never_fall_with_samples(context: AppContext, samples: int, more: int, generated: bool, blocking: bool) -> None:
    """Whatever the machine is filled with."""
    base = {"name": "suite", "generated": generated, "blocking": blocking, "tier": "production"}
    less, larger = (evaluated(context, base | {"samples": count}).suites[0] for count in (samples, samples + more))
    assert larger.accelerator_hours.p50 >= less.accelerator_hours.p50 * (1 - 1e-9)
    assert larger.hours.p90 >= less.hours.p90 * (1 - 1e-9)


def test_suites_add_up(context: AppContext) -> None:
    """Together they cost and take what each does alone."""
    alone = [evaluated(context, suite) for suite in (SUITE, LONG)]
    both = evaluated(context, SUITE, LONG)
    assert usd(both) == sum(usd(plan) for plan in alone)
    assert sum(cost.hours.p50 for cost in both.suites) == pytest.approx(sum(cost.hours.p50 for plan in alone for cost in plan.suites))


def test_evaluation_of_a_7b_every_few_billion_tokens_is_what_clusters_spend(context: AppContext) -> None:
    """Acme: 0.8 % of GPU time in evaluation (arXiv 2403.07648). Some 60 tasks of the harness, 250,000 scored samples and 5,000 answers,
    every 50 billion tokens of a 7B on 2 trillion, on a node beside: between a tenth and ten times that.
    """
    suites = [
        {"name": "harness", "samples": 250_000, "every_tokens": "50B", "blocking": False, "tier": "production"},
        {"name": "answers", "samples": 5_000, "generated": True, "every_tokens": "50B", "blocking": False, "tier": "production"},
    ]
    answer = planned(context, *suites)
    assert answer.evaluation is not None
    share = answer.evaluation.accelerator_hours / answer.plan.tiers[-1].use.accelerator_hours.p50
    assert 0.0008 < share < 0.08


def test_a_70b_costs_about_ten_times_a_7b(context: AppContext) -> None:
    """A suite that fills the machine, scored: in proportion to the parameters."""
    suite = {"name": "harness", "samples": 250_000, "blocking": False}
    small, large = (
        evaluated(context, suite, tiers=with_runs(estimate={**RUN, "model": {"params": size}})).accelerator_hours for size in ("7B", "70B")
    )
    assert 6 < large / small < 14


# Time


def test_what_blocks_ends_the_program_later_by_its_time(context: AppContext) -> None:
    """Days of evaluation: on the calendar between the runs and the gate, before the work that follows it."""
    suite = SUITE | {"samples": 10_000_000, "every_tokens": "100B"}
    blocked, beside = planned(context, suite), planned(context, suite | {"blocking": False})
    assert blocked.evaluation is not None
    hours = sum(cost.hours.p50 for cost in blocked.evaluation.suites)
    assert hours > 48
    assert (blocked.schedule.finish.p50 - beside.schedule.finish.p50).days == pytest.approx(hours / 24, abs=1.5)
    found = dates(blocked)
    assert found["production: main"][1] <= found["production: evaluation helpdesk-eval"][0]
    assert found["gate: production"][0] >= found["production: evaluation helpdesk-eval"][1]
    assert "production: evaluation helpdesk-eval" not in dates(beside)


def test_sign_offs_take_working_days_and_people_work_side_by_side(context: AppContext) -> None:
    """The one with the most to do decides; before the gate."""
    first, second = SUITE | {"sign_off": {"name": "Ada", "days": 10}}, LONG | {"sign_off": {"name": "Grace", "days": 4}}
    plain = planned(context, SUITE, LONG)
    signed = planned(context, first, second)
    more = planned(context, first, second | {"sign_off": {"name": "Ada", "days": 4}})
    days = [(answer.schedule.finish.p50 - plain.schedule.finish.p50).days for answer in (signed, more)]
    assert days[0] == pytest.approx(2 * 14, abs=4)
    assert days[1] > days[0] + 5
    assert dates(signed)["gate: production"][0] >= dates(signed)["production: evaluation sign-off"][1]


def test_trials_take_the_same_time_and_cost(context: AppContext) -> None:
    """The median of 4,000 trials is near the plan's, and as much later for the evaluation."""
    suite = SUITE | {"samples": 10_000_000, "every_tokens": "100B"}

    def medians(*suites: dict[str, Any]) -> tuple[float, float]:
        model = build_trial_model(context, "program", asked(*suites), (), {}).model
        rng = np.random.default_rng(5)
        trials = simulate_program(model, draw_inputs(random_spec(model), 4000, rng), {}, rng, causes=False)  # type: ignore[arg-type]
        return float(np.median(trials.hours)), float(np.median(trials.completed_usd))

    (hours, cost), (plain_hours, plain_cost) = medians(suite), medians()
    plan = evaluated(context, suite)
    assert hours - plain_hours == pytest.approx(sum(one.hours.p50 for one in plan.suites), rel=0.1)
    assert cost - plain_cost == pytest.approx(float(usd(plan)), rel=0.03)


def test_the_burn_plan_spends_it_to_the_cent(context: AppContext) -> None:
    """All of the budget."""
    answer = planned(context, SUITE | {"samples": 10_000_000, "every_tokens": "100B"}, LONG)
    assert float(sum(week.usd for week in answer.burn_plan)) == pytest.approx(answer.plan.total_usd.p50, abs=0.005)


# What it can see


def test_a_suite_that_is_too_small_is_warned_of_with_what_would_do(context: AppContext) -> None:
    """0.61 to 0.70 with 200 samples: 437 see it."""
    answer = planned(context, SUITE | {"samples": 200})
    assert answer.evaluation is not None
    (found,) = answer.evaluation.detection
    assert not found.enough
    assert found.samples_needed == 437
    assert found.seeds_needed is None
    (warning,) = [text for text in answer.warnings if text.startswith("helpdesk-eval sees")]
    assert "237 more samples" in warning
    enough = planned(context, SUITE | {"samples": 437})
    assert not [text for text in enough.warnings if text.startswith("helpdesk-eval sees")]


def test_seeds_are_those_of_the_runs(context: AppContext) -> None:
    """Noise between trainings takes seeds; more samples do not help."""
    noisy = SUITE | {"seed_deviation": 0.05, "samples": 5000}
    (one,) = evaluated(context, noisy, tiers=with_runs()).detection
    assert (one.seeds, one.samples_needed) == (1, None)
    assert one.seeds_needed is not None
    (more,) = evaluated(context, noisy, tiers=with_runs(seeds=one.seeds_needed)).detection
    assert more.enough


def test_a_metric_that_is_no_share_needs_its_deviation(context: AppContext) -> None:
    """Without it nothing is said but that; a suite of its own states its difference too."""
    rated = {"metric": "rating", "baseline": 3.0, "target": 3.5}
    answer = planned(context, {"name": "rating", "samples": 63}, outcome=rated)
    assert answer.evaluation is not None
    assert answer.evaluation.detection == ()
    assert any("is not known" in text and "deviation" in text for text in answer.warnings)
    (found,) = evaluated(context, {"name": "rating", "samples": 63, "deviation": 1.0}, outcome=rated).detection
    assert found.enough
    assert found.power == pytest.approx(0.8, abs=0.01)
    with pytest.raises(InvalidRequest) as problem:
        planned(context, SUITE, {"name": "mmlu", "samples": 100, "difference": 0.01})
    assert problem.value.pointer == "/evaluation/suites/1"


def test_no_suite_for_the_outcome_is_warned_of(context: AppContext) -> None:
    """By the metric's name, or the suite's."""
    other = {"name": "questions", "samples": 5000}
    assert any("no suite measures helpdesk-eval" in text for text in planned(context, other).warnings)
    assert not any("no suite measures" in text for text in planned(context, other | {"metric": "helpdesk-eval"}).warnings)


def test_samples_longer_than_the_training_s_sequences_are_warned_of(context: AppContext) -> None:
    """A context of 100,000 tokens for a model trained on 4,096."""
    (warning,) = [text for text in planned(context, SUITE, LONG).warnings if text.startswith("a sample of")]
    assert re.search(r"books has 100,256 tokens, \w+ is trained on sequences of \d", warning)


# What it takes the place of


def test_the_overhead_is_not_counted_on_top(context: AppContext) -> None:
    """Stated beside suites it is refused; a run's own is left out, and the answer says so."""
    with pytest.raises(InvalidRequest) as problem:
        planned(context, SUITE, overhead={"evaluation": 0.05})
    assert problem.value.pointer == "/overhead/evaluation"
    defaults = {**PROGRAM["defaults"], "overhead": {"evaluation": 0.05, "debugging": 0.01}}
    loaded, plain = planned(context, SUITE, defaults=defaults), planned(context, SUITE)
    assert "estimate.overhead.evaluation" in {entry.field for entry in loaded.assumptions}
    ratio = float(loaded.plan.tiers[0].cost_usd / plain.plan.tiers[0].cost_usd)
    assert ratio == pytest.approx(1.01, abs=0.002)


@pytest.mark.parametrize(
    ("suite", "pointer"),
    [
        ({"tokens": "1M", "samples": 5}, "/evaluation/suites/0"),
        ({}, "/evaluation/suites/0"),
        ({"samples": 5, "at": "gates", "every_tokens": "1B"}, "/evaluation/suites/0/at"),
        ({"tokens": "1M", "generated": True}, "/evaluation/suites/0/tokens"),
        ({"samples": 5, "tier": "prototype"}, "/evaluation/suites/0/tier"),
        ({"samples": 5, "accelerators": 8}, "/evaluation/suites/0/accelerators"),
        ({"samples": 10**18, "every_tokens": 1, "blocking": False}, "/evaluation/suites/0"),
    ],
)
def test_contradictions_are_refused(context: AppContext, suite: dict[str, Any], pointer: str) -> None:
    """With a pointer to where they stand."""
    with pytest.raises(DomainError) as problem:
        planned(context, {"name": "suite"} | suite)
    assert problem.value.pointer == pointer


def test_more_suites_than_can_be_timed_are_refused(context: AppContext) -> None:
    """Each suite on each run is work: 100 suites on 21 runs."""
    tiers = [{"tier": "production", "runs": [{"name": f"run {at}", "estimate": RUN} for at in range(21)]}]
    with pytest.raises(InvalidRequest) as problem:
        planned(context, *({"name": f"suite {at}", "samples": 10} for at in range(100)), tiers=tiers)
    assert problem.value.pointer == "/evaluation/suites"


def test_a_gate_s_own_sign_off_is_not_counted_twice(context: AppContext) -> None:
    """The days of the gate are the same days."""
    tiers = [{**with_runs()[0], "gate": {"decides": "release", "sign_off_days": 3}}]
    with pytest.raises(InvalidRequest) as problem:
        planned(context, SUITE | {"sign_off": {"name": "Ada", "days": 2}}, tiers=tiers)
    assert problem.value.pointer == "/evaluation/suites/0/sign_off"


def test_a_network_that_no_engine_serves_is_scored_in_its_training_job(context: AppContext) -> None:
    """At a third of the time of training on as many tokens, and cannot generate."""
    tiers = with_runs(estimate={"model": {"preset": "vit-l-16"}, "data": {"tokens": "10B"}, "training": {"method": "pretrain"}})
    suite = {"name": "suite", "samples": 50_000, "prompt_tokens": 197}
    (cost,) = evaluated(context, suite, tiers=tiers).suites
    assert cost.accelerator_hours.p50 > 0
    with pytest.raises(DomainError) as problem:
        planned(context, suite | {"generated": True}, tiers=tiers)
    assert problem.value.pointer == "/evaluation/suites/0/generated"


# Published evaluations


def hours_on(context: AppContext, accelerators: int, params: str, suite: dict[str, Any], **evaluation: Any) -> float:
    machine = {"hardware": {"accelerator": "A100-80GB", "count": 64}, "model": {"params": params}, "data": {"tokens": "100B"}}
    beside = suite | {"blocking": False, "accelerators": accelerators}
    return evaluated(context, beside, tiers=with_runs(estimate=machine), evaluation=evaluation).accelerator_hours


def test_an_image_suite_takes_what_it_took(context: AppContext) -> None:
    """LLaVA 1.5 7B on 4,329 questions of MMBench: 15 minutes on one A100 (VLMEvalKit, issue 33), 576 tokens of an image and a question."""
    suite = {"name": "mmbench", "samples": 4329, "prompt_tokens": 700, "output_tokens": 5, "generated": True}
    assert hours_on(context, 1, "7B", suite) * 60 == pytest.approx(15, rel=0.6)


def test_a_harness_without_a_serving_engine_takes_tens_of_times_as_long(context: AppContext) -> None:
    """HELM: up to 1,000 GPU-hours for a 13B, of 580,000 questions and 0.4 billion tokens a model (arXiv 2211.09110; IBM Research)."""
    suite = {"name": "helm", "samples": 580_000, "prompt_tokens": 650, "output_tokens": 50, "generated": True}
    assert hours_on(context, 8, "13B", suite) < 100
    assert 300 < hours_on(context, 8, "13B", suite, busy_share=0.02) < 1500


def test_long_contexts_cost_more_than_their_tokens(context: AppContext) -> None:
    """RULER on a 7B: 2 hours at 128k tokens, 10 minutes at 16k (NVIDIA/RULER, issue 7): 12 times as long for 8 times the tokens."""
    suite = {"name": "ruler", "samples": 500, "output_tokens": 64, "generated": True}
    machine = {"hardware": {"accelerator": "A100-80GB", "count": 8}, "model": {"preset": "llama-3.1-8b"}, "data": {"tokens": "100B"}}
    short, long = (
        evaluated(
            context,
            suite | {"prompt_tokens": length * 1024, "blocking": False, "accelerators": 1},
            tiers=with_runs(estimate=machine),
            evaluation={"start_minutes": 0},
        ).accelerator_hours
        for length in (16, 128)
    )
    assert 9 < long / short < 22
