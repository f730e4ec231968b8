"""Refinement of a coarse search around its best option: numbers of accelerators, model sizes and checkpoint intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from providers.offer import PRICINGS
from service.context import AppContext
from service.domain.errors import DomainError
from service.domain.quantities import Assumption
from service.engine.scenarios.optimisation import minimise_on_grid, optimality_gap
from service.engine.training.reliability import checkpoint_interval_hours
from service.presets.comparison.defaults import default_counts
from service.presets.hardware.accelerators import find_accelerator
from service.serialization import to_builtins
from service.usecases.comparison.compare import MAX_WORK
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.cluster import resolve_cluster
from service.usecases.resolution.price import Price
from service.usecases.resolution.run import assemble_run, resolve_trained_model
from service.usecases.scenarios.optimisation.commitment import commitment_warnings, plan_commitment
from service.usecases.scenarios.optimisation.options import (
    OWNED,
    Body,
    Goal,
    OptionRow,
    SizedWorkload,
    compare_options,
    list_rows,
    rows_by_size,
    select_law,
    sized_workload,
    sizes_with_tokens,
    sort_key,
)

MOST_COUNTS = 16
# From one minute to ten days, before the refinement.
INTERVALS_MINUTES = np.geomspace(1.0, 14_400.0, 17).tolist()
BASIS = (
    "every requested accelerator, count and offer is evaluated with a full layout search; counts, sizes and checkpoint intervals in"
    " between are refined around the best. The gap is how much less a finer grid there may cost: the larger of what lines through the"
    " tried points allow for a convex objective, and how far any point near the best lies below its neighbours"
)
BASIS_OWNED = "every option is evaluated; owned hardware has a fixed number of accelerators, so nothing is refined"


def refine_best(context: AppContext, task: Body, goal: Goal, best: OptionRow) -> dict[str, Any]:
    """The refined best option, its optimality gap, the commitment of capacity, assumptions and warnings."""
    gaps: dict[str, float] = {}
    if best["pricing"] != OWNED:
        refinements = (("count", _refine_count), ("model_size", _refine_size), ("checkpoint_interval", _refine_interval))
        for name, refine in refinements:
            best, gaps[name] = refine(context, task, goal, best)
    demand = task["demand"]
    comparison = compare_options(context, task, goal, [_sized(task, best)], _candidates_at(task, best, [best["count"]]), owned=True)
    quantile = goal.quantile if goal.objective == "cost_quantile" else None
    mix = plan_commitment(comparison, best, demand["accelerators"], quantile) if demand else None
    return {
        "best": with_checkpoint_interval(context, task, best),
        "gap": {"share": sum(gaps.values()), "by": gaps, "basis": BASIS if gaps else BASIS_OWNED},
        "commitment": mix,
        "assumptions": to_builtins([*_search_assumptions(task, goal), *comparison.assumptions]),
        "warnings": [*_law_warnings(task), *commitment_warnings(mix, task["candidates"].get("pricing")), *comparison.warnings],
    }


def _refine_count(context: AppContext, task: Body, goal: Goal, best: OptionRow) -> tuple[OptionRow, float]:
    """Whole numbers of nodes between the default counts next to the best; none where the caller lists counts."""
    if task["candidates"].get("counts") is not None:
        return best, 0.0
    defaults, node = default_counts(1, MAX_WORK // 2).value, find_accelerator(best["accelerator"]).accelerator.accelerators_per_node
    below = max((count for count in defaults if count < best["count"]), default=best["count"])
    above = min((count for count in defaults if count > best["count"]), default=best["count"])
    between = [count for count in range(-(-below // node) * node, above, node) if count not in (below, best["count"])]
    chosen = between[:: -(-len(between) // MOST_COUNTS)] if between else []
    if not chosen:
        return best, 0.0
    sized = [_sized(task, best)]
    counts = sorted({below, best["count"], above, *chosen})
    rows = list_rows(compare_options(context, task, goal, sized, _candidates_at(task, best, counts), owned=False), sized, goal)
    tried = {count: min((row["objective"] for row in rows if row["count"] == count), default=math.inf) for count in counts}
    # With every whole number of nodes tried there is no finer grid.
    return min((best, *rows), key=sort_key), optimality_gap(tried) if len(chosen) < len(between) else 0.0


def _refine_size(context: AppContext, task: Body, goal: Goal, best: OptionRow) -> tuple[OptionRow, float]:
    """Sizes between the neighbours of the best, each with the tokens that reach the loss."""
    wanted = task["model_size"]
    if wanted is None or best["params"] is None:
        return best, 0.0

    def sized(params: Sequence[float]) -> list[SizedWorkload]:
        return [sized_workload(*each) for each in sizes_with_tokens(wanted, task["constraints"]["max_loss"], params)]

    return _refine_workload(context, task, goal, best, sized, [params for params, _ in task["sizes"]])


def _refine_interval(context: AppContext, task: Body, goal: Goal, best: OptionRow) -> tuple[OptionRow, float]:
    """Checkpoint intervals, where the caller states none; the best keeps Daly's where none is better."""
    if task["workload"].get("failures", {}).get("checkpoint_interval_minutes", "auto") != "auto":
        return best, 0.0
    own = _sized(task, best)

    def sized(minutes: Sequence[float]) -> list[SizedWorkload]:
        return [_with_interval(task, own, interval) for interval in minutes]

    return _refine_workload(context, task, goal, best, sized, INTERVALS_MINUTES)


def _refine_workload(
    context: AppContext,
    task: Body,
    goal: Goal,
    best: OptionRow,
    sized: Callable[[Sequence[float]], list[SizedWorkload]],
    coarse: Sequence[float],
) -> tuple[OptionRow, float]:
    """The best row over a quantity that is tried on a coarse grid, then between the neighbours of the best."""
    seen: list[OptionRow] = []

    def objectives(values: Sequence[float]) -> list[float]:
        found = [min(rows, key=sort_key, default=None) for rows in _rows_by_workload(context, task, goal, best, sized(values))]
        seen.extend(row for row in found if row is not None)
        return [math.inf if row is None else row["objective"] for row in found]

    tried = dict(zip(coarse, objectives(coarse), strict=True))
    if not seen:
        return best, 0.0
    minimise_on_grid(objectives, tried)
    return min((best, *seen), key=sort_key), optimality_gap(tried)


def _rows_by_workload(
    context: AppContext, task: Body, goal: Goal, best: OptionRow, sizes: Sequence[SizedWorkload]
) -> list[list[OptionRow]]:
    """Feasible rows of each workload on the best's number of accelerators; none of an invalid workload."""
    try:
        found = compare_options(context, task, goal, sizes, _candidates_at(task, best, [best["count"]]), owned=False)
    except DomainError:
        # One workload is invalid: each is compared alone.
        return [[]] if len(sizes) == 1 else [rows for each in sizes for rows in _rows_by_workload(context, task, goal, best, [each])]
    return rows_by_size(found, sizes, goal)


def _sized(task: Body, best: OptionRow) -> SizedWorkload:
    """The best option's workload: its size and checkpoint interval."""
    own, minutes = sized_workload(best["params"], best["tokens"]), best["checkpoint_interval_minutes"]
    return own if minutes is None else _with_interval(task, own, minutes)


def _with_interval(task: Body, sized: SizedWorkload, minutes: float) -> SizedWorkload:
    failures = {**task["workload"].get("failures", {}), "checkpoint_interval_minutes": minutes}
    return replace(sized, workload={**sized.workload, "failures": failures}, checkpoint_interval_minutes=minutes)


def with_checkpoint_interval(context: AppContext, task: Body, row: OptionRow) -> OptionRow:
    """A row with its checkpoint interval: the one tried, else the caller's, else Daly's."""
    if row["checkpoint_interval_minutes"] is not None:
        return dict(row)
    cluster = resolve_cluster(find_accelerator(row["accelerator"]), {"count": row["count"]}, AssumptionLog())
    workload = {**task["workload"], **sized_workload(row["params"], row["tokens"]).workload}
    pricing = row["pricing"] if row["pricing"] in PRICINGS else None
    price = Price(row["usd_per_accelerator_hour"], "", stale=False, pricing=pricing)
    model, training = resolve_trained_model(context, workload, cluster, AssumptionLog())
    run = assemble_run(context, workload, model, training, cluster, price, AssumptionLog())
    return {**row, "checkpoint_interval_minutes": checkpoint_interval_hours(run) * 60}


def _candidates_at(task: Body, best: OptionRow, counts: Sequence[int]) -> dict[str, Any]:
    """The candidates restricted to the best's accelerator and these counts."""
    return {**task["candidates"], "accelerators": [best["accelerator"]], "counts": list(counts)}


def _search_assumptions(task: Body, goal: Goal) -> Iterator[Assumption]:
    """Defaults of the search that the caller did not state."""
    if task["model_size"] is not None and not task["model_size"].get("law"):
        law = select_law(task["model_size"])
        yield Assumption("model_size.law", law.name, law.source)
    if goal.latest > goal.earliest and goal.price_change_per_year == 0:
        yield Assumption("starts.price_change_per_year", 0.0, "not stated: a later start costs the same")


def _law_warnings(task: Body) -> list[str]:
    """A warning where a law does not count all of a model's parameters."""
    law = select_law(task["model_size"]) if task["model_size"] is not None else None
    return [f"law {law.name} counts {law.counts} parameters; they are used as the model's"] if law and law.counts != "all" else []
