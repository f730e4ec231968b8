"""What fine-tuning's software takes beyond pre-training's, fitted to published measurements.

By `python -m tools.calibration.finetuning.fit`; the data are in `data/finetuning.toml`.
"""

from __future__ import annotations

import functools
from dataclasses import fields, replace

from service.domain.quantities import Range
from service.domain.training.finetuning import FineTuningRates
from service.presets.documents import load_document
from service.presets.training.throughput_parameters import load_parameters


@functools.cache
def finetuning_rates(family: str = "") -> FineTuningRates[float]:
    """The fitted rates; those of fused kernels without a host's time where the family's compiler makes one program of the step.

    Such a compiler fuses elementwise operations whatever the framework calls, and the host prepares the next step beside the device's.
    """
    rows = load_document("finetuning")["rates"]
    rates = FineTuningRates(*(float(rows[field.name]["value"]) for field in fields(FineTuningRates)))
    if family not in load_parameters().compiled:
        return rates
    return replace(
        rates, unfused_passes=rates.fused_passes, adapter_passes=rates.fused_adapter_passes, adapter_launches=0.0, step_overhead_s=0.0
    )


@functools.cache
def finetuning_spread() -> Range:
    """Measured over predicted throughput of fine-tuning, on documents that the rates were fitted without [1]."""
    row = load_document("finetuning")["spread"]
    return Range(row["p10"], 1.0, row["p90"])
