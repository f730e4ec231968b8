"""Work around a run takes the run's machine, and so time, through every door that dates a run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.scenarios import RunModel
from service.engine.scenarios.program import draw_inputs, random_spec
from service.engine.scenarios.run import simulate_single_run
from service.schemas.comparison.request import CompareRequestSchema
from service.schemas.programs.request import ProgramRequestSchema
from service.schemas.training.request import EstimateRequestSchema
from service.usecases.comparison.compare import compare
from service.usecases.programs.plan import plan_program
from service.usecases.scenarios.trial_models import build_trial_model
from service.usecases.training.estimate import estimate

RUN: dict[str, Any] = {
    "model": {"params": "7B"},
    "data": {"tokens": "1T"},
    "hardware": {"accelerator": "H100", "count": 128},
    "price": {"usd_per_accelerator_hour": 2.5},
    "schedule": {"start": "2027-01-04", "deadline": "2027-01-25"},
}
OVERHEAD = {"evaluation": 0.2, "debugging": 0.5, "reruns": 0.3}


@pytest.fixture
def context(settings: Settings) -> AppContext:
    """A context with the shipped prices."""
    found = build_context(settings)
    found.store.migrate()
    return found


def test_overheads_of_as_much_as_the_run_double_its_time(context: AppContext) -> None:
    """The run's own hours stay; its last day, its chance and its summary count both."""
    plain, loaded = (estimate(context, EstimateRequestSchema().load(RUN | extra)) for extra in ({}, {"overhead": OVERHEAD}))
    before, after = plain.estimate.time, loaded.estimate.time
    assert after.wall_clock_hours == before.wall_clock_hours
    assert loaded.summary.p50_finish_days == pytest.approx(2 * plain.summary.p50_finish_days)
    assert before.finish is not None
    assert after.finish is not None
    assert (after.finish.p50 - before.finish.p50).days == pytest.approx(before.wall_clock_hours.p50 / 24, abs=1)
    assert after.deadline_probability is not None
    assert before.deadline_probability is not None
    assert after.deadline_probability < before.deadline_probability


def test_compare_and_trials_take_the_same_time(context: AppContext) -> None:
    """As the estimate on the same machine; a run of a program that states its own overhead too."""
    whole = EstimateRequestSchema().load(RUN | {"overhead": OVERHEAD})
    finish = estimate(context, whole).summary.p50_finish_days
    model = build_trial_model(context, "estimate", whole, (), {})
    assert model.planned["wall_clock_hours"] == pytest.approx(finish * 24)
    assert isinstance(model.model, RunModel)
    rng = np.random.default_rng(3)
    inputs = draw_inputs(random_spec(model.model), 4000, rng)
    trials = simulate_single_run(model.model, {name: rows[0] for name, rows in inputs.own.items()}, {}, rng, causes=False)
    assert np.median(trials.hours) / 24 == pytest.approx(finish, rel=0.03)
    run = {"name": "main", "estimate": {name: part for name, part in RUN.items() if name != "schedule"} | {"overhead": OVERHEAD}}
    program = {"name": "p", "start": "2027-01-04", "tiers": [{"tier": "production", "runs": [run]}]}
    plan = plan_program(context, ProgramRequestSchema().load(program)).schedule
    assert (plan.finish.p50 - plan.start).days == pytest.approx(finish, abs=1)
    workload = {name: RUN[name] for name in ("model", "data", "schedule")} | {"overhead": OVERHEAD}
    candidates = {"accelerators": ["H100"], "counts": [128], "pricing": ["on_demand"]}
    for best in compare(context, CompareRequestSchema().load({"workload": workload, "candidates": candidates})).options[:3]:
        assert best.time is not None
        assert best.time.finish is not None
        hours = best.time.wall_clock_hours.p50
        assert (best.time.finish.p50 - plan.start).days == pytest.approx(2 * hours / 24, abs=1)
