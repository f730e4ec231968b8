"""Planned use of money, accelerator-hours, tokens and checkpoints by week of ISO 8601 (Monday to Sunday); tracking compares with it.

Spending is even from start to finish. The cumulative use by each week's end is rounded, not each week's use: so the weeks add up to the
totals exactly, and none is off by more than one unit.
"""

from __future__ import annotations

import math
from calendar import monthrange
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from service.domain.schedule import BurnWeek, MonthSpend, PlannedSpending
from service.engine.scheduling.calendar import HOURS_PER_DAY, HOURS_PER_WEEK, TIME_TOLERANCE_HOURS, finish_day, hours_until, start_day

Floats = NDArray[np.float64]
HUNDREDTHS_PER_UNIT = 100


def burn_plan(start: date, spendings: Iterable[PlannedSpending]) -> tuple[BurnWeek, ...]:
    """Planned use by week.

    Parameters
    ----------
    start : date
        Day from whose beginning hours are counted.
    spendings : iterable of PlannedSpending
        Amounts [USD, accelerator-hours, tokens, checkpoints] with start and finish [h].

    Returns
    -------
    tuple of BurnWeek
        Every week from the first spending's to the last's: money in cents, accelerator-hours in hundredths, tokens and checkpoints in whole
        numbers; empty where nothing is spent.

    Raises
    ------
    ValueError
        For a spending that ends before it starts or has a negative amount.
    """
    rows = tuple(spendings)
    _check_spendings(rows)
    mondays = _mondays(start, rows)
    shares = _used_shares(rows, [hours_until(start, monday) + HOURS_PER_WEEK for monday in mondays])
    tokens = _whole_units(shares, [spending.tokens for spending in rows])
    checkpoints = _whole_units(shares, [spending.checkpoints for spending in rows])
    hours = _whole_units(shares, [spending.accelerator_hours * HUNDREDTHS_PER_UNIT for spending in rows])
    usd = _whole_units(shares, [spending.usd * HUNDREDTHS_PER_UNIT for spending in rows])
    return tuple(
        BurnWeek(iso_week(monday), monday, tokens[week], _from_hundredths(hours[week]), _from_hundredths(usd[week]), checkpoints[week])
        for week, monday in enumerate(mondays)
    )


def spend_by_month(start: date, spendings: Iterable[PlannedSpending]) -> tuple[MonthSpend, ...]:
    """Planned spend by calendar month.

    Parameters
    ----------
    start : date
        Day from whose beginning hours are counted.
    spendings : iterable of PlannedSpending
        Amounts [USD] with start and finish [h].

    Returns
    -------
    tuple of MonthSpend
        Every month from the first spending's to the last's, in cents; they add up to the total. Empty where nothing is spent.

    Raises
    ------
    ValueError
        As `burn_plan`.
    """
    rows = tuple(spendings)
    _check_spendings(rows)
    weeks = _mondays(start, rows)
    if not weeks:
        return ()
    first, last = start_day(start, min(row.start_hours for row in rows)), min(weeks[-1], date.max - timedelta(days=6)) + timedelta(days=6)
    months = [divmod(month, 12) for month in range(first.year * 12 + first.month - 1, last.year * 12 + last.month)]
    ends = [month_end_hours(start, year, month + 1) for year, month in months]
    usd = _whole_units(_used_shares(rows, ends), [row.usd * HUNDREDTHS_PER_UNIT for row in rows])
    spent = [MonthSpend(f"{year}-{month + 1:02}", _from_hundredths(cents)) for (year, month), cents in zip(months, usd, strict=True)]
    # The last week may reach into a month in which nothing is spent.
    return tuple(spent if spent[-1].usd or len(spent) == 1 else spent[:-1])


def month_end_hours(start: date, year: int, month: int) -> float:
    """End of a month, 1 to 12 [h since the beginning of `start`]."""
    return hours_until(start, date(year, month, monthrange(year, month)[1])) + HOURS_PER_DAY


def _check_spendings(spendings: Sequence[PlannedSpending]) -> None:
    for spending in spendings:
        if spending.finish_hours < spending.start_hours:
            raise ValueError(f"{spending} ends before it starts")
        if spending.usd < 0 or min(spending.accelerator_hours, spending.tokens, spending.checkpoints) < 0:
            raise ValueError(f"{spending} is below 0")


def _mondays(start: date, spendings: Sequence[PlannedSpending]) -> tuple[date, ...]:
    """The first day of every week from the first spending to the last."""
    if not spendings:
        return ()
    first = start_day(start, min(spending.start_hours for spending in spendings))
    last = max(max(start_day(start, spending.start_hours), finish_day(start, spending.finish_hours)) for spending in spendings)
    monday = first - timedelta(days=first.weekday())
    return tuple(monday + timedelta(weeks=week) for week in range((last - monday).days // 7 + 1))


def _used_shares(spendings: Sequence[PlannedSpending], week_ends: Sequence[float]) -> Floats:
    """(spendings, weeks) array: share used by each week's end [h]; a spending without duration counts from its moment on."""
    starts, finishes = (np.array([[getattr(spending, name)] for spending in spendings]) for name in ("start_hours", "finish_hours"))
    durations = np.maximum(finishes - starts, TIME_TOLERANCE_HOURS)
    return np.asarray(np.clip((np.array(week_ends) - starts) / durations, 0.0, 1.0))


def _whole_units(shares: Floats, amounts: Sequence[int] | Sequence[float] | Sequence[Decimal]) -> list[int]:
    """Whole units of each week or month; they add up to the rounded sum of the amounts."""
    if not amounts:
        return []
    total = round(math.fsum(amounts) if isinstance(amounts[0], float) else sum(amounts))
    by_end = [min(round(units), total) for units in np.array([float(amount) for amount in amounts]) @ shares]
    by_end[-1] = total
    return [after - before for before, after in zip([0, *by_end], by_end, strict=False)]


def iso_week(monday: date) -> str:
    """Name of the ISO 8601 week that begins on this day: 2027-W01."""
    year, week, _ = monday.isocalendar()
    return f"{year}-W{week:02}"


def _from_hundredths(units: int) -> Decimal:
    return Decimal(units).scaleb(-2)
