"""A workload timed on every compared configuration: each accelerator in each count, interruptible or not."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from service.context import AppContext
from service.domain.errors import DomainError, InvalidRequest
from service.domain.quantities import Assumption
from service.domain.training.model import Model, Transformer
from service.domain.training.run import Failures, Run
from service.domain.training.utilisation import Utilisation
from service.engine.training.run_time import RunTime, predict_run_times_in, run_times_with_failures
from service.engine.training.search.fit_advice import does_not_fit
from service.engine.training.search.layout_search import LayoutChoice, choose_layouts
from service.presets.hardware.accelerators import find_accelerator
from service.presets.training.utilisation import plan_calibration
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.cluster import resolve_cluster
from service.usecases.resolution.feedback import apply_request_feedback
from service.usecases.resolution.limits import BEYOND_LIMITS_TEXT, MAX_ACCELERATOR_HOURS
from service.usecases.resolution.model import resolve_model
from service.usecases.resolution.run import assemble_run
from service.usecases.resolution.run_settings import resolve_failures
from service.usecases.resolution.training import resolve_global_batch, resolve_training, stated_ranks
from service.usecases.resolution.utilisation import UNMEASURED, resolve_utilisation

Request = Mapping[str, Any]
# Fields whose value differs by offer, so no assumption of the whole comparison.
OFFER_FIELDS = ("energy.region", "energy.grid_gco2_per_kwh", "energy.pue", "hardware.inter_node_gbps")
# Pointers of valid requests that an accelerator cannot run.
ACCELERATOR_POINTERS = ("/training/precision", "/training/rl/generation/precision")
# Apply to interruptible capacity only.
SPOT_FIELDS = ("preemptions_per_node_hour", "capacity_share")
# Replaces the accelerator's name in a warning, so that equal warnings about several accelerators merge.
ACCELERATOR = "<accelerator>"
# Accelerators with borrowed rates are listed up to this many, of more the first ones are named.
MAX_BORROWED, BORROWED_NAMED = 4, 3


@dataclass(frozen=True, slots=True)
class Workload:
    """A request without hardware and price, under its name where several are compared, and its resolved model."""

    name: str | None
    request: Request
    pointer: str
    model: tuple[Model, int | None]
    notes: AssumptionLog


@dataclass(frozen=True, slots=True)
class WorkloadOnAccelerator:
    """One workload on one accelerator: everything that does not depend on the count. `run` is that on a single accelerator.

    `run` is None where the accelerator cannot run it. `preemption_failures` are the failures of interruptible capacity.
    """

    workload: Workload
    accelerator: str
    notes: AssumptionLog
    preemption_notes: AssumptionLog
    run: Run | None = None
    preemption_failures: Failures | None = None
    infeasible_reason: str = ""


@dataclass(frozen=True, slots=True)
class TimedConfiguration:
    """A workload on one accelerator in one count and one network. `timing` is None where it cannot run; `explain_infeasible` says why.

    `choice` is its layout in that network of rate `internode_gbit_per_s`; `run` and the notes are the same in all networks, and `run` has
    the data sheet's rate. Later notes replace earlier ones of the same field.
    """

    on_accelerator: WorkloadOnAccelerator
    count: int
    interruptible: bool
    notes: tuple[AssumptionLog, ...]
    run: Run | None = None
    internode_gbit_per_s: float = 0.0
    choice: LayoutChoice | None = None
    timing: RunTime | None = None
    infeasible_reason: str = ""

    @property
    def workload(self) -> Workload:
        """The workload."""
        return self.on_accelerator.workload

    @property
    def accelerator(self) -> str:
        """Canonical name of the accelerator."""
        return self.on_accelerator.accelerator

    @property
    def name(self) -> str:
        """Count and accelerator for messages."""
        return f"{self.count} x {self.accelerator}"

    @property
    def inter_node_gbps(self) -> float | None:
        """Modelled network of a node, one direction [Gbit/s]; None within one node and where there is none."""
        cluster = self.run.cluster if self.run else None
        return self.internode_gbit_per_s * cluster.accelerators_per_node or None if cluster and cluster.nodes > 1 else None

    @property
    def capacity(self) -> str:
        """Kind of capacity for messages."""
        return "spot" if self.interruptible else "not spot"


def resolve_workload(name: str | None, request: Request, pointer: str) -> Workload:
    """A workload with its model resolved, once for all configurations. Raises DomainErrors with pointers into the request."""
    notes = AssumptionLog()
    try:
        ranks = stated_ranks(request.get("training", {}))
        return Workload(name, request, pointer, resolve_model(request["model"], notes, ranks=ranks), notes)
    except DomainError as problem:
        raise problem.below(pointer) from problem


def check_measured_steps(request: Request, accelerators: Collection[str], pointer: str) -> None:
    """Raises InvalidRequest, below `pointer`, where a step measured on one accelerator would be carried over to others."""
    if request.get("efficiency", {}).get("measured_on") is not None and len(accelerators) > 1:
        raise InvalidRequest(
            f"steps measured on one accelerator say nothing of the other {len(accelerators) - 1}: name the one that was measured in"
            " candidates.accelerators",
            f"{pointer}/efficiency/measured_on",
        )


def search_weight(model: Model) -> int:
    """Work of searching a model's layout: experts can be laid out in as many ways as their number has divisors."""
    experts = model.experts.experts if isinstance(model, Transformer) and model.experts else 1
    return 1 + sum(experts % size == 0 for size in range(1, experts + 1))


def resolve_on_accelerator(context: AppContext, workload: Workload, accelerator: str) -> WorkloadOnAccelerator:
    """The workload on that accelerator. Raises DomainErrors where the request itself is invalid, with pointers into it."""
    notes, preemption_notes, request = AssumptionLog(), AssumptionLog(), workload.request
    try:
        cluster = resolve_cluster(find_accelerator(accelerator), {"count": 1}, notes)
        training = resolve_training(request.get("training", {}), *workload.model, cluster, context.clock().year, notes)
        run = assemble_run(context, _without_spot_and_deadline(request), workload.model[0], training, cluster, None, notes)
        learned = apply_request_feedback(context, request, cluster.accelerator, preemption_notes).get("failures", {})
        failures = resolve_failures(learned, cluster.accelerator, "spot", training.software_year, preemption_notes)
    except DomainError as problem:
        if problem.pointer not in ACCELERATOR_POINTERS:
            raise problem.below(workload.pointer) from problem
        return WorkloadOnAccelerator(workload, accelerator, notes, preemption_notes, infeasible_reason=problem.message)
    return WorkloadOnAccelerator(workload, accelerator, notes, preemption_notes, run, failures)


def time_configuration(context: AppContext, on_accelerator: WorkloadOnAccelerator, count: int) -> TimedConfiguration:
    """That many accelerators, uninterrupted, in the data sheet's network."""
    return time_in_networks(context, on_accelerator, count, None)[0]


def time_in_networks(
    context: AppContext, on_accelerator: WorkloadOnAccelerator, count: int, inter_node_gbps: Sequence[float] | None
) -> list[TimedConfiguration]:
    """That many accelerators, uninterrupted, with nodes in each of several networks [Gbit/s]; None: the data sheet's."""
    notes = AssumptionLog()
    in_network = partial(
        TimedConfiguration,
        on_accelerator,
        count,
        interruptible=False,
        notes=(on_accelerator.workload.notes, on_accelerator.notes, notes),
    )
    if on_accelerator.run is None:
        return [in_network(infeasible_reason=on_accelerator.infeasible_reason) for _ in inter_node_gbps or (None,)]
    run = _with_count(on_accelerator, on_accelerator.run, count, notes)
    utilisation, cluster = _utilisation(context, on_accelerator.workload, run, notes), run.cluster
    networks = tuple(rate / cluster.accelerators_per_node for rate in inter_node_gbps or ()) or (cluster.internode_gbit_per_s,)
    try:
        choices = choose_layouts(run.model, run.training, cluster, utilisation, networks)
    except InvalidRequest as problem:
        return [in_network(run=run, infeasible_reason=problem.message) for _ in networks]
    # A layout fits in every network or in none; a stated layout that does not fit is no option either.
    fits = choices[0].fits
    outcomes = (
        _outcomes(run, lambda: predict_run_times_in(run, choices, utilisation, plan_calibration()))
        if fits
        else itertools.repeat((None, ""))
    )
    return [
        in_network(run=run, internode_gbit_per_s=network, choice=choice, timing=timing, infeasible_reason=infeasible_reason)
        for network, choice, (timing, infeasible_reason) in zip(networks, choices, outcomes, strict=False)
    ]


def _utilisation(context: AppContext, workload: Workload, run: Run, notes: AssumptionLog) -> Utilisation:
    """The utilisation of a run. Raises InvalidRequest, with a pointer into the request, for a measured step that cannot be."""
    try:
        return resolve_utilisation(context, run, notes)
    except InvalidRequest as problem:
        raise problem.below(workload.pointer) from problem


def time_interruptible(uninterrupted: Sequence[TimedConfiguration]) -> list[TimedConfiguration]:
    """The same configurations of one count on interruptible capacity: preempted, with lost work and restarts."""
    first, timed = uninterrupted[0], [each.timing for each in uninterrupted if each.timing]
    run, on_accelerator = first.run, first.on_accelerator
    notes = (*first.notes, on_accelerator.preemption_notes)
    if run is None or on_accelerator.preemption_failures is None:
        return [replace(each, interruptible=True, notes=notes) for each in uninterrupted]
    preempted_run = replace(run, failures=on_accelerator.preemption_failures)
    outcomes = iter(_outcomes(preempted_run, lambda: run_times_with_failures(preempted_run, timed, plan_calibration())) if timed else ())
    outcomes_by_network = [next(outcomes) if each.timing else (None, each.infeasible_reason) for each in uninterrupted]
    in_network = partial(TimedConfiguration, on_accelerator, first.count, interruptible=True, notes=notes, run=preempted_run)
    return [
        in_network(internode_gbit_per_s=each.internode_gbit_per_s, choice=each.choice, timing=timing, infeasible_reason=infeasible_reason)
        for each, (timing, infeasible_reason) in zip(uninterrupted, outcomes_by_network, strict=True)
    ]


def explain_infeasible(configuration: TimedConfiguration) -> str:
    """Reason why it cannot run. What would fit is searched only here, on demand."""
    run, choice = configuration.run, configuration.choice
    if configuration.infeasible_reason or run is None or choice is None:
        return configuration.infeasible_reason
    return does_not_fit(run.model, run.training, run.cluster, choice).message


def _with_count(on_accelerator: WorkloadOnAccelerator, run: Run, count: int, notes: AssumptionLog) -> Run:
    """The run on that many accelerators."""
    cluster = replace(run.cluster, count=count)
    section, training = on_accelerator.workload.request.get("training", {}), run.training
    if training.rl is not None:
        # Which accelerators sample depends on how many there are.
        training = resolve_training(section, *on_accelerator.workload.model, cluster, training.software_year, notes)
        return replace(run, cluster=cluster, training=training)
    batch = resolve_global_batch(section, run.model, training.method, training.seq_len, cluster, notes)
    return replace(run, cluster=cluster, training=replace(training, global_batch=batch))


def _without_spot_and_deadline(request: Request) -> Request:
    """The request without preemptions and waits for capacity, and without the deadline, which is a constraint of the comparison."""
    excluded = {"failures": SPOT_FIELDS, "schedule": ("deadline",)}
    return {**request, **{section: _without_fields(request.get(section, {}), fields) for section, fields in excluded.items()}}


def _without_fields(section: Request, fields: Sequence[str]) -> Request:
    return {name: value for name, value in section.items() if name not in fields}


def _outcomes(run: Run, timings: Callable[[], Sequence[RunTime]]) -> Iterable[tuple[RunTime | None, str]]:
    """Run time in each network, or None with the reason."""
    try:
        timed = timings()
    except InvalidRequest as problem:
        return itertools.repeat((None, problem.message))
    longest = MAX_ACCELERATOR_HOURS / run.cluster.count
    return [(None, BEYOND_LIMITS_TEXT) if each.wall_clock_hours.p90 > longest else (each, "") for each in timed]


def merge_assumptions(configurations: Sequence[TimedConfiguration]) -> tuple[Assumption, ...]:
    """Assumptions of all configurations that can run: one value where all agree, else values by accelerator, capacity or configuration."""
    configurations = _distinct_running(configurations)
    by_field: dict[str, dict[int, Assumption]] = {}
    for notes, positions in _distinct_notes(configurations):
        for assumption in notes.assumptions:
            by_field.setdefault(assumption.field, {}).update(dict.fromkeys(positions, assumption))
    return tuple(_merge_values(field, by_position, configurations) for field, by_position in by_field.items() if field not in OFFER_FIELDS)


def merge_notes_warnings(configurations: Sequence[TimedConfiguration]) -> tuple[str, ...]:
    """Warnings of all configurations that can run: once where they hold for all, else with the configurations concerned."""
    configurations = _distinct_running(configurations)
    by_warning: dict[str, set[int]] = {}
    for notes, positions in _distinct_notes(configurations):
        for warning, index in itertools.product(notes.warnings, positions):
            by_warning.setdefault(warning.replace(configurations[index].accelerator, ACCELERATOR), set()).add(index)
    borrowed = set().union(*(positions for warning, positions in by_warning.items() if warning.startswith(UNMEASURED)))
    names = list(dict.fromkeys(configurations[index].accelerator for index in sorted(borrowed)))
    few = len(names) <= MAX_BORROWED
    texts = (
        _address_warning(warning, positions, configurations)
        for warning, positions in by_warning.items()
        if few or not warning.startswith(UNMEASURED)
    )
    return tuple(texts) if few else (_borrowed_warning(names), *texts)


def _borrowed_warning(names: Sequence[str]) -> str:
    """One warning of many accelerators whose rates are borrowed; the estimate on each names its relative."""
    first = ", ".join(names[:BORROWED_NAMED])
    return (
        f"{UNMEASURED} {len(names)} of the accelerators ({first}, …): borrowed from their relatives, with a wider range;"
        " an estimate on one of them names its relative"
    )


def _distinct_notes(configurations: Sequence[TimedConfiguration]) -> Iterator[tuple[AssumptionLog, list[int]]]:
    """All notes once, with the positions of their configurations; replacements come after what they replace."""
    for level in itertools.zip_longest(*(each.notes for each in configurations)):
        shared: dict[int, tuple[AssumptionLog, list[int]]] = {}
        for index, notes in enumerate(level):
            if notes is not None:
                shared.setdefault(id(notes), (notes, []))[1].append(index)
        yield from shared.values()


def _distinct_running(configurations: Sequence[TimedConfiguration]) -> Sequence[TimedConfiguration]:
    """Configurations that can run, or all where none can; one of those that share notes in several networks."""
    running = [each for each in configurations if each.timing] or configurations
    return list({id(each.notes): each for each in running}.values())


# Names that distinguish configurations, the coarsest first; the last distinguishes all.
_SUBJECTS: tuple[Callable[[TimedConfiguration], str], ...] = (
    lambda configuration: configuration.workload.name or "",
    lambda configuration: configuration.capacity,
    lambda configuration: configuration.accelerator,
    lambda configuration: configuration.name,
    lambda configuration: f"{configuration.workload.name}, {configuration.capacity}",
    lambda configuration: f"{configuration.workload.name}, {configuration.accelerator}",
    lambda configuration: ", ".join(filter(None, (configuration.workload.name, configuration.capacity, configuration.name))),
)


def _merge_values(field: str, by_position: Mapping[int, Assumption], configurations: Sequence[TimedConfiguration]) -> Assumption:
    """One assumption: the value, or values by the coarsest subject for which they agree."""
    different = {id(assumption): assumption for assumption in by_position.values()}
    if len(different) == 1:
        return next(iter(different.values()))
    sources = "; ".join(dict.fromkeys(assumption.source for assumption in different.values()))
    values = {key: repr(assumption.value) for key, assumption in different.items()}
    if len(set(values.values())) == 1:
        return Assumption(field, next(iter(by_position.values())).value, sources)
    values_by_position = {index: values[id(assumption)] for index, assumption in by_position.items()}
    pairs = [(configurations[index], value) for index, value in values_by_position.items()]
    subject = next(name_of for name_of in _SUBJECTS if _is_consistent({(name_of(configuration), value) for configuration, value in pairs}))
    return Assumption(field, {subject(configurations[index]): assumption.value for index, assumption in by_position.items()}, sources)


def _is_consistent(pairs: set[tuple[str, str]]) -> bool:
    """Whether no subject has two values."""
    return len({subject for subject, _ in pairs}) == len(pairs)


def _address_warning(warning: str, positions: set[int], configurations: Sequence[TimedConfiguration]) -> str:
    """The warning with its accelerators named, and the coarsest subjects that match exactly its configurations."""
    names = dict.fromkeys(configurations[index].accelerator for index in sorted(positions))
    text = warning.replace(ACCELERATOR, ", ".join(names))
    candidates = (
        [index for index, each in enumerate(configurations) if each.accelerator in names]
        if ACCELERATOR in warning
        else range(len(configurations))
    )
    if len(positions) == len(candidates):
        return text
    for subject in _SUBJECTS:
        inside = {subject(configurations[index]) for index in positions}
        if {index for index in candidates if subject(configurations[index]) in inside} == positions:
            break
    return f"{'; '.join(dict.fromkeys(subject(configurations[index]) for index in sorted(positions)))}: {text}"
