"""What could happen to a run or a program: many trials of it, each with its own speed, failures, queue, prices, risks and gates."""

from __future__ import annotations

import itertools
import math
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from service.context import AppContext
from service.domain.errors import DomainError, InvalidRequest
from service.domain.scenarios import Aggregate, ProgramModel, Targets
from service.engine.scenarios.aggregates import counting_unit, merge_aggregates
from service.engine.scenarios.program import order_program
from service.engine.scenarios.summary import is_precise
from service.engine.scenarios.trials import Sampler, UncertainField, aggregate_trials, block_size, fit_causes, models_random_spec
from service.usecases.scenarios.aggregates_codec import decode_aggregate, encode_aggregate
from service.usecases.scenarios.base_check import check_base
from service.usecases.scenarios.changes.request_paths import at_time, pin_prices, with_values
from service.usecases.scenarios.monte_carlo_result import present_result
from service.usecases.scenarios.registry import MOST_CHUNKS, Body, PreparedScenario, ScenarioKind, ScenarioRequest, Shape, Step
from service.usecases.scenarios.trial_models import TrialModel, build_trial_model, count_runs
from service.usecases.scenarios.uncertain_fields import (
    check_scopes,
    factor_correlations,
    list_assumptions,
    load_fields,
    load_regimes,
    median_base,
    read_fields,
)

USUAL_TRIALS, USUAL_SEED = 100_000, 1
# A chunk takes some 50 ms of a few runs, and of hundreds, which are tried less often, a quarter of a second.
TRIALS_A_CHUNK, RUNS_A_CHUNK = 65_536, 8
# Trials end when mean, p10, p50 and p90 are known to this share of themselves, and probabilities to a quarter of a point.
RELATIVE_ERROR = 0.0025
# Each worker makes them before its first chunk. They place causes in 64 groups, whose sizes are counted: 128 trials a group are enough.
TRIALS_AHEAD = 8192
SAMPLERS_KEPT = 4

_kept: OrderedDict[str, tuple[Sampler, TrialModel]] = OrderedDict()


def prepare(context: AppContext, given: ScenarioRequest) -> PreparedScenario:
    """The uncertain fields with how they are distributed, and how many trials. Raises DomainErrors, pointers into the request."""
    options = given.options
    fields = read_fields(context, given)
    warnings = check_scopes(given.base, fields)
    mixed = factor_correlations(options.get("correlations") or (), fields)
    trials, runs = options.get("trials", USUAL_TRIALS), count_runs(given.shape, given.base)
    block = block_size(runs)
    blocks = max(1, TRIALS_A_CHUNK // (block * (1 + runs // RUNS_A_CHUNK)), math.ceil(trials / (MOST_CHUNKS * block)))
    a_chunk = blocks * block
    chunks = math.ceil(trials / a_chunk)
    early = options.get("early_stop", True)
    base, snapshot = pin_prices(context, given)
    middle = median_base(base, fields)
    _check(context, given.shape, base, middle)
    return PreparedScenario(
        kind="monte_carlo",
        chunks=chunks,
        units_per_chunk=a_chunk,
        units=trials,
        checkpoints=tuple(2**power for power in range(chunks.bit_length()) if 2**power < chunks) if early else (),
        request={
            "shape": given.shape,
            "base": middle,
            "now": context.clock(),
            "fields": fields,
            "mixing": None if mixed is None else mixed.tolist(),
            "seed": options.get("seed", USUAL_SEED),
            "block": block,
            "budget_usd": options.get("budget_usd"),
            "warnings": warnings,
            "assumptions": list_assumptions(options, fields, USUAL_TRIALS, USUAL_SEED, RELATIVE_ERROR),
        },
        snapshot=snapshot,
    )


def _check(context: AppContext, shape: Shape, base: Body, middle: Body) -> None:
    """Raises the Problem of the base, or of the base with its fields at their medians, which is what is planned."""
    try:
        check_base(context, shape, middle)
    except DomainError as problem:
        check_base(context, shape, base)
        raise InvalidRequest(f"with each of these at its median: {problem.message}", "/distributions") from problem


def run_chunk(context: AppContext, prepared: PreparedScenario, index: int, step: Step) -> dict[str, Any]:
    """The tally of a chunk's trials."""
    sampler, _ = load_sampler(context, prepared, step)
    first = index * prepared.units_per_chunk
    trials = prepared.units_after(index + 1) - first
    return encode_aggregate(aggregate_trials(sampler, first // sampler.block, trials, step))


def is_sufficient(prepared: PreparedScenario, tallies: Iterable[Body]) -> bool:
    """Whether the trials so far say enough."""
    del prepared
    return is_precise(_merged(tallies), RELATIVE_ERROR)


def finish(context: AppContext, prepared: PreparedScenario, tallies: Iterable[Body]) -> dict[str, Any]:
    """Percentiles, probabilities, causes."""
    sampler, known = load_sampler(context, prepared, _go_on)
    return present_result(_merged(tallies), sampler, known, prepared)


def _merged(tallies: Iterable[Body]) -> Aggregate:
    found: Aggregate | None = None
    for each in tallies:
        found = merge_aggregates(found, decode_aggregate(each))
    if found is None:
        raise ValueError("no chunk was done")
    return found


def load_sampler(context: AppContext, prepared: PreparedScenario, step: Step) -> tuple[Sampler, TrialModel]:
    """What trials need, made once a process where the scenario has an id."""
    if prepared.key in _kept:
        return _kept[prepared.key]
    made = _made(context, prepared, step)
    if prepared.key:
        _kept[prepared.key] = made
        while len(_kept) > SAMPLERS_KEPT:
            _kept.popitem(last=False)
    return made


def _made(context: AppContext, prepared: PreparedScenario, step: Step) -> tuple[Sampler, TrialModel]:
    """Raises DomainErrors, with pointers into the scenario's request."""
    asked = prepared.request
    fields = load_fields(asked["fields"])
    made = _models(at_time(context, asked["now"]), asked, fields, step)
    models = {nodes: found.model for nodes, found in made.items()}
    places = {nodes: order_program(model) for nodes, model in models.items() if isinstance(model, ProgramModel)}
    known = made[tuple(len(field.nodes) // 2 for field in fields)]
    sampler = Sampler(
        seed=asked["seed"],
        block=asked["block"],
        fields=fields,
        correlation_factor=None if asked["mixing"] is None else np.array(asked["mixing"]),
        models=models,
        networks=places,
        random_spec=models_random_spec(models, places),
        targets=Targets(known.targets.deadline_hours, known.targets.budget_usd if asked["budget_usd"] is None else asked["budget_usd"]),
        units={name: counting_unit(value) for name, value in known.planned.items()},
        score_bins={},
    )
    ahead = replace(sampler, block=min(sampler.block, TRIALS_AHEAD))
    return replace(sampler, score_bins=fit_causes(ahead)), known


def _models(context: AppContext, asked: Body, fields: tuple[UncertainField, ...], step: Step) -> dict[tuple[int, ...], TrialModel]:
    """The model at every combination of nodes. Raises DomainErrors: which values they came of is said."""
    direct = tuple(field.path for field in fields if not field.nodes)
    stated = {one["path"]: one["nodes"] for one in asked["fields"]}
    regimes, found = load_regimes(asked["fields"]), {}
    for nodes in itertools.product(*(range(max(1, len(field.nodes))) for field in fields)):
        step()
        values = {field.path: stated[field.path][at] for field, at in zip(fields, nodes, strict=True) if field.nodes}
        try:
            found[nodes] = build_trial_model(context, asked["shape"], with_values(asked["base"], values), direct, regimes)
        except DomainError as problem:
            if not values:
                raise problem.below("/base") from problem
            said = ", ".join(f"{path} {value}" for path, value in values.items())
            raise InvalidRequest(f"with {said}: {problem.message}", "/distributions") from problem
    return found


def _go_on() -> None:
    """Nobody asks for the end while results are put together."""


KIND = ScenarioKind(prepare, run_chunk, is_sufficient, finish)
