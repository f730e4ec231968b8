"""The budget plan of a program: tiers, gates, lines, envelope, risks, endings. Field names are those of the answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Annotated

from service.domain.answer_fields import HIDDEN, MERGED, Doc, SameAs, share
from service.domain.programs.information import GateInformation
from service.domain.programs.outcome import Outcome, OutcomeValue
from service.domain.programs.program import MidpointGate, Reserves, Risk, TierGate
from service.domain.programs.risks import MitigationEffect
from service.domain.programs.runs import PlannedRun, ResourceUse
from service.domain.programs.tiers import TIERS, TierName
from service.domain.quantities import Range

CAUSES = ("scope", "hardware", "utilisation", "failures", "price", "overheads", "other lines", "reserves")
"""Causes of a difference between two plans."""


@dataclass(frozen=True, slots=True)
class OutcomeBlock:
    """Improvement in points, and the price of one point: the whole budget, and the planned runs' FLOPs.

    Without an improvement, as where the program only saves, a point has no price and no FLOPs. `values` add up to `value_usd`;
    `expected_net_usd` takes the target as reached where every gate is passed.
    """

    outcome: Annotated[Outcome, MERGED]
    points: Annotated[float, Doc("Improvement from baseline to target", "points", maximum=1e40)]
    usd_per_point: Annotated[
        float | None, Doc("Budget over the points; null: not known, or nothing is to be improved", "USD per point", maximum=1e40)
    ]
    flops_per_point: Annotated[
        float, Doc("Arithmetic of the planned runs over the points; 0: nothing is to be improved", "FLOP per point", maximum=1e40)
    ]
    values: Annotated[tuple[OutcomeValue, ...], Doc("What reaching the targets is worth, part by part", max_items=30, older=())]
    value_usd: Annotated[
        float | None, Doc("What reaching all targets is worth; null: not stated", "USD", minimum=-1e40, maximum=1e40, older=None)
    ]
    expected_net_usd: Annotated[
        float | None,
        Doc(
            "Value times the probability that every gate is passed, less the expected cost", "USD", minimum=-1e40, maximum=1e40, older=None
        ),
    ]


@dataclass(frozen=True, slots=True)
class RunBlock:
    """A run with its repeats. `run_equivalents`: their work in whole runs, less than the runs started where some are stopped early."""

    run: Annotated[PlannedRun, HIDDEN]
    run_equivalents: Annotated[float, Doc("Work of all of them in whole runs; less where some are stopped early", "runs", maximum=1e40)]
    cost_usd: Annotated[Decimal, Doc("Cost of all of them, in whole cents", "USD", nullable=True)]
    use: Annotated[ResourceUse, MERGED]


@dataclass(frozen=True, slots=True)
class FailureBudget:
    """What failures may take of a tier while the plan holds. `goodput`: useful over paid accelerator-hours.

    The rollback allowance is work redone, and the cost of its compute at the runs' own prices.
    """

    expected_interruptions: Annotated[float, Doc("Interruptions of the tier's runs, mean", "count", maximum=1e40)]
    lost_accelerator_hours: Annotated[float, Doc("Accelerator-hours that failures and checkpoints take", "accelerator-hours", maximum=1e40)]
    goodput: Annotated[float, Doc("Useful over paid accelerator-hours", "1", minimum=0.0, maximum=1.000000001)]
    checkpoint_interval_minutes: Annotated[float, Doc("Planned time between checkpoints", "min", maximum=1e40)]
    rollback_allowance_accelerator_hours: Annotated[
        float, Doc("Accelerator-hours of work redone after rollbacks, paid of overheads and reserves", "accelerator-hours", maximum=1e40)
    ]
    rollback_allowance_usd: Annotated[Decimal, Doc("Cost of the allowance's compute at the runs' own prices", "USD", nullable=True)]


@dataclass(frozen=True, slots=True)
class GateBlock:
    """A gate and its price. `cost_to_decide_usd`: spent on its tier; `spent_usd`: spent up to it; neither with reserves."""

    gate: Annotated[TierGate, MERGED]
    cost_to_decide_usd: Annotated[Decimal, Doc("Spent on the tier", "USD", nullable=True)]
    spent_usd: Annotated[Decimal, Doc("Spent on everything up to the decision, reserves not counted", "USD", nullable=True)]
    reached_probability: Annotated[float, share("Probability that the gate is reached")]
    statement: Annotated[str, Doc("The gate in a sentence, with its figures", max_length=5000)]
    information: Annotated[GateInformation | None, Doc("What deciding by the gate is worth; null: a price is not known", nullable=True)] = (
        None
    )


@dataclass(frozen=True, slots=True)
class TierBlock:
    """A tier: `cost_usd` and `use` are of its runs, without overheads; wall-clock hours are of the runs one after another."""

    tier: Annotated[TierName, Doc("Name of the tier")]
    cost_usd: Annotated[Decimal, Doc("Cost of the tier's runs", "USD", nullable=True)]
    overhead_usd: Annotated[Decimal, Doc("Overheads of the tier, in addition to cost_usd", "USD", nullable=True)]
    use: Annotated[ResourceUse, MERGED]
    runs: Annotated[tuple[RunBlock, ...], Doc("Runs of the tier, with their repeats")]
    failures: Annotated[FailureBudget, Doc("What failures may take of the tier")]
    gate: Annotated[GateBlock | None, Doc("Gate after the tier; null: none")]

    @property
    def loaded_usd(self) -> Decimal:
        """Cost of the runs with their overheads [USD]."""
        return self.cost_usd + self.overhead_usd


@dataclass(frozen=True, slots=True)
class OverheadBlock:
    """An overhead's amount; `share`: relative to the cost of the runs of `tier`, or of all runs, however it was stated."""

    line: Annotated[str, Doc("Name of the overhead")]
    tier: Annotated[TierName | None, Doc("Tier whose runs it is counted on; null: all runs")]
    usd: Annotated[Decimal, Doc("Cost of the overhead", "USD")]
    share: Annotated[float, Doc("Part of what the runs cost that it is counted on", "1", maximum=1e40)]
    basis: Annotated[str, Doc("How it is computed", max_length=5000)]


@dataclass(frozen=True, slots=True)
class BudgetLine:
    """A line of the budget, in whole cents."""

    line: Annotated[str, Doc("Name of the line")]
    usd: Annotated[Decimal, Doc("Amount in whole cents", "USD")]
    basis: Annotated[str, Doc("How it is computed", max_length=5000)]


@dataclass(frozen=True, slots=True)
class Envelope:
    """The budget in three: prototype and validation with overheads; production and other lines; reserves and contingency."""

    exploration_usd: Annotated[Decimal, Doc("Prototype and validation with their overheads", "USD")]
    committed_usd: Annotated[Decimal, Doc("Production and all other lines", "USD")]
    reserve_usd: Annotated[Decimal, Doc("Reserves and contingency", "USD")]


@dataclass(frozen=True, slots=True)
class RiskBlock:
    """A risk with its loss where it happens, and its expected loss, as they are planned with: after its state and a mitigation taken."""

    risk: Annotated[Risk, MERGED]
    planned_probability: Annotated[float, replace(share("Probability that is planned with"), older=SameAs("probability"))]
    planned_cost_share: Annotated[
        float, replace(share("Part of what the tier's runs cost that is planned with"), older=SameAs("cost_share_of_tier"))
    ]
    loss_usd: Annotated[Decimal, Doc("Cost where it happens", "USD", nullable=True)]
    expected_loss_usd: Annotated[Decimal, Doc("Cost times probability", "USD", nullable=True)]
    effect: Annotated[MitigationEffect | None, Doc("What the mitigation avoids and costs; null: none is stated", nullable=True)] = None


@dataclass(frozen=True, slots=True)
class ProgramEnding:
    """A leaf of the gate tree: the gate at which the program ends (None: it is completed), its probability, and what is spent by then.

    Where the gate states a pivot the program goes on with that: its expected cost is in `usd`.
    """

    stopped_at: Annotated[TierName | None, Doc("Tier after which the program ends; null: it is completed")]
    probability: Annotated[float, share("Probability of this ending")]
    usd: Annotated[Decimal, Doc("Spent by then, with the expected cost of a pivot", "USD")]
    pivot: Annotated[str | None, Doc("Program that it goes on with; null: none", max_length=200, older=None)] = None


@dataclass(frozen=True, slots=True)
class PivotAhead:
    """The program that a failed gate goes on with: its mean cost, and the probability of the target with what that is worth then.

    None where not known.
    """

    program: str
    expected_usd: Decimal
    outcome_probability: float | None
    value_usd: float | None


@dataclass(frozen=True, slots=True)
class MidpointBlock:
    """The midpoint gate, and what of the budget is spent when it is due."""

    gate: MidpointGate
    at_usd: Decimal


@dataclass(frozen=True, slots=True)
class ProgramPlan:
    """The whole budget. `lines` add up to `total_usd.p50` to the cent, and so do the parts of the envelope.

    Where a run is not `priced` they are sums without its accelerators, which no answer shows.
    """

    name: Annotated[str, Doc("Name of the program")]
    outcome: Annotated[OutcomeBlock | None, Doc("What the program is for; null: not stated")]
    total_usd: Annotated[
        Range, Doc("The budget with every gate passed as p50; the contingency is in all three percentiles", "USD", nullable=True)
    ]
    without_contingency_usd: Annotated[
        Range,
        Doc("What the program costs with every gate passed: the contingency is in no percentile", "USD", nullable=True, older=None),
    ]
    expected_usd: Annotated[Decimal, Doc("Mean cost over the gate tree", "USD", nullable=True)]
    completion_probability: Annotated[float, share("Probability that every gate is passed")]
    envelope: Annotated[Envelope, Doc("The budget in three", nullable=True)]
    tiers: Annotated[tuple[TierBlock, ...], Doc("Tiers in their order", max_items=len(TIERS))]
    overhead: Annotated[tuple[OverheadBlock, ...], Doc("Work around the runs")]
    reserves: Annotated[Reserves, Doc("Shares that the reserves are made with")]
    lines: Annotated[tuple[BudgetLine, ...], Doc("Lines of the budget; they add up to the p50 of total_usd")]
    risks: Annotated[tuple[RiskBlock, ...], Doc("Risks with their cost")]
    endings: Annotated[tuple[ProgramEnding, ...], Doc("Where the program may end", max_items=len(TIERS) + 1)]
    midpoint: Annotated[MidpointBlock | None, HIDDEN]
    warnings: Annotated[tuple[str, ...], HIDDEN]

    @property
    def priced(self) -> bool:
        """Whether the price of every run is known, and with it the budget."""
        return all(block.run.priced for tier in self.tiers for block in tier.runs)


@dataclass(frozen=True, slots=True)
class VarianceCause:
    """What one cause adds to the cost [USD], or saves."""

    cause: Annotated[str, Doc("What changed", choices=CAUSES)]
    usd: Annotated[Decimal, Doc("What it adds, below 0 saves", "USD")]


@dataclass(frozen=True, slots=True)
class CostVariance:
    """The later plan's budget less the earlier one's [USD]; `causes`, the largest first, add up to it."""

    usd: Annotated[Decimal, Doc("Later budget less the earlier one", "USD")]
    causes: Annotated[tuple[VarianceCause, ...], Doc("Causes, the largest first, which add up to it to the cent", max_items=len(CAUSES))]
    headline: Annotated[str, Doc("The difference in a sentence", max_length=1000)]
