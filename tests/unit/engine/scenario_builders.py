"""Models that tests of scenarios are made of: a run whose hours are certain but for failures, and samplers around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from service.domain.quantities import Range
from service.domain.scenarios import Aggregate, Floats, ProgramModel, RunModel, Targets
from service.domain.training.run import Run
from service.engine.scenarios.aggregates import counting_unit
from service.engine.scenarios.program import common_random_spec, order_program
from service.engine.scenarios.trials import Sampler, UncertainField, aggregate_trials, fit_causes
from tests.unit.engine.builders import failures, run

CERTAIN = Range.exactly(1.0)
NO_FAILURES = 1e12


def certain_run(name: str = "run", hours: float = 100.0, mttf_hours: float = NO_FAILURES, **changes: Any) -> RunModel:
    """Eight accelerators at 2 USD that train for so many hours; writes take no time, a recovery the builders' own."""
    never = failures(mttf_hours_per_accelerator=Range.exactly(mttf_hours), checkpoint_write_minutes=0)
    return run_model(run(failures=never), name, hours, **changes)


def run_model(whole: Run, name: str, hours: float, **changes: Any) -> RunModel:
    """A run that trains for so many hours and saves every hour, certain in all but its failures unless `changes` say otherwise."""
    fields: dict[str, Any] = {
        "name": name,
        "run": whole,
        "useful_hours": hours,
        "slowdown": CERTAIN,
        "queue_hours": Range.exactly(0.0),
        "interval_hours": 1.0,
        "checkpoint_tb": 0.0,
        "energy_mwh_per_hour": 0.0,
    }
    return RunModel(**{**fields, **changes})


def sampler(whole: RunModel | ProgramModel, *fields: UncertainField, correlation_factor: Floats | None = None, **changes: Any) -> Sampler:
    """A sampler of one model: its causes are read already."""
    planned: Mapping[str, float] = {"cost_usd": 1e4, "completed_cost_usd": 1e4, "wall_clock_hours": 1e3, "accelerator_hours": 1e4}
    none = (0,) * len(fields)
    settings: dict[str, Any] = {
        "seed": 7,
        "block": 4096,
        "fields": fields,
        "correlation_factor": correlation_factor,
        "models": {none: order_program(whole) if isinstance(whole, ProgramModel) else whole},
        "targets": Targets(),
        "units": {name: counting_unit(value) for name, value in planned.items()},
        "score_bins": {},
    }
    settings |= changes
    made = Sampler(random_spec=common_random_spec(settings["models"].values()), **settings)
    return replace(made, score_bins=fit_causes(made))


def tallied(made: Sampler, trials: int, first: int = 0) -> Aggregate:
    return aggregate_trials(made, first, trials, lambda: None)
