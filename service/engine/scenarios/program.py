"""A program in many trials at once: its runs, what comes with them, what goes wrong, its gates, and its calendar.

Money follows `engine.program`: overheads are shares of what a tier's runs cost, what belongs to no tier is spent as the tiers are. A gate
that is not passed ends the spending. The calendar is that of the program carried through, since it is what a deadline asks for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from service.domain.scenarios import Floats, ProgramModel, RiskModel, RunModel, Singles, TierModel, Trials
from service.domain.schedule import ALWAYS_OPEN
from service.engine.numerics.quantiles import range_quantiles
from service.engine.scenarios.costs import usd_per_hour
from service.engine.scenarios.run import RUN_SCORES, SHARED_SCORES, RunTrials, Values, median_usd, simulate_run, uncertain_scores
from service.engine.scheduling.activity_network import OrderedNetwork, order_network
from service.engine.scheduling.calendar import start_clock
from service.engine.scheduling.critical_path import forward_pass, network_end
from service.engine.training.cost import HOURS_PER_MONTH


@dataclass(frozen=True, slots=True)
class RandomSpec:
    """Which chances decide anything: scores of so many runs, scores that runs share, activities that are no runs, gates, risks."""

    runs: int
    own: frozenset[str]
    shared: frozenset[str] = frozenset()
    reviews: tuple[str, ...] = ()
    gates: int = 0
    risks: int = 0


@dataclass(frozen=True, slots=True)
class RandomInputs:
    """The chances of a block of trials: scores of each run in order, those that runs share, and of activities that are no runs by their
    names; uniform numbers of gates and risks. Rows are runs, gates, risks; columns are trials.
    """

    shared: Mapping[str, Singles]
    own: Mapping[str, Singles]
    reviews: Mapping[str, Singles]
    gates: Singles
    risks: Singles


@dataclass(frozen=True, slots=True)
class ProgramNetwork:
    """A program's network in order; which activity each run is, and which others are uncertain."""

    net: OrderedNetwork
    run_rows: tuple[int, ...]
    review_rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TierCosts:
    """A tier in each trial: what its runs cost, and that with overheads and all that is spent with it."""

    runs_usd: Floats
    usd: Floats


def list_runs(model: ProgramModel) -> list[RunModel]:
    """The runs in order of their tiers."""
    return [run for tier in model.tiers for run in tier.runs]


def order_program(model: ProgramModel) -> ProgramNetwork:
    """The network made ready. An event takes no time, so it needs no calendar. Raises as `order_network`."""
    net = order_network(model.network)
    always = start_clock(ALWAYS_OPEN, net.start)
    net = replace(net, clocks=tuple(always if one.is_event else own for one, own in zip(net.activities, net.clocks, strict=True)))
    rows = {activity.name: row for row, activity in enumerate(net.activities)}
    runs = tuple(rows[name] for tier in model.tiers for name in tier.activities)
    uncertain_rows = (row for row, activity in enumerate(net.activities) if activity.hours.p10 < activity.hours.p90)
    return ProgramNetwork(net, runs, tuple(row for row in uncertain_rows if row not in runs))


def random_spec(model: ProgramModel, where: ProgramNetwork) -> RandomSpec:
    """The chances that decide anything of a program."""
    runs = list_runs(model)
    own = frozenset().union(*(uncertain_scores(run) for run in runs))
    return RandomSpec(
        runs=len(runs),
        own=own,
        shared=own.intersection(SHARED_SCORES) if model.correlation > 0 and len(runs) > 1 else frozenset(),
        reviews=tuple(where.net.activities[row].name for row in where.review_rows),
        gates=len(model.tiers),
        risks=len(model.risks),
    )


def combine_random_specs(several: Iterable[RandomSpec]) -> RandomSpec:
    """The chances that decide anything of at least one of several models: all of them draw the same."""
    found = list(several)
    return RandomSpec(
        runs=max(one.runs for one in found),
        own=frozenset().union(*(one.own for one in found)),
        shared=frozenset().union(*(one.shared for one in found)),
        reviews=tuple(dict.fromkeys(name for one in found for name in one.reviews)),
        gates=max(one.gates for one in found),
        risks=max(one.risks for one in found),
    )


def draw_inputs(wanted: RandomSpec, trials: int, columns: np.random.Generator) -> RandomInputs:
    """All chances of so many trials, as many whatever the parameters are."""
    return RandomInputs(
        shared={name: columns.standard_normal(trials, dtype=np.float32) for name in SHARED_SCORES if name in wanted.shared},
        own={name: columns.standard_normal((wanted.runs, trials), dtype=np.float32) for name in RUN_SCORES if name in wanted.own},
        reviews={name: columns.standard_normal(trials, dtype=np.float32) for name in wanted.reviews},
        gates=columns.random((wanted.gates, trials), dtype=np.float32),
        risks=columns.random((wanted.risks, trials), dtype=np.float32),
    )


def select_trials(chances: RandomInputs, trials: NDArray[np.int64]) -> RandomInputs:
    """The chances of some of the trials."""
    return RandomInputs(
        {name: row[trials] for name, row in chances.shared.items()},
        {name: rows[:, trials] for name, rows in chances.own.items()},
        {name: row[trials] for name, row in chances.reviews.items()},
        *(rows[:, trials] for rows in (chances.gates, chances.risks)),
    )


def simulate_program(
    model: ProgramModel, where: ProgramNetwork, chances: RandomInputs, values: Values, rng: np.random.Generator, *, causes: bool
) -> Trials:
    """A program in as many trials as there are chances."""
    runs = [
        simulate_run(run, scores, values, rng, causes=causes) for run, scores in zip(list_runs(model), _scores(model, chances), strict=True)
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


def _scores(model: ProgramModel, chances: RandomInputs) -> Iterator[dict[str, Singles]]:
    """Each run's own scores, mixed with those that all share."""
    share, rest = np.float32(math.sqrt(model.correlation)), np.float32(math.sqrt(1 - model.correlation))
    for row in range(len(list_runs(model))):
        yield {
            name: share * chances.shared[name] + rest * rows[row] if name in chances.shared else rows[row]
            for name, rows in chances.own.items()
        }


def _calendar(where: ProgramNetwork, runs: list[RunTrials], reviews: Mapping[str, Singles]) -> tuple[Floats, Floats]:
    """When all is over [h since the start], and what the activities that are no runs take beyond their medians."""
    activities, trials = where.net.activities, runs[0].elapsed_hours.size
    hours = np.empty((len(activities), trials))
    for row, activity in enumerate(activities):
        hours[row] = activity.hours.p50
    for row, run in zip(where.run_rows, runs, strict=True):
        np.add(run.elapsed_hours, np.maximum(run.queue_hours, 0.0), out=hours[row])
    beyond = np.zeros(trials)
    for row in where.review_rows:
        hours[row] = range_quantiles(activities[row].hours, reviews[activities[row].name])
        beyond += hours[row] - activities[row].hours.p50
    return network_end(forward_pass(where.net, hours)), beyond


def _spent(model: ProgramModel, runs: list[RunTrials], values: Values, end_hours: Floats) -> Iterator[TierCosts]:
    accruing: Floats | float = model.accruing_usd
    if model.accruing_usd_per_month:
        accruing = accruing + end_hours / HOURS_PER_MONTH * model.accruing_usd_per_month
    rows = iter(runs)
    for tier in model.tiers:
        cost = np.sum([next(rows).usd for _ in tier.runs], axis=0) if len(tier.runs) > 1 else next(rows).usd
        share: Floats | float = 1 + model.reserve_share + tier.overhead_share
        for path in tier.overhead_field_paths:
            share = share + values[path]
        yield TierCosts(cost, cost * share + (tier.overhead_usd + tier.other_lines_usd + accruing * tier.accruing_share))


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


def _losses(model: ProgramModel, tiers: list[TierCosts], struck: list[NDArray[np.bool_]]) -> list[Floats | None]:
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
        certain = tier.gate_field_path is None and tier.pass_probability >= 1
        found.append(
            None if certain else chance < (tier.pass_probability if tier.gate_field_path is None else values[tier.gate_field_path])
        )
    return found


def _time_scores(model: ProgramModel, runs: list[RunTrials], reviews: Floats) -> dict[str, Floats]:
    found = _added(model, runs, lambda run: 1 / run.concurrency)
    queued = [(run, trials.queue_hours) for run, trials in zip(list_runs(model), runs, strict=True)]
    waits = [hours for run, hours in queued if run.queue_hours.p10 < run.queue_hours.p90]
    if waits:
        found["queue"] = np.sum(waits, axis=0)
    return found | ({"reviews": reviews} if np.any(reviews) else {})


def _cost_scores(
    model: ProgramModel, runs: list[RunTrials], struck: list[NDArray[np.bool_]], passed: list[NDArray[np.bool_] | None]
) -> dict[str, Floats]:
    """How hard each cause struck. Prices, risks and gates, by how far they let the program come, as shares of what all costs at the
    medians: so they are the same of a dear and a cheap model.
    """
    found = _added(model, runs, usd_per_hour)
    weights = [sum(median_usd(run) for run in tier.runs) for tier in model.tiers]
    whole = sum(weights)
    prices = [
        median_usd(run) / whole * trials.price_factor
        for run, trials in zip(list_runs(model), runs, strict=True)
        if trials.price_factor is not None
    ]
    if prices:
        found["price"] = np.sum(prices, axis=0)
    if struck:
        happened = [_weight(risk, weights) / whole * happens for risk, happens in zip(model.risks, struck, strict=True)]
        found["risks"] = np.sum(happened, axis=0)
    gates = [gate for gate in passed if gate is not None]
    return found | ({"gates": _reached([weight / whole for weight in weights], passed, gates[0].size)} if gates else {})


def _weight(risk: RiskModel, weights: list[float]) -> float:
    return risk.cost_share * (sum(weights) if risk.tier is None else weights[risk.tier]) + risk.usd


def _reached(weights: list[float], passed: list[NDArray[np.bool_] | None], trials: int) -> Floats:
    """The part of the tiers that the gates let the program come to."""
    found, reached = np.zeros(trials), np.ones(trials, dtype=bool)
    for weight, gate in zip(weights, passed, strict=True):
        found += weight * reached
        reached = reached if gate is None else reached & gate
    return found


def _added(model: ProgramModel, runs: list[RunTrials], weight: Callable[[RunModel], float]) -> dict[str, Floats]:
    """How hard each cause struck all runs together, each run by what a unit of it adds there; alike distributed whatever the model."""
    several: dict[str, list[tuple[Floats, float]]] = {}
    for run, trials in zip(list_runs(model), runs, strict=True):
        for name, cause in trials.causes.items():
            several.setdefault(name, []).append((cause.score, cause.hours * weight(run)))
    return {name: _together(parts) for name, parts in several.items()}


def _together(parts: list[tuple[Floats, float]]) -> Floats:
    """The scores of several runs as one, by their weights."""
    whole = math.hypot(*(weight for _, weight in parts)) or 1.0
    return np.asarray(sum(score * (weight / whole) for score, weight in parts))
