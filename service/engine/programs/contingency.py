"""How uncertain a program's cost is, and the contingency that follows from it and from the risks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from statistics import NormalDist

from service.domain.programs.program import Reserves, Risk, RiskBlock, TierBlock
from service.domain.quantities import Range
from service.engine.numerics.money import cents, share_usd, sum_usd
from service.engine.numerics.ranges import P90_Z_SCORE


def combine_ranges(ranges: Sequence[Range], correlation: float) -> Range:
    """The sum of uncertain quantities whose errors have this correlation with each other, each side of the median apart.

    Variance of a sum: rho (sum of s)^2 + (1 - rho) sum of s^2. 1 adds percentiles, 0 adds squares. Never below 0.
    """
    middle = sum(one.p50 for one in ranges)
    below = _combined_deviation([one.p50 - one.p10 for one in ranges], correlation)
    above = _combined_deviation([one.p90 - one.p50 for one in ranges], correlation)
    return Range(max(0.0, middle - below), middle, middle + above)


def assess_risks(risks: Sequence[Risk], tiers: Sequence[TierBlock]) -> tuple[RiskBlock, ...]:
    """Each risk's loss: its share of what the runs of its tier cost, and its own amount; times its probability the expected loss."""
    return tuple(_risk_block(risk, tiers) for risk in risks)


def expected_loss_usd(risks: Sequence[RiskBlock]) -> Decimal:
    """What the risks cost on average."""
    return sum_usd(block.expected_loss_usd for block in risks)


def contingency_usd(reserves: Reserves, spent: Decimal, risks: Sequence[RiskBlock], spread: Range) -> Decimal:
    """Expected loss of the risks (AACE 44R-08), and what the estimate is short of at the confidence asked for (AACE 41R-08).

    The estimate's upper side is taken as normal. A stated share of `spent`, everything that is no reserve, takes the place of both.
    """
    if reserves.contingency is not None:
        return share_usd(reserves.contingency, spent)
    deviations = NormalDist().inv_cdf(reserves.confidence)
    return expected_loss_usd(risks) + cents((spread.p90 - spread.p50) * deviations / P90_Z_SCORE)


def total_range(budget: Decimal, without_contingency: Decimal, risks: Sequence[RiskBlock], spread: Range) -> Range:
    """The budget, and the percentiles of what the program costs: the estimate's spread and the risks', independent of each other.

    p10 and p90 lie around the cost with its expected loss, without the contingency's margin; never on one side of the budget alone.
    """
    deviation = math.sqrt(sum(_variance(block) for block in risks)) * P90_Z_SCORE
    loss = float(expected_loss_usd(risks))
    middle, whole = float(without_contingency) + loss, float(budget)
    below = math.hypot(spread.p50 - spread.p10, min(deviation, loss))
    above = math.hypot(spread.p90 - spread.p50, deviation)
    return Range(min(max(0.0, middle - below), whole), whole, max(middle + above, whole))


def _risk_block(risk: Risk, tiers: Sequence[TierBlock]) -> RiskBlock:
    base = sum_usd(tier.cost_usd for tier in tiers if risk.tier in {None, tier.tier})
    loss = share_usd(risk.cost_share_of_tier, base) + risk.cost_usd
    return RiskBlock(risk, loss, share_usd(risk.probability, loss))


def _variance(block: RiskBlock) -> float:
    probability = block.risk.probability
    return probability * (1 - probability) * float(block.loss_usd) ** 2


def _combined_deviation(sides: Sequence[float], correlation: float) -> float:
    return math.sqrt(correlation * sum(sides) ** 2 + (1 - correlation) * sum(side**2 for side in sides))
