"""Report of one tracked run: how it stands against its plan, its speed over time, evaluations, interruptions and changes of its rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from service.context import AppContext
from service.domain.answer_fields import HIDDEN, Doc
from service.domain.tracking.events import RunBaseline
from service.domain.tracking.quality import GuardrailStatus
from service.domain.tracking.records import LoggedEvent, ProgramRecord, RunRecord
from service.domain.tracking.status import RunStatus
from service.usecases.tracking.report import InterruptionEntry, MetricTarget, interruptions_of, target_of
from service.usecases.tracking.report_series import EvaluationPoint, LossPoint, RunPoint, evaluation_series, losses, run_series
from service.usecases.tracking.status import program_status


@dataclass(frozen=True, slots=True)
class RunReport:
    """A run with its plan and what its events say. `interruptions` are in the order of time."""

    record: Annotated[RunRecord, HIDDEN]
    standing: Annotated[RunStatus, Doc("Status of the run")]
    plan: Annotated[RunBaseline, HIDDEN]
    points: Annotated[tuple[RunPoint, ...], Doc("From the first to the last event, for plots", max_items=1000)]
    losses: Annotated[tuple[LossPoint, ...], Doc("Hourly losses", max_items=1000)]
    evaluations: Annotated[tuple[EvaluationPoint, ...], Doc("Evaluations, for plots", max_items=1_000_000)]
    interruptions: Annotated[tuple[InterruptionEntry, ...], Doc("Interruptions")]
    guardrails: Annotated[tuple[GuardrailStatus, ...], Doc("Guardrails of the program", max_items=100)]
    target: Annotated[MetricTarget | None, Doc("What the program is for; null: no outcome is stated")]


def run_report(context: AppContext, program: ProgramRecord, run: RunRecord) -> RunReport:
    """Report of a run of a program as of now. Raises StoreUnavailable."""
    found = program_status(context, program)
    place = next(place for place, each in enumerate(found.runs) if each.id == run.id)
    history, standing = found.histories[place], found.status.runs[place]
    return RunReport(
        record=found.runs[place],
        standing=standing,
        plan=history.baseline,
        points=run_series(history),
        losses=losses([history]),
        evaluations=evaluation_series([history]),
        interruptions=tuple(interruptions_of(history)),
        guardrails=found.status.guardrails,
        target=target_of(found),
    )


def newest_events(context: AppContext, run: RunRecord, before: int, limit: int) -> list[LoggedEvent]:
    """Events of a run's log below a position (0: all), in the order of arrival, the newest first. Raises ProgramArchived."""
    end = min(before - 1, run.position) if before else run.position
    after = max(0, end - limit)
    return context.store.events(run, after, end - after)[::-1] if end > after else []
