"""Rules of forecasts and drift tests of tracked runs. Data and sources: `data/tracking.toml`."""

from __future__ import annotations

import functools
from typing import Any

from service.domain.tracking.status import DriftQuantity
from service.engine.tracking.forecasting.forecast import ForecastRules
from service.engine.tracking.monitoring.change_point import DriftThresholds, FailureRules, SplitRules
from service.engine.tracking.monitoring.drift import DriftRules
from service.presets.documents import load_document

# Quantities with a split test.
SPLIT: tuple[DriftQuantity, ...] = ("throughput", "goodput")


@functools.cache
def forecast_rules() -> ForecastRules:
    """Rules of forecasts."""
    return ForecastRules(**load_document("tracking")["forecast"])


@functools.cache
def drift_rules() -> DriftRules:
    """Rules of drift tests, with calibrated thresholds."""
    rows = dict(load_document("tracking")["drift"])
    limits = {name: _limits(rows.pop(name)) for name in SPLIT}
    return DriftRules(**rows | {"splits": SplitRules(**rows["splits"]), "limits": limits, "failures": _failures(rows["failures"])})


def _limits(rows: dict[str, Any]) -> DriftThresholds:
    return DriftThresholds(**rows | {"days": tuple(rows["days"]), "thresholds": tuple(rows["thresholds"])})


def _failures(rows: dict[str, Any]) -> FailureRules:
    return FailureRules(**rows | {"ratios": tuple(rows["ratios"])})
