"""A training program as it is planned: tiers of runs with gates, overheads, other costs, risks and reserves."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

from service.domain.answer_fields import Doc, share
from service.domain.programs.evaluation import EvaluationPlan
from service.domain.programs.outcome import Outcome
from service.domain.programs.risks import Mitigation, RiskPair, RiskState
from service.domain.programs.runs import PlannedRun
from service.domain.programs.tiers import TierName
from service.domain.quantities import Range
from service.domain.schedule import AcceleratorPool

MAX_REPEATS_ON_FAIL = 5


@dataclass(frozen=True, slots=True)
class GateCriteria:
    """Conditions that all hold: bounds on the metric and on the cost performance index (CPI)."""

    metric_at_least: Annotated[float | None, Doc("Lower bound of the outcome's metric; null: no condition", "unit of the metric")] = None
    cpi_at_least: Annotated[float | None, Doc("Lower bound of the cost performance index; null: no condition", "1")] = None
    cpi_below: Annotated[float | None, Doc("Upper bound of the cost performance index; null: no condition", "1")] = None


@dataclass(frozen=True, slots=True)
class TierGate:
    """The decision after a tier, and its evidence. `pass_probability`: that the program goes on. `sign_off_days`: working days.

    `sensitivity` and `specificity`: how well the evidence tells whether going on is right. `continue_if` and `stop_if`: criteria that are
    agreed up front. A failed gate has its tier repeated `repeat_on_fail` times at most, and is decided again each time.
    """

    decides: Annotated[str, Doc("What is decided", max_length=500)]
    pass_probability: Annotated[float, share("Probability that the program goes on")]
    evidence: Annotated[str | None, Doc("Evidence it is decided on; null: none is stated", max_length=1000)] = None
    sign_off_days: Annotated[float, Doc("Time from the tier's end to the decision", "days")] = 0.0
    sensitivity: Annotated[float, share("Probability that it is passed where going on is right")] = 1.0
    specificity: Annotated[float, share("Probability that it is failed where going on is wrong")] = 1.0
    continue_if: Annotated[GateCriteria | None, Doc("Criteria to continue, all of which hold; null: none are stated")] = None
    stop_if: Annotated[GateCriteria | None, Doc("Criteria to stop, all of which hold; null: none are stated")] = None
    committed_usd: Annotated[Decimal, Doc("Still to be paid where the program stops here", "USD")] = Decimal(0)
    repeat_on_fail: Annotated[int, Doc("Repeats of the tier at most, where the gate is failed", "count", maximum=MAX_REPEATS_ON_FAIL)] = 0


@dataclass(frozen=True, slots=True)
class Tier:
    """Runs that are made together, and the gate that decides on the next tier."""

    tier: TierName
    runs: tuple[PlannedRun, ...]
    gate: TierGate | None = None

    @property
    def pass_probability(self) -> float:
        """Probability that the program goes on after this tier and its repeats, 1 without a gate [1]."""
        if self.gate is None or not self.gate.repeat_on_fail:
            return 1.0 if self.gate is None else self.gate.pass_probability
        return float(1 - (1 - self.gate.pass_probability) ** (self.gate.repeat_on_fail + 1))


@dataclass(frozen=True, slots=True)
class ProgramOverhead:
    """Work around the runs: a share of the cost of each tier's runs, or an amount. `tier` None means all tiers.

    `before_runs`: the tier's runs wait for it; otherwise it waits for them, and the tier's gate for it. Only what is `blocking` takes time
    of the calendar: as long as its cost buys of the tier's machine.
    """

    line: str
    basis: str
    share: float | None = None
    usd: Decimal | None = None
    tier: TierName | None = None
    before_runs: bool = False
    blocking: bool = True


@dataclass(frozen=True, slots=True)
class OtherLine:
    """Cost of storage, network, people, labelling, data or evaluation. `tier`: spent with that tier; None: over the whole program."""

    line: str
    usd: Decimal
    basis: str
    tier: TierName | None = None


@dataclass(frozen=True, slots=True)
class Risk:
    """An event that costs a share of its tier's runs (`tier` None: of all runs) plus `cost_usd`.

    It delays the tier's gate by `days`, or (None) by that share of the runs' time. `addressed_by`: the spend choice that makes it less
    likely. What is planned with follows from `mitigation` and `state`: an occurred risk is certain, a closed one does not happen.
    """

    name: Annotated[str, Doc("Name of the risk")]
    probability: Annotated[float, share("Probability that it happens")]
    tier: Annotated[TierName | None, Doc("Tier whose runs it makes more expensive; null: all tiers")] = None
    cost_share_of_tier: Annotated[float, share("Cost where it happens, as part of what the tier's runs cost")] = 0.0
    cost_usd: Annotated[Decimal, Doc("Cost where it happens, in addition to that share", "USD")] = Decimal(0)
    days: Annotated[Range | None, Doc("Time that it takes where it happens; null: cost_share_of_tier of the runs' time", "days")] = None
    addressed_by: Annotated[str | None, Doc("Spend choice that makes it less likely; null: none")] = None
    mitigation: Annotated[Mitigation | None, Doc("What is done against it; null: nothing is stated")] = None
    owner: Annotated[str | None, Doc("Who watches it; null: not stated")] = None
    trigger: Annotated[str | None, Doc("Sign by which it is known to happen; null: not stated", max_length=500)] = None
    state: Annotated[RiskState, Doc("Whether it may still happen, has happened, or will not happen any more")] = "open"


RiskCorrelation = float | tuple[RiskPair, ...] | None
"""One correlation of all risks, those of pairs, or None: they do not depend on each other."""


@dataclass(frozen=True, slots=True)
class Reserves:
    """Money held back. `evaluation_and_debugging`: share of the cost of all runs.

    `contingency`: share of everything that is not a reserve; None: computed from the risks and the estimate's spread, which it covers with
    probability `confidence` (0.5 or more).
    """

    evaluation_and_debugging: Annotated[float, share("Part of what the runs cost, held for evaluation and debugging")]
    confidence: Annotated[float, share("Probability with which a computed contingency covers the estimate")]
    contingency: Annotated[float | None, share("Part of all but reserves; null: computed of the risks and the estimate's spread")] = None


@dataclass(frozen=True, slots=True)
class MidpointGate:
    """The decision to make when a share of the budget is spent, with criteria fixed in advance."""

    at_spend_share: Annotated[float, share("Part of the budget at which it is due")]
    continue_if: Annotated[GateCriteria, Doc("Criteria to continue, all of which hold")]
    stop_if: Annotated[GateCriteria, Doc("Criteria to stop, all of which hold")]
    pivot_to: Annotated[str | None, Doc("What to do instead otherwise; null: not stated", max_length=500)] = None
    committed_usd: Annotated[Decimal, Doc("Still to be paid where the program stops here", "USD")] = Decimal(0)


@dataclass(frozen=True, slots=True)
class Program:
    """Input of the budget. `correlation`: between the errors of different runs' estimates, which share machine and software.

    `risk_correlation`: between risks; where it is stated the contingency is simulated.

    `rollback_share`: accelerator-hours of work redone after loss spikes or bad data, relative to those of the runs.
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
    risk_correlation: RiskCorrelation = None
    pools: tuple[AcceleratorPool, ...] = ()
    evaluation: EvaluationPlan | None = None
