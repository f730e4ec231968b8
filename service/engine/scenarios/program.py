"""A program in many trials at once: runs, overheads, risks, gates and calendar.

Costs follow `engine.programs.budget`: overheads are shares of a tier's run cost; costs of no tier are divided among the tiers. A failed
gate has its tier repeated as often as is stated, at the cost and time of the first attempt, then ends the spending; a pivot's expected cost
is spent then. The calendar is that of the program with all gates passed, which is what a deadline is about.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.domain.scenarios import DrawnOverhead, Floats, Ints, ProgramModel, RiskModel, RunModel, Singles, Trials
from service.domain.schedule import ALWAYS_OPEN
from service.engine.numerics.quantiles import range_quantiles
from service.engine.scenarios.costs import usd_per_hour
from service.engine.scenarios.gates import LEAST_UNIFORM, Flags, GateTrials, add_repeats, decide_gate, tiers_reached
from service.engine.scenarios.phases import RunTrials
from service.engine.scenarios.run import RUN_SCORES, SHARED_SCORES, Values, median_usd, simulate_run, uncertain_scores
from service.engine.scheduling.activity_network import OrderedNetwork, order_network
from service.engine.scheduling.calendar import start_clock
from service.engine.scheduling.critical_path import forward_pass, network_end
from service.engine.scheduling.durations import add_proportional_hours
from service.engine.training.cost import HOURS_PER_MONTH


@dataclass(frozen=True, slots=True)
class RandomSpec:
    """Random numbers that decide any outcome: number of runs, names of their own and of shared scores, uncertain reviews, gates, risks."""

    runs: int
    own: frozenset[str]
    shared: frozenset[str] = frozenset()
    reviews: tuple[str, ...] = ()
    gates: int = 0
    risks: int = 0


@dataclass(frozen=True, slots=True)
class RandomInputs:
    """Random numbers of a block of trials [1].

    `shared` and `reviews`: standard normal scores by name, shape (trials,); `own`: by name, shape (runs, trials). `gates` and `risks`:
    uniform numbers, shape (gates, trials) and (risks, trials).
    """

    shared: Mapping[str, Singles]
    own: Mapping[str, Singles]
    reviews: Mapping[str, Singles]
    gates: Singles
    risks: Singles


@dataclass(frozen=True, slots=True)
class OrderedProgram:
    """A program with its network in topological order, the rows of its runs, and those of other uncertain activities (reviews).

    `drawn_rows`: overheads by row whose share has a value per trial. `risk_rows`: rows that take place where a risk happens, with the
    risk's place. `repeat_rows`: rows that repeat another one, with that row, tier and number.
    """

    model: ProgramModel
    net: OrderedNetwork
    run_rows: tuple[int, ...]
    review_rows: tuple[int, ...]
    drawn_rows: tuple[tuple[int, DrawnOverhead], ...]
    risk_rows: tuple[tuple[int, int], ...]
    repeat_rows: tuple[tuple[int, int, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class TierTrials:
    """A tier in each trial, shape (trials,): its runs [USD], the same with overheads and its share of other lines [USD], and [h].

    `repeat_usd`: cost of one repeat of it [USD].
    """

    runs_usd: Floats
    usd: Floats
    repeat_usd: Floats
    accelerator_hours: Floats


def list_runs(model: ProgramModel) -> list[RunModel]:
    """Runs in order of their tiers."""
    return [run for tier in model.tiers for run in tier.runs]


def order_program(model: ProgramModel) -> OrderedProgram:
    """A program ready for simulation.

    Parameters
    ----------
    model : ProgramModel
        The program.

    Returns
    -------
    OrderedProgram
        Activities in topological order. Events take no time and get a calendar without breaks, which is faster.

    Raises
    ------
    DomainError
        As `order_network`.
    """
    net = order_network(model.network)
    always = start_clock(ALWAYS_OPEN, net.start)
    net = replace(net, clocks=tuple(always if activity.is_event else own for activity, own in zip(net.activities, net.clocks, strict=True)))
    rows = {activity.name: row for row, activity in enumerate(net.activities)}
    runs = tuple(rows[name] for tier in model.tiers for name in tier.activities)
    own = (
        row
        for row, activity in enumerate(net.activities)
        if activity.hours.p10 < activity.hours.p90 and not (activity.proportional_to or activity.repeats)
    )
    return OrderedProgram(
        model=model,
        net=net,
        run_rows=runs,
        review_rows=tuple(row for row in own if row not in runs),
        drawn_rows=tuple((rows[drawn.activity], drawn) for tier in model.tiers for drawn in tier.drawn_overheads),
        risk_rows=tuple((rows[risk.activity], place) for place, risk in enumerate(model.risks) if risk.activity is not None),
        repeat_rows=tuple((rows[again.activity], rows[again.source], again.tier, again.number) for again in model.repeats),
    )


def random_spec(model: RunModel | OrderedProgram) -> RandomSpec:
    """Random numbers that decide any outcome of a model."""
    if isinstance(model, RunModel):
        return RandomSpec(1, uncertain_scores(model))
    program, runs = model.model, list_runs(model.model)
    own = frozenset().union(*(uncertain_scores(run) for run in runs))
    return RandomSpec(
        runs=len(runs),
        own=own,
        shared=own.intersection(SHARED_SCORES) if program.correlation > 0 and len(runs) > 1 else frozenset(),
        reviews=tuple(model.net.activities[row].name for row in model.review_rows),
        gates=len(program.tiers),
        risks=len(program.risks),
    )


def common_random_spec(models: Iterable[RunModel | OrderedProgram]) -> RandomSpec:
    """Random numbers that decide any outcome of at least one of several models: all models draw the same numbers."""
    specs = [random_spec(model) for model in models]
    return RandomSpec(
        runs=max(spec.runs for spec in specs),
        own=frozenset().union(*(spec.own for spec in specs)),
        shared=frozenset().union(*(spec.shared for spec in specs)),
        reviews=tuple(dict.fromkeys(name for spec in specs for name in spec.reviews)),
        gates=max(spec.gates for spec in specs),
        risks=max(spec.risks for spec in specs),
    )


def draw_inputs(spec: RandomSpec, trials: int, rng: np.random.Generator) -> RandomInputs:
    """Draw normal scores and uniform numbers; their number does not depend on parameters (common random numbers).

    Parameters
    ----------
    spec : RandomSpec
        What is drawn.
    trials : int
        Number of trials.
    rng : Generator
        Source of the numbers.

    Returns
    -------
    RandomInputs
        Numbers of all trials [1].
    """
    return RandomInputs(
        shared={name: rng.standard_normal(trials, dtype=np.float32) for name in SHARED_SCORES if name in spec.shared},
        own={name: rng.standard_normal((spec.runs, trials), dtype=np.float32) for name in RUN_SCORES if name in spec.own},
        reviews={name: rng.standard_normal(trials, dtype=np.float32) for name in spec.reviews},
        gates=rng.random((spec.gates, trials), dtype=np.float32),
        risks=rng.random((spec.risks, trials), dtype=np.float32),
    )


def select_trials(inputs: RandomInputs, trials: Ints) -> RandomInputs:
    """Random numbers of some of the trials, by index."""
    return RandomInputs(
        {name: row[trials] for name, row in inputs.shared.items()},
        {name: rows[:, trials] for name, rows in inputs.own.items()},
        {name: row[trials] for name, row in inputs.reviews.items()},
        *(rows[:, trials] for rows in (inputs.gates, inputs.risks)),
    )


def simulate_program(program: OrderedProgram, inputs: RandomInputs, values: Values, rng: np.random.Generator, *, causes: bool) -> Trials:
    """Outcomes of a program.

    Parameters
    ----------
    program : OrderedProgram
        The program, its activities in order.
    inputs : RandomInputs
        Random numbers of the trials [1].
    values : mapping of (trials,) float arrays
        Values of uncertain fields by path [the fields' units].
    rng : Generator
        Source of single failures and price regimes.
    causes : bool
        Whether to return the causes' scores.

    Returns
    -------
    Trials
        Hours [h] and cost [USD] of each trial.
    """
    model = program.model
    scores = zip(list_runs(model), _run_scores(model, inputs), strict=True)
    runs = [simulate_run(run, own, values, rng, causes=causes) for run, own in scores]
    probabilities = (risk.probability if risk.field_path is None else values[risk.field_path] for risk in model.risks)
    occurred = [uniform < probability for uniform, probability in zip(_risk_draws(model, inputs.risks), probabilities, strict=True)]
    gates = [decide_gate(tier, uniform, values) for tier, uniform in zip(model.tiers, inputs.gates, strict=True)]
    end, delays = _simulate_calendar(program, runs, inputs.reviews, (occurred, gates), values)
    tiers = list(_simulate_tiers(model, runs, values, end))
    reached = tiers_reached([gate.passed for gate in gates], end.size)
    tiers_usd = [tier.usd if loss is None else tier.usd + loss for tier, loss in zip(tiers, _losses(model, tiers, occurred), strict=True)]
    spent = [add_repeats(usd, tier.repeat_usd, gate.repeats) for usd, tier, gate in zip(tiers_usd, tiers, gates, strict=True)]
    whole = [add_repeats(usd, tier.repeat_usd, gate.repeats_if_passed) for usd, tier, gate in zip(tiers_usd, tiers, gates, strict=True)]
    hours = [add_repeats(tier.accelerator_hours, tier.accelerator_hours, gate.repeats) for tier, gate in zip(tiers, gates, strict=True)]
    ended = [tier.pivot_usd * (here & ~on) for tier, here, on in zip(model.tiers, reached, reached[1:], strict=False) if tier.pivot_usd]
    return Trials(
        usd=_sum([*(usd * here for usd, here in zip(spent, reached[:-1], strict=True)), *ended]),
        completed_usd=_sum(whole),
        hours=end,
        accelerator_hours=_sum([used * here for used, here in zip(hours, reached[:-1], strict=True)]),
        completed=reached[-1],
        time_scores=_time_scores(model, runs, delays) if causes else {},
        cost_scores=_cost_scores(model, runs, occurred, (gates, reached)) if causes else {},
    )


def _risk_draws(model: ProgramModel, uniform: Singles) -> Singles:
    """Uniform numbers of the risks, correlated where that is stated."""
    if not model.risk_mixing:
        return uniform
    from scipy.special import ndtr, ndtri  # takes a while to load: only where risks depend on each other

    scores = ndtri(np.clip(uniform.astype(np.float64), LEAST_UNIFORM, 1 - LEAST_UNIFORM))
    return np.asarray(ndtr(np.array(model.risk_mixing) @ scores), dtype=np.float32)


def _run_scores(model: ProgramModel, inputs: RandomInputs) -> Iterator[dict[str, Singles]]:
    """Scores of each run: its own, correlated through the shared ones."""
    share, rest = np.float32(math.sqrt(model.correlation)), np.float32(math.sqrt(1 - model.correlation))
    for row in range(len(list_runs(model))):
        yield {
            name: share * inputs.shared[name] + rest * rows[row] if name in inputs.shared else rows[row]
            for name, rows in inputs.own.items()
        }


def _simulate_calendar(
    program: OrderedProgram,
    runs: list[RunTrials],
    reviews: Mapping[str, Singles],
    happened: tuple[Sequence[Flags], Sequence[GateTrials]],
    values: Values,
) -> tuple[Floats, dict[str, Floats]]:
    """End of the program [h since the start], and hours beyond the median by cause: of reviews, risks and repeats [h].

    `happened`: which risks occur, and the gates.
    """
    (occurred, gates), activities, trials = happened, program.net.activities, runs[0].elapsed_hours.size
    hours = np.empty((len(activities), trials))
    for row, activity in enumerate(activities):
        hours[row] = activity.hours.p50
    for row, run in zip(program.run_rows, runs, strict=True):
        hours[row] = run.elapsed_hours
    for row in program.review_rows:
        hours[row] = range_quantiles(activities[row].hours, reviews[activities[row].name])
    add_proportional_hours(program.net, hours)
    for row, drawn in program.drawn_rows:
        hours[row] *= values[drawn.field_path] / drawn.planned_share
    at_risk = np.zeros(trials)
    for row, place in program.risk_rows:
        hours[row] *= occurred[place]
        at_risk += hours[row]
    risky = {row for row, _ in program.risk_rows}
    beyond = np.zeros(trials)
    for row in program.review_rows:
        if row not in risky:
            beyond += hours[row] - activities[row].hours.p50
    for row, run in zip(program.run_rows, runs, strict=True):
        hours[row] += np.maximum(run.queue_hours, 0.0)
    again = _repeat_hours(program, hours, gates)
    delays = {name: rows for name, rows in (("reviews", beyond), ("risks", at_risk), ("repeats", again)) if np.any(rows)}
    return network_end(forward_pass(program.net, hours)), delays


def _repeat_hours(program: OrderedProgram, hours: Floats, gates: Sequence[GateTrials]) -> Floats:
    """Set the rows that repeat others; returns their sum in each trial [h]."""
    whole = np.zeros(hours.shape[1])
    for row, source, tier, number in program.repeat_rows:
        times = gates[tier].repeats_if_passed
        hours[row] = 0.0 if times is None else hours[source] * (times >= number)
        whole += hours[row]
    return whole


def _simulate_tiers(model: ProgramModel, runs: list[RunTrials], values: Values, end_hours: Floats) -> Iterator[TierTrials]:
    accruing: Floats | float = model.accruing_usd
    if model.accruing_usd_per_month:
        accruing = accruing + end_hours / HOURS_PER_MONTH * model.accruing_usd_per_month
    rows = iter(runs)
    for tier in model.tiers:
        trials = [next(rows) for _ in tier.runs]
        cost = _sum([run.usd for run in trials])
        share: Floats | float = 1 + model.reserve_share + tier.overhead_share
        for path in tier.overhead_field_paths:
            share = share + values[path]
        usd = cost * share + (tier.overhead_usd + tier.other_lines_usd + accruing * tier.accruing_share)
        hours = _sum([run.accelerator_hours for run in trials])
        again_usd = cost * (share - model.reserve_share) + (tier.overhead_usd + tier.repeat_usd)
        yield TierTrials(cost, usd, again_usd, hours)


def _losses(model: ProgramModel, tiers: list[TierTrials], occurred: list[Flags]) -> list[Floats | None]:
    """Cost of the risks that occur in each tier; None for a tier without risks."""
    losses: list[Floats | None] = [None] * len(tiers)
    for risk, occurs in zip(model.risks, occurred, strict=True):
        for index, tier in enumerate(model.tiers):
            if risk.tier in {None, index}:
                tier_share = 1.0 if risk.tier is not None else tier.accruing_share
                loss = occurs * (risk.cost_share * tiers[index].runs_usd + risk.usd * tier_share)
                before = losses[index]
                losses[index] = loss if before is None else before + loss
    return losses


def _time_scores(model: ProgramModel, runs: list[RunTrials], delays: Mapping[str, Floats]) -> dict[str, Floats]:
    scores = _combined_scores(model, runs, lambda run: 1 / run.concurrency)
    queued = [(run, trials.queue_hours) for run, trials in zip(list_runs(model), runs, strict=True)]
    waits = [hours for run, hours in queued if run.queue_hours.p10 < run.queue_hours.p90]
    if waits:
        scores["queue"] = _sum(waits)
    return {**scores, **delays}


def _cost_scores(
    model: ProgramModel, runs: list[RunTrials], occurred: list[Flags], decided: tuple[list[GateTrials], list[Flags]]
) -> dict[str, Floats]:
    """Score of each cause of the cost. Prices, risks and gates count as shares of the median cost, so they compare across models."""
    (gates, reached), scores = decided, _combined_scores(model, runs, usd_per_hour)
    tiers_usd = [sum(median_usd(run) for run in tier.runs) for tier in model.tiers]
    total_usd = sum(tiers_usd) or 1.0  # without a price nothing is made of the scores
    prices = [
        median_usd(run) / total_usd * trials.price_factor
        for run, trials in zip(list_runs(model), runs, strict=True)
        if trials.price_factor is not None
    ]
    if prices:
        scores["price"] = _sum(prices)
    if occurred:
        risks = [_risk_usd(risk, tiers_usd) / total_usd * occurs for risk, occurs in zip(model.risks, occurred, strict=True)]
        scores["risks"] = _sum(risks)
    if reached[-1] is not reached[0]:
        scores["gates"] = _sum([usd / total_usd * here for usd, here in zip(tiers_usd, reached[:-1], strict=True)])
    repeats = [usd / total_usd * gate.repeats for usd, gate in zip(tiers_usd, gates, strict=True) if gate.repeats is not None]
    if repeats:
        scores["repeats"] = _sum(repeats)
    return scores


def _risk_usd(risk: RiskModel, tiers_usd: list[float]) -> float:
    return risk.cost_share * (sum(tiers_usd) if risk.tier is None else tiers_usd[risk.tier]) + risk.usd


def _combined_scores(model: ProgramModel, runs: list[RunTrials], weight: Callable[[RunModel], float]) -> dict[str, Floats]:
    """Score of each cause over all runs, weighed by what a unit of it adds to each; distributed alike for all models."""
    parts: dict[str, list[tuple[Floats, float]]] = {}
    for run, trials in zip(list_runs(model), runs, strict=True):
        for name, cause in trials.causes.items():
            parts.setdefault(name, []).append((cause.score, cause.hours * weight(run)))
    return {name: _weighted_sum(scores) for name, scores in parts.items()}


def _weighted_sum(scores: list[tuple[Floats, float]]) -> Floats:
    """Sum of scores with weights scaled to unit length."""
    length = math.hypot(*(weight for _, weight in scores)) or 1.0
    return _sum([score * (weight / length) for score, weight in scores])


def _sum(rows: Sequence[NDArray[np.floating[Any]]]) -> Floats:
    """Sum of rows, shape of one, added in their order."""
    return np.asarray(sum(rows[1:], start=rows[0]))
