"""The gate tree: what is spent by each gate, what a decision costs, and the expected cost over all endings.

A tier is spent on where every gate before it was passed. Costs that belong to no tier, reserves included, are spent as the tiers are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from types import MappingProxyType

from service.domain.programs.plan import GateBlock, PivotAhead, ProgramEnding, TierBlock
from service.domain.programs.program import Program, TierGate
from service.domain.programs.tiers import TierName
from service.engine.numerics.money import CENT, ZERO, allocate, share_usd, sum_usd

NO_PIVOTS: Mapping[TierName, PivotAhead] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TierSpending:
    """Spending on a tier [USD]: `own_usd` on its runs, overheads, own lines and repeats; `usd` with its part of lines without a tier.

    The repeats are those expected where the gate is passed in the end; `failed_usd` is spent in addition where it is failed for good.
    """

    tier: TierName
    pass_probability: float
    own_usd: Decimal
    usd: Decimal
    reserve_usd: Decimal
    failed_usd: Decimal = ZERO


@dataclass(frozen=True, slots=True)
class TierRepeats:
    """Repeats of a tier after a failed gate. `probabilities`: that the first, the second and so on takes place; `once_usd`: cost of one.

    `expected_usd` and `deviation_usd` are of all of them, where the gate is passed in the end.
    """

    probabilities: tuple[float, ...] = ()
    once_usd: Decimal = ZERO
    expected_usd: Decimal = ZERO
    deviation_usd: float = 0.0


def repeat_probabilities(gate: TierGate | None) -> tuple[float, ...]:
    """Probability that each repeat of a tier takes place, where its gate is passed in the end.

    Parameters
    ----------
    gate : TierGate or None
        Probability p to be passed, each time anew [1], and number n of repeats; None: no gate, no repeats.

    Returns
    -------
    tuple of float
        That at least i repeats are needed, i from 1 to n: sum of q^j from j = i to n over that from j = 0, with q = 1 - p [1].
    """
    if gate is None or gate.pass_probability >= 1:
        return ()
    powers = [(1 - gate.pass_probability) ** number for number in range(gate.repeat_on_fail + 1)]
    return tuple(sum(powers[number:]) / sum(powers) for number in range(1, len(powers)))


def tier_repeats(program: Program, tiers: Sequence[TierBlock]) -> list[TierRepeats]:
    """Repeats of each tier: of its runs with their overheads, and of the suites that evaluate it.

    Parameters
    ----------
    program : Program
        Gates and evaluation.
    tiers : sequence of TierBlock
        Costs of runs and overheads [USD].
    """
    suites = program.evaluation.suites if program.evaluation is not None else ()
    repeats = []
    for tier, block in zip(program.tiers, tiers, strict=True):
        found = repeat_probabilities(tier.gate)
        once = block.loaded_usd + sum_usd(suite.usd or ZERO for suite in suites if suite.tier == tier.tier) if found else ZERO
        mean = sum(found)
        square = sum((2 * number - 1) * probability for number, probability in enumerate(found, 1))
        deviation = math.sqrt(max(0.0, square - mean**2)) * float(once)
        repeats.append(TierRepeats(found, once, share_usd(mean, once), deviation))
    return repeats


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
    lines, repeats = program.other_lines, tier_repeats(program, tiers)
    common = allocate(sum_usd(line.usd for line in lines if line.tier is None), weights)
    own = [
        weight + again.expected_usd + sum_usd(line.usd for line in lines if line.tier == tier.tier)
        for weight, again, tier in zip(weights, repeats, tiers, strict=True)
    ]
    failed = [len(again.probabilities) * again.once_usd - again.expected_usd for again in repeats]
    rows = zip(program.tiers, own, common, allocate(reserves, weights), failed, strict=True)
    return [TierSpending(tier.tier, tier.pass_probability, usd, usd + share, *rest) for tier, usd, share, *rest in rows]


def gate_tree(spending: Sequence[TierSpending], pivots: Mapping[TierName, PivotAhead] = NO_PIVOTS) -> tuple[ProgramEnding, ...]:
    """The leaves of the gate tree.

    Parameters
    ----------
    spending : sequence of TierSpending
        Tiers in order, with the probabilities of their gates [1].
    pivots : mapping of TierName to PivotAhead
        Programs that failed gates go on with.

    Returns
    -------
    tuple of ProgramEnding
        One for each gate that may stop the program, and its completion; probabilities add up to 1.
    """
    endings, reached, spent = [], 1.0, ZERO
    for tier in spending:
        spent += tier.usd + tier.reserve_usd
        if tier.pass_probability < 1:
            pivot = pivots.get(tier.tier)
            usd = spent + tier.failed_usd + (ZERO if pivot is None else pivot.expected_usd)
            endings.append(ProgramEnding(tier.tier, reached * (1 - tier.pass_probability), usd, None if pivot is None else pivot.program))
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
    decision = f"whether to spend {later:,.0f} USD more" if later else "what to do with the result"
    return GateBlock(gate, cost, spent, reached, f"{cost:,.0f} USD are spent to decide {decision} ({gate.decides})")
