"""A program's runs: each run's request laid over the defaults, its estimate, and how often it is made."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from service.domain.errors import DomainError, InvalidRequest, NoOffer, UnknownName
from service.domain.programs.program import GateCriteria, Tier, TierGate
from service.domain.programs.runs import PlannedRun, ResourceUse, RunCostLine, Rung, RunReliability, RunRepetition
from service.domain.quantities import Range
from service.domain.training.run import Run
from service.engine.numerics.money import sum_usd
from service.engine.programs.budget import successive_halving
from service.presets.hardware.accelerators import find_accelerator
from service.usecases.evaluation.plan import elapsed_hours
from service.usecases.programs.defaults import take_or_default
from service.usecases.programs.estimates import EstimateCache, Request
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.training.data_warnings import FAR_FROM_OPTIMAL, KINDS
from service.usecases.training.estimate import EstimateAnswer

# Sections that a program may state as a whole; its runs then get these values instead of their own.
PROGRAM_SECTIONS: Mapping[str, Mapping[str, float]] = {
    "storage": {"dataset_tb": 0.0, "logs_tb": 0.0, "checkpoints_kept": 0},
    "network": {"egress_tb": 0.0},
    "personnel": {"evaluation_hours": 0.0, "analysis_hours": 0.0, "oncall_hours": 0.0},
    "overhead": {"evaluation": 0.0, "debugging": 0.0, "reruns": 0.0},
}
# Of these sections a run's own evaluation takes the program's price.
EVALUATION_PRICES = {"storage": "usd_per_tb_month", "personnel": "usd_per_hour"}
REQUIRED_FIELDS = (("model",), ("data",), ("hardware", "accelerator"), ("hardware", "count"))
FINAL_TIER = "production"
MAX_RUN_WARNINGS = 20
MAX_NAMED_RUNS = 10
MAX_RUNS_PER_ENTRY = 10_000_000


@dataclass(frozen=True, slots=True)
class EstimatedRun:
    """A planned run with its whole request, what it resolves to, its estimate, and a pointer to it in the program's request."""

    run: PlannedRun
    trained: Run
    request: Request
    answer: EstimateAnswer
    pointer: str


def resolve_tiers(
    estimates: EstimateCache, request: Request, notes: AssumptionLog
) -> tuple[tuple[Tier, ...], dict[tuple[str, str], EstimatedRun]]:
    """The tiers with their runs estimated, and the runs by tier and name. Raises DomainErrors, with pointers into the program."""
    tiers: list[Tier] = []
    runs: dict[tuple[str, str], EstimatedRun] = {}
    requests = [
        [run_request(request, run, f"/tiers/{index}/runs/{at}", notes) for at, run in enumerate(tier["runs"])]
        for index, tier in enumerate(request["tiers"])
    ]
    estimates.search_ahead(itertools.chain.from_iterable(requests))
    for index, tier in enumerate(request["tiers"]):
        pointer = f"/tiers/{index}/runs"
        pairs = zip(tier["runs"], requests[index], strict=True)
        tier_runs = [_estimate_run(estimates, request, run, whole, f"{pointer}/{at}", notes) for at, (run, whole) in enumerate(pairs)]
        runs |= {(tier["tier"], estimated.run.name): estimated for estimated in tier_runs}
        tiers.append(Tier(tier["tier"], tuple(estimated.run for estimated in tier_runs), _gate(tier, notes)))
    return tuple(tiers), runs


def run_request(request: Request, run: Request, pointer: str, notes: AssumptionLog) -> dict[str, Any]:
    """A run's estimate request: its own laid over the defaults, without the sections that the program states as a whole."""
    whole = merge_requests(request.get("defaults", {}), run["estimate"])
    for path in REQUIRED_FIELDS:
        if _value_at(whole, path) is None:
            raise InvalidRequest(f"{'.'.join(path)} is needed: state it here or in defaults", f"{pointer}/estimate/{'/'.join(path)}")
    for name in PROGRAM_SECTIONS.keys() & request.keys() & whole.keys():
        notes.assume(f"estimate.{name}", {}, "left out of the runs: the program states it as a whole")
    if request.get("evaluation", {}).get("suites") and whole.get("overhead", {}).get("evaluation"):
        notes.assume("estimate.overhead.evaluation", 0, "left out of the runs: evaluation.suites of the program are counted one by one")
        whole = merge_requests(whole, {"overhead": {"evaluation": 0.0}})
    zeros = {name: zeros for name, zeros in PROGRAM_SECTIONS.items() if name in request}
    return whole | zeros | _own_evaluation(request, whole, pointer, notes)


def merge_requests(below: Request, above: Request) -> dict[str, Any]:
    """`above` laid over `below`: objects are merged at every depth, other values are replaced."""
    merged = dict(below)
    for name, value in above.items():
        before = merged.get(name)
        merged[name] = merge_requests(before, value) if isinstance(before, Mapping) and isinstance(value, Mapping) else value
    return merged


def common_price_snapshot(runs: Mapping[tuple[str, str], EstimatedRun], notes: AssumptionLog) -> str:
    """The price book of the first run that pins none, else of the first run; warns of runs that are priced by another."""
    pins = [estimated.request.get("price", {}).get("snapshot") for estimated in runs.values()]
    books = [estimated.answer.price_snapshot for estimated in runs.values()]
    common = next((book for book, pin in zip(books, pins, strict=True) if pin is None), books[0])
    others: dict[str, list[str]] = {}
    for (tier, run), book in zip(runs, books, strict=True):
        if book != common:
            others.setdefault(book, []).append(f"{tier}/{run}")
    for book, names in others.items():
        more = f" and {len(names) - MAX_NAMED_RUNS} more" if len(names) > MAX_NAMED_RUNS else ""
        notes.warn(f"priced by snapshot {book}, while the others are priced by {common}: {', '.join(names[:MAX_NAMED_RUNS])}{more}")
    return common


def collect_run_warnings(runs: Mapping[tuple[str, str], EstimatedRun]) -> list[str]:
    """Different warnings of the runs' estimates by tier and name, each with the first run that has it.

    Of each kind about a run's model and data there is one: the costliest run's. Only final runs are meant to be near compute-optimal:
    those before them are short on purpose.
    """
    found: dict[str, tuple[float, str]] = {}
    for (tier, name), estimated in runs.items():
        for warning in estimated.answer.warnings:
            kind = next((kind for kind in KINDS if warning.startswith(kind)), None)
            usd = 0.0 if kind is None else estimated.run.use.usd.p50
            known = found.get(kind or warning)
            if (kind != FAR_FROM_OPTIMAL or tier == FINAL_TIER) and (known is None or usd > known[0]):
                found[kind or warning] = usd, f"{name}: {warning}"
    warnings = [text for _, text in found.values()]
    left = len(warnings) - MAX_RUN_WARNINGS
    return warnings[:MAX_RUN_WARNINGS] + ([f"{left} more warnings are in the runs' estimates"] if left > 0 else [])


def locate_problem(problem: DomainError, request: Request, own: Request, pointer: str) -> str:
    """Pointer to the section that an estimate's problem comes from: `/defaults` or the run's own.

    It is in the defaults where they state more of its path than the run does and it is wrong for every run: a name that is not known, or
    a price that no provider has. `own` is the run's own request, which stands at `pointer`.
    """
    sections = (request.get("defaults", {}), own)
    default_depth, own_depth = (_pointer_depth(section, problem.pointer) for section in sections)
    usual, accelerator = (_value_at(section, ("hardware", "accelerator")) for section in sections)
    wrong_for_all = isinstance(problem, UnknownName) or (isinstance(problem, NoOffer) and accelerator in (None, usual))
    return "/defaults" if default_depth > own_depth and wrong_for_all else pointer


def request_key(request: Request) -> str:
    """Text of a request, equal for equal requests."""
    return json.dumps(request, sort_keys=True, default=str)


def _estimate_run(
    estimates: EstimateCache, request: Request, run: Request, whole: Request, pointer: str, notes: AssumptionLog
) -> EstimatedRun:
    """A run of the program's request, whose own request laid over the defaults is `whole`."""
    try:
        answer = estimates.estimate(whole)
    except DomainError as problem:
        raise problem.below(locate_problem(problem, request, run["estimate"], f"{pointer}/estimate")) from problem
    repetition = _repetition(request, run, _most_accelerators(whole, answer), pointer, notes)
    planned = planned_run(run["name"], answer, whole, repetition)
    shared = replace(planned, pool=run.get("pool", planned.accelerator), priority=run.get("priority", 0))
    return EstimatedRun(shared, estimates.run(whole), whole, answer, pointer)


def planned_run(name: str, answer: EstimateAnswer, request: Request, repetition: RunRepetition) -> PlannedRun:
    """A run as the budget takes it."""
    estimate = answer.estimate
    hours, reliability = estimate.time.wall_clock_hours, estimate.reliability
    return PlannedRun(
        name=name,
        accelerator=find_accelerator(request["hardware"]["accelerator"]).accelerator.name,
        lines=tuple(RunCostLine(line.line, line.usd) for line in estimate.cost.lines),
        use=ResourceUse(
            usd=estimate.cost.total_usd or Range.exactly(float(sum_usd(line.usd for line in estimate.cost.lines))),
            accelerator_hours=estimate.time.accelerator_hours,
            wall_clock_hours=hours,
            flops=estimate.flops.total,
            tokens=estimate.tokens.trained,
            tco2e=estimate.energy.tco2e,
        ),
        reliability=RunReliability(
            interruptions=reliability.expected_interruptions,
            lost_hours=hours.p50 * (1 - reliability.goodput),
            goodput=reliability.goodput,
            checkpoint_interval_minutes=reliability.checkpoint_interval_minutes,
        ),
        repetition=repetition,
        priced=answer.price is not None,
        accelerators=_most_accelerators(request, answer),
        overhead_share=sum(request.get("overhead", {}).values()),
        evaluation_hours=elapsed_hours(answer.evaluation),
    )


def _own_evaluation(request: Request, whole: Request, pointer: str, notes: AssumptionLog) -> dict[str, Any]:
    """Sections of a run that has an evaluation of its own, at the program's prices; without it where the program has one."""
    if not whole.get("evaluation"):
        return {}
    if any(request.get("evaluation", {}).get(name) for name in ("suites", "checks")):
        notes.assume("estimate.evaluation", {}, "left out of the runs: the program states it as a whole")
        return {"evaluation": {}}
    suites = whole["evaluation"].get("suites", ())
    if "storage" in request and any(suite.get("at") == "checkpoints" for suite in suites):
        raise InvalidRequest(
            "storage of the program says which checkpoints are kept: state suites at checkpoints in evaluation of the program",
            f"{pointer}/estimate/evaluation/suites",
        )
    if suites and request.get("overhead", {}).get("evaluation"):
        raise InvalidRequest(
            "evaluation.suites of the runs are counted one by one, and overhead.evaluation would count them again: state one of the two",
            "/overhead/evaluation",
        )
    stated = {name: request.get(name, {}).get(price) for name, price in EVALUATION_PRICES.items()}
    return {name: {**PROGRAM_SECTIONS[name], EVALUATION_PRICES[name]: usd} for name, usd in stated.items() if usd is not None}


def _most_accelerators(request: Request, answer: EstimateAnswer) -> int:
    """Accelerators that a run needs at once: those of its largest phase, where it is in phases."""
    phases = answer.estimate.phases
    return max(phase.accelerators for phase in phases) if phases else int(request["hardware"]["count"])


def _repetition(request: Request, run: Request, count: int, pointer: str, notes: AssumptionLog) -> RunRepetition:
    whole = RunRepetition(run.get("repeat", 1), tuple(run.get("grid", {}).values()), run.get("seeds", 1))
    if whole.runs > MAX_RUNS_PER_ENTRY:
        raise InvalidRequest(f"{whole.runs:,} runs are more than the {MAX_RUNS_PER_ENTRY:,} of one entry: sample the grid", pointer)
    rungs = _rungs(run, whole.candidates, pointer)
    return replace(whole, rungs=rungs, concurrency=_concurrency(request, run, count, whole.runs, notes))


def _concurrency(request: Request, run: Request, count: int, runs: int, notes: AssumptionLog) -> int:
    """Runs side by side: the stated number, else what the program's accelerators hold. Warns of more than they hold."""
    if runs == 1:
        return 1
    available: int | None = request.get("defaults", {}).get("hardware", {}).get("count")
    cluster = count if available is None else available
    fits = min(runs, max(1, cluster // count))
    stated: int | None = run.get("concurrency")
    if stated is None:
        source = f"{cluster:,} accelerators of the program divided by {count:,} of a run, at most all runs"
        return notes.assume(f"tiers.{run['name']}.concurrency", fits, source)  # type: ignore[no-any-return]
    side_by_side = min(stated, runs)
    if available is not None and side_by_side > fits:
        notes.warn(
            f"{run['name']}: {side_by_side:,} runs of {count:,} accelerators side by side need {side_by_side * count:,}, but"
            f" defaults.hardware.count is {available:,}: the schedule assumes that the others are available too"
        )
    return stated


def _rungs(run: Request, candidates: int, pointer: str) -> tuple[Rung, ...]:
    stopping = run.get("early_stopping")
    if stopping is None:
        return ()
    if stopping.keys() not in ({"rungs"}, {"factor", "least_share"}):
        raise InvalidRequest("state rungs, or factor and least_share of successive halving", f"{pointer}/early_stopping")
    if "rungs" in stopping:
        return tuple(Rung(**rung) for rung in stopping["rungs"])
    return successive_halving(candidates, stopping["factor"], stopping["least_share"], f"{pointer}/early_stopping")


def _gate(tier: Request, notes: AssumptionLog) -> TierGate | None:
    gate = tier.get("gate")
    if gate is None:
        return None
    path = f"tiers.{tier['tier']}.gate"
    values = {name: take_or_default(gate, f"{path}.{name}", notes) for name in ("pass_probability", "sign_off_days")}
    stated = {name: gate[name] for name in ("sensitivity", "specificity", "committed_usd", "repeat_on_fail") if name in gate}
    go, stop = (GateCriteria(**gate[name]) if name in gate else None for name in ("continue_if", "stop_if"))
    return TierGate(gate["decides"], evidence=gate.get("evidence"), continue_if=go, stop_if=stop, **values, **stated)


def _pointer_depth(section: Any, pointer: str) -> int:
    """Number of steps of a pointer that lead to a stated value."""
    depth = 0
    for name in pointer.split("/")[1:]:
        if not isinstance(section, Mapping) or section.get(name) is None:
            break
        section, depth = section[name], depth + 1
    return depth


def _value_at(section: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        section = section.get(name) if isinstance(section, Mapping) else None
    return section
