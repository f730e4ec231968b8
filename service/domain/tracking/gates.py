"""Gates of a tracked program: as planned, and where they stand."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Literal

from service.domain.answer_fields import Doc
from service.domain.programs.branches import BranchName, GateDecision
from service.domain.programs.program import GateCriteria
from service.domain.programs.tiers import TierName
from service.domain.quantities import Range
from service.domain.training.estimate import FinishDates


@dataclass(frozen=True, slots=True)
class PlannedBranch:
    """A way on from a gate with the figures of its plan; None where unknown [USD, 1]."""

    branch: BranchName
    program: str | None
    cost_usd: Range | None
    expected_cost_usd: float | None
    finish: FinishDates | None
    outcome_probability: float | None
    expected_value_usd: float | None


@dataclass(frozen=True, slots=True)
class PlannedGate:
    """A gate by the tier that it follows, or `midpoint`, its planned day, its criteria (None: none are agreed) and its ways on.

    `since`: decisions before are of the plan that was followed until then.
    """

    gate: str
    day: date
    continue_if: GateCriteria | None
    stop_if: GateCriteria | None
    branches: tuple[PlannedBranch, ...]
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class TierGateStatus:
    """The gate of a tier. It is due when all planned runs of the tier are done or closed, until a decision event names it."""

    tier: Annotated[TierName, Doc("Tier that it follows")]
    due: Annotated[bool, Doc("Whether it is due")]
    recommendation: Annotated[BranchName | None, Doc("Recommended decision; null: it is not due, or nothing decides")]
    reasons: Annotated[tuple[str, ...], Doc("Reasons, with figures", max_items=20, max_length=5000)]
    decision: Annotated[GateDecision | None, Doc("Ways on with actual figures; null: decided, or the plan has none")] = None
    decided: Annotated[Literal["continue", "pivot", "stop"] | None, Doc("Decision event that closes it; null: none")] = None
    decided_at: Annotated[datetime | None, Doc("When it was decided; null: not yet")] = None
