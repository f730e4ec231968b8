"""The gate tree: what is spent by each gate, what a decision costs, and the expected cost over all endings.

A tier is spent on where every gate before it was passed. Costs that belong to no tier, reserves included, are spent as the tiers are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

from service.domain.programs.plan import GateBlock, ProgramEnding, TierBlock
from service.domain.programs.program import Program, TierGate
from service.domain.programs.tiers import TierName
from service.engine.numerics.money import CENT, ZERO, allocate, sum_usd


@dataclass(frozen=True, slots=True)
class TierSpending:
    """Spending on a tier [USD]: `own_usd` on its runs, overheads and own lines; `usd` with its part of lines without a tier."""

    tier: TierName
    pass_probability: float
    own_usd: Decimal
    usd: Decimal
    reserve_usd: Decimal


def spending_by_tier(program: Program, tiers: Sequence[TierBlock], reserves: Decimal) -> list[TierSpending]:
    """The whole budget divided among the tiers.

    Parameters
    ----------
    program : Program
        Gates and other lines.
    tiers : sequence of TierBlock
        Costs of runs and overheads [USD].
    reserves : Decimal
        All reserves [USD].

    Returns
    -------
    list of TierSpending
        In the order of the tiers; adds up to the budget, to the cent.
    """
    weights = [tier.loaded_usd for tier in tiers]
    lines = program.other_lines
    common = allocate(sum_usd(line.usd for line in lines if line.tier is None), weights)
    own = [weight + sum_usd(line.usd for line in lines if line.tier == tier.tier) for weight, tier in zip(weights, tiers, strict=True)]
    rows = zip(program.tiers, own, common, allocate(reserves, weights), strict=True)
    return [TierSpending(tier.tier, tier.pass_probability, usd, usd + share, reserve) for tier, usd, share, reserve in rows]


def gate_tree(spending: Sequence[TierSpending]) -> tuple[ProgramEnding, ...]:
    """The leaves of the gate tree.

    Parameters
    ----------
    spending : sequence of TierSpending
        Tiers in order, with the probabilities of their gates [1].

    Returns
    -------
    tuple of ProgramEnding
        One for each gate that may stop the program, and its completion; probabilities add up to 1.
    """
    endings, reached, spent = [], 1.0, ZERO
    for tier in spending:
        spent += tier.usd + tier.reserve_usd
        if tier.pass_probability < 1:
            endings.append(ProgramEnding(tier.tier, reached * (1 - tier.pass_probability), spent))
        reached *= tier.pass_probability
    return (*endings, ProgramEnding(None, reached, spent))


def expected_usd(endings: Sequence[ProgramEnding]) -> Decimal:
    """Mean cost over the endings [USD, whole cents]; never more than the largest of them."""
    mean = sum_usd(Decimal(repr(ending.probability)) * ending.usd for ending in endings)
    return min(mean.quantize(CENT, rounding=ROUND_HALF_EVEN), max(ending.usd for ending in endings))


def price_gates(program: Program, spending: Sequence[TierSpending]) -> list[GateBlock | None]:
    """Each tier's gate with its cost [USD] and the probability that it is reached [1]; None for a tier without a gate."""
    return [None if tier.gate is None else _price_gate(tier.gate, spending, index) for index, tier in enumerate(program.tiers)]


def _price_gate(gate: TierGate, spending: Sequence[TierSpending], index: int) -> GateBlock:
    reached = math.prod(tier.pass_probability for tier in spending[:index])
    spent, later = sum_usd(tier.usd for tier in spending[: index + 1]), sum_usd(tier.usd for tier in spending[index + 1 :])
    cost = spending[index].own_usd
    decision = f"whether to spend {later:,.0f} USD more" if later else "what becomes of the result"
    return GateBlock(gate, cost, spent, reached, f"{cost:,.0f} USD are spent to decide {decision} ({gate.decides})")
