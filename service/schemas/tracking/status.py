"""Schema of a tracked program's status."""

from __future__ import annotations

import service.schemas.training.answer  # noqa: F401 - derives the schema of finish dates
from service.domain.tracking import status
from service.schemas.base import Text
from service.schemas.derive import derive

SNAPSHOT = "Price snapshot of the plan; null: no plan"
VERSION = "Version of the engine and its data"

derive(status.UnknownFigure, "StatusUnknown")
derive(status.SpendLine, "StatusCostLine")
derive(status.Spend, "StatusSpend")
derive(status.BurnWindow, "StatusBurnWindow")
derive(status.BurnRate, "StatusBurnRate")
derive(status.EarnedValue, "StatusEarnedValue")
derive(status.CompletionForecast, "StatusForecast")
derive(status.Drift, "StatusDrift")
derive(status.InterruptionSummary, "StatusInterruptions")
derive(status.GateStatus, "StatusGate")
derive(status.CostDriver, "StatusWhyPart")
derive(status.CostDrivers, "StatusWhy")
derive(status.UtilisationStatus, "StatusUtilisation")
derive(status.CheckpointCadence, "StatusCheckpoints")
derive(status.LossAlarm, "StatusLossAlarm")
derive(status.LossProjection, "StatusLossEnd")
derive(status.LossStatus, "StatusLoss")
derive(status.RunStatus, "RunStatus", extra={"id": Text(required=True, description="Id of the run")})
ProgramStatusSchema = derive(
    status.ProgramStatus,
    "ProgramStatus",
    extra={
        "price_snapshot": Text(required=True, allow_none=True, description=SNAPSHOT),
        "engine_version": Text(required=True, description=VERSION),
    },
)
