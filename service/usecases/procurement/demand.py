"""The demand of a request: a fleet's utilisation and growth, or the plan of a program."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np

from service.context import AppContext
from service.domain.errors import DomainError, InvalidRequest, NotFound, UnknownName
from service.domain.teams import DEFAULT_TEAM
from service.domain.training.hardware import Accelerator
from service.engine.procurement.price_paths import HOURS_PER_MONTH
from service.presets.hardware.accelerators import find_accelerator
from service.presets.procurement.defaults import procurement_default
from service.prices.offer_table import Floats
from service.usecases.programs.plan import plan_program
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.cluster import ambiguity_text

Request = Mapping[str, Any]
Weeks = list[tuple[date, float]]
DAYS_PER_MONTH = 365 / 12
DAYS_PER_WEEK = 7
# Decimal places of a share: less is no use at all.
SHARE_PLACES = 9


@dataclass(frozen=True, slots=True)
class ResolvedDemand:
    """A demand with its defaults; `plan` has the accelerators in use by month of a program, None without one."""

    accelerator: Accelerator
    count: int
    start: date
    months: int
    utilisation: float
    peak_utilisation: float
    growth_per_year: float
    plan: Floats | None

    @property
    def years(self) -> float:
        """Length of the horizon [year]."""
        return self.months / 12

    @property
    def is_steady(self) -> bool:
        """Whether all months use as much."""
        return self.plan is None and not self.growth_per_year

    @property
    def busiest_utilisation(self) -> float:
        """Share of the fleet in use in the busiest month [1]."""
        if self.plan is not None:
            return round(float(self.plan.max() / self.count), SHARE_PLACES)
        growth = float((1 + self.growth_per_year) ** ((self.months - 1) / 12))
        return round(self.utilisation * max(1.0, growth), SHARE_PLACES)


def resolve_demand(context: AppContext, request: Request, notes: AssumptionLog) -> ResolvedDemand:
    """The demand of a validated request. Raises DomainErrors with pointers into it."""
    section = request["demand"]
    accelerator = _find(section["accelerator"], notes)
    weeks = _program_weeks(context, section)
    if weeks is not None:
        return _planned(section, accelerator, weeks, notes)
    if section.get("count") is None:
        raise InvalidRequest("state the number of accelerators, or a program whose plan has them", "/demand/count")
    months = _months(_default(section, "years", notes), notes)
    return ResolvedDemand(
        accelerator=accelerator,
        count=section["count"],
        start=_start(section, context.clock().date(), "today", notes),
        months=months,
        utilisation=round(_default(section, "utilisation", notes), SHARE_PLACES),
        peak_utilisation=_default(section, "peak_utilisation", notes),
        growth_per_year=_default(section, "growth_per_year", notes),
        plan=None,
    )


def _find(name: str, notes: AssumptionLog) -> Accelerator:
    try:
        match = find_accelerator(name)
    except UnknownName as problem:
        problem.pointer = "/demand/accelerator"
        raise
    if match.ambiguous_with:
        notes.assume("demand.accelerator", match.accelerator.name, ambiguity_text(match))
    return match.accelerator


def _default(section: Request, name: str, notes: AssumptionLog) -> float:
    usual = procurement_default(name)
    return float(notes.take(section, f"demand.{name}", usual.value, usual.source))


def _start(section: Request, usual: date, why: str, notes: AssumptionLog) -> date:
    stated: date | None = section.get("start")
    if stated is None:
        notes.assume("demand.start", usual.isoformat(), why)
    return stated or usual


def _months(years: float, notes: AssumptionLog) -> int:
    """The horizon in whole months."""
    months = max(1, round(years * 12))
    if not math.isclose(months / 12, years):
        notes.assume("demand.years", months / 12, "rounded to whole months")
    return months


def _program_weeks(context: AppContext, section: Request) -> Weeks | None:
    """Accelerator-hours by week of the program that the demand names or carries; None without one."""
    carried, named = section.get("program"), section.get("tracked_program")
    if carried is None and named is None:
        return None
    for name in ("utilisation", "growth_per_year", "peak_utilisation"):
        if section.get(name) is not None:
            raise InvalidRequest(f"a program's plan says how much is used: leave out {name}", f"/demand/{name}")
    if carried is not None and named is not None:
        raise InvalidRequest("take program or tracked_program: a demand has one plan", "/demand/tracked_program")
    if carried is not None:
        try:
            weeks = plan_program(context, carried).burn_plan
        except DomainError as problem:
            raise problem.below("/demand/program") from problem
        return [(week.monday, float(week.accelerator_hours)) for week in weeks]
    return _tracked_weeks(context, str(named))


def _tracked_weeks(context: AppContext, program_id: str) -> Weeks:
    record = context.store.program(context.team or DEFAULT_TEAM, program_id)
    if record is None:
        raise NotFound(f"there is no tracked program {program_id!r}: GET /v1/track/programs lists them", "/demand/tracked_program")
    planned = record.body.get("weeks") or ()
    if not planned:
        raise InvalidRequest("this tracked program has no plan by week: create it with a plan", "/demand/tracked_program")
    return [(date.fromisoformat(week["week"]), float(week["accelerator_hours"])) for week in planned]


def _planned(section: Request, accelerator: Accelerator, weeks: Weeks, notes: AssumptionLog) -> ResolvedDemand:
    """The demand of a program's plan; accelerator-hours are counted as those of the demand's accelerator."""
    start = _start(section, weeks[0][0], "the plan's first week", notes)
    length = math.ceil(((weeks[-1][0] - start).days + DAYS_PER_WEEK) / DAYS_PER_MONTH)
    years = section.get("years") or notes.assume("demand.years", max(length, 1) / 12, "the plan's length, in whole months")
    months = _months(years, notes)
    plan = _accelerators_by_month(weeks, start, months)
    if not plan.any():
        raise InvalidRequest("the program's plan has no accelerator-hours within these years", "/demand/years")
    node = accelerator.accelerators_per_node
    peak = math.ceil(plan.max() / node) * node
    count = section.get("count") or notes.assume("demand.count", peak, "the plan's busiest month, in whole nodes")
    notes.assume(
        "demand.program", accelerator.name, "the plan's accelerator-hours are taken as hours of it, whatever its runs are planned on"
    )
    notes.assume("demand.utilisation", round(float(plan.mean() / count), 4), "the plan's accelerator-hours over all hours of the fleet")
    return ResolvedDemand(accelerator, count, start, months, float(plan.mean() / count), 1.0, 0.0, plan)


def _accelerators_by_month(weeks: Iterable[tuple[date, float]], start: date, months: int) -> Floats:
    """Mean accelerators in use in each month: each day of a week has a seventh of its hours."""
    hours = np.zeros(months)
    for monday, week_hours in weeks:
        for day in range(DAYS_PER_WEEK):
            month = int((monday + timedelta(days=day) - start).days // DAYS_PER_MONTH)
            if 0 <= month < months:
                hours[month] += week_hours / DAYS_PER_WEEK
    return hours / HOURS_PER_MONTH
