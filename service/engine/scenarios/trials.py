"""Blocks of trials of a model, and their aggregates.

Fields such as a price or a failure rate have a value in each trial. Others change the estimate itself: the model is built at some of their
values (nodes), and each trial uses the model of the node it draws.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
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
    RunModel,
    Targets,
    Trials,
)
from service.engine.scenarios.aggregates import count_bins, merge_aggregates, sum_quantity
from service.engine.scenarios.attribution import ScoreBins, attribute_block, fit_score_bins
from service.engine.scenarios.distributions import discrete_index, quantile_at_score
from service.engine.scenarios.program import (
    OrderedProgram,
    RandomInputs,
    RandomSpec,
    draw_inputs,
    select_trials,
    simulate_program,
)
from service.engine.scenarios.run import simulate_single_run
from service.engine.scheduling.calendar import HOURS_PER_DAY, TIME_TOLERANCE_HOURS

# Arrays of a block fit the processor's caches; with more runs, fewer trials do.
LARGEST_BLOCK, SMALLEST_BLOCK = 32_768, 1024
SCORES_AT_ONCE = 2**20
# The first blocks are attributed to causes, and then one in ATTRIBUTED_EVERY: shares need fewer trials than percentiles.
FIRST_BLOCKS_ATTRIBUTED, ATTRIBUTED_EVERY = 2, 16
PILOT_BLOCK = -1
# Fields are never negative; a mean time to failure of zero would be an infinite rate.
LEAST_VALUE = 1e-6
LONGEST_DAYS = 10**6

Model = RunModel | OrderedProgram


@dataclass(frozen=True, slots=True)
class UncertainField:
    """An uncertain field of the request.

    `nodes`: values that the model is built at, empty where each trial has a value of its own; `cuts`: scores that separate the nodes.
    `largest`: upper bound of the values, 1 for a probability.
    """

    path: str
    distribution: Distribution
    nodes: tuple[float, ...] = ()
    cuts: tuple[float, ...] = ()
    largest: float = np.inf


@dataclass(frozen=True, slots=True)
class Sampler:
    """Everything that trials depend on.

    `block`: trials in a block. `models`: by node index of each field, 0 for fields without nodes. `random_spec`: numbers that any of them
    needs. `correlation_factor`: of the fields' scores, None where they are independent. `units`: counting unit of each quantity that is
    counted, without costs where no price is known. `score_bins`: of each quantity's causes.
    """

    seed: int
    block: int
    fields: tuple[UncertainField, ...]
    correlation_factor: Floats | None
    models: Mapping[tuple[int, ...], Model]
    random_spec: RandomSpec
    targets: Targets
    units: Mapping[str, Decimal]
    score_bins: Mapping[str, Mapping[str, ScoreBins]]


def block_size(runs: int) -> int:
    """Number of trials in a block of a model with this number of runs."""
    size = LARGEST_BLOCK
    while size > SMALLEST_BLOCK and size * (runs + 3) > SCORES_AT_ONCE:
        size //= 2
    return size


def aggregate_trials(sampler: Sampler, first: int, trials: int, step: Callable[[], None]) -> Aggregate:
    """Aggregate of consecutive blocks of trials.

    Parameters
    ----------
    sampler : Sampler
        What the trials depend on.
    first : int
        Number of the first block.
    trials : int
        Number of trials, above 0; the last block may be smaller.
    step : callable
        Called before each block; it raises to stop.

    Returns
    -------
    Aggregate
        The same for the same blocks in any process.
    """
    return functools.reduce(merge_aggregates, _aggregate_blocks(sampler, first, trials, step))


def fit_causes(sampler: Sampler) -> dict[str, dict[str, ScoreBins]]:
    """Score bins of the causes of cost and hours, from a pilot block that no result counts."""
    trials = simulate_block(sampler, PILOT_BLOCK, sampler.block, causes=True)
    return {
        "cost_usd": fit_score_bins(trials.cost_scores, trials.usd),
        "wall_clock_hours": fit_score_bins(trials.time_scores, trials.hours),
    }


def block_streams(seed: int, block: int) -> tuple[np.random.Generator, np.random.Generator]:
    """Generators of a block, 2^128 numbers each.

    Parameters
    ----------
    seed : int
        0 to 2^64 - 1.
    block : int
        Number of the block; -1 is the pilot block, which no result counts.

    Returns
    -------
    Generator, Generator
        One draws a number of values that does not depend on the model's parameters (common random numbers), the other what takes a random
        number of values. The same for the same seed and block, in any process and order: Philox is counter-based.

    References
    ----------
    Salmon et al. 2011, Parallel random numbers: as easy as 1, 2, 3.
    """
    fixed, variable = (np.random.Philox(key=_words(seed, 0), counter=_words(0, 0, kind, block)) for kind in (0, 1))
    return np.random.Generator(fixed), np.random.Generator(variable)


def simulate_block(sampler: Sampler, block: int, trials: int, *, causes: bool) -> Trials:
    """Outcomes of one block of trials. All random inputs are drawn first, so they do not depend on the model.

    Parameters
    ----------
    sampler : Sampler
        What the trials depend on.
    block : int
        Number of the block.
    trials : int
        Number of trials.
    causes : bool
        Whether to return the causes' scores; uncertain fields are causes too.

    Returns
    -------
    Trials
        Hours [h] and cost [USD] of each trial.
    """
    fixed_rng, variable_rng = block_streams(sampler.seed, block)
    scores = _field_scores(sampler, trials, fixed_rng)
    inputs = draw_inputs(sampler.random_spec, trials, fixed_rng)
    outcomes = _simulate_models(sampler, scores, inputs, variable_rng, trials, causes=causes)
    if not causes or not scores:
        return outcomes
    field_scores = {path: row.astype(np.float64) for path, row in scores.items()}
    return replace(outcomes, time_scores={**outcomes.time_scores, **field_scores}, cost_scores={**outcomes.cost_scores, **field_scores})


def _words(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array([number % 2**64 for number in numbers], dtype=np.uint64)


def _aggregate_blocks(sampler: Sampler, first: int, trials: int, step: Callable[[], None]) -> Iterator[Aggregate]:
    for index, done in enumerate(range(0, trials, sampler.block)):
        step()
        yield _aggregate_block(sampler, first + index, min(trials - done, sampler.block))


def _aggregate_block(sampler: Sampler, block: int, size: int) -> Aggregate:
    attributed = block < FIRST_BLOCKS_ATTRIBUTED or block % ATTRIBUTED_EVERY == 0
    trials = simulate_block(sampler, block, size, causes=attributed)
    quantities = {"cost_usd": trials.usd, "wall_clock_hours": trials.hours, "accelerator_hours": trials.accelerator_hours}
    if trials.completed_usd is not trials.usd:
        quantities["completed_cost_usd"] = trials.completed_usd
    return Aggregate(
        trials=size,
        quantities={name: sum_quantity(values, sampler.units[name]) for name, values in quantities.items() if name in sampler.units},
        counts=_counts(sampler.targets, trials),
        finish_days=_finish_days(trials.hours),
        attributions=_attribute(sampler, trials) if attributed else {},
    )


def _counts(limits: Targets, trials: Trials) -> dict[str, int]:
    """Number of trials that pass all gates, meet the deadline (all gates passed), keep the budget, and keep it with all gates passed."""
    counts = {"completed": int(np.count_nonzero(trials.completed))}
    if limits.deadline_hours is not None:
        counts["in_time"] = int(np.count_nonzero(trials.hours <= limits.deadline_hours + TIME_TOLERANCE_HOURS))
    if limits.budget_usd is not None:
        counts["within_budget"] = int(np.count_nonzero(trials.usd <= limits.budget_usd))
        counts["completed_within_budget"] = int(np.count_nonzero(trials.completed_usd <= limits.budget_usd))
    return counts


def _finish_days(hours: Floats) -> Histogram:
    """Histogram of the day of finish, 0 the first; an end at midnight belongs to the day before."""
    days = np.ceil((hours - TIME_TOLERANCE_HOURS) / HOURS_PER_DAY) - 1
    return count_bins(np.clip(days, 0, LONGEST_DAYS).astype(np.int64))


def _attribute(sampler: Sampler, trials: Trials) -> dict[str, Attribution]:
    targets = sampler.targets
    rows = (
        ("cost_usd", trials.cost_scores, trials.usd, targets.budget_usd),
        ("wall_clock_hours", trials.time_scores, trials.hours, targets.deadline_hours),
    )
    return {
        name: attribute_block(sampler.score_bins[name], scores, values, sampler.units[name], limit)
        for name, scores, values, limit in rows
        if name in sampler.units
    }


def _field_scores(sampler: Sampler, trials: int, rng: np.random.Generator) -> dict[str, Floats]:
    if not sampler.fields:
        return {}
    scores = rng.standard_normal((len(sampler.fields), trials))
    # No matrix product: its sums depend on the number of threads.
    correlated = scores if sampler.correlation_factor is None else np.einsum("ij,jk->ik", sampler.correlation_factor, scores)
    return {field.path: row for field, row in zip(sampler.fields, correlated, strict=True)}


def _field_values(field: UncertainField, scores: Floats) -> Floats:
    least = LEAST_VALUE if field.path.endswith("mttf_hours_per_accelerator") else 0.0
    return np.clip(quantile_at_score(field.distribution, scores), least, field.largest)


def _simulate_models(
    sampler: Sampler, scores: Mapping[str, Floats], inputs: RandomInputs, rng: np.random.Generator, trials: int, *, causes: bool
) -> Trials:
    """Each trial by the model of its nodes, the models in order."""
    values = {field.path: _field_values(field, scores[field.path]) for field in sampler.fields if not field.nodes}
    if not any(field.nodes for field in sampler.fields):
        return _simulate_model(sampler.models[(0,) * len(sampler.fields)], inputs, values, rng, causes=causes)
    combinations, which = np.unique(_node_indices(sampler.fields, scores, trials), axis=1, return_inverse=True)
    parts, members = [], []
    for index, combination in enumerate(combinations.T):
        rows = np.flatnonzero(which.reshape(-1) == index)
        own = {path: row[rows] for path, row in values.items()}
        parts.append(_simulate_model(sampler.models[tuple(combination.tolist())], select_trials(inputs, rows), own, rng, causes=causes))
        members.append(rows)
    return _join(parts, np.concatenate(members))


def _node_indices(uncertain: Sequence[UncertainField], scores: Mapping[str, Floats], trials: int) -> Ints:
    """Node of each field in each trial, shape (fields, trials); 0 for fields without nodes."""
    indices = np.zeros((len(uncertain), trials), dtype=np.int64)
    for row, field in enumerate(uncertain):
        if isinstance(field.distribution, Discrete) and field.nodes:
            indices[row] = discrete_index(field.distribution, scores[field.path])
        elif field.nodes:
            indices[row] = np.searchsorted(field.cuts, scores[field.path], side="right")
    return indices


def _simulate_model(model: Model, inputs: RandomInputs, values: Mapping[str, Floats], rng: np.random.Generator, *, causes: bool) -> Trials:
    if isinstance(model, RunModel):
        return simulate_single_run(model, {name: rows[0] for name, rows in inputs.own.items()}, values, rng, causes=causes)
    return simulate_program(model, inputs, values, rng, causes=causes)


def _join(parts: Sequence[Trials], order: Ints) -> Trials:
    """Trials of several models in their original order."""
    back = np.argsort(order, kind="stable")
    joined: dict[str, Any] = {}
    for field in fields(Trials):
        columns = [getattr(part, field.name) for part in parts]
        if isinstance(columns[0], Mapping):
            joined[field.name] = {name: scores[back] for name, scores in _join_scores(parts, columns).items()}
        else:
            joined[field.name] = np.concatenate(columns)[back]
    return Trials(**joined)


def _join_scores(parts: Sequence[Trials], columns: Sequence[Mapping[str, Floats]]) -> dict[str, Floats]:
    """Scores of every cause that any part has; a part without it counts as 0."""
    names = dict.fromkeys(name for column in columns for name in column)
    zeros = [np.zeros(part.usd.size) for part in parts]
    return {name: np.concatenate([column.get(name, zero) for column, zero in zip(columns, zeros, strict=True)]) for name in names}
