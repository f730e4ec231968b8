"""Trials of a run in phases: they follow each other on their own layouts and machines, and come to what the estimate says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.scenarios import RunModel, Trials
from service.engine.scenarios.program import OrderedProgram, draw_inputs, random_spec, simulate_program
from service.engine.scenarios.run import simulate_single_run
from service.schemas.programs.request import ProgramRequestSchema
from service.schemas.training.request import EstimateRequestSchema
from service.usecases.scenarios.trial_models import TrialModel, build_trial_model
from service.usecases.training.estimate import EstimateAnswer, estimate

RUN: dict[str, Any] = {
    "model": {"preset": "llama-3-8b"},
    "data": {"tokens": "100B"},
    "training": {"seq_len": 8192, "global_batch_tokens": 4194304},
    "hardware": {"accelerator": "H100", "count": 64},
    "price": {"usd_per_accelerator_hour": 2.5},
    "personnel": {"evaluation_hours": 100, "usd_per_hour": 90},
}
BASE, LONG = {"name": "base", "tokens": "90B"}, {"name": "long context", "tokens": "10B", "seq_len": 65536}
TRIALS = 4000


@pytest.fixture
def context(settings: Settings) -> AppContext:
    """A context with the shipped prices."""
    found = build_context(settings)
    found.store.migrate()
    return found


def phased(*phases: dict[str, Any], **sections: Any) -> dict[str, Any]:
    return {**RUN, **sections, "training": {**RUN["training"], "phases": [*phases]}}


def built(context: AppContext, request: dict[str, Any], *paths: str) -> TrialModel:
    return build_trial_model(context, "estimate", EstimateRequestSchema().load(request), paths, {})


def simulated(model: TrialModel, values: dict[str, float] | None = None) -> Trials:
    run, rng = model.model, np.random.default_rng(7)
    assert isinstance(run, RunModel)
    inputs = draw_inputs(random_spec(run), TRIALS, rng)
    drawn = {path: np.full(TRIALS, value) for path, value in (values or {}).items()}
    return simulate_single_run(run, {name: rows[0] for name, rows in inputs.own.items()}, drawn, rng, causes=True)


def estimated(context: AppContext, request: dict[str, Any]) -> EstimateAnswer:
    return estimate(context, EstimateRequestSchema().load(request))


def usd(answer: EstimateAnswer) -> float:
    assert answer.estimate.cost.total_usd is not None
    return answer.estimate.cost.total_usd.p50


def test_one_phase_of_all_tokens_is_the_run(context: AppContext) -> None:
    """The same model and the same trials, number by number."""
    plain, cut = built(context, RUN), built(context, phased({"name": "all", "tokens": "100B"}))
    assert cut.model == plain.model
    assert cut.planned == plain.planned
    np.testing.assert_array_equal(simulated(cut).usd, simulated(plain).usd)


@given(share=st.integers(1, 9), seq_len=st.sampled_from([8192, 32768, 131072]), overhead=st.sampled_from([0.0, 0.5]))
@hypothesis_settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_estimate_is_within_the_trials(context: AppContext, share: int, seq_len: int, overhead: float) -> None:
    """Its medians are near those of the trials, and between their p10 and p90, whichever way the run is cut."""
    phases = ({"name": "base", "tokens": f"{share * 10}B"}, {"name": "next", "tokens": f"{100 - share * 10}B", "seq_len": seq_len})
    request = phased(*phases, overhead={"debugging": overhead})
    answer, trials = estimated(context, request), simulated(built(context, request))
    for point, drawn in ((usd(answer), trials.usd), (24 * answer.summary.p50_finish_days, trials.hours)):
        low, middle, high = np.quantile(drawn, (0.1, 0.5, 0.9))
        assert low < point < high
        assert middle == pytest.approx(point, rel=0.03)
    assert np.median(trials.accelerator_hours) == pytest.approx(answer.estimate.time.accelerator_hours.p50, rel=0.03)


def test_phases_of_one_run_are_slow_together(context: AppContext) -> None:
    """Two halves spread as the whole does: speed and failure rate are drawn once, single failures in each."""
    whole = simulated(built(context, RUN))
    halves = simulated(built(context, phased(*({"name": name, "tokens": "50B"} for name in ("first", "second")))))
    for percent in (10, 50, 90):
        assert np.percentile(halves.hours, percent) == pytest.approx(np.percentile(whole.hours, percent), rel=0.02)
    assert halves.time_scores.keys() == whole.time_scores.keys()


def test_terms_of_a_reservation_are_paid_once(context: AppContext) -> None:
    """Phases on one machine use one term together."""
    reserved = {"price": {"pricing": "reserved_1y"}, "hardware": {"accelerator": "A100-80GB", "count": 64}}
    plain = simulated(built(context, {**RUN, **reserved}))
    cut = simulated(built(context, phased({"name": "first", "tokens": "60B"}, {"name": "second", "tokens": "40B"}, **reserved)))
    assert np.median(cut.usd) == pytest.approx(np.median(plain.usd), rel=0.005)


def test_fields_with_a_value_a_trial_reach_every_phase(context: AppContext) -> None:
    """Twice the tokens take twice the hours; a price moves the phases that have it, and none with a price of its own."""
    tokens, price = paths = ("data.tokens", "price.usd_per_accelerator_hour")
    model = built(context, phased(BASE, LONG), *paths)
    planned, doubled = (float(np.median(simulated(model, {tokens: count, price: 2.5}).hours)) for count in (100e9, 200e9))
    assert doubled == pytest.approx(2 * planned, rel=0.02)
    own = built(context, phased(BASE, LONG | {"price": {"usd_per_accelerator_hour": 4.0}}), *paths)
    assert isinstance(own.model, RunModel)
    base, long = own.model.phases
    assert price in base.field_paths
    assert price not in long.field_paths
    cheap, dear = (float(np.median(simulated(own, {tokens: 100e9, price: rate}).usd)) for rate in (2.5, 5.0))
    assert dear - cheap == pytest.approx(2.5 * 64 * base.useful_hours, rel=0.1)


def test_a_program_draws_its_runs_phases(context: AppContext) -> None:
    """Its trials come to the plan's cost and hours, with every repeat."""
    program = {
        "name": "p",
        "start": "2027-01-04",
        "tiers": [{"tier": "production", "runs": [{"name": "main", "estimate": phased(BASE, LONG), "repeat": 2}]}],
        "reserves": {"contingency": 0.0, "evaluation_and_debugging": 0.0},
    }
    model = build_trial_model(context, "program", ProgramRequestSchema().load(program), (), {})
    assert isinstance(model.model, OrderedProgram)
    rng = np.random.default_rng(3)
    trials = simulate_program(model.model, draw_inputs(random_spec(model.model), TRIALS, rng), {}, rng, causes=True)
    assert np.median(trials.usd) == pytest.approx(model.planned["cost_usd"], rel=0.03)
    assert np.median(trials.accelerator_hours) == pytest.approx(model.planned["accelerator_hours"], rel=0.03)


def test_evaluation_follows_the_phases(context: AppContext) -> None:
    """Once, on the machine of the longest."""
    evaluated = phased(BASE, LONG, evaluation={"suites": [{"name": "mmlu", "samples": 4_000_000}]})
    bare, whole = (simulated(built(context, request)) for request in (phased(BASE, LONG), evaluated))
    plan = estimated(context, evaluated).evaluation
    assert plan is not None
    assert plan.usd is not None
    assert np.median(whole.hours) - np.median(bare.hours) == pytest.approx(plan.suites[0].hours.p50)
    assert np.median(whole.usd) - np.median(bare.usd) == pytest.approx(float(plan.usd), abs=0.01)
