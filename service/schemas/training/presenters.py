"""Answers as their JSON objects, the same over HTTP and on the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from providers.offer import Offer
from service.context import AppContext
from service.domain.prices import commitment_terms
from service.domain.training.hardware import Accelerator
from service.presets.training.models import ModelPreset
from service.presets.version import engine_version
from service.serialization import to_builtins
from service.usecases.training.estimate import estimate
from service.usecases.training.levers import estimate_with_levers


def answered(context: AppContext, request: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to an estimate request, with levers where it asks for them. Raises as `estimate` does."""
    body: dict[str, Any] = to_builtins((estimate_with_levers if request.get("levers") else estimate)(context, request))
    return body


def batch_answer(answers: Sequence[Mapping[str, Any]], price_snapshot: str) -> dict[str, Any]:
    """The answers of a batch as its JSON object."""
    return {"answers": answers, "price_snapshot": price_snapshot, "engine_version": engine_version()}


def offer_entry(offer: Offer, *, stale: bool) -> dict[str, Any]:
    """An offer as listings show it."""
    body: dict[str, Any] = to_builtins(offer)
    body["availability_since"], terms = body.pop("available_since"), commitment_terms(offer)
    del body["terms"]
    if terms is not None:
        body["terms"] = to_builtins(terms)
    return body | {"usd_per_accelerator_hour": float(offer.usd_per_accelerator_hour), "stale": stale}


def accelerator_entry(accelerator: Accelerator) -> dict[str, Any]:
    """An accelerator as listings show it."""
    body: dict[str, Any] = to_builtins(accelerator)
    usable_bytes = accelerator.usable_memory_bytes
    return body | {"usable_memory_gb": usable_bytes / 1e9, "usable_memory_gib": usable_bytes / 2**30}


def model_entry(preset: ModelPreset) -> dict[str, Any]:
    """A model as listings show it: its shape without what it does not have."""
    body: dict[str, Any] = to_builtins(preset)
    shape = to_builtins(preset.model)
    return body | {"shape": {name: value for name, value in shape.items() if value is not None and name not in ("params", "active_params")}}
