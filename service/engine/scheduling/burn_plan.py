"""What a schedule uses up week by week: the plan that tracking compares with. Weeks are those of ISO 8601, Monday to Sunday.

Everything is spread evenly from start to finish. What has been used by each week's end is rounded, not what each week uses: so the weeks
add up to the totals exactly, and none is off by more than one unit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from service.domain.schedule import BurnWeek, PlannedSpending
from service.engine.scheduling.calendar import HOURS_PER_WEEK, TIME_TOLERANCE_HOURS, finish_day, hours_until, start_day

Floats = NDArray[np.float64]
HUNDREDTHS_PER_UNIT = 100


def burn_plan(start: date, spendings: Iterable[PlannedSpending]) -> tuple[BurnWeek, ...]:
    """Every week from the first spending's to the last's, those between without any as well; empty where nothing is spent.

    `start` is the day that hours are counted from. Money is summed in cents, accelerator-hours in hundredths, tokens and checkpoints whole:
    each total is rounded once. Raises ValueError for a spending that ends before it starts or is less than nothing.
    """
    spent = tuple(spendings)
    _check_spendings(spent)
    mondays = _mondays(start, spent)
    used = _used_shares(spent, [hours_until(start, monday) + HOURS_PER_WEEK for monday in mondays])
    tokens = _weekly_units(used, [spending.tokens for spending in spent])
    checkpoints = _weekly_units(used, [spending.checkpoints for spending in spent])
    hours = _weekly_units(used, [spending.accelerator_hours * HUNDREDTHS_PER_UNIT for spending in spent])
    usd = _weekly_units(used, [spending.usd * HUNDREDTHS_PER_UNIT for spending in spent])
    return tuple(
        BurnWeek(_iso_week(monday), monday, tokens[row], _from_hundredths(hours[row]), _from_hundredths(usd[row]), checkpoints[row])
        for row, monday in enumerate(mondays)
    )


def _check_spendings(spent: Sequence[PlannedSpending]) -> None:
    for spending in spent:
        if spending.finish_hours < spending.start_hours:
            raise ValueError(f"{spending} ends before it starts")
        if spending.usd < 0 or min(spending.accelerator_hours, spending.tokens, spending.checkpoints) < 0:
            raise ValueError(f"{spending} is less than nothing")


def _mondays(start: date, spent: Sequence[PlannedSpending]) -> tuple[date, ...]:
    """The first day of every week in which anything is spent, and of all between."""
    if not spent:
        return ()
    first = start_day(start, min(spending.start_hours for spending in spent))
    last = max(max(start_day(start, each.start_hours), finish_day(start, each.finish_hours)) for each in spent)
    monday = first - timedelta(days=first.weekday())
    return tuple(monday + timedelta(weeks=week) for week in range((last - monday).days // 7 + 1))


def _used_shares(spent: Sequence[PlannedSpending], ends: Sequence[float]) -> Floats:
    """Share of each spending (rows) that is used by each week's end (columns, hours); what is spent at once counts from its moment on."""
    begin, finish = (np.array([[getattr(each, name)] for each in spent]) for name in ("start_hours", "finish_hours"))
    lasts = np.maximum(finish - begin, TIME_TOLERANCE_HOURS)
    return np.asarray(np.clip((np.array(ends) - begin) / lasts, 0.0, 1.0))


def _weekly_units(used: Floats, amounts: Sequence[int] | Sequence[float] | Sequence[Decimal]) -> list[int]:
    """Whole units of each week, that add up to the rounded sum of the amounts."""
    if not amounts:
        return []
    total = round(math.fsum(amounts) if isinstance(amounts[0], float) else sum(amounts))
    by_end = [min(round(used_units), total) for used_units in np.array([float(amount) for amount in amounts]) @ used]
    by_end[-1] = total
    return [now - before for before, now in zip([0, *by_end], by_end, strict=False)]


def _iso_week(monday: date) -> str:
    year, week, _ = monday.isocalendar()
    return f"{year}-W{week:02}"


def _from_hundredths(units: int) -> Decimal:
    return Decimal(units).scaleb(-2)
