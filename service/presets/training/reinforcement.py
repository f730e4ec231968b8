"""What steps of reinforcement learning achieve, and what is assumed of them, from `data/rl.toml`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace

from service.domain.quantities import Range
from service.domain.serving.requirements import ServingMachine
from service.domain.training.hardware import Accelerator
from service.domain.training.reinforcement import RolloutRates
from service.presets.defaults import Default
from service.presets.documents import load_document
from service.presets.serving import serving_machine

FITTED = ("decode_share", "decode_host_s", "eager_layer_s", "update_share", "transfer_share", "step_s", "sample_s")


@functools.cache
def rollout_rates() -> RolloutRates:
    """The fitted rates with their range."""
    document = load_document("rl")
    fitted = {name: float(document["rates"][name]["value"]) for name in FITTED}
    spread = document["spread"]
    return RolloutRates(
        **fitted,
        host_bytes_per_s=rl_default("host_bytes_per_s").value,
        packed_tokens=rl_default("packed_tokens").value,
        spread=Range(spread["p10"], 1.0, spread["p90"]),
        source=spread["source"],
    )


def with_fitted(rates: RolloutRates, fitted: Mapping[str, float]) -> RolloutRates:
    """The rates with other fitted values."""
    return replace(rates, **{name: fitted[name] for name in FITTED})  # type: ignore[arg-type]


@functools.cache
def rl_default(name: str) -> Default:
    """What is assumed of a step where the caller does not say."""
    row = load_document("rl")["default"][name]
    return Default(row["value"], row["source"])


def sampling_machine(accelerator: Accelerator, *, colocated: bool) -> ServingMachine:
    """The accelerator as a sampler uses it, with the limits of its engine."""
    machine = serving_machine(accelerator)
    share = rl_default("cache_share" if colocated else "separate_cache_share").value
    limits = replace(machine.limits, cache_share=share, max_batch=float(rl_default("max_sequences").value))
    return replace(machine, limits=limits)
