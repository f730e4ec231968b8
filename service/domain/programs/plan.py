"""The budget plan of a program: tiers, gates, lines, envelope, risks, endings. Field names are those of the answer."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from service.domain.programs.program import MidpointGate, Reserves, Risk, TierGate, TierName
from service.domain.programs.runs import PlannedRun, ResourceUse
from service.domain.quantities import Range

CAUSES = ("scope", "hardware", "utilisation", "failures", "price", "overheads", "other lines", "reserves")
"""Causes of a difference between two plans."""


@dataclass(frozen=True, slots=True)
class OutcomeBlock:
    """Improvement in points, and the price of one point: the whole budget, and the planned runs' FLOPs."""

    points: float
    usd_per_point: float
    flops_per_point: float


@dataclass(frozen=True, slots=True)
class RunBlock:
    """A run with its repeats. `run_equivalents`: their work in whole runs, less than the runs started where some are stopped early."""

    run: PlannedRun
    run_equivalents: float
    cost_usd: Decimal
    use: ResourceUse


@dataclass(frozen=True, slots=True)
class FailureBudget:
    """What failures may take of a tier while the plan holds. `goodput`: useful over paid accelerator-hours.

    The rollback allowance is work redone, and the cost of its compute at the runs' own prices.
    """

    expected_interruptions: float
    lost_accelerator_hours: float
    goodput: float
    checkpoint_interval_minutes: float
    rollback_allowance_accelerator_hours: float
    rollback_allowance_usd: Decimal


@dataclass(frozen=True, slots=True)
class GateBlock:
    """A gate and its price. `cost_to_decide_usd`: spent on its tier; `spent_usd`: spent up to it; neither with reserves."""

    gate: TierGate
    cost_to_decide_usd: Decimal
    spent_usd: Decimal
    reached_probability: float
    statement: str


@dataclass(frozen=True, slots=True)
class TierBlock:
    """A tier: `cost_usd` and `use` are of its runs, without overheads; wall-clock hours are of the runs one after another."""

    tier: TierName
    cost_usd: Decimal
    overhead_usd: Decimal
    use: ResourceUse
    runs: tuple[RunBlock, ...]
    failures: FailureBudget
    gate: GateBlock | None

    @property
    def loaded_usd(self) -> Decimal:
        """Cost of the runs with their overheads [USD]."""
        return self.cost_usd + self.overhead_usd


@dataclass(frozen=True, slots=True)
class OverheadBlock:
    """An overhead's amount; `share`: relative to the cost of the runs of `tier`, or of all runs, however it was stated."""

    line: str
    tier: TierName | None
    usd: Decimal
    share: float
    basis: str


@dataclass(frozen=True, slots=True)
class BudgetLine:
    """A line of the budget, in whole cents."""

    line: str
    usd: Decimal
    basis: str


@dataclass(frozen=True, slots=True)
class Envelope:
    """The budget in three: prototype and validation with overheads; production and other lines; reserves and contingency."""

    exploration_usd: Decimal
    committed_usd: Decimal
    reserve_usd: Decimal


@dataclass(frozen=True, slots=True)
class RiskBlock:
    """A risk with its loss where it happens, and its expected loss."""

    risk: Risk
    loss_usd: Decimal
    expected_loss_usd: Decimal


@dataclass(frozen=True, slots=True)
class ProgramEnding:
    """A leaf of the gate tree: the gate at which the program ends (None: it is completed), its probability, and what is spent by then."""

    stopped_at: TierName | None
    probability: float
    usd: Decimal


@dataclass(frozen=True, slots=True)
class MidpointBlock:
    """The midpoint gate, and what of the budget is spent when it is due."""

    gate: MidpointGate
    at_usd: Decimal


@dataclass(frozen=True, slots=True)
class ProgramPlan:
    """The whole budget. `lines` add up to `total_usd.p50` to the cent, and so do the parts of the envelope."""

    name: str
    outcome: OutcomeBlock | None
    total_usd: Range
    expected_usd: Decimal
    completion_probability: float
    envelope: Envelope
    tiers: tuple[TierBlock, ...]
    overhead: tuple[OverheadBlock, ...]
    reserves: Reserves
    lines: tuple[BudgetLine, ...]
    risks: tuple[RiskBlock, ...]
    endings: tuple[ProgramEnding, ...]
    midpoint: MidpointBlock | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VarianceCause:
    """What one cause adds to the cost [USD], or saves."""

    cause: str
    usd: Decimal


@dataclass(frozen=True, slots=True)
class CostVariance:
    """The later plan's budget less the earlier one's [USD]; `causes`, the largest first, add up to it."""

    usd: Decimal
    causes: tuple[VarianceCause, ...]
    headline: str
