"""Scenarios asked for and evaluated as the service does: read by the real schemas, packed as JSON, chunk by chunk."""

from __future__ import annotations

import json
import uuid
from typing import Any

from service.context import AppContext
from service.schemas.scenarios.request import SCHEMAS, BaseRequest, build_request
from service.usecases.scenarios.codec import pack_prepared, unpack_prepared
from service.usecases.scenarios.registry import PreparedScenario, ScenarioRequest, Shape, load_kind

RUN: dict[str, Any] = {
    "model": {"params": "1B"},
    "data": {"tokens": "20B"},
    "hardware": {"accelerator": "NVIDIA-H100-80GB-SXM", "count": 64},
    "price": {"usd_per_accelerator_hour": 2.0},
    "efficiency": {"mfu": 0.4},
}
PROGRAM: dict[str, Any] = {
    "name": "assistant",
    "start": "2027-01-04",
    "defaults": {"hardware": {"accelerator": "NVIDIA-H100-80GB-SXM", "count": 64}, "price": {"usd_per_accelerator_hour": 2.5}},
    "tiers": [
        {"tier": "production", "runs": [{"name": "main", "estimate": {"model": {"params": "1B"}, "data": {"tokens": "1T"}}}]},
    ],
    "overhead": {"evaluation": 0.05},
}


def given(kind: str, base: dict[str, Any], shape: Shape = "estimate", **options: Any) -> ScenarioRequest:
    """A request as the use cases take it; `options` are read already."""
    return build_request({"kind": kind, "base": BaseRequest(shape, base, SCHEMAS[shape].load(base)), **options})


def prepared(context: AppContext, asked: ScenarioRequest) -> PreparedScenario:
    """What the workers are told, through JSON and back."""
    found = load_kind(asked.kind).prepare(context, asked)
    return unpack_prepared(json.loads(json.dumps(pack_prepared(found))), str(uuid.uuid4()))


def result_of(context: AppContext, asked: ScenarioRequest) -> dict[str, Any]:
    """The result, every chunk's tally through JSON and back."""
    kind, told = load_kind(asked.kind), prepared(context, asked)
    tallies = [tally_of(context, told, index) for index in range(told.chunks)]
    found: dict[str, Any] = json.loads(json.dumps(kind.finish(context, told, iter(tallies)), allow_nan=False))
    return found


def tally_of(context: AppContext, told: PreparedScenario, index: int) -> dict[str, Any]:
    """One chunk's tally as the next process reads it."""
    found: dict[str, Any] = json.loads(json.dumps(load_kind(told.kind).run_chunk(context, told, index, lambda: None), allow_nan=False))
    return found
