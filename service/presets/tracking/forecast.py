"""What forecasts and drift of tracked runs lean on. The data and their sources are in `data/tracking.toml`."""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path
from typing import Any

from service.engine.tracking.change_point import DriftRules, DriftThresholds, FailureRules, Quantity, SplitRules
from service.engine.tracking.forecast import ForecastRules

# Quantities whose days are split in two.
SPLIT: tuple[Quantity, ...] = ("throughput", "goodput")
_FILE = Path(__file__).parents[1] / "data" / "tracking.toml"


@functools.cache
def forecast_rules() -> ForecastRules:
    """What a forecast leans on where a run is silent."""
    return ForecastRules(**_document()["forecast"])


@functools.cache
def drift_rules() -> DriftRules:
    """How much is a change, and how often a run on its plan shows one."""
    rows = dict(_document()["drift"])
    limits = {name: _limits(rows.pop(name)) for name in SPLIT}
    return DriftRules(**rows | {"splits": SplitRules(**rows["splits"]), "limits": limits, "failures": _failures(rows["failures"])})


def _limits(rows: dict[str, Any]) -> DriftThresholds:
    return DriftThresholds(**rows | {"days": tuple(rows["days"]), "thresholds": tuple(rows["thresholds"])})


def _failures(rows: dict[str, Any]) -> FailureRules:
    return FailureRules(**rows | {"ratios": tuple(rows["ratios"])})


@functools.cache
def _document() -> dict[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))
