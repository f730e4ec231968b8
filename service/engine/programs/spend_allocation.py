"""Division of a budget among scale, data quality, robustness and utilisation work, by marginal gain and avoided losses.

A curve gives the gain and the avoided losses at rising spending on one choice. Curves are the caller's, or made here of published figures,
with the gain counted as the fall of the loss that a scaling law predicts for the compute that the spending is worth.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from service.domain.errors import InvalidRequest
from service.domain.programs.spending import Allocation, PublishedEffect, SpendChoice, SpendCurve
from service.domain.scaling.laws import ScalingLaw
from service.engine.scaling.optimum import optimum_for_flops

# 1 - e^-3: 95 % of the effect is reached at `full_at_share`.
FULL_EFFECT_DECAYS = 3.0
POINTS = 25


def published_curve(effect: PublishedEffect, compute_usd: float, flops: float, expected_loss_usd: float, law: ScalingLaw) -> SpendCurve:
    """Curve of a choice by published figures.

    Parameters
    ----------
    effect : PublishedEffect
        Compute multiplier m and risk reduction, both relative [1]; the spending at which 95 % of them is reached, relative to compute cost.
    compute_usd, flops : float
        The program's compute [USD], [FLOPs].
    expected_loss_usd : float
        Of the risks that this choice addresses [USD].
    law : ScalingLaw
        Gives the lowest loss of an amount of compute [nats a token].

    Returns
    -------
    SpendCurve
        Gain: the law's lowest loss for `flops` less that for the compute the spending x is worth, `flops` (1 + x / compute_usd) for scale,
        else `flops` (1 + (m - 1)(1 - e^(-3 x / full))) [nats a token]. Avoided losses [USD].

    Raises
    ------
    InvalidRequest
        For a law without losses.
    """
    full = effect.full_at_share * compute_usd
    usd = np.linspace(0.0, full, POINTS)
    reached = -np.expm1(-FULL_EFFECT_DECAYS * usd / full)
    multiplier = 1 + usd / compute_usd if effect.compute_multiplier is None else 1 + (effect.compute_multiplier - 1) * reached
    losses = optimum_for_flops(law, flops * multiplier).loss
    if losses is None:
        raise InvalidRequest("this law predicts no losses, so choices cannot be compared: choose one with E, A, B, alpha and beta", "/law")
    gain = np.asarray(losses)[0] - np.asarray(losses)
    avoided = effect.risk_reduction * expected_loss_usd * reached
    return SpendCurve(effect.choice, tuple(usd.tolist()), tuple(gain.tolist()), tuple(avoided.tolist()), "nats a token", effect.basis)


def rank_choices(
    curves: Sequence[SpendCurve], allocation: Allocation | None = None, usd_per_gain: float | None = None
) -> tuple[SpendChoice, ...]:
    """Choices in the order in which their first dollars are funded.

    Parameters
    ----------
    curves : sequence of SpendCurve
        One for each choice, all in one unit.
    allocation : Allocation, optional
        Division of a budget [USD].
    usd_per_gain : float, optional
        Price of a unit of gain [USD a unit].

    Returns
    -------
    tuple of SpendChoice
        Gain [unit a USD] and avoided losses [USD a USD] of the first dollar, and the choice's part of the allocation [USD].

    Raises
    ------
    InvalidRequest
        For curves that do not rise from 0 USD, or have different units or equal names.
    """
    _check_curves(curves)
    allocated = {} if allocation is None else allocation.usd
    ordered = sorted(curves, key=lambda curve: _funding_order(curve, 0.0, usd_per_gain), reverse=True)
    return tuple(_choice(curve, allocated.get(curve.choice), usd_per_gain) for curve in ordered)


def allocate(curves: Sequence[SpendCurve], budget_usd: float, usd_per_gain: float | None = None) -> Allocation:
    """Division of a budget by marginal return: segment by segment the best one, until the budget is spent or the curves end.

    Parameters
    ----------
    curves : sequence of SpendCurve
        One for each choice, all in one unit. The result is optimal where their returns fall.
    budget_usd : float
        Budget [USD].
    usd_per_gain : float, optional
        Price of a unit of gain [USD a unit]. With it segments are bought by the dollars that they return; without it first what avoids
        more than a dollar of expected loss a dollar, then what gains most.

    Returns
    -------
    Allocation
        Spending by choice [USD], total gain [unit] and avoided losses [USD]. Segments without return are not bought.

    Raises
    ------
    InvalidRequest
        As `rank_choices`.
    """
    _check_curves(curves)
    spent = {curve.choice: 0.0 for curve in curves}
    left = budget_usd
    while left > 0:
        growing = [curve for curve in curves if spent[curve.choice] < curve.usd[-1]]
        offers = [(_funding_order(curve, spent[curve.choice], usd_per_gain), curve) for curve in growing]
        (_, value), best = max(offers, key=lambda offer: offer[0], default=((False, 0.0), None))
        if best is None or value <= 0:
            break
        step = min(left, best.usd[_segment(best, spent[best.choice]) + 1] - spent[best.choice])
        spent[best.choice] += step
        left -= step
    gain = sum(float(np.interp(spent[curve.choice], curve.usd, curve.gain)) for curve in curves)
    avoided = sum(float(np.interp(spent[curve.choice], curve.usd, curve.loss_avoided_usd)) for curve in curves)
    return Allocation(spent, gain, avoided)


def _funding_order(curve: SpendCurve, spent: float, usd_per_gain: float | None) -> tuple[bool, float]:
    """Whether the next dollar is known to return more than a dollar where gains have no price, and its return: in USD, else in gain."""
    gain, avoided = _slopes(curve, spent)
    if usd_per_gain is not None:
        return False, avoided + usd_per_gain * gain
    return (True, avoided) if avoided > 1 else (False, gain)


def _choice(curve: SpendCurve, allocated_usd: float | None, usd_per_gain: float | None) -> SpendChoice:
    gain, avoided = _slopes(curve, 0.0)
    returned = avoided + gain * (usd_per_gain or 0.0) if usd_per_gain is not None or not gain else None
    pays = returned > 1 if returned is not None else True if avoided > 1 and gain > 0 else None
    return SpendChoice(
        choice=curve.choice,
        gain_per_usd=gain,
        loss_avoided_per_usd=avoided,
        usd_returned_per_usd=returned,
        pays=pays,
        unit=curve.unit,
        basis=curve.basis,
        allocated_usd=allocated_usd,
    )


def _slopes(curve: SpendCurve, spent: float) -> tuple[float, float]:
    """Gain and avoided losses per USD in the segment at `spent`."""
    index = _segment(curve, spent)
    width = curve.usd[index + 1] - curve.usd[index]
    gain = (curve.gain[index + 1] - curve.gain[index]) / width
    return gain, (curve.loss_avoided_usd[index + 1] - curve.loss_avoided_usd[index]) / width


def _segment(curve: SpendCurve, spent: float) -> int:
    return bisect_right(curve.usd, spent) - 1


def _check_curves(curves: Sequence[SpendCurve]) -> None:
    names = [curve.choice for curve in curves]
    for index, curve in enumerate(curves):
        pointer = f"/curves/{index}"
        if names.index(curve.choice) < index:
            raise InvalidRequest(f"{curve.choice!r} has two curves; state one for each choice", f"{pointer}/choice")
        if len(curve.usd) < 2 or not len(curve.usd) == len(curve.gain) == len(curve.loss_avoided_usd):
            raise InvalidRequest(f"the curve of {curve.choice} needs at least two points, each with all of its figures", pointer)
        if curve.usd[0] != 0 or any(later <= earlier for earlier, later in pairwise(curve.usd)):
            raise InvalidRequest(f"the curve of {curve.choice} must begin at 0 USD and rise from point to point", f"{pointer}/usd")
        if curve.unit != curves[0].unit:
            raise InvalidRequest(f"gains in {curve.unit} and in {curves[0].unit} cannot be compared: state one unit", f"{pointer}/unit")
