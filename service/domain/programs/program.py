"""A training program, resolved, and the plan that comes of it: the names are the contract's.

The engine takes runs that are estimated already; what a run costs once stands in `PlannedRun`, how often it is made in `RunRepetition`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from service.domain.quantities import Range

TierName = Literal["prototype", "validation", "production"]
TIERS: tuple[TierName, ...] = ("prototype", "validation", "production")
"""In the order in which they are run and decided."""
EXPLORATION_TIERS: tuple[TierName, ...] = ("prototype", "validation")


@dataclass(frozen=True, slots=True)
class Rung:
    """Where candidates are judged: `at` is the share of a whole run that is made by then, `keep` the share of them that goes on."""

    at: float
    keep: float


@dataclass(frozen=True, slots=True)
class RunRepetition:
    """How often a run is made: points of its grid x repeats are candidates, each trained with every seed.

    `rungs`, rising, stop candidates early; those that go on continue from their checkpoint. `at_once`: runs side by side.
    """

    repeat: int = 1
    grid: tuple[int, ...] = ()
    seeds: int = 1
    rungs: tuple[Rung, ...] = ()
    at_once: int = 1

    @property
    def candidates(self) -> int:
        return math.prod(self.grid) * self.repeat

    @property
    def runs(self) -> int:
        """How many runs are started."""
        return self.candidates * self.seeds


@dataclass(frozen=True, slots=True)
class RunCostLine:
    """A line of one run's bill, in whole cents."""

    line: str
    usd: Decimal


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run as the estimate has it, made once. `lost_hours`: wall-clock hours that failures and checkpoints take of it.

    `tokens` are those trained on, repeats counted. `lines` add up to `usd.p50`, to the cent.
    """

    name: str
    accelerator: str
    lines: tuple[RunCostLine, ...]
    usd: Range
    accelerator_hours: Range
    wall_clock_hours: Range
    flops: float
    tokens: float
    interruptions: float
    lost_hours: float
    goodput: float
    tco2e: float
    checkpoint_interval_minutes: float
    repetition: RunRepetition = RunRepetition()


@dataclass(frozen=True, slots=True)
class TierGate:
    """What is decided after a tier, on what evidence. `pass_probability`: that the program goes on."""

    decides: str
    pass_probability: float
    evidence: str | None = None
    sign_off_days: float = 0.0


@dataclass(frozen=True, slots=True)
class Tier:
    tier: TierName
    runs: tuple[PlannedRun, ...]
    gate: TierGate | None = None


@dataclass(frozen=True, slots=True)
class ProgramOverhead:
    """Work around the runs: a share of what each tier's runs cost, or an amount; `tier` None means all tiers."""

    line: str
    basis: str
    share: float | None = None
    usd: Decimal | None = None
    tier: TierName | None = None


@dataclass(frozen=True, slots=True)
class OtherLine:
    """Storage, network, people, labelling, data, evaluation. `tier`: what it is spent with; None is the whole program's."""

    line: str
    usd: Decimal
    basis: str
    tier: TierName | None = None


@dataclass(frozen=True, slots=True)
class Risk:
    """An event that costs a share of what the runs of its tier (None: of all tiers) cost, and `cost_usd` beside it.

    `addressed_by`: the spend choice that makes it less likely.
    """

    name: str
    probability: float
    tier: TierName | None = None
    cost_share_of_tier: float = 0.0
    cost_usd: Decimal = Decimal(0)
    addressed_by: str | None = None


@dataclass(frozen=True, slots=True)
class Reserves:
    """Money held back. `evaluation_and_debugging` is a share of what all runs cost.

    `contingency` is a share of everything that is not a reserve; None: computed from the risks and the spread of the estimate, which it
    covers with a probability of `confidence` (0.5 or more).
    """

    evaluation_and_debugging: float
    confidence: float
    contingency: float | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the program is for. `point`: how much of the metric is called one point."""

    metric: str
    baseline: float
    target: float
    point: float
    decision: str | None = None


@dataclass(frozen=True, slots=True)
class GateCriteria:
    """Conditions that all hold: the metric has reached a value, the cost performance index is at least or below another."""

    metric_at_least: float | None = None
    cpi_at_least: float | None = None
    cpi_below: float | None = None


@dataclass(frozen=True, slots=True)
class MidpointGate:
    """What is decided, up front, to be asked when this share of the budget is spent."""

    at_spend_share: float
    continue_if: GateCriteria
    stop_if: GateCriteria
    pivot_to: str | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """Everything the roll-up needs. `correlation`: between the errors of different runs' estimates, which share machine and software.

    `rollback_share`: accelerator-hours of work redone after loss spikes or bad data, over those of the runs.
    """

    name: str
    tiers: tuple[Tier, ...]
    reserves: Reserves
    correlation: float
    rollback_share: float
    outcome: Outcome | None = None
    midpoint_gate: MidpointGate | None = None
    overheads: tuple[ProgramOverhead, ...] = ()
    other_lines: tuple[OtherLine, ...] = ()
    risks: tuple[Risk, ...] = ()


@dataclass(frozen=True, slots=True)
class OutcomeBlock:
    """Improvement in points, and what one of them takes of the whole budget. FLOPs are those of the planned runs."""

    points: float
    usd_per_point: float
    flops_per_point: float


@dataclass(frozen=True, slots=True)
class RunBlock:
    """A run with its repeats. `equivalents`: whole runs' worth of work, less than `run.repetition.runs` where some are stopped early."""

    run: PlannedRun
    equivalents: float
    cost_usd: Decimal
    usd: Range
    accelerator_hours: Range
    wall_clock_hours: Range
    flops: float
    tokens: float
    tco2e: float


@dataclass(frozen=True, slots=True)
class FailureBudget:
    """What failures may take of a tier before the plan is off. `goodput`: useful over paid accelerator-hours.

    The rollback allowance is work redone, and what its compute costs at the runs' own prices.
    """

    expected_interruptions: float
    lost_accelerator_hours: float
    goodput: float
    checkpoint_interval_minutes: float
    rollback_allowance_accelerator_hours: float
    rollback_allowance_usd: Decimal


@dataclass(frozen=True, slots=True)
class GateBlock:
    """A gate and its price: `cost_to_decide_usd` is spent on its tier, `spent_usd` on everything up to it, reserves not counted."""

    gate: TierGate
    cost_to_decide_usd: Decimal
    spent_usd: Decimal
    reached_probability: float
    statement: str


@dataclass(frozen=True, slots=True)
class TierBlock:
    """A tier: `cost_usd` and its range `usd` are of its runs, which overheads are added to; wall-clock hours of them one after another."""

    tier: TierName
    cost_usd: Decimal
    overhead_usd: Decimal
    usd: Range
    accelerator_hours: Range
    wall_clock_hours: Range
    flops: float
    tokens: float
    tco2e: float
    runs: tuple[RunBlock, ...]
    failures: FailureBudget
    gate: GateBlock | None


@dataclass(frozen=True, slots=True)
class OverheadBlock:
    """`share` is of what the runs cost that it is counted on, those of `tier` or of all, however it was stated."""

    line: str
    tier: TierName | None
    usd: Decimal
    share: float
    basis: str


@dataclass(frozen=True, slots=True)
class BudgetLine:
    line: str
    usd: Decimal
    basis: str


@dataclass(frozen=True, slots=True)
class Envelope:
    """The budget in three: prototype and validation with their overheads; production and the other lines; reserves and contingency."""

    exploration_usd: Decimal
    committed_usd: Decimal
    reserve_usd: Decimal


@dataclass(frozen=True, slots=True)
class RiskBlock:
    """A risk with what it costs where it happens, and on average."""

    risk: Risk
    loss_usd: Decimal
    expected_loss_usd: Decimal


@dataclass(frozen=True, slots=True)
class ProgramEnding:
    """A leaf of the gate tree: where the program ends (None: it is completed), how likely, and what is spent by then."""

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
