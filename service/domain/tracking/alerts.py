"""Alert rules of tracked programs: what is watched, whom it is told, and what there is to tell. Meanings: docs/alerts.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from service.domain.tracking.status import ProgramStatus

AlertKind = Literal["budget", "forecast_over_budget", "forecast_over_deadline", "drift", "stalled", "loss", "gate_missed", "cap"]
Percentile = Literal["p50", "p90"]
TargetKind = Literal["webhook", "slack"]
DeliveryState = Literal["pending", "sent", "failed"]
Figure = float | str | None
TEST: Literal["test"] = "test"
"""Kind and subject of an alert that only tries a rule out."""


@dataclass(frozen=True, slots=True)
class AlertTarget:
    """Whom alerts are told: an address to POST to, and for webhooks the secret they are signed with (`whsec_` and base64)."""

    kind: TargetKind
    url: str
    secret: str | None = None


@dataclass(frozen=True, slots=True)
class AlertRule:
    """What is watched, beside which limit. `shares` are of the budget, `hours` without an event, `days` that a gate has been due."""

    kind: AlertKind
    targets: tuple[AlertTarget, ...]
    shares: tuple[float, ...] = ()
    percentile: Percentile | None = None
    hours: float | None = None
    days: float | None = None
    team_usd: float | None = None


@dataclass(frozen=True, slots=True)
class AlertRuleFields:
    """The fields that a kind of rule takes beside `kind` and `targets`, and those it cannot do without."""

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
}
LIMITS = ("shares", "percentile", "hours", "days", "team_usd")
"""The names of all limits."""
MOST_URL = 2000
"""Characters of an address."""


@dataclass(frozen=True, slots=True)
class SpendCaps:
    """Where spending has to stop: of the program, of each run, and of the team over all its programs; None is nowhere."""

    program_usd: float | None = None
    run_usd: float | None = None
    team_usd: float | None = None


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """A run's id, and whether it is open: a closed one is not expected to go on."""

    id: str
    is_open: bool


@dataclass(frozen=True, slots=True)
class RuleInputs:
    """What rules are judged by. `runs` are in the order of the status's; `team_usd` is spent over all programs of the team.

    `gate_overdue`: the gate was due, and nobody had decided, as long ago as the rule says. None where the rule does not ask.
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
    """Something to tell. `subject` is what it is about, the same as long as it lasts; `text` says in one line what it means."""

    subject: str
    title: str
    text: str
    figures: Mapping[str, Figure]


@dataclass(frozen=True, slots=True)
class PreviousAlert:
    """What was told of a subject last, and since when it holds no more; None while it does."""

    subject: str
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class AlertChanges:
    """What a judgement changes: findings to tell, subjects that hold again before they were over, and subjects that hold no more."""

    new: tuple[AlertFinding, ...] = ()
    resumed: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.new or self.resumed or self.ended)
