"""Blocks of trials of a model, and what they add up to.

Fields that the model takes one by one (a price, a failure rate) have a value in each trial. Others change the estimate itself: the model is
made at some of their values, and each trial takes the model of the values it drew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any

import numpy as np

from service.domain.scenarios import (
    Aggregate,
    Attribution,
    Discrete,
    Distribution,
    Floats,
    Histogram,
    Ints,
    ProgramModel,
    RunModel,
    Targets,
    Trials,
)
from service.engine.scenarios.aggregates import EMPTY_HISTOGRAM, count_bins, merge_aggregates, sum_quantity
from service.engine.scenarios.attribution import ScoreBins, attribute_block, fit_score_bins
from service.engine.scenarios.distributions import discrete_index, quantile_at_score
from service.engine.scenarios.program import (
    ProgramNetwork,
    RandomInputs,
    RandomSpec,
    combine_random_specs,
    draw_inputs,
    random_spec,
    select_trials,
    simulate_program,
)
from service.engine.scenarios.random_streams import BlockStreams, block_streams
from service.engine.scenarios.run import simulate_single_run, uncertain_scores
from service.engine.scheduling.calendar import HOURS_PER_DAY, TIME_TOLERANCE_HOURS

# Arrays of a block stay in the processor's caches; of many runs at once fewer trials do.
LARGEST_BLOCK, SMALLEST_BLOCK = 32_768, 1024
SCORES_AT_ONCE = 2**20
# Causes are told apart in the first blocks, and then in one of so many: their shares need fewer trials than percentiles do.
FIRST_BLOCKS_ATTRIBUTED, ATTRIBUTED_EVERY = 2, 16
AHEAD = -1
# No field that is looked at means anything below zero; a time to failure of zero is none.
LEAST_VALUE = 1e-6
LONGEST_DAYS = 10**6

Model = RunModel | ProgramModel


@dataclass(frozen=True, slots=True)
class UncertainField:
    """An uncertain field of the request. `nodes`: the values the model is made at, none where trials have values of their own; `cuts`: the
    scores that divide them. A probability is at most 1.
    """

    path: str
    distribution: Distribution
    nodes: tuple[float, ...] = ()
    cuts: tuple[float, ...] = ()
    largest: float = np.inf


@dataclass(frozen=True, slots=True)
class Sampler:
    """All that trials need.

    `block`: trials in a block. `models` by their combination of nodes (0 for fields without), `places` the programs' networks. `mixing`
    correlates the fields' scores (None: independent). `random_spec`: chances that any of the models takes. `units` are what quantities are
    counted in, `fit_score_bins` how causes of each are read.
    """

    seed: int
    block: int
    fields: tuple[UncertainField, ...]
    correlation_factor: Floats | None
    models: Mapping[tuple[int, ...], Model]
    networks: Mapping[tuple[int, ...], ProgramNetwork]
    random_spec: RandomSpec
    targets: Targets
    units: Mapping[str, Decimal]
    score_bins: Mapping[str, Mapping[str, ScoreBins]]


def models_random_spec(models: Mapping[tuple[int, ...], Model], places: Mapping[tuple[int, ...], ProgramNetwork]) -> RandomSpec:
    """The chances that any of the models takes."""
    return combine_random_specs(
        random_spec(model, places[nodes]) if isinstance(model, ProgramModel) else RandomSpec(1, uncertain_scores(model))
        for nodes, model in models.items()
    )


def block_size(runs: int) -> int:
    """Trials in a block of a model of so many runs."""
    size = LARGEST_BLOCK
    while size > SMALLEST_BLOCK and size * (runs + 3) > SCORES_AT_ONCE:
        size //= 2
    return size


def aggregate_trials(sampler: Sampler, first: int, trials: int, step: Callable[[], None]) -> Aggregate:
    """What trials add up to, from the block number `first` on. `step` is called before each block, and may raise."""
    found: Aggregate | None = None
    block, left = first, trials
    while left > 0:
        step()
        size = min(left, sampler.block)
        found = merge_aggregates(found, _block(sampler, block, size))
        block, left = block + 1, left - size
    if found is None:
        raise ValueError("no trials are asked for")
    return found


def fit_causes(sampler: Sampler) -> dict[str, dict[str, ScoreBins]]:
    """What causes' scores mean, by a block of trials that counts for nothing else."""
    trials = simulate_block(sampler, AHEAD, sampler.block, causes=True)
    return {
        "cost_usd": fit_score_bins(trials.cost_scores, trials.usd),
        "wall_clock_hours": fit_score_bins(trials.time_scores, trials.hours),
    }


def simulate_block(sampler: Sampler, block: int, trials: int, *, causes: bool) -> Trials:
    """One block's trials. The chances are drawn first, all of them: they are the same whatever the model."""
    chances = block_streams(sampler.seed, block)
    scores = _field_scores(sampler, trials, chances)
    values = {
        field.path: np.clip(quantile_at_score(field.distribution, scores[field.path]), _least(field), field.largest)
        for field in sampler.fields
        if not field.nodes
    }
    found = _by_model(sampler, scores, values, chances, trials, causes=causes)
    if not causes or not scores:
        return found
    return _with_scores(found, {path: row.astype(np.float64) for path, row in scores.items()})


def _block(sampler: Sampler, block: int, size: int) -> Aggregate:
    looked_at = block < FIRST_BLOCKS_ATTRIBUTED or block % ATTRIBUTED_EVERY == 0
    trials = simulate_block(sampler, block, size, causes=looked_at)
    quantities = {"cost_usd": trials.usd, "wall_clock_hours": trials.hours, "accelerator_hours": trials.accelerator_hours}
    if trials.completed_usd is not trials.usd:
        quantities["completed_cost_usd"] = trials.completed_usd
    return Aggregate(
        trials=size,
        quantities={name: sum_quantity(values, sampler.units[name]) for name, values in quantities.items()},
        counts=_counts(sampler.targets, trials),
        days=_days(trials.hours),
        attributions=_attributed(sampler, trials) if looked_at else {},
    )


def _counts(limits: Targets, trials: Trials) -> dict[str, int]:
    """Trials that are carried through, in time (gates passed), within the budget, and both carried through and within it."""
    found = {"completed": int(np.count_nonzero(trials.completed))}
    if limits.deadline_hours is not None:
        found["in_time"] = int(np.count_nonzero(trials.hours <= limits.deadline_hours + TIME_TOLERANCE_HOURS))
    if limits.budget_usd is not None:
        found["within_budget"] = int(np.count_nonzero(trials.usd <= limits.budget_usd))
        found["completed_within_budget"] = int(np.count_nonzero(trials.completed_usd <= limits.budget_usd))
    return found


def _days(hours: Floats) -> Histogram:
    """The day by whose end each trial is over, 0 the first: what ends at midnight is of the day before."""
    return (
        count_bins(np.clip(np.ceil((hours - TIME_TOLERANCE_HOURS) / HOURS_PER_DAY) - 1, 0, LONGEST_DAYS).astype(np.int64))
        if hours.size
        else EMPTY_HISTOGRAM
    )


def _attributed(sampler: Sampler, trials: Trials) -> dict[str, Attribution]:
    limits = sampler.targets
    rows = (
        ("cost_usd", trials.cost_scores, trials.usd, limits.budget_usd),
        ("wall_clock_hours", trials.time_scores, trials.hours, limits.deadline_hours),
    )
    return {
        name: attribute_block(sampler.score_bins[name], scores, values, sampler.units[name], limit) for name, scores, values, limit in rows
    }


def _field_scores(sampler: Sampler, trials: int, chances: BlockStreams) -> dict[str, Floats]:
    if not sampler.fields:
        return {}
    scores = chances.fixed_rng.standard_normal((len(sampler.fields), trials))
    # No matrix library: its sums depend on how many threads it has.
    mixed = scores if sampler.correlation_factor is None else np.einsum("ij,jk->ik", sampler.correlation_factor, scores)
    return {field.path: row for field, row in zip(sampler.fields, mixed, strict=True)}


def _least(field: UncertainField) -> float:
    return LEAST_VALUE if field.path.endswith("mttf_hours_per_accelerator") else 0.0


def _by_model(
    sampler: Sampler, scores: Mapping[str, Floats], values: Mapping[str, Floats], chances: BlockStreams, trials: int, *, causes: bool
) -> Trials:
    """Each trial by the model of the values it drew, the models in order."""
    usual = (0,) * len(sampler.fields)
    drawn = draw_inputs(sampler.random_spec, trials, chances.fixed_rng)
    if not any(field.nodes for field in sampler.fields):
        return _evaluated(sampler, usual, drawn, values, chances, causes=causes)
    combinations, which = np.unique(_nodes(sampler.fields, scores, trials), axis=1, return_inverse=True)
    rows = [np.flatnonzero(which.reshape(-1) == at) for at in range(combinations.shape[1])]
    parts = [
        _evaluated(
            sampler,
            tuple(combination.tolist()),
            select_trials(drawn, members),
            {path: row[members] for path, row in values.items()},
            chances,
            causes=causes,
        )
        for combination, members in zip(combinations.T, rows, strict=True)
    ]
    return _joined(parts, np.concatenate(rows))


def _nodes(fields_: Sequence[UncertainField], scores: Mapping[str, Floats], trials: int) -> Ints:
    """The node of each field (rows) in each trial."""
    found = np.zeros((len(fields_), trials), dtype=np.int64)
    for row, field in enumerate(fields_):
        if isinstance(field.distribution, Discrete) and field.nodes:
            found[row] = discrete_index(field.distribution, scores[field.path])
        elif field.nodes:
            found[row] = np.searchsorted(field.cuts, scores[field.path], side="right")
    return found


def _evaluated(
    sampler: Sampler, nodes: tuple[int, ...], drawn: RandomInputs, values: Mapping[str, Floats], chances: BlockStreams, *, causes: bool
) -> Trials:
    model = sampler.models[nodes]
    if isinstance(model, RunModel):
        return simulate_single_run(model, {name: rows[0] for name, rows in drawn.own.items()}, values, chances.variable_rng, causes=causes)
    return simulate_program(model, sampler.networks[nodes], drawn, values, chances.variable_rng, causes=causes)


def _joined(parts: Sequence[Trials], order: Ints) -> Trials:
    """Parts as one, each trial back in its place."""
    back = np.argsort(order, kind="stable")
    found: dict[str, Any] = {}
    for one in fields(Trials):
        columns = [getattr(part, one.name) for part in parts]
        if isinstance(columns[0], Mapping):
            found[one.name] = {name: scores[back] for name, scores in _joined_scores(parts, columns).items()}
        else:
            found[one.name] = np.concatenate(columns)[back]
    return Trials(**found)


def _joined_scores(parts: Sequence[Trials], columns: Sequence[Mapping[str, Floats]]) -> dict[str, Floats]:
    """Scores of every cause that there is in any part; where a part knows none it did nothing."""
    names = dict.fromkeys(name for column in columns for name in column)
    nothing = [np.zeros(part.usd.size) for part in parts]
    return {name: np.concatenate([column.get(name, none) for column, none in zip(columns, nothing, strict=True)]) for name in names}


def _with_scores(trials: Trials, scores: Mapping[str, Floats]) -> Trials:
    """Trials whose causes are the request's uncertain fields as well."""
    known: dict[str, Any] = {one.name: getattr(trials, one.name) for one in fields(Trials)}
    return Trials(**known | {name: {**known[name], **scores} for name in ("time_scores", "cost_scores")})
