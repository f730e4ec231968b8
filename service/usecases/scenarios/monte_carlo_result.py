"""A Monte Carlo scenario's result, as it is told."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from service.domain.scenarios import Aggregate, QuantitySums
from service.engine.scenarios.summary import (
    QUANTILES,
    day_mean,
    day_quantile,
    estimate_probability,
    largest_cause_shares,
    summarise_quantity,
    tail_share,
    variance_shares,
)
from service.engine.scenarios.trials import Sampler
from service.presets.version import engine_version
from service.serialization import plain
from service.usecases.scenarios.registry import PreparedScenario
from service.usecases.scenarios.trial_models import TrialModel

LEAST_BLAMED = 0.005
# Of a log-normal quantity's variance from a sigma of 1.2 on.
HEAVY_TAIL = 0.25
DRIVERS: Mapping[str, str] = {"cost_usd": "drivers", "wall_clock_hours": "time_drivers"}
"""Quantities whose variance is told by its causes, and where."""
SAID = {
    "throughput": "a slower run than planned",
    "failure_rate": "a higher rate of failures",
    "failures": "more failures than their rate lets expect",
    "queue": "queue time",
    "reviews": "reviews, gates and milestones",
    "price": "the price",
    "risks": "the risks",
    "gates": "how far the gates let it come",
}
"""Causes in words; a field of the request is called by its path."""


def present_result(found: Aggregate, sampler: Sampler, known: TrialModel, prepared: PreparedScenario) -> dict[str, Any]:
    """The result as JSON has it."""
    figures = {name: _figures(spread) for name, spread in found.quantities.items()}
    completed = figures.pop("completed_cost_usd", None)
    names = {one["path"]: one["name"] for one in prepared.request["fields"]}
    deadline, deadline_error = _share(found, "in_time")
    budget, budget_error = _share(found, "within_budget")
    return {
        "trials_done": found.trials,
        "trials": prepared.units,
        **figures,
        "finish": None if known.start is None else _finish(found, known.start),
        "deadline_probability": deadline,
        "deadline_standard_error": deadline_error,
        "budget_usd": sampler.targets.budget_usd,
        "budget_probability": budget,
        "budget_standard_error": budget_error,
        "completion_probability": estimate_probability(found.counts["completed"], found.trials)[0],
        "completed": None
        if completed is None
        else {"cost_usd": completed, "budget_probability": _share(found, "completed_within_budget")[0]},
        "drivers": _by_name(variance_shares(found, "cost_usd"), names),
        "time_drivers": _by_name(variance_shares(found, "wall_clock_hours"), names),
        "statements": _statements(found, names),
        "planned": dict(known.planned),
        "start": None if known.start is None else known.start.isoformat(),
        "price_snapshot": prepared.snapshot,
        "engine_version": engine_version(),
        "assumptions": [*prepared.request["assumptions"], *plain(known.assumptions)],
        "warnings": [*prepared.request["warnings"], *_tail_warnings(found), *known.warnings],
    }


def _figures(spread: QuantitySums) -> dict[str, Any]:
    found = summarise_quantity(spread)
    return {**found.quantiles, "mean": found.mean, "standard_error": found.standard_error, "quantile_errors": dict(found.quantile_errors)}


def _finish(found: Aggregate, start: date) -> dict[str, Any]:
    """The days by whose end it is over; the mean's standard error in days."""
    mean, error = day_mean(found.finish_days)
    days = {name: _day(start, day_quantile(found.finish_days, share)) for name, share in QUANTILES.items()}
    return {**days, "mean": _day(start, round(mean)), "standard_error": error}


def _day(start: date, days: int) -> str:
    return (start + timedelta(days=min(days, (date.max - start).days))).isoformat()


def _share(found: Aggregate, name: str) -> tuple[float | None, float | None]:
    return estimate_probability(found.counts[name], found.trials) if name in found.counts else (None, None)


def _by_name(causes: Mapping[str, float], names: Mapping[str, str]) -> dict[str, float]:
    """Causes with fields as the request names them."""
    return {names.get(cause, cause): share for cause, share in causes.items()}


def _tail_warnings(found: Aggregate) -> list[str]:
    """Where a few trials make the variance: then its shares are those of these few, and a cause that decides all others may have none."""
    shares_of_tails = ((name, drivers, tail_share(found.quantities[name])) for name, drivers in DRIVERS.items())
    return [
        f"{name} has a heavy tail, one trial in a thousand makes {share:.0%} of its variance: {drivers} and the mean depend on these few,"
        " percentiles and probabilities do not"
        for name, drivers, share in shares_of_tails
        if share > HEAVY_TAIL
    ]


def _statements(found: Aggregate, names: Mapping[str, str]) -> list[dict[str, Any]]:
    """What was mostly the cause where the deadline is missed, and where the budget is passed."""
    asked = (("deadline is missed", "in_time", "wall_clock_hours"), ("budget is passed", "within_budget", "cost_usd"))
    return [
        one
        for event, counted, name in asked
        for one in _of_event(event, _by_name(largest_cause_shares(found, name), names), found.counts.get(counted, 0) / found.trials)
    ]


def _of_event(event: str, causes: Mapping[str, float], otherwise: float) -> list[dict[str, Any]]:
    return [
        {
            "event": event,
            "probability": 1 - otherwise,
            "cause": cause,
            "share": share,
            "text": f"if the {event}, in {share:.0%} of cases {SAID.get(cause, cause)} was the largest cause",
        }
        for cause, share in causes.items()
        if share >= LEAST_BLAMED
    ]
