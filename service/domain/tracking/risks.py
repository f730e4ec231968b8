"""Risks of a tracked program: as planned, as notes say of them, and what they draw of the reserve."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from service.domain.answer_fields import Doc
from service.domain.programs.risks import RiskState


@dataclass(frozen=True, slots=True)
class PlannedRisk:
    """A risk as it was planned with: loss where it happens, expected loss [USD], and days where it happens."""

    name: str
    state: RiskState
    loss_usd: float
    expected_loss_usd: float
    days: float


@dataclass(frozen=True, slots=True)
class RiskNote:
    """What a note says of a risk; None is not stated."""

    at: datetime
    name: str
    state: RiskState
    usd: float | None
    days: float | None


@dataclass(frozen=True, slots=True)
class TrackedRisk:
    """A risk by its newest note. What an occurred one costs and takes is as noted, else as planned."""

    name: Annotated[str, Doc("Name of the risk")]
    state: Annotated[RiskState, Doc("By the newest note, else by the plan")]
    since: Annotated[datetime | None, Doc("Time of the newest note; null: none")]
    planned_usd: Annotated[float, Doc("Expected loss that the reserve holds for it", "USD")]
    usd: Annotated[float, Doc("What it draws of the reserve", "USD")]
    days: Annotated[float, Doc("What it adds to the forecast finish", "days")]


@dataclass(frozen=True, slots=True)
class ReserveStatus:
    """The reserve: drawn by risks that occurred, released by those that are closed. Negative `left_usd` is in the forecast's cost."""

    planned_usd: Annotated[float, Doc("Planned reserve; 0 without a plan", "USD")]
    drawn_usd: Annotated[float, Doc("Drawn by risks that occurred", "USD")]
    released_usd: Annotated[float, Doc("Held for risks that are closed, and no longer in the forecast", "USD")]
    left_usd: Annotated[float, Doc("What is left of it; negative where risks cost more", "USD")]
