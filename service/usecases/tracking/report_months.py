"""Spend of a tracked program by calendar month: planned, actual, and still to come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Annotated

from service.domain.answer_fields import Doc
from service.domain.quantities import Range
from service.domain.tracking.events import ProgramBaseline
from service.engine.tracking.costs.cost import cost_run
from service.engine.tracking.earned_value import midnight, share_passed
from service.usecases.tracking.report_series import spent_until, time_bounds
from service.usecases.tracking.status import StatusResult

LAST = datetime(9999, 1, 1, tzinfo=UTC)
MOST_MONTHS = 600
"""Months of a report; what is forecast for later ones is in the last."""


@dataclass(frozen=True, slots=True)
class ReportedMonth:
    """Spend of one calendar month. In the present one `actual_usd` is until now, `forecast_usd` from now on; together they are its spend.

    Planned months add up to the budget, actual ones to the spend, and both with the forecast to the forecast cost, by percentile. What is
    left is forecast to be spent evenly until the median finish.
    """

    month: Annotated[str, Doc("Month, such as 2027-01")]
    planned_usd: Annotated[float | None, Doc("Planned spend, reserves included; null without a plan", "USD")]
    actual_usd: Annotated[float | None, Doc("Spend of the month; null after now, and where unknown", "USD")]
    forecast_usd: Annotated[Range | None, Doc("Still to be spent in the month; null before now, and where unknown", "USD")]


def report_months(result: StatusResult) -> tuple[ReportedMonth, ...]:
    """Every month from the start to the planned or forecast end, whichever is later; empty without a start or an event."""
    begin, now = time_bounds(result)[0], result.status.as_of
    if begin is None:
        return ()
    left, runs = _left(result), [cost_run(run.baseline, run.history) for run in result.histories]

    def month(first: datetime, after: datetime) -> ReportedMonth:
        planned = [_planned(result.baseline, at) for at in (first, after)]
        spent = [spent_until(runs, min(at, now)) for at in (first, after)]
        ahead = None if left is None or after <= now else left[0].scaled(_share(now, left[1], after) - _share(now, left[1], first))
        return ReportedMonth(first.date().isoformat()[:7], _difference(planned), None if first > now else _difference(spent), ahead)

    return tuple(month(*ends) for ends in _months(begin, _last(result)))


def _months(begin: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    """First moments of each month and of the next; the last reaches as far as anything is planned or forecast."""
    first = datetime(begin.year, begin.month, 1, tzinfo=UTC)
    for number in range(MOST_MONTHS):
        after = datetime(first.year + first.month // 12, first.month % 12 + 1, 1, tzinfo=UTC) if first.year < LAST.year else LAST
        if after > end or after >= LAST or number == MOST_MONTHS - 1:
            yield first, LAST
            return
        yield first, after
        first = after


def _last(result: StatusResult) -> datetime:
    baseline, finish = result.baseline, result.status.forecast.finish
    weeks = [midnight(min(week.week, date.max - timedelta(days=6)) + timedelta(days=6)) for week in baseline.weeks[-1:]]
    days = [midnight(day) for day in (None if baseline.weeks else baseline.deadline, finish.p50 if finish else None) if day]
    return max([result.status.as_of, *weeks, *days])


def _left(result: StatusResult) -> tuple[Range, datetime] | None:
    """What is still to be spent [USD], and until when; None where one is unknown."""
    cost, finish, spent = result.status.forecast.cost_usd, result.status.forecast.finish, result.status.spend.usd
    if cost is None or finish is None or spent is None:
        return None
    usd = Range(*(max(0.0, each - spent) for each in (cost.p10, cost.p50, cost.p90)))
    return usd, max(result.status.as_of, midnight(finish.p50))


def _difference(ends: list[float | None]) -> float | None:
    first, last = ends
    return None if first is None or last is None else round(last - first, 2)


def _planned(baseline: ProgramBaseline, at: datetime) -> float | None:
    """Planned spend until then [USD]: the burn plan's, else the budget evenly from start to deadline; None without either."""
    if baseline.weeks:
        return sum(week.usd * share_passed(week, at) for week in baseline.weeks)
    if baseline.budget_usd is None or baseline.start is None or baseline.deadline is None:
        return None
    return baseline.budget_usd * _share(midnight(baseline.start), midnight(baseline.deadline), at)


def _share(begin: datetime, end: datetime, at: datetime) -> float:
    """Share of a time that has passed [1]; of none, all from its end on."""
    return min(1.0, max(0.0, (at - begin) / (end - begin))) if end > begin else float(at > begin)
