"""Alert rules of tracked programs: conditions, targets, findings and what changes between evaluations. See docs/reference/alerts.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Literal

from service.domain.answer_fields import HIDDEN, Doc
from service.domain.deliveries import DeliveryTarget
from service.domain.tracking.status import ProgramStatus

AlertKind = Literal[
    "budget",
    "forecast_over_budget",
    "forecast_over_deadline",
    "drift",
    "stalled",
    "loss",
    "gate_missed",
    "cap",
    "regression",
    "guardrail",
]
Percentile = Literal["p50", "p90"]
AlertTargetKind = Literal["webhook", "slack"]
Figure = float | str | None
TEST: Literal["test"] = "test"
"""Kind and subject of an alert that only tries a rule out."""


@dataclass(frozen=True, slots=True)
class AlertRule:
    """Condition and limits of a rule. `shares` of the budget [1], `hours` without an event, `days` since the gate was due."""

    kind: Annotated[AlertKind, Doc("What is watched")]
    targets: Annotated[tuple[DeliveryTarget, ...], Doc("Where alerts are sent")]
    shares: Annotated[tuple[float, ...], Doc("Parts of the budget that are watched; empty: none", "1")] = ()
    percentile: Annotated[Percentile | None, Doc("Percentile of the forecast that is watched; null: none")] = None
    hours: Annotated[float | None, Doc("Time without an event; null: none", "h")] = None
    days: Annotated[float | None, Doc("Time that the half-spend gate has been due; null: none", "days")] = None
    team_usd: Annotated[float | None, Doc("Cap on all programs of the team; null: none", "USD")] = None


@dataclass(frozen=True, slots=True)
class AlertRuleFields:
    """Limits that a kind of rule requires, and those it accepts."""

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


RULE_FIELDS: Mapping[AlertKind, AlertRuleFields] = {
    "budget": AlertRuleFields(required=("shares",)),
    "forecast_over_budget": AlertRuleFields(required=("percentile",)),
    "forecast_over_deadline": AlertRuleFields(required=("percentile",)),
    "drift": AlertRuleFields(),
    "stalled": AlertRuleFields(required=("hours",)),
    "loss": AlertRuleFields(),
    "gate_missed": AlertRuleFields(required=("days",)),
    "cap": AlertRuleFields(optional=("team_usd",)),
    "regression": AlertRuleFields(),
    "guardrail": AlertRuleFields(),
}
LIMITS = ("shares", "percentile", "hours", "days", "team_usd")
"""The names of all limits."""


@dataclass(frozen=True, slots=True)
class SpendCaps:
    """Spending caps [USD] of the program, of each run, and of the team over all its programs; None: no cap."""

    program_usd: float | None = None
    run_usd: float | None = None
    team_usd: float | None = None


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """Id of a run, and whether it is open: a closed run is not expected to continue."""

    id: str
    is_open: bool


@dataclass(frozen=True, slots=True)
class RuleInputs:
    """Inputs of a rule's evaluation. `runs` are in the order of the status's runs; `team_usd` is spent over all programs of the team.

    `gate_overdue`: the gate has been due and undecided for as long as the rule states; None where the rule does not state it.
    """

    status: ProgramStatus
    budget_usd: float | None
    deadline: date | None
    caps: SpendCaps
    runs: tuple[WatchedRun, ...]
    team_usd: float | None = None
    gate_overdue: bool | None = None


@dataclass(frozen=True, slots=True)
class AlertFinding:
    """A finding of a rule. `subject` identifies it as long as it lasts; `text` explains it in one line."""

    subject: Annotated[str, HIDDEN]
    title: Annotated[str, Doc("What happened, in a few words")]
    text: Annotated[str, Doc("Explanation in one line", max_length=10_000)]
    figures: Annotated[Mapping[str, Figure], Doc("Figures of the finding, by name")]


@dataclass(frozen=True, slots=True)
class PreviousAlert:
    """The last alert of a subject; `ended_at` is None while it lasts."""

    subject: str
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class AlertChanges:
    """Changes by an evaluation: new findings, subjects that resume soon after their end, and subjects that end."""

    new: tuple[AlertFinding, ...] = ()
    resumed: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.new or self.resumed or self.ended)
