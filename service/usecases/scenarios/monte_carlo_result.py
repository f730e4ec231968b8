"""The result of a Monte Carlo scenario as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from typing import Any

from service.domain.scenarios import Aggregate
from service.engine.scenarios.summary import (
    QUANTILES,
    BinnedHistogram,
    bin_days,
    bin_quantity,
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
from service.serialization import to_builtins
from service.usecases.scenarios.registry import PreparedScenario
from service.usecases.scenarios.summary import summarise_trials
from service.usecases.scenarios.trial_models import TrialModel

LEAST_CAUSE_SHARE = 0.005
SHARE_DIGITS = 6
# A log-normal quantity's from a sigma of 1.2 on.
HEAVY_TAIL = 0.25
DRIVERS: Mapping[str, str] = {"cost_usd": "drivers", "wall_clock_hours": "time_drivers"}
"""Result field with the variance shares of each attributed quantity."""
EVENTS = (("deadline is missed", "in_time", "wall_clock_hours"), ("budget is passed", "within_budget", "cost_usd"))
"""Events that statements explain: text, count of the trials without it, quantity."""
CAUSE_TEXTS = {
    "throughput": "a slower run than planned",
    "failure_rate": "a higher rate of failures",
    "failures": "more failures than expected from their rate",
    "queue": "queue time",
    "reviews": "reviews, gates and milestones",
    "price": "the price",
    "risks": "the risks",
    "repeats": "tiers repeated after failed gates",
    "gates": "the number of gates passed",
}
"""Causes in words; a field of the request is named by its path."""


def present_result(aggregate: Aggregate, sampler: Sampler, model: TrialModel, prepared: PreparedScenario) -> dict[str, Any]:
    """The result as JSON."""
    quantities = {name: to_builtins(summarise_quantity(sums)) for name, sums in aggregate.quantities.items()}
    completed = quantities.pop("completed_cost_usd", None)
    names = {field["path"]: field["name"] for field in prepared.request["fields"]}
    deadline, deadline_error = _probability(aggregate, "in_time")
    budget, budget_error = _probability(aggregate, "within_budget")
    result = {
        "trials_done": aggregate.trials,
        "trials": prepared.units,
        "cost_usd": None,
        **quantities,
        "finish": None if model.start is None else _present_finish(aggregate, model.start),
        "histograms": _present_histograms(aggregate, model.start),
        "deadline_probability": deadline,
        "deadline_standard_error": deadline_error,
        "budget_usd": sampler.targets.budget_usd,
        "budget_probability": budget,
        "budget_standard_error": budget_error,
        "completion_probability": _probability(aggregate, "completed")[0],
        "completed": None
        if completed is None
        else {"cost_usd": completed, "budget_probability": _probability(aggregate, "completed_within_budget")[0]},
        **{field: _by_name(variance_shares(aggregate, quantity), names) for quantity, field in DRIVERS.items()},
        "statements": list(_statements(aggregate, names)),
        "planned": {"cost_usd": None, **model.planned},
        "start": None if model.start is None else model.start.isoformat(),
        "price_snapshot": prepared.snapshot,
        "lessons": prepared.lessons_reference,
        "engine_version": engine_version(),
        "assumptions": [*prepared.request["assumptions"], *to_builtins(model.assumptions)],
        "warnings": [*prepared.request["warnings"], *_tail_warnings(aggregate), *model.warnings],
    }
    return {"summary": to_builtins(summarise_trials(result)), **result}


def _present_finish(aggregate: Aggregate, start: date) -> dict[str, Any]:
    """Days of finish, and the standard error of their mean [d]."""
    mean, error = day_mean(aggregate.finish_days)
    days = {name: _day(start, day_quantile(aggregate.finish_days, share)) for name, share in QUANTILES.items()}
    return {**days, "mean": _day(start, round(mean)), "standard_error": error}


def _present_histograms(aggregate: Aggregate, start: date | None) -> dict[str, Any]:
    """Shares of the trials by cost [USD] and by day of finish; without a price, or a start, there is none of it."""
    cost = aggregate.quantities.get("cost_usd")
    found = {} if cost is None else {"cost_usd": _present_bins(bin_quantity(cost.histogram))}
    if start is None:
        return found
    days = bin_days(aggregate.finish_days)
    return found | {"finish": _present_bins(days) | {"edges": [_day(start, round(edge)) for edge in days.edges]}}


def _present_bins(binned: BinnedHistogram) -> dict[str, Any]:
    return {
        "edges": [float(f"{edge:.6g}") for edge in binned.edges],
        "shares": [round(share, SHARE_DIGITS) for share in binned.shares],
        "below": round(binned.below, SHARE_DIGITS),
        "above": round(binned.above, SHARE_DIGITS),
    }


def _day(start: date, days: int) -> str:
    return (start + timedelta(days=min(days, (date.max - start).days))).isoformat()


def _probability(aggregate: Aggregate, name: str) -> tuple[float | None, float | None]:
    """Probability and standard error; None where the request states no such target."""
    return estimate_probability(aggregate.counts[name], aggregate.trials) if name in aggregate.counts else (None, None)


def _by_name(causes: Mapping[str, float], names: Mapping[str, str]) -> dict[str, float]:
    """Shares with fields named as in the request."""
    return {names.get(cause, cause): share for cause, share in causes.items()}


def _tail_warnings(aggregate: Aggregate) -> Iterator[str]:
    """Warnings where a few trials make the variance: a cause that decides all others may then have no share of it."""
    for name, drivers in DRIVERS.items():
        if name not in aggregate.quantities:
            continue
        share = tail_share(aggregate.quantities[name])
        if share > HEAVY_TAIL:
            yield (
                f"{name} has a heavy tail: one trial in a thousand makes {share:.0%} of its variance. {drivers} and the mean depend on"
                " these few trials; percentiles and probabilities do not"
            )


def _statements(aggregate: Aggregate, names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The largest causes of a missed deadline and of a passed budget."""
    for event, count_name, quantity in EVENTS:
        probability = 1 - aggregate.counts.get(count_name, 0) / aggregate.trials
        for cause, share in _by_name(largest_cause_shares(aggregate, quantity), names).items():
            if share >= LEAST_CAUSE_SHARE:
                text = f"if the {event}, in {share:.0%} of cases {CAUSE_TEXTS.get(cause, cause)} was the largest cause"
                yield {"event": event, "probability": probability, "cause": cause, "share": share, "text": text}
