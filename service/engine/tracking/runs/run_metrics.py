"""Metrics of a run: state, goodput, utilisation, interruptions, checkpoint cadence and drift."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from service.domain.quantities import Range
from service.domain.tracking.events import RunBaseline
from service.domain.tracking.status import CheckpointCadence, Drift, DriftQuantity, InterruptionSummary, RunState, UtilisationStatus
from service.engine.tracking.costs.cost import CostedRun
from service.engine.tracking.forecasting.outlook import planned_tokens_per_hour
from service.engine.tracking.monitoring.drift import DriftRules, PlannedRates, RateChange, RunTotals, daily_values, detect_drift
from service.engine.tracking.monitoring.plan_drift import PlanDriftRules, beyond_plan
from service.engine.tracking.runs.history import RunHistory
from service.engine.tracking.runs.planned_work import planned_work, planned_work_until, trained_work
from service.engine.tracking.runs.targets import RunTarget

SECONDS_PER_HOUR = 3600.0
FLOPS_PER_TFLOP = 1e12
MINUTES_PER_HOUR = 60.0
HOURS_PER_DAY = 24.0


@dataclass(frozen=True, slots=True)
class SilenceRules:
    """A run is silent without an event for `intervals` times its usual interval, and at least `min_hours`, with their source."""

    intervals: float
    min_hours: float
    source: str


def run_state(target: RunTarget, rules: SilenceRules) -> RunState:
    """State of the run.

    Parameters
    ----------
    target : RunTarget
        Run and its target.
    rules : SilenceRules
        When a run without events is silent; one that reported an interruption is interrupted.
    """
    history = target.run.history
    if target.is_done:
        return "finished"
    if target.is_over:
        return "closed"
    if history.last_at is None:
        return "not_started"
    if history.interruptions and not history.interruptions[-1].ended:
        return "interrupted"
    return "silent" if _is_silent(history, rules) else "running"


def _is_silent(history: RunHistory, rules: SilenceRules) -> bool:
    """Whether the time since the last event is far longer than the median interval of the run's progress."""
    if history.last_at is None:
        return False
    gaps = np.diff(history.lineage.at_hours)
    gaps = gaps[gaps > 0]
    usual = float(np.median(gaps)) if gaps.size else 0.0
    return history.elapsed(history.until) - history.elapsed(history.last_at) > max(rules.min_hours, rules.intervals * usual)


def silence_warning(name: str, state: RunState, history: RunHistory) -> str | None:
    """Since when a silent run has sent nothing; None where it is not silent."""
    if state != "silent" or history.last_at is None:
        return None
    days = (history.elapsed(history.until) - history.elapsed(history.last_at)) / HOURS_PER_DAY
    return f"{name} is silent since {history.last_at:%Y-%m-%d %H:%M} UTC, for {days:,.1f} days: check it, and close it if it has ended"


def useful_hours(history: RunHistory) -> tuple[float, float] | None:
    """Hours of work that still counts, and elapsed hours to the last event, or to now while the run is down.

    Returns
    -------
    tuple of float or None
        Useful and elapsed time [hours]; None where no time has passed or no tokens were reported.
    """
    line = history.lineage
    if line.at_hours.size < 2 or history.last_at is None:
        return None
    down_now = history.interruptions and not history.interruptions[-1].ended
    elapsed = history.elapsed(history.until if down_now else history.last_at)
    useful = float((np.diff(history.uptime(line.at_hours), prepend=line.at_hours[0]) * line.surviving_share)[1:].sum())
    return (min(max(useful, 0.0), elapsed), elapsed) if elapsed > 0 else None  # rounding leaves either bound by 1e-17


def goodput(runs: Sequence[RunHistory]) -> float | None:
    """Useful time over elapsed time of runs together [1]; None before time has passed."""
    hours = [found for found in map(useful_hours, runs) if found is not None]
    return math.fsum(useful for useful, _ in hours) / math.fsum(elapsed for _, elapsed in hours) if hours else None


def utilisation(run: CostedRun) -> UtilisationStatus:
    """Utilisation of a run against its plan: reported MFU, else MFU from trained tokens and accelerator-hours, with goodput.

    Reported MFU is that of the steps. MFU from tokens over hours covers all hours; the plan's is scaled by `run_over_step_speed`.
    """
    history, planned = run.history, run.baseline
    mfu, basis, expected = history.mfu, "reported by the run", planned.mfu
    if mfu is None:
        mfu, basis = _mfu(run), "tokens trained in the accelerator-hours"
        expected = None if planned.mfu is None else planned.mfu * planned.run_over_step_speed
    return UtilisationStatus(
        mfu=mfu,
        planned_mfu=expected,
        goodput=goodput([history]),
        planned_goodput=planned.goodput,
        share=history.share,
        basis=basis if mfu is not None else "nothing",
    )


def _mfu(run: CostedRun) -> float | None:
    """Model FLOPs over the peak FLOPs of the paid hours [1] (Chowdhery et al. 2022, PaLM, section 4.1)."""
    flops, peak, line = run.baseline.flops_per_token, run.baseline.peak_tflops, run.history.lineage
    if not (flops and peak and line.at_hours.size):
        return None
    paid, trained = _paid_hours(run), float(line.trained[-1] - line.trained[0])
    return trained * flops / (paid * SECONDS_PER_HOUR * peak * FLOPS_PER_TFLOP) if paid > 0 else None


def _paid_hours(run: CostedRun) -> float:
    """Accelerator-hours between the first and the last position: as reported, else accelerators times uptime."""
    history, ends = run.history, run.history.lineage.at_hours[[0, -1]]
    if history.accelerator_hours is not None:
        return float(np.diff(history.accelerator_hours.interpolate(ends))[0])
    return (history.accelerators or run.baseline.accelerators or 0) * float(np.diff(history.uptime(ends))[0])


def interruptions(runs: Sequence[CostedRun]) -> InterruptionSummary:
    """Interruptions of runs together against the failure budget, where each has one.

    Parameters
    ----------
    runs : sequence of CostedRun
        `expected` is the share of each budget that belongs to the run's trained tokens.

    Returns
    -------
    InterruptionSummary
        Counts [1], downtime [hours], lost tokens, and the Poisson probability of at least as many interruptions [1].
    """
    stops = [stop for run in runs for stop in run.history.interruptions]
    budgets = [run.baseline.interruptions for run in runs]
    budgeted = math.fsum(budget or 0.0 for budget in budgets) if runs and None not in budgets else None
    expected = None if budgeted is None else _expected([run for run in runs if run.baseline.tokens], len(runs))
    return InterruptionSummary(
        count=len(stops),
        budgeted=budgeted,
        expected=expected,
        probability=None if expected is None else poisson_sf(len(stops), expected),
        downtime_hours=math.fsum(stop.downtime_hours for stop in stops),
        lost_tokens=math.fsum(run.history.lineage.lost_tokens for run in runs),
        causes=dict(Counter(stop.cause for stop in stops).most_common()),
    )


def _expected(runs: Sequence[CostedRun], of: int) -> float | None:
    """Sum of the budgets' shares that belong to trained tokens, lost ones included; None where a run has no planned tokens."""
    if len(runs) < of:
        return None
    trained = (_trained_share(run) for run in runs)
    return math.fsum((run.baseline.interruptions or 0.0) * share for run, share in zip(runs, trained, strict=True))


def _trained_share(run: CostedRun) -> float:
    """Planned work of all trained tokens, lost ones included, over that of the planned tokens [1]."""
    line, tokens = run.history.lineage, run.baseline.tokens
    return planned_work_until(run.baseline, line.position + line.lost_tokens) / planned_work_until(run.baseline, tokens) if tokens else 0.0


def poisson_sf(count: int, expected: float) -> float:
    """Probability of at least `count` events of a Poisson distribution.

    Parameters
    ----------
    count : int
        Number of events [1].
    expected : float
        Mean of the distribution [1].

    Returns
    -------
    float
        P(N >= count) [1].
    """
    if expected <= 0:
        return 0.0 if count else 1.0
    fewer = math.fsum(math.exp(each * math.log(expected) - expected - math.lgamma(each + 1)) for each in range(count))
    return max(0.0, 1.0 - fewer)


def checkpoint_cadence(run: CostedRun, tolerance: float) -> CheckpointCadence:
    """Checkpoints against the planned interval; downtime does not count.

    Parameters
    ----------
    run : CostedRun
        Run with plan and history.
    tolerance : float
        Relative excess of the planned interval that is accepted [1].

    Returns
    -------
    CheckpointCadence
        Intervals [minutes]; `on_schedule` where the mean interval and the time since the last checkpoint are within the tolerance.
    """
    history, planned = run.history, run.baseline.checkpoint_interval_minutes
    checkpoints = history.checkpoints
    count, last_at = int(checkpoints.count.sum()), None
    mean = longest = since = None
    if count:
        first, last = float(checkpoints.first[0]), float(checkpoints.last[-1])
        last_at = history.moment(last)
        now = history.elapsed(history.last_at or history.until)
        up_first, up_last, up_now = history.uptime(np.array([first, last, max(now, last)])).tolist()
        since = up_now - up_last
        between = history.uptime(checkpoints.first[1:]) - history.uptime(checkpoints.last[:-1])
        longest = max(float(checkpoints.longest_gap.max()), float(between.max(initial=0.0)), since)
        mean = (up_last - up_first) / (count - 1) if count > 1 else None
    return CheckpointCadence(
        count=count,
        bytes=int(checkpoints.bytes.sum()),
        last_at=last_at,
        interval_minutes=_minutes(mean),
        longest_gap_minutes=_minutes(longest),
        planned_interval_minutes=planned,
        on_schedule=_on_schedule(history, planned, mean, since, tolerance),
    )


def _on_schedule(history: RunHistory, planned: float | None, mean: float | None, since: float | None, tolerance: float) -> bool | None:
    """Whether the cadence is as planned; None without a plan, or before two intervals have passed."""
    if planned is None or history.last_at is None:
        return None
    limit = planned / MINUTES_PER_HOUR * (1 + tolerance)
    ran = float(history.uptime(np.array([history.elapsed(history.last_at)]))[0])
    if since is None:
        return False if ran > 2 * limit else None
    return since <= 2 * limit and (mean is None or mean <= limit)


def _minutes(hours: float | None) -> float | None:
    return None if hours is None else hours * MINUTES_PER_HOUR


def run_drifts(run: CostedRun, rules: DriftRules, plan_rules: PlanDriftRules) -> tuple[Drift, ...]:
    """Lasting changes of the run's rates, and rates that lie beyond the range of the plan.

    Parameters
    ----------
    run : CostedRun
        Run with plan and history.
    rules, plan_rules : DriftRules, PlanDriftRules
        Rules of changes against the run itself, and against its plan.
    """
    record = _totals(run)
    if record is None:
        return ()
    planned = PlannedRates(run.baseline.usd_per_accelerator_hour, _interruptions_per_hour(run.baseline))
    own, first = detect_drift(record, planned, rules), float(record.at_hours[0])
    beyond = _beyond_plan(run, record, rules, plan_rules, has_price=any(each.quantity == "price" for each in own))
    both = [
        *((each, each.quantity == "failures" or (each.quantity == "price" and each.since_hours == first)) for each in own),
        *((each, True) for each in beyond),
    ]
    return tuple(
        Drift(
            run.baseline.name,
            each.quantity,
            run.history.moment(each.since_hours),
            each.change,
            each.confidence,
            "plan" if plan else "itself",
        )
        for each, plan in both
    )


def _totals(run: CostedRun) -> RunTotals | None:
    """Running totals of the run, one element for each time; None before time has passed."""
    line, history = run.history.lineage, run.history
    at = line.at_hours[np.append(np.diff(line.at_hours) > 0, True)] if line.at_hours.size else line.at_hours
    if at.size < 2:
        return None
    hours = history.accelerator_hours
    usd = None if run.unknown_reason else run.compute_usd(at)
    return RunTotals(
        at_hours=at,
        tokens_trained=trained_work(run.baseline, line.trained, line.tokens)[line.index(at)],
        productive_hours=history.uptime(at),
        usd=usd if usd is not None and usd[-1] > usd[0] else None,
        accelerator_hours=None if hours is None else hours.interpolate(at),
        interruption_hours=np.array([stop.at_hours for stop in history.interruptions]),
    )


def _beyond_plan(
    run: CostedRun, record: RunTotals, rules: DriftRules, plan_rules: PlanDriftRules, *, has_price: bool
) -> Iterator[RateChange]:
    """Throughput while running, surviving tokens a day, and a price without a step of its own, beyond the plan's range."""
    baseline, line = run.baseline, run.history.lineage
    price, speed = baseline.usd_per_accelerator_hour, None if baseline.phases else baseline.tokens_per_s
    earned = RunTotals(record.at_hours, planned_work(baseline, line.earned)[line.index(record.at_hours)])
    near = Range(1 - rules.price_tolerance, 1.0, 1 + rules.price_tolerance)
    planned: list[tuple[DriftQuantity, RunTotals, DriftQuantity, Range | None]] = [
        ("throughput", record, "throughput", speed.scaled(SECONDS_PER_HOUR) if speed else None),
        ("tokens_per_day", earned, "throughput", planned_tokens_per_hour(baseline)),
        ("price", record, "price", near.scaled(price) if price and not has_price else None),
    ]
    for quantity, totals, values_of, rate in planned:
        starts, values = daily_values(totals, values_of, rules)
        found = beyond_plan(values, rate, plan_rules) if rate else None
        if found:
            yield RateChange(quantity, float(starts[found.index]), found.ratio - 1, found.confidence)


def _interruptions_per_hour(baseline: RunBaseline) -> float | None:
    """Failure budget over the planned hours [1/hour]."""
    if baseline.interruptions is None or baseline.wall_clock_hours is None or not baseline.wall_clock_hours.p50:
        return None
    return baseline.interruptions / baseline.wall_clock_hours.p50
