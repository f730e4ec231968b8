"""Projection of a run's final loss by its planned schedule, as in /v1/loss-curves; takes up to 1 s a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from service.domain.scaling.loss_curves import Decay
from service.domain.tracking.status import LossProjection
from service.engine.scaling.loss_curve import make_schedule
from service.engine.tracking.history import RunHistory
from service.engine.tracking.loss_monitor import project_loss
from service.presets.scaling.law_fit import curve_prior
from service.usecases.scaling.loss_curves import SEED

DECAY: Decay = "cosine"
ASSUMED = "the learning rate's decay was not planned: taken to be a cosine to 0 over the planned tokens"


def project_run_loss(planned: Mapping[str, Any], history: RunHistory) -> LossProjection | str:
    """Projected final loss of a run, or the reason why there is none."""
    tokens = planned.get("tokens")
    decay: Decay | None = planned.get("decay")
    if not tokens:
        return "the final loss is not projected: no tokens of the run are planned"
    plan = make_schedule(decay or DECAY, float(tokens), float(planned.get("warmup_tokens") or 0), None, 0.0)
    found = project_loss(history, plan, curve_prior(), planned.get("loss"), np.random.default_rng(SEED))
    if isinstance(found, str):
        return f"the final loss is not projected: {found}"
    return found if decay else LossProjection(found.loss, found.planned_loss, found.probability_of_planned, (*found.warnings, ASSUMED))
