"""Default rules of a status. Data and sources: `data/tracking_status.toml`."""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path
from typing import Any

from service.domain.tracking.feedback import FeedbackRules
from service.engine.tracking.gate import GateRules
from service.engine.tracking.loss_monitor import LossRules
from service.engine.tracking.status import StatusRules
from service.presets.tracking.forecast import drift_rules, forecast_rules

_FILE = Path(__file__).parents[1] / "data" / "tracking_status.toml"


@functools.cache
def status_rules() -> StatusRules:
    """All rules of a status."""
    rows = _document()
    return StatusRules(
        forecast_rules(), drift_rules(), GateRules(**rows["gate"]), LossRules(**rows["losses"]), rows["cadence"]["tolerance"]
    )


@functools.cache
def feedback_rules() -> FeedbackRules:
    """Weight of finished runs in later estimates."""
    return FeedbackRules(**_document()["feedback"])


@functools.cache
def _document() -> dict[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))
