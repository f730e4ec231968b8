"""A workload timed on every machine that is compared: each accelerator in each number, interruptible or not."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from service.context import AppContext
from service.domain.errors import DomainError, InvalidRequest
from service.domain.quantities import Assumption
from service.domain.training.model import Model, Transformer
from service.domain.training.run import Failures, Run
from service.engine.training.run_time import RunTime, predict_run_times_in, run_times_with_failures
from service.engine.training.search.fit_advice import does_not_fit
from service.engine.training.search.layout_search import LayoutChoice, choose_layouts
from service.presets.hardware.accelerators import find_accelerator
from service.presets.training.utilisation import plan_calibration
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.cluster import resolve_cluster
from service.usecases.resolution.model import resolve_model
from service.usecases.resolution.price import Price
from service.usecases.resolution.resolve import assemble_run
from service.usecases.resolution.run_settings import resolve_failures
from service.usecases.resolution.training import resolve_global_batch, resolve_training
from service.usecases.resolution.utilisation import resolve_utilisation
from service.usecases.training.estimate import BEYOND_LIMITS_TEXT, MAX_ACCELERATOR_HOURS

Given = Mapping[str, Any]
# Of each offer its own, so no assumption of the whole comparison.
OF_OFFERS = ("energy.region", "energy.grid_gco2_per_kwh", "energy.pue", "hardware.inter_node_gbps")
# Where a request is right and an accelerator cannot do it.
OF_ACCELERATORS = ("/training/precision",)
# What is true of interruptible capacity alone.
OF_SPOT = "preemptions_per_node_hour"
# Stands in a warning for the accelerator it names, so that those of several are one.
ACCELERATOR = "<accelerator>"
UNPRICED = Price(0.0, "", stale=False)


@dataclass(frozen=True, slots=True)
class Workload:
    """What is run: a request without hardware and price, under its name where several are compared, and its model."""

    name: str | None
    request: Given
    pointer: str
    model: tuple[Model, int | None]
    notes: AssumptionLog


@dataclass(frozen=True, slots=True)
class WorkloadOnAccelerator:
    """One workload on one accelerator: all that is the same in whatever number of them. `run` is that on a single one.

    `run` is None where the accelerator cannot do it. `preempted` is how it fails where it is interruptible.
    """

    workload: Workload
    accelerator: str
    notes: AssumptionLog
    preempted_notes: AssumptionLog
    run: Run | None = None
    preempted: Failures | None = None
    impossible: str = ""


@dataclass(frozen=True, slots=True)
class TimedConfiguration:
    """One kind in one number and one network. `timing` is None where it cannot run, `explain_impossible` says why.

    `choice` is its layout in that network, whose rate is `internode_gbit_per_s`: `run` and the notes are the same in all networks, and
    `run` has the data sheet's. Of the notes later ones stand for earlier ones of the same field.
    """

    kind: WorkloadOnAccelerator
    count: int
    interruptible: bool
    notes: tuple[AssumptionLog, ...]
    run: Run | None = None
    internode_gbit_per_s: float = 0.0
    choice: LayoutChoice | None = None
    timing: RunTime | None = None
    impossible: str = ""

    @property
    def workload(self) -> Workload:
        """What is run."""
        return self.kind.workload

    @property
    def accelerator(self) -> str:
        """On what, by its canonical name."""
        return self.kind.accelerator

    @property
    def name(self) -> str:
        """As a reader would call it."""
        return f"{self.count} x {self.accelerator}"

    @property
    def inter_node_gbps(self) -> float | None:
        """The network of a node that is modelled, one direction [Gbit/s]; None within one node, and where there is none."""
        cluster = self.run.cluster if self.run else None
        return self.internode_gbit_per_s * cluster.accelerators_per_node or None if cluster and cluster.nodes > 1 else None

    @property
    def way(self) -> str:
        """Whether it is taken back."""
        return "spot" if self.interruptible else "not spot"


def resolve_workload(name: str | None, request: Given, pointer: str) -> Workload:
    """A workload with its model resolved, once for all machines. Raises DomainErrors, with pointers into the request."""
    notes = AssumptionLog()
    try:
        return Workload(name, request, pointer, resolve_model(request["model"], notes), notes)
    except DomainError as problem:
        raise problem.below(pointer) from problem


def search_weight(model: Model) -> int:
    """How much work the search for a model's layout is: its experts may be laid out in as many ways as their number has divisors."""
    experts = model.experts.experts if isinstance(model, Transformer) and model.experts else 1
    return 1 + sum(experts % size == 0 for size in range(1, experts + 1))


def resolve_on_accelerator(workload: Workload, accelerator: str) -> WorkloadOnAccelerator:
    """The workload on that accelerator. Raises DomainErrors where the request itself is wrong, with pointers into it."""
    notes, preempted, request = AssumptionLog(), AssumptionLog(), workload.request
    try:
        cluster = resolve_cluster(find_accelerator(accelerator), {"count": 1}, notes)
        training = resolve_training(request.get("training", {}), *workload.model, cluster, notes)
        run = assemble_run(_without_spot_and_deadline(request), workload.model[0], training, cluster, UNPRICED, notes)
        failures = resolve_failures(request.get("failures", {}), cluster.accelerator, "spot", preempted)
    except DomainError as problem:
        if problem.pointer not in OF_ACCELERATORS:
            raise problem.below(workload.pointer) from problem
        return WorkloadOnAccelerator(workload, accelerator, notes, preempted, impossible=problem.message)
    return WorkloadOnAccelerator(workload, accelerator, notes, preempted, run, failures)


def time_configuration(context: AppContext, kind: WorkloadOnAccelerator, count: int) -> TimedConfiguration:
    """So many of them, which nobody takes away, in the data sheet's network."""
    return time_in_networks(context, kind, count, None)[0]


def time_in_networks(
    context: AppContext, kind: WorkloadOnAccelerator, count: int, inter_node_gbps: Sequence[float] | None
) -> list[TimedConfiguration]:
    """So many of them, which nobody takes away, their nodes joined by each of several networks [Gbit/s], None being the data sheet's."""
    notes = AssumptionLog()
    in_network = partial(TimedConfiguration, kind, count, interruptible=False, notes=(kind.workload.notes, kind.notes, notes))
    if kind.run is None:
        return [in_network(impossible=kind.impossible) for _ in inter_node_gbps or (None,)]
    run = _in_number(kind, kind.run, count, notes)
    utilisation, cluster = resolve_utilisation(context, run, notes), run.cluster
    networks = tuple(rate / cluster.accelerators_per_node for rate in inter_node_gbps or ()) or (cluster.internode_gbit_per_s,)
    try:
        choices = choose_layouts(run.model, run.training, cluster, utilisation, networks)
    except InvalidRequest as problem:
        return [in_network(run=run, impossible=problem.message) for _ in networks]
    # A layout fits in every network or in none. One of the caller's own that does not is no option either.
    fits = choices[0].fits
    outcomes = (
        _outcomes(run, lambda: predict_run_times_in(run, choices, utilisation, plan_calibration()))
        if fits
        else itertools.repeat((None, ""))
    )
    return [
        in_network(run=run, internode_gbit_per_s=network, choice=choice, timing=timing, impossible=impossible)
        for network, choice, (timing, impossible) in zip(networks, choices, outcomes, strict=False)
    ]


def time_interruptible(steady: Sequence[TimedConfiguration]) -> list[TimedConfiguration]:
    """The same machines, of one count, as capacity that is taken back: preempted, with work lost and restarts."""
    run, kind, timed = steady[0].run, steady[0].kind, [each.timing for each in steady if each.timing]
    notes = (*steady[0].notes, kind.preempted_notes)
    if run is None or kind.preempted is None or not timed:
        return [replace(each, interruptible=True, notes=notes) for each in steady]
    preempted = replace(run, failures=kind.preempted)
    outcomes = iter(_outcomes(preempted, lambda: run_times_with_failures(preempted, timed, plan_calibration())))
    now = [next(outcomes) if each.timing else (None, each.impossible) for each in steady]
    in_network = partial(TimedConfiguration, kind, steady[0].count, interruptible=True, notes=notes, run=preempted)
    return [
        in_network(internode_gbit_per_s=each.internode_gbit_per_s, choice=each.choice, timing=timing, impossible=impossible)
        for each, (timing, impossible) in zip(steady, now, strict=True)
    ]


def explain_impossible(machine: TimedConfiguration) -> str:
    """Why it cannot run; what would fit is searched for only here, for those who ask."""
    run, choice = machine.run, machine.choice
    if machine.impossible or run is None or choice is None:
        return machine.impossible
    return does_not_fit(run.model, run.training, run.cluster, choice).message


def _in_number(kind: WorkloadOnAccelerator, run: Run, count: int, notes: AssumptionLog) -> Run:
    """The kind's run on so many of its accelerators."""
    cluster = replace(run.cluster, count=count)
    given, training = kind.workload.request.get("training", {}), run.training
    batch = resolve_global_batch(given, run.model, training.method, training.seq_len, cluster, notes)
    return replace(run, cluster=cluster, training=replace(training, global_batch=batch))


def _without_spot_and_deadline(request: Given) -> Given:
    """The request without what it states of preemptions, and without the deadline, which is a constraint of the comparison."""
    apart = (("failures", OF_SPOT), ("schedule", "deadline"))
    return {**request, **{section: _without(request.get(section, {}), field) for section, field in apart}}


def _without(given: Given, field: str) -> Given:
    return {name: value for name, value in given.items() if name != field}


def _outcomes(run: Run, timings: Callable[[], Sequence[RunTime]]) -> Iterable[tuple[RunTime | None, str]]:
    """The run's time in each network, or None and why there is none."""
    try:
        timed = timings()
    except InvalidRequest as problem:
        return itertools.repeat((None, problem.message))
    longest = MAX_ACCELERATOR_HOURS / run.cluster.count
    return [(None, BEYOND_LIMITS_TEXT) if each.wall_clock_hours.p90 > longest else (each, "") for each in timed]


def merge_assumptions(machines: Sequence[TimedConfiguration]) -> tuple[Assumption, ...]:
    """What was assumed of all that can run: one value where it is the same for all, else one by accelerator, by kind or by machine."""
    machines = _told(machines)
    by_field: dict[str, dict[int, Assumption]] = {}
    for notes, about in _notes_of(machines):
        for found in notes.assumptions:
            by_field.setdefault(found.field, {}).update(dict.fromkeys(about, found))
    return tuple(_merged(field, found, machines) for field, found in by_field.items() if field not in OF_OFFERS)


def merge_notes_warnings(machines: Sequence[TimedConfiguration]) -> tuple[str, ...]:
    """What is to be careful about: what holds for every machine that can run once, the rest with whom it is about."""
    machines = _told(machines)
    found: dict[str, set[int]] = {}
    for notes, about in _notes_of(machines):
        for warning, index in itertools.product(notes.warnings, about):
            found.setdefault(warning.replace(machines[index].accelerator, ACCELERATOR), set()).add(index)
    return tuple(_addressed(warning, about, machines) for warning, about in found.items())


def _notes_of(machines: Sequence[TimedConfiguration]) -> Iterator[tuple[AssumptionLog, list[int]]]:
    """All notes, once each, with the positions of the machines they are about; those that stand for others after them."""
    for level in itertools.zip_longest(*(each.notes for each in machines)):
        shared: dict[int, tuple[AssumptionLog, list[int]]] = {}
        for index, notes in enumerate(level):
            if notes is not None:
                shared.setdefault(id(notes), (notes, []))[1].append(index)
        yield from shared.values()


def _told(machines: Sequence[TimedConfiguration]) -> Sequence[TimedConfiguration]:
    """The machines that can run, all of them where none can; of those in several networks, which share their notes, one."""
    running = [each for each in machines if each.timing] or machines
    return list({id(each.notes): each for each in running}.values())


# How machines are told apart, the coarsest first; the last tells them all apart.
_OWNERS: tuple[Callable[[TimedConfiguration], str], ...] = (
    lambda machine: machine.workload.name or "",
    lambda machine: machine.way,
    lambda machine: machine.accelerator,
    lambda machine: machine.name,
    lambda machine: f"{machine.workload.name}, {machine.way}",
    lambda machine: f"{machine.workload.name}, {machine.accelerator}",
    lambda machine: ", ".join(filter(None, (machine.workload.name, machine.way, machine.name))),
)


def _merged(field: str, found: Mapping[int, Assumption], machines: Sequence[TimedConfiguration]) -> Assumption:
    """One assumption for all: the value, or the values by the coarsest owner for whom they agree."""
    different = {id(assumption): assumption for assumption in found.values()}
    if len(different) == 1:
        return next(iter(different.values()))
    sources = "; ".join(dict.fromkeys(assumption.source for assumption in different.values()))
    values = {key: repr(assumption.value) for key, assumption in different.items()}
    if len(set(values.values())) == 1:
        return Assumption(field, next(iter(found.values())).value, sources)
    owned = {index: values[id(assumption)] for index, assumption in found.items()}
    owner = next(owner for owner in _OWNERS if _agree({(owner(machines[index]), value) for index, value in owned.items()}))
    return Assumption(field, {owner(machines[index]): assumption.value for index, assumption in found.items()}, sources)


def _agree(pairs: set[tuple[str, str]]) -> bool:
    """Whether no owner has two values."""
    return len({owner for owner, _ in pairs}) == len(pairs)


def _addressed(warning: str, about: set[int], machines: Sequence[TimedConfiguration]) -> str:
    """The warning with the accelerators it names, and the coarsest owners who are exactly those it is about."""
    names = dict.fromkeys(machines[index].accelerator for index in sorted(about))
    told = warning.replace(ACCELERATOR, ", ".join(names))
    meant = [index for index, each in enumerate(machines) if each.accelerator in names] if ACCELERATOR in warning else range(len(machines))
    if len(about) == len(meant):
        return told
    for owner in _OWNERS:
        inside = {owner(machines[index]) for index in about}
        if {index for index in meant if owner(machines[index]) in inside} == about:
            break
    return f"{'; '.join(dict.fromkeys(owner(machines[index]) for index in sorted(about)))}: {told}"
