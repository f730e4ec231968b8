"""Answers as their JSON objects, the same over HTTP and on the command line."""

from __future__ import annotations

from typing import Any

from providers.offer import Offer
from service.domain.hardware import Accelerator
from service.plain import plain
from service.presets.models import ModelPreset
from service.usecases.estimate import EstimateAnswer


def estimate_answer(found: EstimateAnswer) -> dict[str, Any]:
    """An estimate as its JSON object: the engine's blocks, then price, versions, assumptions and warnings."""
    body = plain(found)
    blocks: dict[str, Any] = body.pop("estimate")
    warnings = body.pop("warnings")
    for name in ("batch_sequences", "warnings"):
        del blocks[name]
    body["warnings"] = warnings
    return {**blocks, **body}


def offer_entry(offer: Offer, *, stale: bool) -> dict[str, Any]:
    """An offer as listings show it."""
    body: dict[str, Any] = plain(offer)
    del body["extras"]
    return body | {"usd_per_accelerator_hour": float(offer.usd_per_accelerator_hour), "stale": stale}


def accelerator_entry(accelerator: Accelerator) -> dict[str, Any]:
    """An accelerator as listings show it."""
    body: dict[str, Any] = plain(accelerator)
    return body | {"usable_memory_gb": body.pop("usable_memory_bytes") / 1e9}


def model_entry(preset: ModelPreset) -> dict[str, Any]:
    """A model as listings show it: its shape without what it does not have."""
    body: dict[str, Any] = plain(preset)
    shape = body.pop("model")
    return body | {"shape": {name: value for name, value in shape.items() if value is not None and name not in ("params", "active_params")}}
