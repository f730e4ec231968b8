"""Where the next dollar does most: scale, data quality, robustness and utilisation work by marginal gain and marginal risk reduction.

A curve says what has been gained, and which losses avoided, when so much more is spent on one choice. Curves are the caller's, or made
here of published figures, with the gain counted as the fall of the loss that a scaling law predicts for the compute it is worth.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from service.domain.errors import InvalidRequest
from service.domain.scaling.laws import ScalingLaw
from service.engine.scaling.laws import Floats
from service.engine.scaling.optimum import optimum_for_flops

# 1 - e^-3: 95 % of the effect is there at `full_at_usd`.
FULL_EFFECT_DECAYS = 3.0
POINTS = 25


@dataclass(frozen=True, slots=True)
class SpendCurve:
    """What spending on one choice brings, at rising amounts from 0 USD: gain in `unit`, losses avoided in USD; straight between them."""

    choice: str
    usd: tuple[float, ...]
    gain: tuple[float, ...]
    loss_avoided_usd: tuple[float, ...]
    unit: str
    basis: str


@dataclass(frozen=True, slots=True)
class PublishedEffect:
    """Published figures of a choice.

    `compute_multiplier`: how many times the compute it is worth at most; None grows with what is spent, as scale does.
    `risk_reduction`: the share of the losses it addresses that it avoids at most. `full_at_share`: of the program's compute cost, where
    95 % of both are reached.
    """

    choice: str
    compute_multiplier: float | None
    risk_reduction: float
    full_at_share: float
    basis: str


@dataclass(frozen=True, slots=True)
class MarginalReturn:
    """What the next dollar on a choice brings, beyond `spent_usd` on it. None at the curve's end: nothing is known beyond it."""

    choice: str
    spent_usd: float
    gain_per_usd: float | None
    loss_avoided_per_usd: float | None
    unit: str
    basis: str


@dataclass(frozen=True, slots=True)
class Allocation:
    """A budget divided among the choices, with what that brings."""

    usd: dict[str, float]
    gain: float
    loss_avoided_usd: float


def published_curve(figures: PublishedEffect, compute_usd: float, flops: float, expected_loss_usd: float, law: ScalingLaw) -> SpendCurve:
    """The curve of a choice for a program of so much compute, in dollars and FLOPs.

    Gain in nats a token: the law's lowest loss for `flops` less that for the compute the spending is worth, 1 + x / `compute_usd` times as
    much for scale, else 1 + (m - 1)(1 - e^(-3 x / full)). `expected_loss_usd`: of the risks this choice addresses.
    """
    full = figures.full_at_share * compute_usd
    usd = np.linspace(0.0, full, POINTS)
    reached = -np.expm1(-FULL_EFFECT_DECAYS * usd / full)
    worth = 1 + usd / compute_usd if figures.compute_multiplier is None else 1 + (figures.compute_multiplier - 1) * reached
    losses = optimum_for_flops(law, flops * worth).loss
    if losses is None:
        raise InvalidRequest("this law gives no losses to compare by: choose one with E, A, B, alpha and beta", "/law")
    gain = np.asarray(losses)[0] - np.asarray(losses)
    avoided = figures.risk_reduction * expected_loss_usd * reached
    return SpendCurve(figures.choice, _floats(usd), _floats(gain), _floats(avoided), "nats a token", figures.basis)


def marginal_returns(curves: Sequence[SpendCurve], spent_usd: dict[str, float]) -> tuple[MarginalReturn, ...]:
    """What the next dollar brings with each choice after what is spent on it (0 where not named), most gain first.

    Raises InvalidRequest for curves that are no curves or do not compare with each other.
    """
    _check_curves(curves)
    found = [_marginal_return(curve, spent_usd.get(curve.choice, 0.0)) for curve in curves]
    return tuple(sorted(found, key=lambda one: one.gain_per_usd or 0.0, reverse=True))


def allocate(curves: Sequence[SpendCurve], budget_usd: float, gain_per_usd_of_loss: float = 0.0) -> Allocation:
    """A budget spent on the best segment there is, until it is gone or the curves end.

    `gain_per_usd_of_loss`: what avoiding a dollar of loss counts in units of gain. The best there is where each curve's returns fall;
    a segment worth nothing is not bought. Raises InvalidRequest as `marginal_returns` does.
    """
    _check_curves(curves)
    spent = {curve.choice: 0.0 for curve in curves}
    left = budget_usd
    while left > 0:
        offers = [
            (_total_slope(curve, spent[curve.choice], gain_per_usd_of_loss), curve)
            for curve in curves
            if spent[curve.choice] < curve.usd[-1]
        ]
        worth, best = max(offers, key=lambda offer: offer[0], default=(0.0, None))
        if best is None or worth <= 0:
            break
        step = min(left, best.usd[_segment(best, spent[best.choice]) + 1] - spent[best.choice])
        spent[best.choice] += step
        left -= step
    gain = sum(float(np.interp(spent[curve.choice], curve.usd, curve.gain)) for curve in curves)
    avoided = sum(float(np.interp(spent[curve.choice], curve.usd, curve.loss_avoided_usd)) for curve in curves)
    return Allocation(spent, gain, avoided)


def _marginal_return(curve: SpendCurve, spent: float) -> MarginalReturn:
    gain, avoided = _slopes(curve, spent) if spent < curve.usd[-1] else (None, None)
    return MarginalReturn(curve.choice, spent, gain, avoided, curve.unit, curve.basis)


def _total_slope(curve: SpendCurve, spent: float, gain_per_usd_of_loss: float) -> float:
    gain, avoided = _slopes(curve, spent)
    return gain + gain_per_usd_of_loss * avoided


def _slopes(curve: SpendCurve, spent: float) -> tuple[float, float]:
    """Gain and losses avoided by the dollar in the segment that begins at or before what is spent."""
    at = _segment(curve, spent)
    width = curve.usd[at + 1] - curve.usd[at]
    return (curve.gain[at + 1] - curve.gain[at]) / width, (curve.loss_avoided_usd[at + 1] - curve.loss_avoided_usd[at]) / width


def _segment(curve: SpendCurve, spent: float) -> int:
    return bisect_right(curve.usd, spent) - 1


def _check_curves(curves: Sequence[SpendCurve]) -> None:
    names = [curve.choice for curve in curves]
    for at, curve in enumerate(curves):
        if names.index(curve.choice) < at:
            raise InvalidRequest(f"two curves are called {curve.choice!r}; each choice has one", f"/curves/{at}/choice")
        if len(curve.usd) < 2 or not len(curve.usd) == len(curve.gain) == len(curve.loss_avoided_usd):
            raise InvalidRequest(f"the curve of {curve.choice} takes two points or more, each with all of its figures", f"/curves/{at}")
        if curve.usd[0] != 0 or any(later <= earlier for earlier, later in pairwise(curve.usd)):
            raise InvalidRequest(f"the curve of {curve.choice} begins at 0 USD and rises from point to point", f"/curves/{at}/usd")
        if curve.unit != curves[0].unit:
            raise InvalidRequest(f"gains in {curve.unit} and in {curves[0].unit} do not compare: state one unit", f"/curves/{at}/unit")


def _floats(values: Floats) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
