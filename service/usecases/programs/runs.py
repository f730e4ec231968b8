"""A program's runs: what `defaults` and each run say of them together, estimated, and how often they are made."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from service.context import AppContext
from service.domain.errors import DomainError, InvalidRequest, NoOffer, UnknownName
from service.domain.programs.program import PlannedRun, RunCostLine, Rung, RunRepetition, Tier, TierGate
from service.domain.training.model import Model
from service.domain.training.run import Cluster, Run, Training
from service.engine.programs.budget import successive_halving
from service.presets.hardware.accelerators import find_accelerator
from service.presets.programs import find_program_default
from service.usecases.comparison.timed_configurations import search_weight
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.data import resolve_data
from service.usecases.resolution.feedback import apply_request_feedback
from service.usecases.resolution.machine import Machine, resolve_machine
from service.usecases.resolution.resolve import ResolvedRun, resolve_trained_model
from service.usecases.resolution.run_settings import resolve_settings
from service.usecases.resolution.utilisation import resolve_utilisation
from service.usecases.training.estimate import EstimateAnswer, estimate_run

Given = Mapping[str, Any]
Found = TypeVar("Found")
Key = tuple[str, ...]

# What a program says of itself as a whole is left out of its runs.
PROGRAM_SECTIONS: Mapping[str, Mapping[str, float]] = {
    "storage": {"dataset_tb": 0.0, "logs_tb": 0.0, "checkpoints_kept": 0},
    "network": {"egress_tb": 0.0},
    "personnel": {"evaluation_hours": 0.0, "analysis_hours": 0.0, "oncall_hours": 0.0},
    "overhead": {"evaluation": 0.0, "debugging": 0.0, "reruns": 0.0},
}
REQUIRED_FIELDS = (("model",), ("data",), ("hardware", "accelerator"), ("hardware", "count"))
# What a machine and its price are read from, and what is trained on it and how.
MACHINE_SECTIONS = ("hardware", "price")
TRAINING_SECTIONS = ("model", "training", *MACHINE_SECTIONS)
# How much searching of layouts one request may cost.
MAX_SEARCH_WORK = 600
MAX_RUN_WARNINGS = 20
MAX_NAMED_RUNS = 10
MAX_RUNS_PER_ENTRY = 10_000_000


@dataclass(frozen=True, slots=True)
class EstimateCache:
    """A context that makes equal estimates once and reads equal request sections once, however many runs ask for them."""

    context: AppContext
    _made: dict[Key, EstimateAnswer] = field(default_factory=dict)
    _read: dict[tuple[str, Key], tuple[Any, AssumptionLog]] = field(default_factory=dict)
    _searched: dict[tuple[Model, Training, Cluster], int] = field(default_factory=dict)

    def of(self, request: Given) -> EstimateAnswer:
        """The estimate of a whole request. Raises DomainErrors, with pointers into it."""
        key = _sections_key(request, request)
        if key not in self._made:
            notes = AssumptionLog()
            machine = self._once("machine", request, MACHINE_SECTIONS, lambda said: resolve_machine(self.context, request, said), notes)
            taught = apply_request_feedback(self.context, request, machine.cluster.accelerator, notes)
            run = self._run(taught, machine, notes)
            self._count(run)
            resolved = ResolvedRun(taught, run, machine, resolve_utilisation(self.context, run, notes))
            self._made[key] = estimate_run(resolved, notes)
        return self._made[key]

    def _run(self, request: Given, machine: Machine, notes: AssumptionLog) -> Run:
        """The run of a request, as `resolve` assembles it."""
        cluster, price = machine.cluster, machine.price
        model, training = self._once(
            "trained", request, TRAINING_SECTIONS, lambda said: resolve_trained_model(request, cluster, said), notes
        )
        data = resolve_data(request["data"], model, training.seq_len, notes)
        rest = [name for name in request if name not in ("model", "data", "training")]
        around = self._once("around", request, rest, lambda said: resolve_settings(request, cluster.accelerator, price, said), notes)
        return Run(model=model, data=data, training=training, cluster=cluster, **around)

    def _once(
        self, what: str, request: Given, sections: Iterable[str], read: Callable[[AssumptionLog], Found], notes: AssumptionLog
    ) -> Found:
        """What is read of sections of a request, noting what was assumed of them; the same sections are read once."""
        key = what, _sections_key(request, sections)
        if key not in self._read:
            said = AssumptionLog()
            self._read[key] = read(said), said
        found, said = self._read[key]
        notes.add(said)
        return found  # type: ignore[no-any-return]

    def _count(self, run: Run) -> None:
        """Raises InvalidRequest where layouts of more models and machines are searched than one request may cost."""
        key = (run.model, run.training, run.cluster)
        if key in self._searched:
            return
        self._searched[key] = search_weight(run.model)
        if sum(self._searched.values()) > MAX_SEARCH_WORK:
            raise InvalidRequest(
                f"the layouts of {len(self._searched)} models, trainings and machines are to be searched, more than the {MAX_SEARCH_WORK}"
                " units of work of one program (a dense model's search is 2, one of experts 1 and as many as their number has divisors):"
                " let runs share a shape, or plan the program in parts",
                "/model",
            )


@dataclass(frozen=True, slots=True)
class EstimatedRun:
    """A run as it is planned, its request with the defaults, its estimate, and where the program speaks of it."""

    run: PlannedRun
    request: Given
    answer: EstimateAnswer
    pointer: str


def resolve_tiers(
    estimates: EstimateCache, request: Given, notes: AssumptionLog
) -> tuple[tuple[Tier, ...], dict[tuple[str, str], EstimatedRun]]:
    """The tiers with every run estimated, and the runs by tier and name. Raises DomainErrors with pointers into the program."""
    tiers: list[Tier] = []
    found: dict[tuple[str, str], EstimatedRun] = {}
    for at, given in enumerate(request["tiers"]):
        runs = [_estimate_run(estimates, request, one, f"/tiers/{at}/runs/{place}", notes) for place, one in enumerate(given["runs"])]
        found |= {(given["tier"], one.run.name): one for one in runs}
        tiers.append(Tier(given["tier"], tuple(one.run for one in runs), _gate(given, notes)))
    return tuple(tiers), found


def run_request(request: Given, given: Given, pointer: str, notes: AssumptionLog) -> dict[str, Any]:
    """A run's estimate request: its own laid over the defaults, without what the program states of itself as a whole."""
    whole = merge_requests(request.get("defaults", {}), given["estimate"])
    for path in REQUIRED_FIELDS:
        if _value_at(whole, path) is None:
            raise InvalidRequest(f"{'.'.join(path)} is needed: state it here or in defaults", f"{pointer}/estimate/{'/'.join(path)}")
    for name in PROGRAM_SECTIONS.keys() & request.keys() & whole.keys():
        notes.assume(f"estimate.{name}", {}, "left out of the runs: the program states it as a whole")
    return whole | {name: nothing for name, nothing in PROGRAM_SECTIONS.items() if name in request}


def merge_requests(below: Given, above: Given) -> dict[str, Any]:
    """`above` laid over `below`, object by object; what is no object is replaced."""
    found = dict(below)
    for name, value in above.items():
        before = found.get(name)
        found[name] = merge_requests(before, value) if isinstance(before, Mapping) and isinstance(value, Mapping) else value
    return found


def make_planned_run(name: str, answer: EstimateAnswer, request: Given, repetition: RunRepetition) -> PlannedRun:
    """A run as the program's arithmetic takes it."""
    found = answer.estimate
    hours = found.time.wall_clock_hours
    return PlannedRun(
        name=name,
        accelerator=find_accelerator(request["hardware"]["accelerator"]).accelerator.name,
        lines=tuple(RunCostLine(line.line, line.usd) for line in found.cost.lines),
        usd=found.cost.total_usd,
        accelerator_hours=found.time.accelerator_hours,
        wall_clock_hours=hours,
        flops=found.flops.total,
        tokens=found.tokens.trained,
        interruptions=found.reliability.expected_interruptions,
        lost_hours=hours.p50 * (1 - found.reliability.goodput),
        goodput=found.reliability.goodput,
        tco2e=found.energy.tco2e,
        checkpoint_interval_minutes=found.reliability.checkpoint_interval_minutes,
        repetition=repetition,
    )


def common_price_snapshot(runs: Mapping[tuple[str, str], EstimatedRun], notes: AssumptionLog) -> str:
    """The price book of the first run that pins none, or of the first of all; runs that are priced by another are warned of."""
    pins = [one.request.get("price", {}).get("snapshot") for one in runs.values()]
    books = [one.answer.price_snapshot for one in runs.values()]
    usual = next((book for book, pin in zip(books, pins, strict=True) if pin is None), books[0])
    others: dict[str, list[str]] = {}
    for (tier, run), book in zip(runs, books, strict=True):
        if book != usual:
            others.setdefault(book, []).append(f"{tier}/{run}")
    for book, names in others.items():
        more = f" and {len(names) - MAX_NAMED_RUNS} more" if len(names) > MAX_NAMED_RUNS else ""
        notes.warn(f"priced by snapshot {book}, not by {usual} as the others: {', '.join(names[:MAX_NAMED_RUNS])}{more}")
    return usual


def collect_run_warnings(runs: Iterable[EstimatedRun]) -> list[str]:
    """What the runs' estimates warn of, each once, with the first run that it is said of."""
    said: dict[str, str] = {}
    for one in runs:
        for warning in one.answer.warnings:
            said.setdefault(warning, f"{one.run.name}: {warning}")
    found = list(said.values())
    left = len(found) - MAX_RUN_WARNINGS
    return found[:MAX_RUN_WARNINGS] + ([f"{left} more warnings stand in the runs' estimates"] if left > 0 else [])


def _estimate_run(estimates: EstimateCache, request: Given, given: Given, pointer: str, notes: AssumptionLog) -> EstimatedRun:
    whole = run_request(request, given, pointer, notes)
    try:
        answer = estimates.of(whole)
    except DomainError as problem:
        raise problem.below(locate_problem(problem, request, given["estimate"], f"{pointer}/estimate")) from problem
    repetition = _repetition(request, given, whole["hardware"]["count"], pointer, notes)
    return EstimatedRun(make_planned_run(given["name"], answer, whole, repetition), whole, answer, pointer)


def locate_problem(problem: DomainError, request: Given, own: Given, pointer: str) -> str:
    """Where what is wrong was stated: in the defaults if the run says less of it, and it is wrong for every run that says no more.

    That are names nobody knows, and prices that no provider has; everything else comes of what the run adds. `own` is what the run itself
    says, which stands at the pointer.
    """
    stated = (request.get("defaults", {}), own)
    below, above = (_pointer_depth(part, problem.pointer) for part in stated)
    usual, accelerator = (_value_at(part, ("hardware", "accelerator")) for part in stated)
    by_itself = isinstance(problem, UnknownName) or (isinstance(problem, NoOffer) and accelerator in (None, usual))
    return "/defaults" if below > above and by_itself else pointer


def _pointer_depth(given: Any, pointer: str) -> int:
    """How many steps of a pointer lead to something that is stated."""
    steps = 0
    for name in pointer.split("/")[1:]:
        if not isinstance(given, Mapping) or given.get(name) is None:
            break
        given, steps = given[name], steps + 1
    return steps


def _repetition(request: Given, given: Given, count: int, pointer: str, notes: AssumptionLog) -> RunRepetition:
    once = RunRepetition(
        repeat=given.get("repeat", 1),
        grid=tuple(given.get("grid", {}).values()),
        seeds=given.get("seeds", 1),
    )
    if once.runs > MAX_RUNS_PER_ENTRY:
        raise InvalidRequest(f"{once.runs:,} runs are more than the {MAX_RUNS_PER_ENTRY:,} of one entry: sample the grid", pointer)
    return RunRepetition(
        once.repeat, once.grid, once.seeds, _rungs(given, once.candidates, pointer), _concurrency(request, given, count, once, notes)
    )


def _concurrency(request: Given, given: Given, count: int, once: RunRepetition, notes: AssumptionLog) -> int:
    """Runs side by side: as many as the program's accelerators hold, where they are known; more are warned of where they are stated."""
    if once.runs == 1:
        return 1
    known: int | None = request.get("defaults", {}).get("hardware", {}).get("count")
    cluster = count if known is None else known
    fits = min(once.runs, max(1, cluster // count))
    stated: int | None = given.get("at_once")
    if stated is None:
        why = f"{cluster:,} accelerators of the program over {count:,} of a run, at most all runs"
        return notes.assume(f"tiers.{given['name']}.at_once", fits, why)  # type: ignore[no-any-return]
    side_by_side = min(stated, once.runs)
    if known is not None and side_by_side > fits:
        notes.warn(
            f"{given['name']}: {side_by_side:,} runs of {count:,} accelerators side by side take {side_by_side * count:,},"
            f" defaults.hardware.count is {known:,}: the schedule takes it that the others are there too"
        )
    return stated


def _rungs(given: Given, candidates: int, pointer: str) -> tuple[Rung, ...]:
    stopping = given.get("early_stopping")
    if stopping is None:
        return ()
    if stopping.keys() not in ({"rungs"}, {"factor", "least_share"}):
        raise InvalidRequest("state rungs, or factor and least_share of successive halving", f"{pointer}/early_stopping")
    if "rungs" in stopping:
        return tuple(Rung(rung["at"], rung["keep"]) for rung in stopping["rungs"])
    return successive_halving(candidates, stopping["factor"], stopping["least_share"])


def request_key(request: Given) -> str:
    """A request as text, the same for the same."""
    return json.dumps(request, sort_keys=True, default=str)


def _sections_key(request: Given, sections: Iterable[str]) -> Key:
    """Some sections of a request as text, the same only for the same: a request whose fields come in another order is read anew."""
    return tuple(f"{name}={request.get(name)!r}" for name in sections)


def _gate(given: Given, notes: AssumptionLog) -> TierGate | None:
    gate = given.get("gate")
    if gate is None:
        return None
    chosen = {name: _take_default(gate, given["tier"], name, notes) for name in ("pass_probability", "sign_off_days")}
    return TierGate(gate["decides"], evidence=gate.get("evidence"), **chosen)


def _take_default(gate: Given, tier: str, name: str, notes: AssumptionLog) -> Any:
    fallback = find_program_default(name)
    return notes.take(gate, f"tiers.{tier}.gate.{name}", fallback.value, fallback.source)


def _value_at(given: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        given = given.get(name) if isinstance(given, Mapping) else None
    return given
