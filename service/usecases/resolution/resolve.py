"""From a request to a run: every default chosen and noted, every name looked up, every contradiction named.

A request is the mapping that the schema gives: nested mappings, values of the domain's types, absent what the caller left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from service.context import AppContext
from service.domain.tracking.feedback import LessonsReference
from service.domain.training.run import Run
from service.domain.training.utilisation import Utilisation
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.machine import Machine, resolve_machine, trained_model
from service.usecases.resolution.phases import has_phases, machine_key, phase_problems, phase_requests, shared_tokens
from service.usecases.resolution.run import assemble_run
from service.usecases.resolution.utilisation import resolve_utilisation

Request = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ResolvedRun:
    """A run, the request, machine and lessons it was resolved from, and the utilisation its machine achieves.

    `phases`: where the request has any; the run is then that of the phase with most tokens, with all of the data.
    """

    request: Request
    run: Run
    machine: Machine
    utilisation: Utilisation
    lessons: LessonsReference | None
    phases: tuple[ResolvedPhase, ...] = ()


@dataclass(frozen=True, slots=True)
class ResolvedPhase:
    """A phase by name, as a run of its own, and what was assumed of it."""

    name: str
    resolved: ResolvedRun
    notes: AssumptionLog


def resolve(context: AppContext, request: Request, notes: AssumptionLog) -> ResolvedRun:
    """The run of a request; notes of phases are their own. Raises DomainErrors, with pointers into the request."""
    if has_phases(request):
        return _resolve_phases(context, request)
    return _resolve_on(context, request, resolve_machine(context, request, notes), notes)


def _resolve_on(context: AppContext, request: Request, machine: Machine, notes: AssumptionLog) -> ResolvedRun:
    model, training = trained_model(context, request, machine, notes)
    run = assemble_run(context, request, model, training, machine.cluster, machine.price, notes)
    return ResolvedRun(request, run, machine, resolve_utilisation(context, run, notes), context.lessons_reference())


def _resolve_phases(context: AppContext, request: Request) -> ResolvedRun:
    requests = phase_requests(request)
    machines: dict[int, tuple[Machine, AssumptionLog]] = {}
    by_machine: dict[str, list[int]] = defaultdict(list)
    for index, each in enumerate(requests):
        by_machine[machine_key(each)].append(index)
    for members in by_machine.values():
        machines |= _machine_of_phases(context, request, requests, members)
    phases = []
    for index, (each, stated) in enumerate(zip(requests, request["training"]["phases"], strict=True)):
        machine, log = machines[index]
        with phase_problems(request, index):
            phases.append(ResolvedPhase(stated["name"], _resolve_on(context, each, machine, log), log))
    longest = max(phases, key=lambda phase: phase.resolved.run.data.trained_tokens).resolved
    data = [phase.resolved.run.data for phase in phases]
    whole = replace(
        longest.run.data,
        raw_tokens=sum(part.raw_tokens for part in data),
        effective_tokens=sum(part.effective_tokens for part in data),
    )
    return replace(longest, request=request, run=replace(longest.run, data=whole), phases=tuple(phases))


def _machine_of_phases(
    context: AppContext, request: Request, requests: Sequence[Request], members: Sequence[int]
) -> dict[int, tuple[Machine, AssumptionLog]]:
    """The machine of phases that share it, at the price that is best for the longest of them; what is noted of it goes to each."""
    longest = max(members, key=lambda index: requests[index]["data"]["tokens"])
    noted = AssumptionLog()
    with phase_problems(request, longest):
        machine = resolve_machine(context, shared_tokens(requests[longest], [requests[index] for index in members]), noted)
    found = {}
    for index in members:
        log = AssumptionLog()
        log.add(noted)
        found[index] = (machine if index == longest else replace(machine, trained=None)), log
    return found
