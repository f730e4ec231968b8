"""A run from the sections of a request: model, training, data and settings on a machine at its price.

The parts are public because programs read equal sections of many requests once, and comparisons resolve one workload for many machines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from service.context import AppContext
from service.domain.training.model import Model
from service.domain.training.run import Cluster, Run, Training
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.data import resolve_data
from service.usecases.resolution.model import resolve_model
from service.usecases.resolution.price import Price
from service.usecases.resolution.run_settings import resolve_settings
from service.usecases.resolution.training import resolve_training, stated_ranks

Request = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """Model and training of a request, and what was assumed of them. They do not depend on price and network of the machine."""

    model: Model
    training: Training
    notes: AssumptionLog


def resolve_trained_model(context: AppContext, request: Request, cluster: Cluster, notes: AssumptionLog) -> tuple[Model, Training]:
    """Model and training of a request (sections `model` and `training`). Raises DomainErrors, with pointers into it."""
    training = request.get("training", {})
    model, published_seq_len = resolve_model(request["model"], notes, ranks=stated_ranks(training))
    return model, resolve_training(training, model, published_seq_len, cluster, context.clock().year, notes)


def assemble_run(
    context: AppContext, request: Request, model: Model, training: Training, cluster: Cluster, price: Price | None, notes: AssumptionLog
) -> Run:
    """The run of a request whose model and training are resolved; None: no price is known. Raises DomainErrors with pointers."""
    data = resolve_data(request["data"], model, training.seq_len, notes)
    settings = resolve_settings(context, request, cluster.accelerator, price, training.software_year, notes)
    return Run(model=model, data=data, training=training, cluster=cluster, **settings)
