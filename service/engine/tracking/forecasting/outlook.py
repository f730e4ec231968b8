"""Forecast at completion of runs and of a program: each run's forecast, their sum, and the planned cost that no run is tracked for.

Runs of one program share hardware, software and people, so that their errors are taken as fully correlated: percentiles add up, and the
last run to finish ends the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import numpy as np

from service.domain.programs.budget_parts import BudgetPart
from service.domain.quantities import Range
from service.domain.tracking.events import ProgramBaseline, RunBaseline
from service.domain.tracking.status import CompletionForecast, UnknownFigure
from service.domain.training.estimate import FinishDates
from service.engine.numerics.ranges import inverse
from service.engine.tracking.costs.cost import CostedRun
from service.engine.tracking.costs.cost_drivers import planned_cost
from service.engine.tracking.earned_value import midnight
from service.engine.tracking.forecasting.beside_runs import NOTHING, add_ranges, left_beside_runs
from service.engine.tracking.forecasting.forecast import ForecastRules, PlanPrior, ProgressSeries, RemainingWork, forecast
from service.engine.tracking.forecasting.plan_calendar import calendar_finish, not_before
from service.engine.tracking.runs.planned_work import planned_work, planned_work_until
from service.engine.tracking.runs.targets import RunTarget, untracked_share

SECONDS_PER_HOUR = 3600.0
HOURS_PER_DAY = 24.0
# Later times have no date.
LAST = datetime(9999, 1, 1, tzinfo=UTC)
CALENDAR = "the plan's calendar"
BEYOND = "the plan for what no run is tracked of"


def run_forecast(target: RunTarget, now: datetime, rules: ForecastRules) -> CompletionForecast:
    """Forecast of a run; an unknown figure is None with a reason.

    Parameters
    ----------
    target : RunTarget
        Run and its target.
    now : datetime
        Status date, UTC.
    rules : ForecastRules
        Rules of the forecast.
    """
    run = target.run
    if target.is_over:
        return _ended(target)
    if target.tokens is None:
        return _unknown("no tokens of the run are planned")
    found = forecast(history_so_far(run, now), _remaining_work(target), _prior(run.baseline), rules)
    if found is None or found.remaining_hours is None:
        return _unknown(f"the throughput of {run.baseline.name} is unknown: report its tokens at least twice, or state it in the plan")
    finish = _dates(now, found.remaining_hours, run.baseline.start if not run.history.events else None)
    cost = None if run.unknown_reason else add_ranges((Range.exactly(run.usd or 0.0), found.remaining_usd))
    return _block(found, cost, finish, run.unknown_reason)


def program_forecast(
    program: ProgramBaseline, all_targets: Sequence[RunTarget], forecasts: Sequence[CompletionForecast], now: datetime
) -> CompletionForecast:
    """Forecast of a program: its runs', and the rest of the plan as planned, until the planned time is over.

    While anything is left its end is never before `now`.

    Parameters
    ----------
    program : ProgramBaseline
        Plan of the program.
    all_targets, forecasts : sequences
        Runs with targets and their forecasts, in the same order.
    now : datetime
        Status date, UTC.
    """
    rest = 0.0 if program.closed else untracked_share(program, all_targets)
    missing = next((one for one in forecasts if one.remaining_hours is None), None)
    if missing is not None:
        return missing
    if not forecasts and not rest:
        return _unknown("no run is tracked and no tokens are planned")
    begun = [one for target, one in zip(all_targets, forecasts, strict=True) if not target.never_started]
    planned = None if program.closed else calendar_finish(program, all_targets, forecasts, now)
    finish = None if rest and planned is None else _last([*(one.finish for one in begun), *([planned] if planned else [])])
    left_hours = [one.remaining_hours for one in forecasts if one.remaining_hours]
    left = add_ranges(one.remaining_usd for one in forecasts)
    beyond = _total(beside_runs(program, all_targets, now))
    unknown = (*(each for one in begun or forecasts for each in one.unknown), *(_unplanned(beyond, planned) if rest else ()))
    cost = add_ranges([*(one.cost_usd for one in forecasts), beyond])
    is_left = rest or any(not target.is_over for target in all_targets) or beyond not in (None, NOTHING)
    return CompletionForecast(
        cost_usd=cost,
        finish=not_before(finish, now.date()) if is_left and not program.closed else finish,
        remaining_hours=_by_percentile(left_hours, max) if left_hours and not rest else None,
        remaining_usd=add_ranges([left, beyond]),
        remaining_accelerator_hours=None if rest else add_ranges(one.remaining_accelerator_hours for one in forecasts),
        basis=", ".join(_bases(forecasts, planned, is_beyond=bool(rest) or beyond not in (None, NOTHING))),
        unknown=unknown,
    )


def beside_runs(program: ProgramBaseline, all_targets: Sequence[RunTarget], now: datetime) -> Mapping[BudgetPart, Range] | None:
    """What is still to come beside the tracked runs by part [USD]: nothing once the program is complete; None where unknown.

    Parameters
    ----------
    program : ProgramBaseline
        Plan of the program.
    all_targets : sequence of RunTarget
        Runs with targets.
    now : datetime
        Status date, UTC.
    """
    if is_complete(program, all_targets, now):
        return {}
    return left_beside_runs(program, all_targets, untracked_share(program, all_targets))


def beside_change_usd(program: ProgramBaseline, all_targets: Sequence[RunTarget], now: datetime) -> float:
    """What the forecast still has beside the runs, less what was planned there before any of it was reported [USD], by medians.

    Parameters
    ----------
    program : ProgramBaseline
        Plan of the program.
    all_targets : sequence of RunTarget
        Runs with targets.
    now : datetime
        Status date, UTC.
    """
    rest = untracked_share(program, all_targets)
    unreported = [RunTarget(replace(target.run, lines=()), target.tokens) for target in all_targets]
    left, planned = _total(beside_runs(program, all_targets, now)), _beyond(program, unreported, rest)
    return left.p50 - planned.p50 if left and planned else 0.0


def is_complete(program: ProgramBaseline, all_targets: Sequence[RunTarget], now: datetime) -> bool:
    """Whether the program is closed, or all planned work is done or closed and the last planned day has passed."""
    if program.closed:
        return True
    weeks = [week.week + timedelta(days=6) for week in program.weeks[-1:]]
    last = max([*weeks, *([program.deadline] if program.deadline else [])], default=None)
    done = bool(all_targets) and all(target.is_over for target in all_targets) and not untracked_share(program, all_targets)
    return done and last is not None and now.date() > last


def unspent_plan_warnings(program: ProgramBaseline, all_targets: Sequence[RunTarget], now: datetime) -> Iterator[str]:
    """Warnings about planned cost that the forecast leaves out because the program is complete."""
    beyond = _beyond(program, all_targets, 0.0)
    if beyond and beyond.p50 and is_complete(program, all_targets, now):
        why = "the program is closed or was stopped" if program.closed else "all runs are done or closed and the planned time is over"
        yield (
            f"{beyond.p50:,.0f} USD that were planned for people, storage, overheads and reserve are no longer in the forecast, because"
            f" none of it was reported and {why}; report a cost event for what is still to be paid"
        )


def history_so_far(run: CostedRun, now: datetime) -> ProgressSeries:
    """Progress of a run until now by its planned work, one element for each time [elapsed hours]."""
    line, elapsed = run.history.lineage, max(run.history.elapsed(now), 0.0)
    if not line.at_hours.size:
        return ProgressSeries(np.zeros(1), np.zeros(1))
    at, tokens = np.append(line.at_hours, elapsed), np.append(line.tokens, line.position)
    last = np.append(np.diff(at) > 0, True)
    at, tokens = at[last], tokens[last]
    hours, work = run.history.accelerator_hours, planned_work(run.baseline, tokens)
    return ProgressSeries(at, work, None if run.unknown_reason else run.compute_usd(at), None if hours is None else hours.interpolate(at))


def _remaining_work(target: RunTarget) -> float:
    """Planned work of the tokens to the target."""
    baseline = target.run.baseline
    done = planned_work_until(baseline, target.run.history.lineage.position)
    return planned_work_until(baseline, target.tokens or 0.0) - done if baseline.phases else target.remaining_tokens


def planned_tokens_per_hour(baseline: RunBaseline) -> Range | None:
    """Tokens an hour of wall-clock time as planned: by the run's duration, its throughput and goodput, or its dates; None without them."""
    tokens = baseline.tokens and planned_work_until(baseline, baseline.tokens)
    if tokens and baseline.wall_clock_hours and baseline.wall_clock_hours.p10 > 0:
        return inverse(baseline.wall_clock_hours).scaled(tokens)
    if baseline.tokens_per_s and baseline.tokens_per_s.p10 > 0:
        return baseline.tokens_per_s.scaled(SECONDS_PER_HOUR * (baseline.goodput or 1.0))
    if tokens and baseline.start and baseline.finish and baseline.finish > baseline.start:
        return Range.exactly(tokens / ((baseline.finish - baseline.start) / timedelta(hours=1)))
    return None


def _prior(baseline: RunBaseline) -> PlanPrior:
    """Planned rates of a run, per hour and per token."""
    tokens, cost = baseline.tokens and planned_work_until(baseline, baseline.tokens), planned_cost(baseline)
    speed = planned_tokens_per_hour(baseline)
    if not tokens or cost is None:
        return PlanPrior(speed)
    return PlanPrior(speed, Range.exactly(cost.usd / tokens), Range.exactly(cost.accelerator_hours / tokens))


def _block(found: RemainingWork, cost: Range | None, finish: FinishDates | None, unknown: str | None) -> CompletionForecast:
    missing = []
    if cost is None:
        missing.append(UnknownFigure("cost_usd", unknown or "neither the run nor its plan states the cost of a token"))
    if finish is None:
        missing.append(UnknownFigure("finish", "no finish within the calendar at this rate"))
    return CompletionForecast(
        cost, finish, found.remaining_hours, found.remaining_usd, found.remaining_accelerator_hours, found.basis, tuple(missing)
    )


def _ended(target: RunTarget) -> CompletionForecast:
    """Nothing is left: the run ended when it reached its target on the surviving line, else with its last event, if it had one."""
    run, line, ended_at = target.run, target.run.history.lineage, target.run.history.last_at
    if target.is_done:
        ended_at = run.history.moment(float(line.at_hours[int(np.argmax(line.earned >= line.position + target.remaining_tokens))]))
    day = ended_at.date() if ended_at else None
    unknown = [UnknownFigure("cost_usd", run.unknown_reason)] if run.unknown_reason else []
    unknown += [] if day else [UnknownFigure("finish", f"{run.baseline.name} was closed before it began")]
    cost = None if run.unknown_reason else Range.exactly(run.usd or 0.0)
    finish = FinishDates(day, day, day) if day else None
    return CompletionForecast(cost, finish, NOTHING, NOTHING, NOTHING, "finished" if target.is_done else "closed", tuple(unknown))


def _unknown(reason: str) -> CompletionForecast:
    return CompletionForecast(None, None, None, None, None, "nothing", (UnknownFigure("cost_usd", reason), UnknownFigure("finish", reason)))


def _dates(now: datetime, hours: Range, start: date | None) -> FinishDates | None:
    """The dates at which a range of hours ends, counted from now or from a planned start; None beyond the calendar."""
    begin = now if start is None else max(now, midnight(start))
    if hours.p90 >= (LAST - begin) / timedelta(hours=1):
        return None
    return FinishDates(*((begin + timedelta(hours=each)).date() for each in (hours.p10, hours.p50, hours.p90)))


def _beyond(program: ProgramBaseline, all_targets: Sequence[RunTarget], rest: float) -> Range | None:
    """Planned cost beside the tracked runs; None where it is unknown."""
    return _total(left_beside_runs(program, all_targets, rest))


def _total(left: Mapping[BudgetPart, Range] | None) -> Range | None:
    return None if left is None else add_ranges(left.values())


def _unplanned(beyond: Range | None, planned: FinishDates | None) -> Iterator[UnknownFigure]:
    """Why cost or finish of the part without runs are unknown."""
    if beyond is None:
        yield UnknownFigure("cost_usd", "some planned tokens have no tracked run, and no budget is stated")
    if planned is None:
        yield UnknownFigure("finish", "some planned tokens have no tracked run, and the program has no plan with a calendar")


def _bases(forecasts: Sequence[CompletionForecast], planned: FinishDates | None, *, is_beyond: bool) -> Iterator[str]:
    yield from dict.fromkeys(one.basis for one in forecasts)
    if planned is not None:
        yield CALENDAR
    if is_beyond:
        yield BEYOND


def _by_percentile(ranges: Sequence[Range], combine: Callable[[Iterable[float]], float]) -> Range:
    return Range(*(combine(getattr(each, name) for each in ranges) for name in ("p10", "p50", "p90")))


def _last(finishes: Sequence[FinishDates | None]) -> FinishDates | None:
    """The latest finish by percentile; None where one is unknown or there is none."""
    known = [each for each in finishes if each is not None]
    if len(known) < len(finishes) or not known:
        return None
    return FinishDates(*(max(getattr(each, name) for each in known) for name in ("p10", "p50", "p90")))
