"""A Monte Carlo scenario's result, as it is told."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from service.domain.scenario import Spread, Tally
from service.engine.scenario_summary import QUANTILES, blame, day_mean, day_quantile, probability, quantity, shares
from service.engine.scenario_trials import Sampler
from service.plain import plain
from service.presets.version import engine_version
from service.usecases.scenario_kinds import Prepared
from service.usecases.scenario_models import Modelled

LEAST_BLAMED = 0.005
SAID = {
    "throughput": "a lower throughput than estimated",
    "planning": "what planned runs take beyond their plan",
    "failure_rate": "a higher rate of failures",
    "failures": "more failures than their rate lets expect",
    "queue": "queue time",
    "reviews": "reviews, gates and milestones",
    "price": "the price",
    "risks": "the risks",
    "gates": "how far the gates let it come",
}
"""Causes in words; a field of the request is called by its path."""


def result_of(found: Tally, sampler: Sampler, known: Modelled, prepared: Prepared) -> dict[str, Any]:
    """The result as JSON has it."""
    figures = {name: _figures(spread) for name, spread in found.spreads.items()}
    completed = figures.pop("completed_cost_usd", None)
    deadline, deadline_error = _share(found, "in_time")
    budget, budget_error = _share(found, "within_budget")
    return {
        "trials_done": found.trials,
        "trials": prepared.units,
        **figures,
        "finish": None if known.start is None else _finish(found, known.start),
        "deadline_probability": deadline,
        "deadline_standard_error": deadline_error,
        "budget_usd": sampler.limits.budget_usd,
        "budget_probability": budget,
        "budget_standard_error": budget_error,
        "completion_probability": probability(found.counts["completed"], found.trials)[0],
        "completed": None
        if completed is None
        else {"cost_usd": completed, "budget_probability": _share(found, "completed_within_budget")[0]},
        "drivers": shares(found, "cost_usd"),
        "time_drivers": shares(found, "wall_clock_hours"),
        "statements": _statements(found),
        "planned": dict(known.planned),
        "start": None if known.start is None else known.start.isoformat(),
        "price_snapshot": prepared.snapshot,
        "engine_version": engine_version(),
        "assumptions": [*prepared.request["assumptions"], *plain(known.assumptions)],
        "warnings": list(known.warnings),
    }


def _figures(spread: Spread) -> dict[str, Any]:
    found = quantity(spread)
    return {**found.quantiles, "mean": found.mean, "standard_error": found.standard_error, "quantile_errors": dict(found.quantile_errors)}


def _finish(found: Tally, start: date) -> dict[str, Any]:
    """The days by whose end it is over; the mean's standard error in days."""
    mean, error = day_mean(found.days)
    days = {name: _day(start, day_quantile(found.days, share)) for name, share in QUANTILES.items()}
    return {**days, "mean": _day(start, round(mean)), "standard_error": error}


def _day(start: date, days: int) -> str:
    return (start + timedelta(days=min(days, (date.max - start).days))).isoformat()


def _share(found: Tally, name: str) -> tuple[float | None, float | None]:
    return probability(found.counts[name], found.trials) if name in found.counts else (None, None)


def _statements(found: Tally) -> list[dict[str, Any]]:
    """What was mostly the cause where the deadline is missed, and where the budget is passed."""
    asked = (("deadline is missed", "in_time", "wall_clock_hours"), ("budget is passed", "within_budget", "cost_usd"))
    return [
        one for event, counted, name in asked for one in _of_event(event, blame(found, name), found.counts.get(counted, 0) / found.trials)
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
