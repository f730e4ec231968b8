"""Planned use of a day: by the burn plan of a program, and by the planned days of a run."""

from __future__ import annotations

from datetime import datetime, timedelta

from service.domain.tracking.events import ProgramBaseline, RunBaseline
from service.domain.tracking.status import PlannedBurnRate
from service.engine.tracking.earned_value import midnight

DAYS_PER_WEEK = 7
MINUTES_PER_DAY = 1440.0
NOTHING = PlannedBurnRate(0.0, 0.0, 0.0, 0.0)


def planned_burn_rate(program: ProgramBaseline, now: datetime) -> PlannedBurnRate | None:
    """Use of the day as planned: that of its week in the burn plan, spread over the week's days within the plan; 0 outside all weeks.

    Parameters
    ----------
    program : ProgramBaseline
        Plan with weeks.
    now : datetime
        The day, UTC.

    Returns
    -------
    PlannedBurnRate or None
        USD, accelerator-hours, tokens and checkpoints a day; None without a burn plan.
    """
    if not program.weeks:
        return None
    today = now.date()
    week = next((each for each in program.weeks if each.week <= today < each.week + timedelta(days=DAYS_PER_WEEK)), None)
    if week is None:
        return NOTHING
    begin = max(week.week, program.start or week.week)
    end = week.week + timedelta(days=DAYS_PER_WEEK)
    if program.finish and week is program.weeks[-1] and begin <= program.finish.p50 < end:
        end = program.finish.p50 + timedelta(days=1)
    days = max(1, (end - begin).days)
    if not begin <= today < end:
        return NOTHING
    return PlannedBurnRate(week.usd / days, week.accelerator_hours / days, week.tokens / days, week.checkpoints / days)


def planned_run_burn_rate(run: RunBaseline, now: datetime) -> PlannedBurnRate | None:
    """Use of the day as planned for a run: even over its planned days, 0 outside them.

    Parameters
    ----------
    run : RunBaseline
        Plan of the run.
    now : datetime
        The time, UTC.

    Returns
    -------
    PlannedBurnRate or None
        USD, accelerator-hours, tokens and checkpoints a day; None without planned dates.
    """
    if run.start is None or run.finish is None or run.finish < run.start:
        return None
    begin, end = midnight(run.start), midnight(run.finish)
    days = max((end - begin) / timedelta(days=1), 1.0)
    if not begin <= now < begin + timedelta(days=days):
        return NOTHING
    minutes = run.checkpoint_interval_minutes
    usd, hours, tokens = (None if total is None else total / days for total in (run.usd, run.accelerator_hours, run.tokens))
    return PlannedBurnRate(usd, hours, tokens, MINUTES_PER_DAY / minutes if minutes else None)
