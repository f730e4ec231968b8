"""Risks of a tracked program: their state by notes, the reserve that they draw on, and the forecast after them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta

from service.domain.quantities import Range
from service.domain.tracking.events import ProgramBaseline
from service.domain.tracking.risks import PlannedRisk, ReserveStatus, RiskNote, TrackedRisk
from service.domain.tracking.status import CompletionForecast
from service.domain.training.estimate import FinishDates

BASIS = "risks that occurred or were closed"


def track_risks(planned: Sequence[PlannedRisk], notes: Iterable[RiskNote]) -> tuple[TrackedRisk, ...]:
    """Each risk by its newest note.

    Parameters
    ----------
    planned : sequence of PlannedRisk
        The plan's register.
    notes : iterable of RiskNote
        In any order; of notes at one time the one of the worst outcome counts.

    Returns
    -------
    tuple of TrackedRisk
        Planned risks in their order, then others by name.
    """
    newest: dict[str, RiskNote] = {}
    for note in sorted(notes, key=lambda one: (one.at, one.state == "occurred", one.usd or 0.0, one.days or 0.0)):
        newest[note.name] = note
    known = {risk.name: risk for risk in planned}
    others = sorted(newest.keys() - known.keys())
    return tuple(_tracked(known.get(name) or PlannedRisk(name, "open", 0.0, 0.0, 0.0), newest.get(name)) for name in (*known, *others))


def reserve_status(baseline: ProgramBaseline, risks: Sequence[TrackedRisk]) -> ReserveStatus | None:
    """The reserve after its risks [USD]; None where neither a plan nor a risk is known."""
    whole = baseline.total_usd
    if whole is None and not risks:
        return None
    planned = 0.0 if whole is None else baseline.reserve_share * whole.p50
    drawn = math.fsum(risk.usd for risk in risks)
    released = min(planned, math.fsum(risk.planned_usd for risk in risks if risk.state == "closed"))
    return ReserveStatus(planned, drawn, released, planned - drawn - released)


def forecast_change_usd(reserve: ReserveStatus | None) -> float:
    """What the risks add to a forecast that has the whole reserve: what is drawn beyond it, less what is released [USD]."""
    return 0.0 if reserve is None else max(0.0, -reserve.left_usd) - reserve.released_usd


def with_risks(forecast: CompletionForecast, risks: Sequence[TrackedRisk], change_usd: float) -> CompletionForecast:
    """A forecast after its risks: cost changed, and the finish later by the days of those that occurred.

    Parameters
    ----------
    forecast : CompletionForecast
        With the whole reserve in its cost.
    risks : sequence of TrackedRisk
        By their newest notes.
    change_usd : float
        As `forecast_change_usd` [USD].
    """
    days = math.fsum(risk.days for risk in risks)
    if not days and not change_usd:
        return forecast
    return replace(
        forecast,
        cost_usd=_shifted(forecast.cost_usd, change_usd),
        remaining_usd=_shifted(forecast.remaining_usd, change_usd),
        finish=None if forecast.finish is None else _later(forecast.finish, days),
        basis=f"{forecast.basis}, {BASIS}",
    )


def _tracked(planned: PlannedRisk, note: RiskNote | None) -> TrackedRisk:
    state = planned.state if note is None else note.state
    usd = days = 0.0
    if state == "occurred":
        usd = planned.loss_usd if note is None or note.usd is None else note.usd
        # The plan's calendar has the days of what had occurred when it was made.
        stated = note.days if note is not None else None
        days = planned.days * (planned.state != "occurred") if stated is None else stated
    return TrackedRisk(planned.name, state, None if note is None else note.at, planned.expected_loss_usd, usd, days)


def _shifted(usd: Range | None, change: float) -> Range | None:
    return None if usd is None else Range(*(max(0.0, each + change) for each in (usd.p10, usd.p50, usd.p90)))


def _later(finish: FinishDates, days: float) -> FinishDates:
    return FinishDates(*(day + timedelta(days=math.ceil(days)) for day in (finish.p10, finish.p50, finish.p90)))
