"""Uncertainty of a program's cost, and the contingency that follows from it and from the risks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from statistics import NormalDist

import numpy as np

from service.domain.programs.plan import RiskBlock, TierBlock
from service.domain.programs.program import Reserves, Risk, RiskCorrelation
from service.domain.quantities import Range
from service.engine.numerics.money import cents, share_usd, sum_usd
from service.engine.numerics.ranges import P90_Z_SCORE
from service.engine.programs.gates import TierRepeats
from service.engine.programs.risk_register import covering_usd, independent_deviation_usd, simulate_losses
from service.engine.programs.risks import risk_block


def combine_ranges(ranges: Sequence[Range], correlation: float) -> Range:
    """Sum of uncertain quantities with correlated errors, each side of the median by itself.

    Parameters
    ----------
    ranges : sequence of Range
        Quantities of one unit.
    correlation : float
        Between the errors of any two of them, 0 to 1 [1].

    Returns
    -------
    Range
        Medians added; distances to p10 and to p90 by variance = rho (sum of s)^2 + (1 - rho) sum of s^2. 1 adds percentiles, 0 adds
        squares. Never below 0. In the unit of `ranges`.
    """
    median = sum(quantity.p50 for quantity in ranges)
    below = _combined_deviation([quantity.p50 - quantity.p10 for quantity in ranges], correlation)
    above = _combined_deviation([quantity.p90 - quantity.p50 for quantity in ranges], correlation)
    return Range(max(0.0, median - below), median, median + above)


def assess_risks(risks: Sequence[Risk], tiers: Sequence[TierBlock], delay_usd_per_day: float | None = None) -> tuple[RiskBlock, ...]:
    """Loss and expected loss of each risk as planned, and what its mitigation does; parameters as of `risk_block`."""
    return tuple(risk_block(risk, tiers, delay_usd_per_day) for risk in risks)


def expected_loss_usd(risks: Sequence[RiskBlock]) -> Decimal:
    """Sum of the risks' expected losses [USD]."""
    return sum_usd(block.expected_loss_usd for block in risks)


def contingency_usd(
    reserves: Reserves, spent: Decimal, risks: Sequence[RiskBlock], spread: Range, correlation: RiskCorrelation = None
) -> Decimal:
    """Contingency of a program.

    Parameters
    ----------
    reserves : Reserves
        Stated share of `spent` [1], or None to compute it; confidence of the computed one [1].
    spent : Decimal
        Everything that is not a reserve [USD].
    risks : sequence of RiskBlock
        Risks with expected losses [USD].
    spread : Range
        Cost of all runs with overheads [USD]; its upper side is taken as normal.
    correlation : float, tuple of RiskPair, or None
        Of the risks [1]; None: none is stated.

    Returns
    -------
    Decimal
        The stated share, else expected losses plus the estimate's distance from the median to the confidence [USD, whole cents]. With a
        stated correlation what covers simulated losses and the estimate's error together, and the expected losses at least.

    Raises
    ------
    DomainError
        As `correlation_matrix`.

    References
    ----------
    Expected losses: AACE 44R-08. Confidence of the estimate: AACE 41R-08.
    """
    if reserves.contingency is not None:
        return share_usd(reserves.contingency, spent)
    if correlation is not None:
        covering = covering_usd(simulate_losses(risks, correlation), spread, reserves.confidence)
        return max(expected_loss_usd(risks), cents(covering))
    deviations = NormalDist().inv_cdf(reserves.confidence)
    return expected_loss_usd(risks) + cents((spread.p90 - spread.p50) * deviations / P90_Z_SCORE)


def cost_range(
    without_contingency: Decimal,
    risks: Sequence[RiskBlock],
    spread: Range,
    correlation: RiskCorrelation = None,
    repeats: Sequence[TierRepeats] = (),
) -> Range:
    """What the program costs, with the contingency in none of the percentiles.

    Parameters
    ----------
    without_contingency : Decimal
        The budget less its contingency [USD].
    risks : sequence of RiskBlock
        Independent of the estimate.
    spread : Range
        Cost of all runs with overheads [USD].
    correlation : float, tuple of RiskPair, or None
        Of the risks [1]; None: they do not depend on each other.
    repeats : sequence of TierRepeats
        What repeats of tiers are expected to cost, and their deviation [USD].

    Returns
    -------
    Range
        p50 is `without_contingency` with the expected losses; below it risks and repeats save no more than they are expected to cost
        [USD].
    """
    simulated = None if correlation is None else float(np.std(simulate_losses(risks, correlation).usd))
    of_risks = independent_deviation_usd(risks) if simulated is None else simulated
    deviation = math.hypot(of_risks, *(again.deviation_usd for again in repeats)) * P90_Z_SCORE
    loss = float(expected_loss_usd(risks))
    saved = loss + sum(float(again.expected_usd) for again in repeats)
    middle = float(without_contingency) + loss
    below = math.hypot(spread.p50 - spread.p10, min(deviation, saved))
    return Range(max(0.0, middle - below), middle, middle + math.hypot(spread.p90 - spread.p50, deviation))


def budget_range(budget: Decimal, cost: Range) -> Range:
    """The budget as p50, with the contingency in all percentiles alike.

    Parameters
    ----------
    budget : Decimal
        The whole budget, contingency included [USD].
    cost : Range
        As `cost_range` gives it [USD].

    Returns
    -------
    Range
        p10 and p90 lie as far from the budget as those of the cost from its p50 [USD].
    """
    whole = float(budget)
    return Range(max(0.0, whole - (cost.p50 - cost.p10)), whole, whole + (cost.p90 - cost.p50))


def _combined_deviation(sides: Sequence[float], correlation: float) -> float:
    return math.sqrt(correlation * sum(sides) ** 2 + (1 - correlation) * sum(side**2 for side in sides))
