"""The best of a coarse search narrowed down: numbers of accelerators between those tried, sizes of the model, checkpoint intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from providers.offer import TERM_HOURS
from service.context import AppContext
from service.domain.errors import DomainError
from service.engine.scenarios.optimisation import minimise_on_grid, optimality_gap
from service.engine.training.reliability import checkpoint_interval_hours
from service.presets.comparison.defaults import default_counts
from service.presets.hardware.accelerators import find_accelerator
from service.serialization import plain
from service.usecases.comparison.compare import MAX_WORK
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.cluster import resolve_cluster
from service.usecases.resolution.price import Price
from service.usecases.resolution.resolve import assemble_run, resolve_trained_model
from service.usecases.scenarios.optimisation.commitment import commitment_warnings, plan_commitment
from service.usecases.scenarios.optimisation.model_sizes import select_law, sized_workload, sizes_with_tokens
from service.usecases.scenarios.optimisation.options import (
    OWNED,
    Goal,
    OptionRow,
    SizedWorkload,
    compare_options,
    list_rows,
    rows_by_size,
    sort_key,
)

Body = Mapping[str, Any]

ROUNDS = 2
MOST_COUNTS = 16
# From a checkpoint a minute to one in ten days, before it is narrowed.
INTERVALS_MINUTES = np.geomspace(1.0, 14_400.0, 17).tolist()
BASIS = (
    "every accelerator, number and offer asked for is evaluated, with layouts searched whole; numbers, sizes and checkpoint intervals in"
    " between are narrowed around the best. The gap is how much less a finer grid there may cost: what lines through the points tried"
    " allow a convex objective, or the deepest dip of a point near the best below its neighbours, whichever is more"
)
BASIS_OWNED = "every option is evaluated; owned hardware is as many accelerators as there are, and nothing of it is narrowed"


def refine_best(context: AppContext, asked: Body, aim: Goal, best: OptionRow) -> dict[str, Any]:
    """The best option, how far from the best it may be, how to commit to capacity of its kind, and what was assumed of it."""
    gaps: dict[str, float] = {}
    if best["pricing"] != OWNED:
        for name, narrow in (("count", _count), ("model_size", _size), ("checkpoint_interval", _interval)):
            best, gaps[name] = narrow(context, asked, aim, best)
    demand = asked["demand"]
    found = compare_options(context, asked, aim, [_sized(asked, best)], _at(asked, best, [best["count"]]), owned=True)
    quantile = aim.quantile if aim.objective == "cost_quantile" else None
    mix = plan_commitment(found, best, demand["accelerators"], quantile) if demand else None
    return {
        "best": with_checkpoint_interval(asked, best),
        "gap": {"share": sum(gaps.values()), "by": gaps, "basis": BASIS if gaps else BASIS_OWNED},
        "commitment": mix,
        "assumptions": [*_assumed(asked, aim), *plain(found.assumptions)],
        "warnings": [*_law_warnings(asked), *commitment_warnings(mix), *found.warnings],
    }


def _count(context: AppContext, asked: Body, aim: Goal, best: OptionRow) -> tuple[OptionRow, float]:
    """Numbers of whole nodes between the usual ones next to the best; those that the caller lists are all there are."""
    if asked["candidates"].get("counts") is not None:
        return best, 0.0
    usual, node = default_counts(1, MAX_WORK // 2).value, find_accelerator(best["accelerator"]).accelerator.accelerators_per_node
    below = max((count for count in usual if count < best["count"]), default=best["count"])
    above = min((count for count in usual if count > best["count"]), default=best["count"])
    between = [count for count in range(-(-below // node) * node, above, node) if count not in (below, best["count"])]
    chosen = between[:: -(-len(between) // MOST_COUNTS)] if between else []
    if not chosen:
        return best, 0.0
    sized = [_sized(asked, best)]
    around = sorted({below, best["count"], above, *chosen})
    rows = list_rows(compare_options(context, asked, aim, sized, _at(asked, best, around), owned=False), sized, aim)
    tried = {count: min((row["objective"] for row in rows if row["count"] == count), default=math.inf) for count in around}
    # With every whole node tried there is no finer grid.
    return min((best, *rows), key=sort_key), optimality_gap(tried) if len(chosen) < len(between) else 0.0


def _size(context: AppContext, asked: Body, aim: Goal, best: OptionRow) -> tuple[OptionRow, float]:
    """Sizes between the best one's neighbours, each with the tokens that its loss takes."""
    wanted = asked["model_size"]
    if wanted is None or best["params"] is None:
        return best, 0.0

    def sized(params: Sequence[float]) -> list[SizedWorkload]:
        return [sized_workload(*each) for each in sizes_with_tokens(wanted, asked["constraints"]["max_loss"], params)]

    return _narrowed(context, asked, aim, best, sized, [params for params, _ in asked["sizes"]])


def _interval(context: AppContext, asked: Body, aim: Goal, best: OptionRow) -> tuple[OptionRow, float]:
    """Checkpoint intervals, where the caller has not fixed one; Daly's, which the best has by itself, stays where none is better."""
    section = asked["workload"].get("failures", {})
    if section.get("checkpoint_interval_minutes", "auto") != "auto":
        return best, 0.0
    own = _sized(asked, best)

    def sized(minutes: Sequence[float]) -> list[SizedWorkload]:
        changed = [{**own.workload, "failures": {**section, "checkpoint_interval_minutes": each}} for each in minutes]
        return [replace(own, workload=workload, checkpoint_interval_minutes=each) for workload, each in zip(changed, minutes, strict=True)]

    return _narrowed(context, asked, aim, best, sized, INTERVALS_MINUTES)


def _narrowed(
    context: AppContext,
    asked: Body,
    aim: Goal,
    best: OptionRow,
    sized: Callable[[Sequence[float]], list[SizedWorkload]],
    coarse: Sequence[float],
) -> tuple[OptionRow, float]:
    """The best row over a quantity that is tried in equal factors first, then between the neighbours of the best."""
    seen: list[OptionRow] = []

    def objectives(values: Sequence[float]) -> list[float]:
        found = [min(rows, key=sort_key, default=None) for rows in _each(context, asked, aim, best, sized(values))]
        seen.extend(row for row in found if row is not None)
        return [math.inf if row is None else row["objective"] for row in found]

    tried = dict(zip(coarse, objectives(coarse), strict=True))
    if not seen:
        return best, 0.0
    minimise_on_grid(objectives, tried, min(coarse), max(coarse), ROUNDS)
    return min((best, *seen), key=sort_key), optimality_gap(tried)


def _each(context: AppContext, asked: Body, aim: Goal, best: OptionRow, sizes: Sequence[SizedWorkload]) -> list[list[OptionRow]]:
    """The feasible rows of each of several workloads on as many of the best's accelerators; none of a workload that cannot be."""
    try:
        found = compare_options(context, asked, aim, sizes, _at(asked, best, [best["count"]]), owned=False)
    except DomainError:
        # One of them is refused: each by itself, to tell which.
        return [[]] if len(sizes) == 1 else [rows for each in sizes for rows in _each(context, asked, aim, best, [each])]
    return rows_by_size(found, sizes, aim)


def _sized(asked: Body, best: OptionRow) -> SizedWorkload:
    """The best's own size and checkpoint interval."""
    own, minutes = sized_workload(best["params"], best["tokens"]), best["checkpoint_interval_minutes"]
    if minutes is None:
        return own
    failures = {**asked["workload"].get("failures", {}), "checkpoint_interval_minutes": minutes}
    return replace(own, workload={**own.workload, "failures": failures}, checkpoint_interval_minutes=minutes)


def with_checkpoint_interval(asked: Body, row: OptionRow) -> OptionRow:
    """A row with the checkpoint interval that it is of: where it is not one that was tried, the caller's own, else Daly's."""
    if row["checkpoint_interval_minutes"] is not None:
        return dict(row)
    cluster = resolve_cluster(find_accelerator(row["accelerator"]), {"count": row["count"]}, AssumptionLog())
    workload = {**asked["workload"], **sized_workload(row["params"], row["tokens"]).workload}
    pricing = row["pricing"] if row["pricing"] in TERM_HOURS else None
    price = Price(row["usd_per_accelerator_hour"], "", stale=False, pricing=pricing)
    model, training = resolve_trained_model(workload, cluster, AssumptionLog())
    run = assemble_run(workload, model, training, cluster, price, AssumptionLog())
    return {**row, "checkpoint_interval_minutes": checkpoint_interval_hours(run) * 60}


def _at(asked: Body, best: OptionRow, counts: Sequence[int]) -> dict[str, Any]:
    """The candidates with the best's accelerator in these numbers."""
    return {**asked["candidates"], "accelerators": [best["accelerator"]], "counts": list(counts)}


def _assumed(asked: Body, aim: Goal) -> list[dict[str, Any]]:
    """What the caller did not say of the search itself."""
    found: list[dict[str, Any]] = []
    if asked["model_size"] is not None and not asked["model_size"].get("law"):
        law = select_law(asked["model_size"])
        found.append({"field": "model_size.law", "value": law.name, "source": law.source})
    if aim.latest > aim.earliest and aim.price_change_per_year == 0:
        found.append({"field": "starts.price_change_per_year", "value": 0.0, "source": "not stated: a later start costs the same"})
    return found


def _law_warnings(asked: Body) -> list[str]:
    """What a law's parameters are, where they are not all of a model's."""
    law = select_law(asked["model_size"]) if asked["model_size"] is not None else None
    return [f"parameters of law {law.name} are {law.counts} ones, and are taken for the model's"] if law and law.counts != "all" else []
