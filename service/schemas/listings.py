"""Offers, accelerators and models as lists show them, the same over HTTP and on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.serialization import to_builtins

if TYPE_CHECKING:
    from providers.offer import Offer
    from service.domain.training.hardware import Accelerator
    from service.presets.training.models import ModelPreset


def offer_entry(offer: Offer, *, stale: bool) -> dict[str, Any]:
    """An offer as listings show it."""
    from service.domain.prices import commitment_terms

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
