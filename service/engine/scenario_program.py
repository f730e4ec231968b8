"""A program in many trials at once: its runs, what comes with them, what goes wrong, its gates, and its calendar.

Money follows `engine.program`: overheads are shares of what a tier's runs cost, what belongs to no tier is spent as the tiers are. A gate
that is not passed ends the spending. The calendar is that of the program carried through, since it is what a deadline asks for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from service.domain.scenario import Floats, ProgramModel, RiskModel, RunModel, Singles, TierModel, Trials
from service.domain.schedule import ALWAYS
from service.engine.cost import HOURS_PER_MONTH
from service.engine.linked_network import Linked, linked
from service.engine.scenario_bill import usd_per_hour
from service.engine.scenario_distributions import range_values
from service.engine.scenario_run import SCORES, SHARED, RunTrials, Values, median_usd, price_cause, run_trials, uncertain
from service.engine.schedule_network import forward, network_end
from service.engine.work_calendar import clock


@dataclass(frozen=True, slots=True)
class Scored:
    """The chances of a block of trials: scores of each run in order, those that runs share, and of activities that are no runs; uniform
    numbers of gates and risks. Rows are runs, activities, gates, risks; columns are trials.
    """

    shared: Mapping[str, Singles]
    own: Mapping[str, Singles]
    reviews: Singles
    gates: Singles
    risks: Singles


@dataclass(frozen=True, slots=True)
class Placed:
    """A program's network in order; which activity each run is, and which others are uncertain."""

    net: Linked
    run_rows: tuple[int, ...]
    review_rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Spent:
    """A tier in each trial: what its runs cost, and that with overheads and all that is spent with it."""

    runs_usd: Floats
    usd: Floats


def all_runs(model: ProgramModel) -> list[RunModel]:
    """The runs in order of their tiers."""
    return [run for tier in model.tiers for run in tier.runs]


def placed(model: ProgramModel) -> Placed:
    """The network made ready. An event takes no time, so it needs no calendar. Raises as `linked`."""
    net = linked(model.network)
    always = clock(ALWAYS, net.start)
    net = replace(net, clocks=tuple(always if one.is_event else own for one, own in zip(net.activities, net.clocks, strict=True)))
    rows = {activity.name: row for row, activity in enumerate(net.activities)}
    runs = tuple(rows[name] for tier in model.tiers for name in tier.activities)
    uncertain_rows = (row for row, activity in enumerate(net.activities) if activity.hours.p10 < activity.hours.p90)
    return Placed(net, runs, tuple(row for row in uncertain_rows if row not in runs))


def scored(model: ProgramModel, where: Placed, trials: int, columns: np.random.Generator) -> Scored:
    """All chances of so many trials, as many whatever the parameters are."""
    runs = all_runs(model)
    needed = frozenset().union(*(uncertain(run) for run in runs))
    common = [name for name in SHARED if name in needed and model.correlation > 0 and len(runs) > 1]
    return Scored(
        shared={name: columns.standard_normal(trials, dtype=np.float32) for name in common},
        own={name: columns.standard_normal((len(runs), trials), dtype=np.float32) for name in SCORES if name in needed},
        reviews=columns.standard_normal((len(where.review_rows), trials), dtype=np.float32),
        gates=columns.random((len(model.tiers), trials), dtype=np.float32),
        risks=columns.random((len(model.risks), trials), dtype=np.float32),
    )


def picked(chances: Scored, trials: NDArray[np.int64]) -> Scored:
    """The chances of some of the trials."""
    return Scored(
        {name: row[trials] for name, row in chances.shared.items()},
        {name: rows[:, trials] for name, rows in chances.own.items()},
        *(rows[:, trials] for rows in (chances.reviews, chances.gates, chances.risks)),
    )


def program_trials(
    model: ProgramModel, where: Placed, chances: Scored, values: Values, ragged: np.random.Generator, *, causes: bool
) -> Trials:
    """A program in as many trials as there are chances."""
    runs = [
        run_trials(run, scores, values, ragged, causes=causes) for run, scores in zip(all_runs(model), _scores(model, chances), strict=True)
    ]
    end, reviews = _calendar(where, runs, chances.reviews)
    tiers = list(_spent(model, runs, values, end))
    struck = _struck(model, chances.risks, values)
    losses = _losses(model, tiers, struck)
    passed = _passed(model, chances.gates, values)
    usd, hours = np.zeros(end.shape), np.zeros(end.shape)
    completed_usd = np.zeros(end.shape)
    reached = np.ones(end.shape, dtype=bool)
    for at, (spent, accelerators) in enumerate(zip(tiers, _by_tier(model, runs), strict=True)):
        loss, gate = losses[at], passed[at]
        whole = spent.usd if loss is None else spent.usd + loss
        completed_usd += whole
        usd += whole * reached
        hours += accelerators * reached
        reached = reached if gate is None else reached & gate
    return Trials(
        usd=usd,
        completed_usd=completed_usd,
        hours=end,
        accelerator_hours=hours,
        completed=reached,
        time_scores=_time_scores(model, runs, reviews) if causes else {},
        cost_scores=_cost_scores(model, runs, struck, passed) if causes else {},
    )


def _scores(model: ProgramModel, chances: Scored) -> Iterator[dict[str, Singles]]:
    """Each run's own scores, mixed with those that all share."""
    share, rest = np.float32(math.sqrt(model.correlation)), np.float32(math.sqrt(1 - model.correlation))
    for row in range(len(all_runs(model))):
        yield {
            name: share * chances.shared[name] + rest * rows[row] if name in chances.shared else rows[row]
            for name, rows in chances.own.items()
        }


def _calendar(where: Placed, runs: list[RunTrials], reviews: Singles) -> tuple[Floats, Floats]:
    """When all is over [h since the start], and what the activities that are no runs take beyond their medians."""
    hours = np.empty((len(where.net.activities), reviews.shape[1]))
    for row, activity in enumerate(where.net.activities):
        hours[row] = activity.hours.p50
    for row, run in zip(where.run_rows, runs, strict=True):
        np.add(run.elapsed_hours, np.maximum(run.queue_hours, 0.0), out=hours[row])
    beyond = np.zeros(reviews.shape[1])
    for row, z in zip(where.review_rows, reviews, strict=True):
        hours[row] = range_values(where.net.activities[row].hours, z)
        beyond += hours[row] - where.net.activities[row].hours.p50
    return network_end(forward(where.net, hours)), beyond


def _spent(model: ProgramModel, runs: list[RunTrials], values: Values, end_hours: Floats) -> Iterator[Spent]:
    accruing: Floats | float = model.accruing_usd
    if model.accruing_usd_per_month:
        accruing = accruing + end_hours / HOURS_PER_MONTH * model.accruing_usd_per_month
    rows = iter(runs)
    for tier in model.tiers:
        cost = np.sum([next(rows).usd for _ in tier.runs], axis=0) if len(tier.runs) > 1 else next(rows).usd
        share: Floats | float = 1 + model.slice_share + tier.overhead_share
        for path in tier.overhead_fields:
            share = share + values[path]
        yield Spent(cost, cost * share + (tier.overhead_usd + tier.own_usd + accruing * tier.accruing_share))


def _by_tier(model: ProgramModel, runs: list[RunTrials]) -> Iterator[Floats]:
    """Accelerator-hours of each tier."""
    rows = iter(runs)
    for tier in model.tiers:
        yield np.asarray(sum(next(rows).hours * run.run.cluster.count for run in tier.runs))


def _struck(model: ProgramModel, chances: Singles, values: Values) -> list[NDArray[np.bool_]]:
    """Where each risk happens."""
    return [chance < _probability(risk, values) for risk, chance in zip(model.risks, chances, strict=True)]


def _probability(risk: RiskModel, values: Values) -> Floats | float:
    return risk.probability if risk.field is None else values[risk.field]


def _losses(model: ProgramModel, tiers: list[Spent], struck: list[NDArray[np.bool_]]) -> list[Floats | None]:
    """What risks that happen cost in each tier; None where there is nothing."""
    found: list[Floats | None] = [None] * len(tiers)
    for risk, happens in zip(model.risks, struck, strict=True):
        for at, tier in enumerate(model.tiers):
            if risk.tier in {None, at}:
                loss = happens * (risk.cost_share * tiers[at].runs_usd + risk.usd * _part(risk, tier))
                before = found[at]
                found[at] = loss if before is None else before + loss
    return found


def _part(risk: RiskModel, tier: TierModel) -> float:
    """How much of an amount falls on a tier."""
    return 1.0 if risk.tier is not None else tier.accruing_share


def _passed(model: ProgramModel, chances: Singles, values: Values) -> list[NDArray[np.bool_] | None]:
    """Where each gate is passed; None for one that is certain to be."""
    found: list[NDArray[np.bool_] | None] = []
    for tier, chance in zip(model.tiers, chances, strict=True):
        certain = tier.gate_field is None and tier.pass_probability >= 1
        found.append(None if certain else chance < (tier.pass_probability if tier.gate_field is None else values[tier.gate_field]))
    return found


def _time_scores(model: ProgramModel, runs: list[RunTrials], reviews: Floats) -> dict[str, Floats]:
    found = _added(model, runs, lambda run: 1 / run.lanes)
    queued = [(run, trials.queue_hours) for run, trials in zip(all_runs(model), runs, strict=True)]
    waits = [hours for run, hours in queued if run.queue_hours.p10 < run.queue_hours.p90]
    if waits:
        found["queue"] = np.sum(waits, axis=0)
    return found | ({"reviews": reviews} if np.any(reviews) else {})


def _cost_scores(
    model: ProgramModel, runs: list[RunTrials], struck: list[NDArray[np.bool_]], passed: list[NDArray[np.bool_] | None]
) -> dict[str, Floats]:
    """What each cause adds at the medians: gates by how far they let the program come."""
    found = _added(model, runs, usd_per_hour)
    prices = [cause for run, trials in zip(all_runs(model), runs, strict=True) for cause in price_cause(run, trials).values()]
    weights = [sum(median_usd(run) for run in tier.runs) for tier in model.tiers]
    if prices:
        found["price"] = np.sum(prices, axis=0)
    if struck:
        found["risks"] = np.sum([_weight(risk, weights) * happens for risk, happens in zip(model.risks, struck, strict=True)], axis=0)
    gates = [gate for gate in passed if gate is not None]
    return found | ({"gates": _reached(weights, passed, gates[0].size)} if gates else {})


def _weight(risk: RiskModel, weights: list[float]) -> float:
    return risk.cost_share * (sum(weights) if risk.tier is None else weights[risk.tier]) + risk.usd


def _reached(weights: list[float], passed: list[NDArray[np.bool_] | None], trials: int) -> Floats:
    """What the tiers cost that the gates let the program come to."""
    found, reached = np.zeros(trials), np.ones(trials, dtype=bool)
    for weight, gate in zip(weights, passed, strict=True):
        found += weight * reached
        reached = reached if gate is None else reached & gate
    return found


def _added(model: ProgramModel, runs: list[RunTrials], weight: Callable[[RunModel], float]) -> dict[str, Floats]:
    """What each cause adds to all runs together."""
    found: dict[str, Floats] = {}
    for run, trials in zip(all_runs(model), runs, strict=True):
        for name, hours in trials.causes.items():
            found[name] = hours * weight(run) + found[name] if name in found else hours * weight(run)
    return found
