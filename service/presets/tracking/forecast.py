"""Rules of forecasts and drift tests of tracked runs. Data and sources: `data/tracking.toml`."""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path
from typing import Any

from service.domain.tracking.status import DriftQuantity
from service.engine.tracking.change_point import DriftRules, DriftThresholds, FailureRules, SplitRules
from service.engine.tracking.forecast import ForecastRules

# Quantities with a split test.
SPLIT: tuple[DriftQuantity, ...] = ("throughput", "goodput")
_FILE = Path(__file__).parents[1] / "data" / "tracking.toml"


@functools.cache
def forecast_rules() -> ForecastRules:
    """Rules of forecasts."""
    return ForecastRules(**_document()["forecast"])


@functools.cache
def drift_rules() -> DriftRules:
    """Rules of drift tests, with calibrated thresholds."""
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
