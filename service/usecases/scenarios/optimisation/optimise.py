"""Optimisation of accelerator, count, layout, offer, start, checkpoint interval and model size within constraints.

Every accelerator, count and offer is evaluated, one chunk for each accelerator and size; then count, size and checkpoint interval are
refined around the best.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

from service.context import AppContext
from service.domain.errors import DomainError, InvalidRequest
from service.presets.version import engine_version
from service.prices.book import PriceBook
from service.serialization import to_builtins
from service.usecases.comparison.empty_result import explain_no_offer, recent_rows
from service.usecases.comparison.offer_selection import matching_rows, resolve_accelerators
from service.usecases.comparison.timed_configurations import check_measured_steps
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.feedback import apply_overhead_feedback
from service.usecases.resolution.run_settings import resolve_overhead, resolve_schedule
from service.usecases.scenarios.base_check import MODEL, REGION, check_names
from service.usecases.scenarios.changes.request_paths import at_time, pin_prices
from service.usecases.scenarios.optimisation.commitment import check_demand
from service.usecases.scenarios.optimisation.options import (
    Goal,
    OptionRow,
    coarse_sizes,
    compare_options,
    list_rows,
    select_pareto_front,
    sized_workload,
    sort_key,
)
from service.usecases.scenarios.optimisation.refinement import refine_best, with_checkpoint_interval
from service.usecases.scenarios.registry import Body, PreparedScenario, ScenarioKind, ScenarioRequest, Step
from service.usecases.scenarios.summary import summarise_optimisation

OBJECTIVES = ("expected_cost", "cost_quantile", "time")
MOST_CHUNKS = 1000
# Best rows of each chunk, in addition to its Pareto front.
BEST_ROWS = 10
MOST_ON_FRONT = 200
IGNORED_SECTIONS = ("hardware", "price", "levers")


def prepare(context: AppContext, request: ScenarioRequest) -> PreparedScenario:
    """The search space and the goal. Raises DomainErrors with pointers into the request."""
    options = request.options
    if request.shape != "estimate":
        raise InvalidRequest("optimize takes an estimate request as its base", "/base")
    if (options.get("objective") == "cost_quantile") != ("quantile" in options):
        raise InvalidRequest("state quantile with the objective cost_quantile, and only with it", "/quantile")
    _refuse_parts(request.base)
    base, snapshot = pin_prices(context, request)
    check_names(context, request.shape, base, (REGION,) if options.get("model_size") else (MODEL, REGION))
    accelerators = resolve_accelerators(options.get("candidates", {}), context.book(snapshot).columns, AssumptionLog())
    check_measured_steps(base, accelerators, "/base")
    sizes = _sizes(request)
    if len(sizes) * len(accelerators) > MOST_CHUNKS:
        raise InvalidRequest(
            f"{len(accelerators)} accelerators for {len(sizes)} sizes are more than {MOST_CHUNKS}", "/candidates/accelerators"
        )
    if not options.get("on_prem"):
        _check_offered(context, options.get("candidates", {}), accelerators, context.book(snapshot))
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
            "workload": {name: section for name, section in request.base.items() if name not in IGNORED_SECTIONS},
            "candidates": options.get("candidates", {}),
            "constraints": options.get("constraints", {}),
            "on_prem": list(options.get("on_prem", ())),
            "demand": options.get("demand"),
            "model_size": options.get("model_size"),
            "accelerators": list(accelerators),
            "sizes": sizes,
            "goal": _goal(context, request),
            "now": context.clock(),
            "snapshot": snapshot,
        },
        snapshot=snapshot,
        lessons=context.lessons(),
    )


def _refuse_parts(base: Body) -> None:
    """Raises InvalidRequest for parts of a run that machines are not compared by."""
    if base.get("evaluation"):
        raise InvalidRequest(
            "optimize does not count suites on each machine: leave evaluation out, or state overhead.evaluation", "/base/evaluation"
        )
    if "phases" in base.get("training", {}):
        raise InvalidRequest(
            "optimize compares machines for a whole run: leave phases out, or plan each phase separately", "/base/training/phases"
        )


def _check_offered(context: AppContext, candidates: Body, accelerators: Sequence[str], book: PriceBook) -> None:
    """Raises NoOffer where no offer answers the candidates: there is no cost to optimise."""
    if not len(recent_rows(matching_rows(candidates, accelerators, book), candidates, book, context.clock())):
        raise explain_no_offer(candidates, accelerators, book, context.clock())


def run_chunk(context: AppContext, prepared: PreparedScenario, index: int, step: Step) -> dict[str, Any]:
    """The best rows and the Pareto front of one accelerator at one size; owned hardware is in the first chunk of a size."""
    task, context = prepared.request, at_time(context, prepared.request["now"])
    goal = Goal(**task["goal"])
    size, accelerator = divmod(index, max(1, len(task["accelerators"])))
    sized = [sized_workload(*task["sizes"][size])]
    step()
    candidates = {**task["candidates"], "accelerators": task["accelerators"][accelerator : accelerator + 1]}
    try:
        comparison = compare_options(context, task, goal, sized, candidates, owned=accelerator == 0)
    except DomainError as problem:
        return {"rows": [], "considered": 0, "infeasible": {}, "problem": f"{problem.pointer}: {problem.message}".removeprefix(": ")}
    step()
    rows = list_rows(comparison, sized, goal)
    selected = {row["id"]: row for row in (*rows[:BEST_ROWS], *select_pareto_front(rows))}
    return {
        "rows": list(selected.values()),
        "considered": comparison.considered,
        "infeasible": comparison.infeasible,
        "problem": None if rows else next(iter(comparison.warnings), "no option is feasible"),
    }


def finish(context: AppContext, prepared: PreparedScenario, tallies: Iterable[Body]) -> dict[str, Any]:
    """The refined best option with the Pareto front. Raises InvalidRequest where nothing could be compared."""
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
        "objective": prepared.request["goal"]["objective"],
        "considered": considered,
        "infeasible": dict(infeasible),
        "price_snapshot": prepared.snapshot,
        "lessons": prepared.lessons_reference,
        "engine_version": engine_version(),
    }
    if not rows:
        empty: dict[str, Any] = {"best": None, "pareto_front": [], "gap": None, "commitment": None, "assumptions": []}
        warnings = ["nothing meets the constraints", *dict.fromkeys(problems)][:20]
        return _summed_up(None, answer | empty | {"warnings": warnings})
    context, task = at_time(context, prepared.request["now"]), prepared.request
    front = [with_checkpoint_interval(context, task, row) for row in sorted(select_pareto_front(rows), key=sort_key)[:MOST_ON_FRONT]]
    found = refine_best(context, task, Goal(**task["goal"]), min(rows, key=sort_key))
    return _summed_up(found["best"], answer | found | {"pareto_front": front})


def _summed_up(best: OptionRow | None, answer: dict[str, Any]) -> dict[str, Any]:
    return {"summary": to_builtins(summarise_optimisation(best, answer["considered"])), **answer}


def _goal(context: AppContext, request: ScenarioRequest) -> dict[str, Any]:
    """Fields of the Goal. Raises InvalidRequest."""
    options, schedule = request.options, request.base.get("schedule", {})
    constraints, starts = options.get("constraints", {}), options.get("starts", {})
    earliest: date = constraints.get("start") or schedule.get("start") or context.clock().date()
    latest: date = starts.get("latest") or earliest
    if latest < earliest:
        raise InvalidRequest(f"the latest start {latest} is before the earliest, {earliest}", "/starts/latest")
    deadline = constraints.get("deadline") or schedule.get("deadline")
    if deadline is not None and deadline < earliest:
        raise InvalidRequest(f"the deadline {deadline} is before the start {earliest}", "/constraints/deadline")
    overhead = resolve_overhead(apply_overhead_feedback(context, request.base, AssumptionLog()).get("overhead", {}), AssumptionLog())
    return {
        "objective": options.get("objective", OBJECTIVES[0]),
        "quantile": options.get("quantile", 0.5),
        "earliest": earliest,
        "latest": latest,
        "price_change_per_year": starts.get("price_change_per_year", 0.0),
        "deadline": deadline,
        "min_deadline_probability": constraints.get("min_deadline_probability"),
        "max_cost_usd": constraints.get("max_cost_usd"),
        "overhead_share": overhead.evaluation + overhead.debugging + overhead.reruns,
        "queue_hours": resolve_schedule({**schedule, "start": earliest, "deadline": None}, earliest, AssumptionLog()).queue_hours,
    }


def _sizes(request: ScenarioRequest) -> list[tuple[float | None, float | None]]:
    """Sizes with their tokens; None: the base's own. Raises InvalidRequest."""
    wanted, most_loss = request.options.get("model_size"), request.options.get("constraints", {}).get("max_loss")
    if (wanted is None) != (most_loss is None):
        where = "/constraints/max_loss" if wanted else "/model_size"
        raise InvalidRequest("a search for the model's size needs the loss to reach: state both model_size and constraints.max_loss", where)
    return [(None, None)] if wanted is None else [*coarse_sizes(wanted, most_loss)]


KIND = ScenarioKind(prepare, run_chunk, finish)
