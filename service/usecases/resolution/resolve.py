"""From a request to a run: every default chosen and noted, every name looked up, every contradiction named.

A request is the mapping that the schema gives: nested mappings, values of the domain's types, absent what the caller left out.
The parts of `resolve` are public because programs read equal sections of many requests once, and comparisons resolve one
workload for many machines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from service.context import AppContext
from service.domain.training.model import Model
from service.domain.training.run import Cluster, Run, Training
from service.domain.training.utilisation import Utilisation
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.data import resolve_data
from service.usecases.resolution.feedback import apply_request_feedback
from service.usecases.resolution.machine import Machine, resolve_machine
from service.usecases.resolution.model import resolve_model
from service.usecases.resolution.price import Price
from service.usecases.resolution.run_settings import resolve_settings
from service.usecases.resolution.training import resolve_training, stated_expert_ranks
from service.usecases.resolution.utilisation import resolve_utilisation

Request = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ResolvedRun:
    """A run, the request and machine it was resolved from, and the utilisation its machine achieves.

    `request` is the caller's, with the failure rate and overheads of the team's finished runs where it states none.
    """

    request: Request
    run: Run
    machine: Machine
    utilisation: Utilisation


def resolve(context: AppContext, request: Request, notes: AssumptionLog) -> ResolvedRun:
    """The run of a request. Raises DomainErrors, with pointers into the request."""
    machine = resolve_machine(context, request, notes)
    request = apply_request_feedback(context, request, machine.cluster.accelerator, notes)
    model, training = resolve_trained_model(context, request, machine.cluster, notes)
    run = assemble_run(request, model, training, machine.cluster, machine.price, notes)
    return ResolvedRun(request, run, machine, resolve_utilisation(context, run, notes))


def resolve_trained_model(context: AppContext, request: Request, cluster: Cluster, notes: AssumptionLog) -> tuple[Model, Training]:
    """Model and training of a request (sections `model` and `training`). Raises DomainErrors, with pointers into it."""
    training = request.get("training", {})
    model, published_seq_len = resolve_model(request["model"], notes, expert_ranks=stated_expert_ranks(training))
    return model, resolve_training(training, model, published_seq_len, cluster, context.clock().year, notes)


def assemble_run(request: Request, model: Model, training: Training, cluster: Cluster, price: Price, notes: AssumptionLog) -> Run:
    """The run of a request whose model and training are resolved. Raises DomainErrors, with pointers into the request."""
    data = resolve_data(request["data"], model, training.seq_len, notes)
    settings = resolve_settings(request, cluster.accelerator, price, training.software_year, notes)
    return Run(model=model, data=data, training=training, cluster=cluster, **settings)
