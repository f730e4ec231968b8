"""What fine-tuning's software takes beyond pre-training's, fitted to published measurements.

By `python -m tools.calibration.finetuning_fit`; the data are in `data/finetuning.toml`.
"""

from __future__ import annotations

import functools
from dataclasses import fields

from service.domain.quantities import Range
from service.domain.training.finetuning import FineTuningRates
from service.presets.documents import load_document


@functools.cache
def finetuning_rates() -> FineTuningRates[float]:
    """The fitted rates."""
    rows = load_document("finetuning")["rates"]
    return FineTuningRates(*(float(rows[field.name]["value"]) for field in fields(FineTuningRates)))


@functools.cache
def finetuning_spread() -> Range:
    """Measured over predicted throughput of fine-tuning, on documents that the rates were fitted without [1]."""
    row = load_document("finetuning")["spread"]
    return Range(row["p10"], 1.0, row["p90"])
