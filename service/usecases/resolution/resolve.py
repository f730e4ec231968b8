"""From a request to a run: every default chosen and noted, every name looked up, every contradiction named.

A request is the mapping that the schema gives: nested mappings, values of the domain's types, absent what the caller left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from service.context import AppContext
from service.domain.tracking.feedback import LessonsReference
from service.domain.training.run import Run
from service.domain.training.utilisation import Utilisation
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.machine import Machine, resolve_machine, trained_model
from service.usecases.resolution.run import assemble_run
from service.usecases.resolution.utilisation import resolve_utilisation

Request = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ResolvedRun:
    """A run, the request, machine and lessons it was resolved from, and the utilisation its machine achieves."""

    request: Request
    run: Run
    machine: Machine
    utilisation: Utilisation
    lessons: LessonsReference | None


def resolve(context: AppContext, request: Request, notes: AssumptionLog) -> ResolvedRun:
    """The run of a request. Raises DomainErrors, with pointers into the request."""
    machine = resolve_machine(context, request, notes)
    model, training = trained_model(context, request, machine, notes)
    run = assemble_run(context, request, model, training, machine.cluster, machine.price, notes)
    return ResolvedRun(request, run, machine, resolve_utilisation(context, run, notes), context.lessons_reference())
