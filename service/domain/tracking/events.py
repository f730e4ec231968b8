"""Events of tracked runs, and the baselines they are compared with. Definitions: docs/reference/tracking.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal, NamedTuple

from service.domain.programs.outcome import Guardrail, Outcome
from service.domain.programs.program import MidpointGate
from service.domain.programs.risks import RiskState
from service.domain.programs.tiers import TierName
from service.domain.quantities import Range
from service.domain.tracking.gates import PlannedGate
from service.domain.tracking.risks import PlannedRisk
from service.domain.training.estimate import FinishDates

EventType = Literal[
    "progress",
    "interruption",
    "restart",
    "checkpoint",
    "rollback",
    "branch",
    "evaluation",
    "cost",
    "utilisation",
    "decision",
    "note",
    "correction",
]
Verdict = Literal["continue", "pivot", "stop"]
Recommendation = Literal["continue", "pivot", "stop", "not_due"]


class Event(NamedTuple):
    """An event of a run, as its training script or an import sent it. Immutable; a frozen dataclass takes five times as long to make.

    `at` is the time of the event, UTC. `accelerator_hours` and `cost_micro_usd` are running totals of the run, `tokens_done` is the
    position in the plan. `loss` may be NaN or infinite. `mfu` and `share` (of the accelerators' time in use) lie between 0 and 1;
    `billed_until` is the end of the period that an invoiced cost pays for. `standard_error` and `samples` tell the noise of a value.
    A note may say that a `risk` is in a `state`, at `micro_usd` and `days` where it occurred.
    """

    id: str
    type: EventType
    at: datetime
    step: int | None = None
    tokens_done: int | None = None
    accelerator_hours: float | None = None
    cost_micro_usd: int | None = None
    accelerators: int | None = None
    loss: float | None = None
    mfu: float | None = None
    share: float | None = None
    cause: str | None = None
    bytes: int | None = None
    to_step: int | None = None
    from_step: int | None = None
    name: str | None = None
    metric: str | None = None
    value: float | None = None
    standard_error: float | None = None
    samples: int | None = None
    micro_usd: int | None = None
    line: str | None = None
    billed_until: datetime | None = None
    gate: str | None = None
    verdict: Verdict | None = None
    text: str | None = None
    risk: str | None = None
    state: RiskState | None = None
    days: float | None = None
    supersedes: str | None = None


@dataclass(frozen=True, slots=True)
class EventFields:
    """Fields of an event type besides `id`, `type` and `at`: all, those required, and those of which at least one is required."""

    takes: tuple[str, ...]
    required: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()


API_NAMES: Mapping[str, str] = {"cost_micro_usd": "cost_usd", "micro_usd": "usd"}
"""API names, in dollars, of the fields that count micro-dollars."""
CONTENT_FIELDS = tuple(name for name in Event._fields if name not in {"id", "type", "at", "supersedes"})
PROGRESS_FIELDS = ("step", "tokens_done", "accelerator_hours", "cost_micro_usd", "accelerators", "loss", "mfu")
EVENT_FIELDS: Mapping[EventType, EventFields] = {
    "progress": EventFields(PROGRESS_FIELDS, any_of=PROGRESS_FIELDS),
    "interruption": EventFields(("cause", *PROGRESS_FIELDS), ("cause",)),
    "restart": EventFields(("text", *PROGRESS_FIELDS)),
    "checkpoint": EventFields(("bytes", *PROGRESS_FIELDS)),
    "rollback": EventFields(("to_step", "cause", *PROGRESS_FIELDS), ("tokens_done",)),
    "branch": EventFields(("from_step", "name", *PROGRESS_FIELDS), ("from_step", "name")),
    "evaluation": EventFields(("metric", "value", "step", "standard_error", "samples"), ("metric", "value")),
    "cost": EventFields(("micro_usd", "line", "billed_until", "text"), ("micro_usd", "line")),
    "utilisation": EventFields(("share", "accelerators", "text"), ("share",)),
    "decision": EventFields(("gate", "verdict", "text"), ("gate", "verdict")),
    "note": EventFields(("text", "risk", "state", "micro_usd", "days"), ("text",)),
    "correction": EventFields(("supersedes", *CONTENT_FIELDS), ("supersedes",)),
}
"""A correction without further fields retracts the event; with fields it replaces those of the event, at that event's time."""


def stated_fields(event: Event) -> dict[str, Any]:
    """Content of an event by the fields that it states."""
    return {name: value for name in CONTENT_FIELDS if (value := getattr(event, name)) is not None}


def api_names(names: Iterable[str]) -> str:
    """Names of fields as the API has them, sorted, in one text."""
    return ", ".join(sorted(API_NAMES.get(name, name) for name in names))


@dataclass(frozen=True, slots=True)
class PlannedPhase:
    """A phase of a run: its tokens, and their planned speed over the time on the clock [tokens/s]."""

    name: str
    tokens: float
    tokens_per_s: float


@dataclass(frozen=True, slots=True)
class PlannedLine:
    """A line of the budget around the runs, with its share of the whole budget [1]."""

    line: str
    share: float


@dataclass(frozen=True, slots=True)
class PlannedGateDates:
    """A tier's gate in the plan's calendar: the day from which it can be decided, and when it is."""

    tier: TierName
    start: date
    finish: FinishDates


@dataclass(frozen=True, slots=True)
class RunBaseline:
    """Plan of one run; None is not planned. `mfu` to `loss` come from the plan's estimate, where the program has a plan.

    `tokens_per_s` is the throughput of the whole run while it is up, `mfu` that of its steps, `run_over_step_speed` their ratio.

    `usd_per_accelerator_hour` prices the accelerator-hours; `interruptions` is the failure budget; `flops_per_token` are model FLOPs and
    `peak_tflops` is the accelerator's dense peak at the run's precision, for MFU from tokens. `finish_range` and `float_hours` are the
    calendar's: when the run ends, and how much later it may end without delay of the program. `phases`: where the plan has any.
    `energy_mwh` and `tco2e` are those of its accelerator-hours. `closed`: the run does not continue.
    """

    name: str
    tier: TierName | None
    tokens: float | None = None
    accelerator_hours: float | None = None
    usd: float | None = None
    start: date | None = None
    finish: date | None = None
    accelerators: int | None = None
    tokens_per_s: Range | None = None
    usd_per_accelerator_hour: float | None = None
    mfu: float | None = None
    run_over_step_speed: float = 1.0
    goodput: float | None = None
    interruptions: float | None = None
    checkpoint_interval_minutes: float | None = None
    flops_per_token: float | None = None
    peak_tflops: float | None = None
    wall_clock_hours: Range | None = None
    finish_range: FinishDates | None = None
    float_hours: float = 0.0
    energy_mwh: float | None = None
    tco2e: float | None = None
    phases: tuple[PlannedPhase, ...] = ()
    closed: bool = False


@dataclass(frozen=True, slots=True)
class PlannedWeek:
    """A week of the burn plan, from Monday to Sunday."""

    week: date
    usd: float
    tokens: float
    accelerator_hours: float
    checkpoints: float


@dataclass(frozen=True, slots=True)
class ProgramBaseline:
    """Plan of a program. Without `weeks`, planned value grows evenly from `start` to `deadline`.

    `reserve_share` of the budget is the reserve, `around_share` is for people, storage and overheads around the runs: `lines`, empty
    where a plan does not tell them apart. `cost_spread` is the plan's range of what the runs cost, relative to its median.
    `original_tokens` is the scope of the first plan, to compare with `planned_tokens`. `closed`: neither the program nor its runs continue.
    `runs` and `finish` are the runs and the calendar's end of the program's plan; empty and None where it has none. `guardrails` are
    metrics that must keep a floor. `gates`: those of the plan, the midpoint gate's too, with their ways on; `gate_dates`: the calendar's.
    """

    name: str
    budget_usd: float | None
    planned_tokens: float | None
    start: date | None
    deadline: date | None
    weeks: tuple[PlannedWeek, ...] = ()
    midpoint_gate: MidpointGate | None = None
    outcome: Outcome | None = None
    original_tokens: float | None = None
    total_usd: Range | None = None
    reserve_share: float = 0.0
    around_share: float = 0.0
    lines: tuple[PlannedLine, ...] = ()
    cost_spread: Range | None = None
    closed: bool = False
    runs: tuple[RunBaseline, ...] = ()
    finish: FinishDates | None = None
    gate_dates: tuple[PlannedGateDates, ...] = ()
    guardrails: tuple[Guardrail, ...] = ()
    risks: tuple[PlannedRisk, ...] = ()
    gates: tuple[PlannedGate, ...] = ()
