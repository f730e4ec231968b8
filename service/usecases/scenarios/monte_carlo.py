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
from service.domain.scenarios import Aggregate, Limits, ProgramModel
from service.engine.scenarios.aggregates import merged, unit_for
from service.engine.scenarios.program import placed
from service.engine.scenarios.summary import sure_enough
from service.engine.scenarios.trials import Field, Sampler, all_needed, block_size, gauged, tally
from service.usecases.scenarios.aggregates_codec import tally_of, written
from service.usecases.scenarios.base_check import check_base
from service.usecases.scenarios.changes.request_paths import as_of, changed, pinned
from service.usecases.scenarios.monte_carlo_result import result_of
from service.usecases.scenarios.registry import MOST_CHUNKS, Body, Prepared, ScenarioKind, ScenarioRequest, Shape, Step
from service.usecases.scenarios.trial_models import Modelled, modelled, run_count
from service.usecases.scenarios.uncertain_fields import (
    assumptions_of,
    fields_of,
    mixing_of,
    reach_warnings,
    read_fields,
    regimes_of,
    varied_base,
)

USUAL_TRIALS, USUAL_SEED = 100_000, 1
# A chunk takes some 50 ms of a few runs, and of hundreds, which are tried less often, a quarter of a second.
TRIALS_A_CHUNK, RUNS_A_CHUNK = 65_536, 8
# Trials end when mean, p10, p50 and p90 are known to this share of themselves, and probabilities to a quarter of a point.
RELATIVE_ERROR = 0.0025
# Each worker makes them before its first chunk. They place causes in 64 groups, whose sizes are counted: 128 trials a group are enough.
TRIALS_AHEAD = 8192
SAMPLERS_KEPT = 4

_kept: OrderedDict[str, tuple[Sampler, Modelled]] = OrderedDict()


def prepare(context: AppContext, given: ScenarioRequest) -> Prepared:
    """The uncertain fields with how they are distributed, and how many trials. Raises DomainErrors, pointers into the request."""
    options = given.options
    fields = read_fields(context, given)
    warnings = reach_warnings(given.base, fields)
    mixed = mixing_of(options.get("correlations") or (), fields)
    trials, runs = options.get("trials", USUAL_TRIALS), run_count(given.shape, given.base)
    block = block_size(runs)
    blocks = max(1, TRIALS_A_CHUNK // (block * (1 + runs // RUNS_A_CHUNK)), math.ceil(trials / (MOST_CHUNKS * block)))
    a_chunk = blocks * block
    chunks = math.ceil(trials / a_chunk)
    early = options.get("early_stop", True)
    base, snapshot = pinned(context, given)
    middle = varied_base(base, fields)
    _check(context, given.shape, base, middle)
    return Prepared(
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
            "assumptions": assumptions_of(options, fields, USUAL_TRIALS, USUAL_SEED, RELATIVE_ERROR),
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


def run_chunk(context: AppContext, prepared: Prepared, index: int, step: Step) -> dict[str, Any]:
    """The tally of a chunk's trials."""
    sampler, _ = sampler_of(context, prepared, step)
    first = index * prepared.units_per_chunk
    trials = prepared.units_after(index + 1) - first
    return written(tally(sampler, first // sampler.block, trials, step))


def enough(prepared: Prepared, tallies: Iterable[Body]) -> bool:
    """Whether the trials so far say enough."""
    del prepared
    return sure_enough(_merged(tallies), RELATIVE_ERROR)


def finish(context: AppContext, prepared: Prepared, tallies: Iterable[Body]) -> dict[str, Any]:
    """Percentiles, probabilities, causes."""
    sampler, known = sampler_of(context, prepared, _go_on)
    return result_of(_merged(tallies), sampler, known, prepared)


def _merged(tallies: Iterable[Body]) -> Aggregate:
    found: Aggregate | None = None
    for each in tallies:
        found = merged(found, tally_of(each))
    if found is None:
        raise ValueError("no chunk was done")
    return found


def sampler_of(context: AppContext, prepared: Prepared, step: Step) -> tuple[Sampler, Modelled]:
    """What trials need, made once a process where the scenario has an id."""
    if prepared.key in _kept:
        return _kept[prepared.key]
    made = _made(context, prepared, step)
    if prepared.key:
        _kept[prepared.key] = made
        while len(_kept) > SAMPLERS_KEPT:
            _kept.popitem(last=False)
    return made


def _made(context: AppContext, prepared: Prepared, step: Step) -> tuple[Sampler, Modelled]:
    """Raises DomainErrors, with pointers into the scenario's request."""
    asked = prepared.request
    fields = fields_of(asked["fields"])
    made = _models(as_of(context, asked["now"]), asked, fields, step)
    models = {nodes: found.model for nodes, found in made.items()}
    places = {nodes: placed(model) for nodes, model in models.items() if isinstance(model, ProgramModel)}
    known = made[tuple(len(field.nodes) // 2 for field in fields)]
    sampler = Sampler(
        seed=asked["seed"],
        block=asked["block"],
        fields=fields,
        mixing=None if asked["mixing"] is None else np.array(asked["mixing"]),
        models=models,
        places=places,
        needed=all_needed(models, places),
        limits=Limits(known.limits.deadline_hours, known.limits.budget_usd if asked["budget_usd"] is None else asked["budget_usd"]),
        units={name: unit_for(value) for name, value in known.planned.items()},
        gauges={},
    )
    ahead = replace(sampler, block=min(sampler.block, TRIALS_AHEAD))
    return replace(sampler, gauges=gauged(ahead)), known


def _models(context: AppContext, asked: Body, fields: tuple[Field, ...], step: Step) -> dict[tuple[int, ...], Modelled]:
    """The model at every combination of nodes. Raises DomainErrors: which values they came of is said."""
    direct = tuple(field.path for field in fields if not field.nodes)
    stated = {one["path"]: one["nodes"] for one in asked["fields"]}
    regimes, found = regimes_of(asked["fields"]), {}
    for nodes in itertools.product(*(range(max(1, len(field.nodes))) for field in fields)):
        step()
        values = {field.path: stated[field.path][at] for field, at in zip(fields, nodes, strict=True) if field.nodes}
        try:
            found[nodes] = modelled(context, asked["shape"], changed(asked["base"], values), direct, regimes)
        except DomainError as problem:
            if not values:
                raise problem.below("/base") from problem
            said = ", ".join(f"{path} {value}" for path, value in values.items())
            raise InvalidRequest(f"with {said}: {problem.message}", "/distributions") from problem
    return found


def _go_on() -> None:
    """Nobody asks for the end while results are put together."""


KIND = ScenarioKind(prepare, run_chunk, enough, finish)
