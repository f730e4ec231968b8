"""What a program's answer holds beside its plan: when everything is done, what buys a deadline back, the data, where money does most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Literal

from service.domain.programs.program import TierName
from service.domain.schedule import DeadlineOption, LatestStart
from service.domain.training.estimate import FinishDates

ActivityKind = Literal["run", "gate", "milestone", "release"]


@dataclass(frozen=True, slots=True)
class CalendarEntry:
    """One thing on the calendar. `start` and `finish` are medians, `float_hours` how much later it may end without the end moving."""

    what: str
    kind: ActivityKind
    tier: TierName | None
    start: date
    finish: date
    finish_range: FinishDates
    float_hours: float
    criticality: float


@dataclass(frozen=True, slots=True)
class GateDates:
    """When a tier's gate is decided: `earliest` with every duration at its p10."""

    earliest: date
    date: FinishDates


@dataclass(frozen=True, slots=True)
class ProgramSchedule:
    """The program in time. `latest_start` and `buy_back` are asked for where there is a deadline, buying back where it is at risk."""

    start: date
    deadline: date | None
    critical_path: tuple[str, ...]
    calendar: tuple[CalendarEntry, ...]
    finish: FinishDates
    deadline_probability: float | None
    wanted_probability: float | None
    latest_start: LatestStart | None
    buy_back: tuple[DeadlineOption, ...]


@dataclass(frozen=True, slots=True)
class MidpointDate:
    """When the midpoint gate is due, by the burn plan; `date` is the first working day of the week in which its share is spent.

    `tier` is the first that is not over by then.
    """

    date: date
    at_usd: Decimal
    tier: TierName


@dataclass(frozen=True, slots=True)
class ReportingPlan:
    """How often the program reports, from when on, and how many times until its median end."""

    every_days: int
    first: date
    reports: int


@dataclass(frozen=True, slots=True)
class SpendChoice:
    """What the next dollar on a spend choice brings, and what of a stated budget it is given (None: no budget is stated)."""

    choice: str
    gain_per_usd: float | None
    loss_avoided_per_usd: float | None
    unit: str
    basis: str
    allocated_usd: float | None


@dataclass(frozen=True, slots=True)
class SpendChoices:
    """Spend choices, most gain for the next dollar first; the totals are of the division of `budget_usd`, None where none is stated."""

    choices: tuple[SpendChoice, ...]
    budget_usd: float | None
    gain: float | None
    loss_avoided_usd: float | None


@dataclass(frozen=True, slots=True)
class SuggestedTokens:
    """A first target, what it takes of raw tokens where the yields are known, and its basis."""

    p10: float
    p50: float
    p90: float
    tokens_per_param: float
    raw_needed: float
    basis: str


@dataclass(frozen=True, slots=True)
class ProgramTokens:
    """The program's data. `flow` is None where no raw tokens are stated, `suggested` where no model size is.

    `worthwhile_epochs`: after so many a further token is worth less than a share of a new one (`retention_worth`).
    """

    flow: Mapping[str, object] | None
    suggested: SuggestedTokens | None
    worthwhile_epochs: float


CAUSES = ("scope", "hardware", "utilisation", "failures", "price", "overheads", "other lines", "reserves")
