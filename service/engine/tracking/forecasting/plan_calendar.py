"""The plan's calendar of a tracked program, moved by what its present runs are late or early and by runs that should have begun."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta

from service.domain.tracking.events import ProgramBaseline, RunBaseline
from service.domain.tracking.status import CompletionForecast, OverdueRun
from service.domain.training.estimate import FinishDates
from service.engine.tracking.runs.targets import RunTarget, untracked_share

HOURS_PER_DAY = 24.0
PERCENTILES = ("p10", "p50", "p90")


def calendar_finish(
    program: ProgramBaseline, all_targets: Sequence[RunTarget], forecasts: Sequence[CompletionForecast], now: datetime
) -> FinishDates | None:
    """Finish of the plan's calendar, moved by what its present runs are late or early; None without a calendar.

    The present runs are those under way, else the last in the plan that has ended; with them the next run that should have begun by now.

    Parameters
    ----------
    program : ProgramBaseline
        Plan of the program.
    all_targets, forecasts : sequences
        Runs with targets and their forecasts, in the same order.
    now : datetime
        Status date, UTC.
    """
    if program.finish is None:
        return None
    both = [(target, one) for target, one in zip(all_targets, forecasts, strict=True) if target.run.baseline.finish_range]
    begun = [(target, one) for target, one in both if target.run.history.last_at and one.finish]
    ended = sorted(begun, key=lambda pair: pair[0].run.baseline.finish or date.min)[-1:]
    moves = [_moves(target.run.baseline, one.finish) for target, one in [pair for pair in begun if not pair[0].is_over] or ended]
    late = max([0, *(one.late_days for one in overdue_runs(program, all_targets, now))])
    days = [max(each) for each in zip(*moves, strict=True)] if moves else [late] * 3
    planned = (getattr(program.finish, name) for name in PERCENTILES)
    return FinishDates(*sorted(day + timedelta(days=max(move, late) if late else move) for day, move in zip(planned, days, strict=True)))


def overdue_runs(program: ProgramBaseline, all_targets: Sequence[RunTarget], now: datetime) -> tuple[OverdueRun, ...]:
    """Runs that should have begun by now and have not, the longest overdue first; none of a closed program.

    Earlier runs of the plan than one that has begun count as done. Runs of the plan that are not tracked count while no run is tracked of
    a part of the planned tokens.

    Parameters
    ----------
    program : ProgramBaseline
        Plan of the program.
    all_targets : sequence of RunTarget
        Runs with targets.
    now : datetime
        Status date, UTC.
    """
    if program.closed:
        return ()
    due = (_overdue(run, run.start, now.date()) for run in _waiting(program, all_targets) if run.start is not None)
    return tuple(sorted((one for one in due if one.days > 0), key=lambda one: -one.days))


def not_before(finish: FinishDates | None, day: date) -> FinishDates | None:
    """Dates of which none is before a day; None stays None."""
    return None if finish is None else FinishDates(*(max(getattr(finish, name), day) for name in PERCENTILES))


def _waiting(program: ProgramBaseline, all_targets: Sequence[RunTarget]) -> Iterator[RunBaseline]:
    """Runs that have not begun, tracked ones first, and are not earlier in the plan than one that has."""
    tracked = [target.run.baseline for target in all_targets]
    begun = {_key(target.run.baseline) for target in all_targets if target.run.history.last_at or target.is_over}
    reached = max((run.start for run in tracked if run.start and _key(run) in begun), default=date.min)
    yield from (run for run in tracked if _key(run) not in begun and run.start and run.start >= reached)
    if untracked_share(program, all_targets) or not tracked:
        known = {_key(run) for run in tracked}
        yield from (run for run in program.runs if _key(run) not in known and run.start and run.start > reached)


def _overdue(run: RunBaseline, start: date, today: date) -> OverdueRun:
    days = (today - start).days
    return OverdueRun(run.name, run.tier, start, days, max(0, days - int(run.float_hours // HOURS_PER_DAY)))


def _key(run: RunBaseline) -> tuple[str | None, str]:
    return run.tier, run.name


def _moves(baseline: RunBaseline, finish: FinishDates | None) -> list[int]:
    """Days by which a run's finish moves the program's, by percentile: those beyond the run's float; earlier ones where it has none."""
    if finish is None or baseline.finish_range is None:
        return [0, 0, 0]
    days = [(getattr(finish, name) - getattr(baseline.finish_range, name)).days for name in PERCENTILES]
    spare = int(baseline.float_hours // HOURS_PER_DAY)
    return [max(0, each - spare) if spare else each for each in days]
