"""The summary of a tracked program: its headline with the forecast's figures."""

from __future__ import annotations

from service.domain.summary import Driver, Summary
from service.domain.tracking.events import ProgramBaseline
from service.domain.tracking.status import ProgramStatus
from service.engine.numerics.ranges import percentile
from service.formats.headline import money
from service.usecases.programs.summary import days_from
from service.usecases.tracking.headline import headline
from service.usecases.training.summary import KEPT_WITH, MAX_DRIVERS


def summarise_status(baseline: ProgramBaseline, status: ProgramStatus) -> Summary:
    """The headline, cost and finish of the forecast, and the causes that move the cost most."""
    cost, finish = status.forecast.cost_usd, status.forecast.finish
    days = days_from(baseline.start, finish) if baseline.start and finish else None
    parts = status.cost_drivers.parts if status.cost_drivers else ()
    largest = sorted(parts, key=lambda part: -abs(part.usd))[:MAX_DRIVERS]
    return Summary(
        text=headline(baseline, status).text,
        p50_usd=None if cost is None else cost.p50,
        p80_usd=None if cost is None else percentile(cost, KEPT_WITH),
        p50_finish_days=None if days is None else days.p50,
        p80_finish_days=None if days is None else percentile(days, KEPT_WITH),
        drivers=tuple(_driver(part.cause, float(part.usd)) for part in largest if part.usd),
    )


def _driver(cause: str, usd: float) -> Driver:
    return Driver(cause, usd, f"adds {money(usd)}" if usd > 0 else f"saves {money(-usd)}")
