"""Monte Carlo: many trials of a run or a program, each with its own speed, failures, queue, prices, risks and gates."""

from __future__ import annotations

import functools
import itertools
import math
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from service.context import AppContext
from service.domain.errors import DomainError, InvalidRequest
from service.domain.scenarios import Aggregate
from service.engine.scenarios.aggregates import counting_unit, merge_aggregates
from service.engine.scenarios.program import common_random_spec
from service.engine.scenarios.summary import is_precise
from service.engine.scenarios.trials import Sampler, UncertainField, aggregate_trials, block_size, fit_causes
from service.serialization import to_builtins
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.scenarios.base_check import COST, check_base, check_names
from service.usecases.scenarios.changes.request_paths import at_time, pin_prices, with_values
from service.usecases.scenarios.codec import decode_aggregate, encode_aggregate
from service.usecases.scenarios.monte_carlo_result import present_result
from service.usecases.scenarios.registry import MOST_CHUNKS, Body, PreparedScenario, ScenarioKind, ScenarioRequest, Shape, Step
from service.usecases.scenarios.trial_models import TrialModel, build_trial_model, count_runs
from service.usecases.scenarios.uncertain_fields import (
    check_scopes,
    factor_correlations,
    load_fields,
    load_regimes,
    median_base,
    note_model,
    read_fields,
)

DEFAULT_TRIALS, DEFAULT_SEED = 100_000, 1
# A chunk takes some 50 ms with a few runs; with hundreds of runs, which need fewer trials, a quarter of a second.
TRIALS_PER_CHUNK, RUNS_PER_CHUNK = 65_536, 8
# Trials stop when mean, p10, p50 and p90 have this relative standard error, and probabilities this absolute one.
RELATIVE_ERROR = 0.0025
EARLY_STOP_BASIS = f"trials end when mean, p10, p50 and p90 are known to {RELATIVE_ERROR:.2%}, shares to as much of 1"
# Each worker simulates them before its first chunk, to place causes in 64 groups: 128 trials a group are enough.
PILOT_TRIALS = 8192
CACHED_SAMPLERS = 4

_samplers: OrderedDict[str, tuple[Sampler, TrialModel]] = OrderedDict()


def prepare(context: AppContext, request: ScenarioRequest) -> PreparedScenario:
    """The uncertain fields, checked, and the number of trials and chunks. Raises DomainErrors, pointers into the request."""
    options = request.options
    fields = read_fields(context, request)
    warnings = check_scopes(request.base, fields)
    factor = factor_correlations(options.get("correlations") or (), fields)
    notes = AssumptionLog()
    trials = notes.take(options, "trials", DEFAULT_TRIALS, "usual number")
    seed = notes.take(options, "seed", DEFAULT_SEED, "the same request and seed give the same result")
    early_stop = notes.take(options, "early_stop", value=True, source=EARLY_STOP_BASIS)
    note_model(fields, notes)
    runs = count_runs(request.shape, request.base)
    block = block_size(runs)
    blocks = max(1, TRIALS_PER_CHUNK // (block * (1 + runs // RUNS_PER_CHUNK)), math.ceil(trials / (MOST_CHUNKS * block)))
    chunks = math.ceil(trials / (blocks * block))
    base, snapshot = pin_prices(context, request)
    at_medians = median_base(base, fields)
    _check_bases(context, request.shape, base, at_medians)
    if options.get("budget_usd") is not None:
        check_names(context, request.shape, at_medians, (COST,))
    return PreparedScenario(
        kind="monte_carlo",
        chunks=chunks,
        units_per_chunk=blocks * block,
        units=trials,
        checkpoints=_checkpoints(chunks) if early_stop else (),
        request={
            "shape": request.shape,
            "base": at_medians,
            "now": context.clock(),
            "fields": fields,
            "correlation_factor": None if factor is None else factor.tolist(),
            "seed": seed,
            "block": block,
            "budget_usd": options.get("budget_usd"),
            "warnings": warnings,
            "assumptions": to_builtins(notes.assumptions),
        },
        snapshot=snapshot,
        lessons=context.lessons(),
    )


def _checkpoints(chunks: int) -> tuple[int, ...]:
    """Powers of two below the number of chunks."""
    return tuple(2**power for power in range(chunks.bit_length()) if 2**power < chunks)


def _check_bases(context: AppContext, shape: Shape, base: Body, at_medians: Body) -> None:
    """Raises the DomainError of the base, or of the base with its fields at their medians, which is what is planned."""
    try:
        check_base(context, shape, at_medians)
    except DomainError as problem:
        check_base(context, shape, base)
        raise InvalidRequest(f"with each of these at its median: {problem.message}", "/distributions") from problem


def run_chunk(context: AppContext, prepared: PreparedScenario, index: int, step: Step) -> dict[str, Any]:
    """The aggregate of a chunk's trials."""
    sampler, _ = load_sampler(context, prepared, step)
    first = index * prepared.units_per_chunk
    trials = prepared.units_after(index + 1) - first
    return encode_aggregate(aggregate_trials(sampler, first // sampler.block, trials, step))


def is_sufficient(prepared: PreparedScenario, tallies: Iterable[Body]) -> bool:
    """Whether the trials so far are precise enough."""
    del prepared
    return is_precise(_merge(tallies), RELATIVE_ERROR)


def finish(context: AppContext, prepared: PreparedScenario, tallies: Iterable[Body]) -> dict[str, Any]:
    """Percentiles, probabilities and causes."""
    sampler, model = load_sampler(context, prepared, lambda: None)
    return present_result(_merge(tallies), sampler, model, prepared)


def _merge(tallies: Iterable[Body]) -> Aggregate:
    return functools.reduce(merge_aggregates, map(decode_aggregate, tallies))


def load_sampler(context: AppContext, prepared: PreparedScenario, step: Step) -> tuple[Sampler, TrialModel]:
    """What the trials depend on; built once in a process for a scenario with an id."""
    if prepared.key in _samplers:
        return _samplers[prepared.key]
    built = _build_sampler(context, prepared, step)
    if prepared.key:
        _samplers[prepared.key] = built
        while len(_samplers) > CACHED_SAMPLERS:
            _samplers.popitem(last=False)
    return built


def _build_sampler(context: AppContext, prepared: PreparedScenario, step: Step) -> tuple[Sampler, TrialModel]:
    """Raises DomainErrors, with pointers into the scenario's request."""
    task = prepared.request
    fields = load_fields(task["fields"])
    trial_models = _build_models(at_time(context, task["now"]), task, fields, step)
    models = {nodes: built.model for nodes, built in trial_models.items()}
    median = trial_models[tuple(len(field.nodes) // 2 for field in fields)]
    sampler = Sampler(
        seed=task["seed"],
        block=task["block"],
        fields=fields,
        correlation_factor=None if task["correlation_factor"] is None else np.array(task["correlation_factor"]),
        models=models,
        random_spec=common_random_spec(models.values()),
        targets=median.targets if task["budget_usd"] is None else replace(median.targets, budget_usd=task["budget_usd"]),
        units={name: counting_unit(value) for name, value in median.planned.items()},
        score_bins={},
    )
    pilot = replace(sampler, block=min(sampler.block, PILOT_TRIALS))
    return replace(sampler, score_bins=fit_causes(pilot)), median


def _build_models(context: AppContext, task: Body, fields: tuple[UncertainField, ...], step: Step) -> dict[tuple[int, ...], TrialModel]:
    """The model at every combination of nodes. Raises DomainErrors that name the values of the combination."""
    trial_paths = tuple(field.path for field in fields if not field.nodes)
    stated = {field["path"]: field["nodes"] for field in task["fields"]}
    regimes, models = load_regimes(task["fields"]), {}
    for nodes in itertools.product(*(range(max(1, len(field.nodes))) for field in fields)):
        step()
        values = {field.path: stated[field.path][node] for field, node in zip(fields, nodes, strict=True) if field.nodes}
        try:
            models[nodes] = build_trial_model(context, task["shape"], with_values(task["base"], values), trial_paths, regimes)
        except DomainError as problem:
            if not values:
                raise problem.below("/base") from problem
            described = ", ".join(f"{path} {value}" for path, value in values.items())
            raise InvalidRequest(f"with {described}: {problem.message}", "/distributions") from problem
    return models


KIND = ScenarioKind(prepare, run_chunk, finish, is_sufficient)
