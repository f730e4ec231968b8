"""Default rules of a status. Data and sources: `data/tracking_status.toml`."""

from __future__ import annotations

import functools
from typing import Any

from service.engine.tracking.gate import GateRules
from service.engine.tracking.monitoring.loss_monitor import LossRules
from service.engine.tracking.monitoring.plan_drift import PlanDriftRules
from service.engine.tracking.monitoring.quality_drops import QualityRules
from service.engine.tracking.runs.run_metrics import SilenceRules
from service.engine.tracking.status import StatusRules
from service.presets.documents import load_document
from service.presets.tracking.forecast import drift_rules, forecast_rules


@functools.cache
def status_rules() -> StatusRules:
    """All rules of a status."""
    rows = load_document("tracking_status")
    return StatusRules(
        forecast_rules(),
        drift_rules(),
        GateRules(**rows["gate"]),
        LossRules(**rows["losses"]),
        rows["cadence"]["tolerance"],
        SilenceRules(**rows["silence"]),
        quality_rules(),
        PlanDriftRules(**rows["plan_drift"]),
    )


@functools.cache
def quality_rules() -> QualityRules:
    """Rules of drops of evaluation metrics."""
    rows: dict[str, Any] = load_document("tracking_status")["quality"]
    return QualityRules(**rows | {name: tuple(rows[name]) for name in ("saturations", "lower_is_better")})
