"""The best way to a goal: accelerator, count, layout, offer, start, checkpoint interval and size of the model, within constraints.

Every accelerator, count and offer is evaluated, a chunk for each accelerator and size; then counts, size and checkpoint interval are
narrowed around the best.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

from service.context import AppContext
from service.domain.errors import DomainError, InvalidRequest
from service.presets.version import engine_version
from service.usecases.comparison.offer_selection import resolve_accelerators
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.run_settings import resolve_overhead, resolve_schedule
from service.usecases.scenarios.base_check import MODEL, REGION, check_names
from service.usecases.scenarios.changes.request_paths import at_time, pin_prices
from service.usecases.scenarios.optimisation.commitment import check_demand
from service.usecases.scenarios.optimisation.model_sizes import coarse_sizes, sized_workload
from service.usecases.scenarios.optimisation.options import Goal, OptionRow, compare_options, list_rows, select_pareto_front, sort_key
from service.usecases.scenarios.optimisation.refinement import refine_best, with_checkpoint_interval
from service.usecases.scenarios.registry import PreparedScenario, ScenarioKind, ScenarioRequest, Step, never_sufficient

Body = Mapping[str, Any]

OBJECTIVES = ("expected_cost", "cost_quantile", "time")
MOST_CHUNKS = 1000
# Of each chunk so many of the best are kept beside those that nothing beats.
KEPT = 10
MOST_ON_FRONT = 200
ASIDE = ("hardware", "price", "levers")


def prepare(context: AppContext, given: ScenarioRequest) -> PreparedScenario:
    """What is searched. Raises DomainErrors with pointers into the request."""
    options = given.options
    if given.shape != "estimate":
        raise InvalidRequest("optimize takes an estimate request as its base", "/base")
    if (options.get("objective") == "cost_quantile") != ("quantile" in options):
        raise InvalidRequest("cost_quantile takes the quantile, and no other objective does", "/quantile")
    base, snapshot = pin_prices(context, given)
    check_names(context, given.shape, base, (REGION,) if options.get("model_size") else (MODEL, REGION))
    accelerators = resolve_accelerators(options.get("candidates", {}), context.book(snapshot).columns, AssumptionLog())
    sizes = _sizes(given)
    if len(sizes) * len(accelerators) > MOST_CHUNKS:
        raise InvalidRequest(
            f"{len(accelerators)} accelerators for {len(sizes)} sizes are more than {MOST_CHUNKS}", "/candidates/accelerators"
        )
    if options.get("demand"):
        check_demand(options["demand"]["accelerators"], "/demand/accelerators")
    chunks = max(1, len(sizes) * len(accelerators))
    return PreparedScenario(
        kind="optimize",
        chunks=chunks,
        units_per_chunk=1,
        units=chunks,
        checkpoints=(),
        request={
            "workload": {name: section for name, section in given.base.items() if name not in ASIDE},
            "candidates": options.get("candidates", {}),
            "constraints": options.get("constraints", {}),
            "on_prem": list(options.get("on_prem", ())),
            "demand": options.get("demand"),
            "model_size": options.get("model_size"),
            "accelerators": list(accelerators),
            "sizes": sizes,
            "aim": _aim(context, given),
            "now": context.clock(),
            "snapshot": snapshot,
        },
        snapshot=snapshot,
    )


def run_chunk(context: AppContext, prepared: PreparedScenario, index: int, step: Step) -> dict[str, Any]:
    """The best options of one accelerator at one size, those that nothing beats among them. Owned hardware stands with the first."""
    asked, context = prepared.request, at_time(context, prepared.request["now"])
    aim = Goal(**asked["aim"])
    size, place = divmod(index, max(1, len(asked["accelerators"])))
    sized = [sized_workload(*asked["sizes"][size])]
    step()
    candidates = {**asked["candidates"], "accelerators": asked["accelerators"][place : place + 1]}
    try:
        found = compare_options(context, asked, aim, sized, candidates, owned=place == 0)
    except DomainError as problem:
        return {"rows": [], "considered": 0, "infeasible": {}, "problem": f"{problem.pointer}: {problem.message}".removeprefix(": ")}
    step()
    rows = list_rows(found, sized, aim)
    kept = {row["id"]: row for row in (*rows[:KEPT], *select_pareto_front(rows))}
    return {
        "rows": list(kept.values()),
        "considered": found.considered,
        "infeasible": found.infeasible,
        "problem": None if rows else next(iter(found.warnings), "no option is feasible"),
    }


def finish(context: AppContext, prepared: PreparedScenario, tallies: Iterable[Body]) -> dict[str, Any]:
    """The best of all, narrowed down, with those that nothing beats. Raises InvalidRequest where nothing could be compared."""
    rows: list[OptionRow] = []
    infeasible: Counter[str] = Counter()
    considered, problems = 0, []
    for tally in tallies:
        rows += tally["rows"]
        infeasible.update(tally["infeasible"])
        considered += tally["considered"]
        problems += [tally["problem"]] if tally["problem"] else []
    if not considered:
        raise InvalidRequest(problems[0] if problems else "there is nothing to compare")
    answer = {
        "objective": prepared.request["aim"]["objective"],
        "considered": considered,
        "infeasible": dict(infeasible),
        "price_snapshot": prepared.snapshot,
        "engine_version": engine_version(),
    }
    if not rows:
        nothing: dict[str, Any] = {"best": None, "pareto_front": [], "gap": None, "commitment": None, "assumptions": []}
        return answer | nothing | {"warnings": ["nothing keeps to the constraints", *dict.fromkeys(problems)][:20]}
    context, asked = at_time(context, prepared.request["now"]), prepared.request
    return (
        answer
        | refine_best(context, asked, Goal(**asked["aim"]), min(rows, key=sort_key))
        | {"pareto_front": [with_checkpoint_interval(asked, row) for row in _front(rows)]}
    )


def _front(rows: list[OptionRow]) -> list[OptionRow]:
    return sorted(select_pareto_front(rows), key=sort_key)[:MOST_ON_FRONT]


def _aim(context: AppContext, given: ScenarioRequest) -> dict[str, Any]:
    """What is made least, from when on, by when. Raises InvalidRequest."""
    options, schedule = given.options, given.base.get("schedule", {})
    constraints, starts = options.get("constraints", {}), options.get("starts", {})
    earliest: date = constraints.get("start") or schedule.get("start") or context.clock().date()
    latest: date = starts.get("latest") or earliest
    if latest < earliest:
        raise InvalidRequest(f"the latest start {latest} is before the earliest, {earliest}", "/starts/latest")
    deadline = constraints.get("deadline") or schedule.get("deadline")
    if deadline is not None and deadline < earliest:
        raise InvalidRequest(f"the deadline {deadline} is before the start {earliest}", "/constraints/deadline")
    overhead = resolve_overhead(given.base.get("overhead", {}), AssumptionLog())
    return {
        "objective": options.get("objective", OBJECTIVES[0]),
        "quantile": options.get("quantile", 0.5),
        "earliest": earliest,
        "latest": latest,
        "price_change_per_year": starts.get("price_change_per_year", 0.0),
        "deadline": deadline,
        "min_deadline_probability": constraints.get("min_deadline_probability"),
        "max_cost_usd": constraints.get("max_cost_usd"),
        "around": overhead.evaluation + overhead.debugging + overhead.reruns,
        "queue_hours": resolve_schedule({**schedule, "start": earliest, "deadline": None}, AssumptionLog()).queue_hours,
    }


def _sizes(given: ScenarioRequest) -> list[tuple[float | None, float | None]]:
    """Sizes with their tokens; the base's own where none are searched. Raises InvalidRequest."""
    wanted, most_loss = given.options.get("model_size"), given.options.get("constraints", {}).get("max_loss")
    if (wanted is None) != (most_loss is None):
        where = "/constraints/max_loss" if wanted else "/model_size"
        raise InvalidRequest("a model's size is searched under a loss it must reach: state model_size and constraints.max_loss", where)
    return [(None, None)] if wanted is None else [*coarse_sizes(wanted, most_loss)]


KIND = ScenarioKind(prepare, run_chunk, never_sufficient, finish)
