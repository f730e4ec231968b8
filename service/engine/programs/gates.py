"""The gate tree: what is spent by each gate, what it costs to decide, and what the program costs on average over all its endings.

A tier is spent on where every gate before it was passed. What belongs to no tier, reserves too, is spent as the tiers are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

from service.domain.programs.program import GateBlock, Program, ProgramEnding, TierBlock, TierGate, TierName
from service.engine.numerics.money import CENT, ZERO, allocate, sum_usd


@dataclass(frozen=True, slots=True)
class TierSpending:
    """What is spent on a tier: its runs, overheads and own lines; with what accrues beside them; and of the reserves."""

    tier: TierName
    pass_probability: float
    own_usd: Decimal
    usd: Decimal
    reserve_usd: Decimal


def spending_by_tier(program: Program, tiers: Sequence[TierBlock], reserves: Decimal) -> list[TierSpending]:
    """The tiers in order, with all that the program costs divided among them, to the cent."""
    weights = [tier.cost_usd + tier.overhead_usd for tier in tiers]
    lines = program.other_lines
    accruing = allocate(sum_usd(line.usd for line in lines if line.tier is None), weights)
    own = [weight + sum_usd(line.usd for line in lines if line.tier == tier.tier) for weight, tier in zip(weights, tiers, strict=True)]
    shares = zip(program.tiers, own, accruing, allocate(reserves, weights), strict=True)
    return [TierSpending(tier.tier, _pass_probability(tier.gate), mine, mine + accrued, reserve) for tier, mine, accrued, reserve in shares]


def gate_tree(ahead: Sequence[TierSpending]) -> tuple[ProgramEnding, ...]:
    """The leaves of the gate tree with their probabilities, which add up to 1. A gate that is certain to be passed ends nothing."""
    found, reached, spent = [], 1.0, ZERO
    for stage in ahead:
        spent += stage.usd + stage.reserve_usd
        if stage.pass_probability < 1:
            found.append(ProgramEnding(stage.tier, reached * (1 - stage.pass_probability), spent))
        reached *= stage.pass_probability
    return (*found, ProgramEnding(None, reached, spent))


def expected_usd(tree: Sequence[ProgramEnding]) -> Decimal:
    """The mean over the endings, in whole cents; never more than the largest of them."""
    mean = sum_usd(Decimal(repr(ending.probability)) * ending.usd for ending in tree)
    return min(mean.quantize(CENT, rounding=ROUND_HALF_EVEN), max(ending.usd for ending in tree))


def price_gates(program: Program, ahead: Sequence[TierSpending]) -> list[GateBlock | None]:
    """Each tier's gate with its price; None where a tier has no gate."""
    found: list[GateBlock | None] = []
    for at, tier in enumerate(program.tiers):
        reached = math.prod(stage.pass_probability for stage in ahead[:at])
        spent, later = sum_usd(stage.usd for stage in ahead[: at + 1]), sum_usd(stage.usd for stage in ahead[at + 1 :])
        cost = ahead[at].own_usd
        found.append(None if tier.gate is None else GateBlock(tier.gate, cost, spent, reached, _statement(tier.gate, cost, later)))
    return found


def _pass_probability(gate: TierGate | None) -> float:
    return 1.0 if gate is None else gate.pass_probability


def _statement(gate: TierGate, cost: Decimal, later: Decimal) -> str:
    """What the gate buys, in a sentence."""
    worth = f"whether to spend {later:,.0f} USD more" if later else "what becomes of the result"
    return f"{cost:,.0f} USD are spent to decide {worth} ({gate.decides})"
