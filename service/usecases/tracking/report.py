"""Report of a tracked program: status, headline, series, log, unknown figures and assumptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Annotated, Any, Literal

from service.context import AppContext
from service.domain.answer_fields import HIDDEN, Doc
from service.domain.programs.program import MidpointGate
from service.domain.quantities import Assumption
from service.domain.tracking.records import ProgramRecord
from service.domain.tracking.status import ProgramStatus, RunStatus
from service.engine.tracking.earned_value import midnight
from service.engine.tracking.runs.hourly_rollup import CLOSING, EPOCH, rollup_from_json
from service.presets.tracking.status import status_rules
from service.usecases.tracking.headline import Headline, headline
from service.usecases.tracking.report_calendar import ReportedActivity, report_calendar
from service.usecases.tracking.report_months import ReportedMonth, report_months
from service.usecases.tracking.report_series import EvaluationPoint, LossPoint, SeriesPoint, cost_series, evaluation_series, losses
from service.usecases.tracking.status import PlannedRunHistory, StatusResult, program_status

MAX_AUTHOR = 100
"""Most characters of an author's name."""
SHOWN = 50
"""Most interruptions, and most log entries, of a report."""
LogType = Literal["decision", "note", "branch", "rollback"]
LOG_TYPES: tuple[LogType, ...] = ("decision", "note", "branch", "rollback")


@dataclass(frozen=True, slots=True)
class InterruptionEntry:
    """An interruption; `ended` is False where the run is still down."""

    at: Annotated[datetime, Doc("When it happened")]
    run: Annotated[str, Doc("Name of the run", max_length=1000)]
    cause: Annotated[str, Doc("Reported cause", max_length=1000)]
    downtime_hours: Annotated[float, Doc("Time out of work", "h")]
    ended: Annotated[bool, Doc("false: the run is still down")]


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A decision, note, branch or rollback."""

    at: Annotated[datetime, Doc("When it happened")]
    run: Annotated[str, Doc("Name of the run", max_length=1000)]
    type: Annotated[LogType, Doc("Type of the event")]
    text: Annotated[str, Doc("Text of the event", max_length=5000, min_length=0, lines=True)]


@dataclass(frozen=True, slots=True)
class UnknownField:
    """An unknown figure of a run, or (None) of the program, with the reason."""

    run: Annotated[str | None, Doc("Name of the run; null: of the program", max_length=1000)]
    field: Annotated[str, Doc("Name of the figure in the status", max_length=1000)]
    reason: Annotated[str, Doc("Why it is null", max_length=1000)]


@dataclass(frozen=True, slots=True)
class MetricTarget:
    """What the program is for: its outcome's metric, where it began and where it is to end."""

    metric: Annotated[str, Doc("Name of the metric", max_length=1000)]
    baseline: Annotated[float, Doc("Value before the program", "unit of the metric")]
    target: Annotated[float, Doc("Value that it is to reach", "unit of the metric")]
    last: Annotated[float | None, Doc("Newest evaluation in any run; null: not evaluated yet", "unit of the metric")]


@dataclass(frozen=True, slots=True)
class ProgramReport:
    """`interruptions` and `log` are the newest, newest first; `assumptions` are what the figures rest on besides the events.

    `gate_date` is the day of the half-spend gate: when it was decided, today where it is due, else by the forecast.
    """

    tracked: Annotated[StatusResult, HIDDEN]
    author: Annotated[
        str | None, Doc("Who the report is by: as asked for, else the API key's name; null where neither is known", max_length=100)
    ]
    headline: Annotated[Headline, Doc("How the program stands, in a sentence")]
    gate_date: Annotated[
        date | None, Doc("Day of the half-spend gate: when decided, today where due, else by the forecast; null where unknown")
    ]
    target: Annotated[MetricTarget | None, Doc("What the program is for; null: no outcome is stated")]
    calendar: Annotated[
        tuple[ReportedActivity, ...], Doc("Runs and gates as planned and as forecast, the program's end last", max_items=10000)
    ]
    time_series: Annotated[tuple[SeriesPoint, ...], Doc("From the start to the last finish, for plots", max_items=1000)]
    months: Annotated[tuple[ReportedMonth, ...], Doc("Planned, actual and forecast spend by calendar month", max_items=600)]
    losses: Annotated[tuple[LossPoint, ...], Doc("Hourly losses of the runs", max_items=1000000)]
    evaluations: Annotated[tuple[EvaluationPoint, ...], Doc("Evaluations of the runs, for plots", max_items=1000000)]
    interruptions: Annotated[tuple[InterruptionEntry, ...], Doc("Interruptions, the newest first")]
    log: Annotated[tuple[LogEntry, ...], Doc("Decisions, notes and restarts, the newest first")]
    unknown: Annotated[tuple[UnknownField, ...], Doc("Figures that are null, with the reason")]
    assumptions: Annotated[tuple[Assumption, ...], Doc("Values the caller did not state, with the reason for each")]


def program_report(
    context: AppContext,
    program: ProgramRecord,
    as_of: datetime | None = None,
    author: str | None = None,
    *,
    with_loss_projections: bool = True,
) -> ProgramReport:
    """Report of a program as of a time (inclusive), by default now; projected losses take up to 1 s a run. Raises StoreUnavailable."""
    result = program_status(context, program, as_of, with_loss_projections=with_loss_projections)
    gate_date = _gate_date(result)
    return ProgramReport(
        tracked=result,
        author=author,
        headline=headline(result.baseline, result.status),
        gate_date=gate_date,
        target=target_of(result),
        calendar=report_calendar(result, gate_date),
        time_series=cost_series(result),
        months=report_months(result),
        losses=losses(result.histories),
        evaluations=evaluation_series(result.histories),
        interruptions=tuple(
            sorted((stop for run in result.histories for stop in interruptions_of(run)), key=lambda stop: stop.at, reverse=True)[:SHOWN]
        ),
        log=tuple(
            sorted((entry for run in result.histories for entry in _log_entries(run)), key=lambda entry: entry.at, reverse=True)[:SHOWN]
        ),
        unknown=tuple(_unknown(result)),
        assumptions=tuple(_assumptions(result)),
    )


def target_of(result: StatusResult) -> MetricTarget | None:
    """What a program is for; None where no outcome is stated."""
    outcome = result.baseline.outcome
    if outcome is None:
        return None
    return MetricTarget(outcome.metric, outcome.baseline, outcome.target, result.status.gate.metric)


def _gate_date(result: StatusResult) -> date | None:
    """Between now, or a start to come, and the forecast's finish spending is taken to be even."""
    gate, forecast, now = result.status.gate, result.status.forecast, result.status.as_of
    if gate.decided_at or gate.due:
        return (gate.decided_at or now).date()
    spent = result.status.spend.usd
    if gate.due_usd is None or spent is None or not (forecast.cost_usd and forecast.finish):
        return None
    left = forecast.cost_usd.p50 - spent
    if left <= 0 or gate.due_usd > forecast.cost_usd.p50:
        return None
    start = result.baseline.start
    begin = max(now, midnight(start)) if start and not spent else now
    lasts = midnight(forecast.finish.p50) - begin
    return (begin + max(lasts, timedelta()) * ((gate.due_usd - spent) / left)).date()


def interruptions_of(run: PlannedRunHistory) -> Iterator[InterruptionEntry]:
    """The interruptions of a run, in the order of time."""
    for stop in run.history.interruptions:
        yield InterruptionEntry(run.history.moment(stop.at_hours), run.baseline.name, stop.cause, stop.downtime_hours, stop.ended)


def _log_entries(run: PlannedRunHistory) -> Iterator[LogEntry]:
    """Entries of the log; only hours with marks are parsed."""
    for hour, text in run.hours:
        if not text.endswith(CLOSING):
            for microseconds, kind, given in rollup_from_json(text).marks:
                if kind in LOG_TYPES:
                    at = EPOCH + timedelta(hours=hour, microseconds=microseconds)
                    yield LogEntry(at, run.baseline.name, kind, _event_text(dict(given)))


def _event_text(given: Mapping[str, Any]) -> str:
    """Fields of an event as a line of text."""
    decided = [f"{given['gate']}: {given['verdict']}"] if "gate" in given else []
    named = [str(given["name"])] if "name" in given else []
    steps = [f"{word} step {given[name]:,}" for name, word in (("to_step", "to"), ("from_step", "from")) if name in given]
    return ", ".join([*decided, *named, *steps, *(str(given[name]) for name in ("cause", "text") if name in given)])


def _unknown(result: StatusResult) -> Iterator[UnknownField]:
    """Unknown figures of the program, then of its runs."""
    blocks: list[tuple[str | None, ProgramStatus | RunStatus]] = [(None, result.status), *((run.name, run) for run in result.status.runs)]
    for run, block in blocks:
        for name, figures in (("earned_value", block.earned_value.unknown), ("forecast", block.forecast.unknown)):
            yield from (UnknownField(run, f"{name}.{figure.field}", figure.reason) for figure in figures)
    yield from (
        UnknownField(result.status.runs[place].name, "loss.projection", reason) for place, reason in result.unprojected_losses.items()
    )


def _assumptions(result: StatusResult) -> Iterator[Assumption]:
    """What the figures rest on besides the events."""
    status, rules = result.status, status_rules()
    yield Assumption("earned_value", status.earned_value.basis, "how runs are weighted")
    yield Assumption("planned_value", _planned_basis(result), "baseline of spend and tokens")
    yield Assumption("forecast", status.forecast.basis, "basis of the forecast")
    gate = result.baseline.midpoint_gate
    source = "decided up front" if gate else f"default: {rules.gate.source}"
    yield Assumption("midpoint_gate", _gate(gate) if gate else f"at {rules.gate.at_spend_share:.0%} of the budget, by CPI", source)
    for run in result.histories:
        price = run.baseline.usd_per_accelerator_hour
        if price is not None:
            yield Assumption(
                f"{run.baseline.name}: USD an accelerator-hour", round(price, 6), "the plan, for hours without a reported cost"
            )
    yield from _quality_assumptions(result)
    yield Assumption("false alarms of drift", rules.drift.false_alarm_share, "share of on-plan runs flagged in their whole life, simulated")


def _quality_assumptions(result: StatusResult) -> Iterator[Assumption]:
    """False alarms of drops, and metrics whose noise or direction is not stated."""
    if result.status.quality:
        rules = status_rules().quality
        yield Assumption(
            "false alarms of drops", rules.false_alarm_share, f"share of evaluations of a metric that never falls; {rules.source}"
        )
    outcome = result.baseline.outcome
    for metric in result.status.quality:
        if metric.noise == "typical":
            yield Assumption(f"{metric.run}: noise of {metric.metric}", round(metric.standard_error, 6), "typical, before it has a history")
        if outcome is None or outcome.metric != metric.metric:
            better = "more is better" if metric.direction == "up" else "less is better"
            yield Assumption(f"{metric.run}: {metric.metric}", better, "the metric's name")


def _planned_basis(result: StatusResult) -> str:
    baseline = result.baseline
    if baseline.runs and "cost" in result.status.earned_value.basis and all(run.start and run.finish for run in baseline.runs):
        return "the runs of the plan, evenly over their planned dates"
    if baseline.weeks:
        return "the burn plan, evenly within a week"
    if result.histories and all(run.baseline.usd and run.baseline.start and run.baseline.finish for run in result.histories):
        return "the runs' planned costs, evenly over their planned dates"
    return "the budget, evenly from start to deadline" if baseline.start and baseline.deadline else "nothing: no dates are planned"


def _gate(gate: MidpointGate) -> str:
    asked = {"continue if": gate.continue_if, "stop if": gate.stop_if}
    labels = {"metric_at_least": "metric at least", "cpi_at_least": "CPI at least", "cpi_below": "CPI below"}
    criteria = (
        f"{when} {' and '.join(f'{word} {getattr(held, name):g}' for name, word in labels.items() if getattr(held, name) is not None)}"
        for when, held in asked.items()
        if any(getattr(held, name) is not None for name in labels)
    )
    return "; ".join([f"at {gate.at_spend_share:.0%} of the budget", *criteria])
