"""The budget of a tracked program from plan to forecast, by part; what moves the forecast; energy and emissions beside the plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from service.domain.answer_fields import Doc, share
from service.domain.programs.budget_parts import BudgetPart
from service.domain.quantities import Range


@dataclass(frozen=True, slots=True)
class BudgetBridgePart:
    """A part of the budget: planned, spent, still to come, and forecast, which is spent plus still to come."""

    part: Annotated[BudgetPart, Doc("Part of the budget")]
    budget_usd: Annotated[float | None, Doc("Budget of the part; null without a budget", "USD")]
    spent_usd: Annotated[float, Doc("Spent to date, as far as it is known", "USD")]
    remaining_usd: Annotated[Range | None, Doc("Still to come; null where unknown", "USD")]
    forecast_usd: Annotated[Range | None, Doc("Forecast at completion; null where unknown", "USD")]
    earned_share: Annotated[float, share("Share of it that is in BAC: all of compute, and planned lines once a cost of them is reported")]


@dataclass(frozen=True, slots=True)
class ForecastSwing:
    """How far the forecast cost moves where one part of what is to come ends at its p10 or p90 and the rest at its median."""

    cause: Annotated[str, Doc("What is to come")]
    low_usd: Annotated[float, Doc("Change of the forecast at the low end", "USD")]
    high_usd: Annotated[float, Doc("Change of the forecast at the high end", "USD")]
    low: Annotated[str, Doc("The low end in words")]
    high: Annotated[str, Doc("The high end in words")]


@dataclass(frozen=True, slots=True)
class BudgetBridge:
    """From the budget to the forecast, by part. Parts add up to the budget, the spend and each percentile of the forecast."""

    parts: Annotated[tuple[BudgetBridgePart, ...], Doc("Compute, around the runs, people, reserve", max_items=4)]
    method: Annotated[str, Doc("How the forecast is made, and what each of its percentiles holds", max_length=2000)]
    beside_eac: Annotated[str | None, Doc("EAC compared with the forecast of the same work; null where unknown", max_length=2000)]
    swings: Annotated[tuple[ForecastSwing, ...], Doc("What moves the forecast, the largest first", max_items=1000)]


@dataclass(frozen=True, slots=True)
class PlannedAndUsed:
    """A quantity by plan and as used; null where the plan does not have it or hours are not reported."""

    planned: Annotated[float | None, Doc("Planned for the whole program", "unit of the quantity")]
    planned_to_date: Annotated[float | None, Doc("Planned for the work done so far", "unit of the quantity")]
    used: Annotated[float | None, Doc("Used so far", "unit of the quantity")]
    forecast: Annotated[float | None, Doc("Forecast for the whole program, at the median", "unit of the quantity")]


@dataclass(frozen=True, slots=True)
class EnergyUse:
    """Energy at the meter and emissions: accelerator-hours at the plan's energy and grid."""

    mwh: Annotated[PlannedAndUsed, Doc("Energy", "MWh")]
    tco2e: Annotated[PlannedAndUsed, Doc("Emissions, in tonnes of CO2 equivalent", "t CO2e")]
    basis: Annotated[str, Doc("How the figures come about", max_length=1000)]
