"""Spend choices: what scale, data quality, robustness and utilisation work return for the next dollar."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PublishedEffect:
    """Published figures of a spend choice.

    `compute_multiplier`: the compute it is worth at most, as a multiple; None: grows with the spending, as scale does.
    `risk_reduction`: share of the losses it addresses that it avoids at most. `full_at_share`: spending, relative to the program's
    compute cost, that reaches 95 % of both.
    """

    choice: str
    compute_multiplier: float | None
    risk_reduction: float
    full_at_share: float
    basis: str


@dataclass(frozen=True, slots=True)
class SpendCurve:
    """Return of one choice at rising amounts from 0 USD: gain in `unit`, avoided losses in USD; linear between the points."""

    choice: str
    usd: tuple[float, ...]
    gain: tuple[float, ...]
    loss_avoided_usd: tuple[float, ...]
    unit: str
    basis: str


@dataclass(frozen=True, slots=True)
class Allocation:
    """A budget divided among the choices [USD by choice], and its return."""

    usd: dict[str, float]
    gain: float
    loss_avoided_usd: float


@dataclass(frozen=True, slots=True)
class SpendChoice:
    """Return of the next dollar on a choice, and its part of a stated budget (None: no budget is stated)."""

    choice: str
    gain_per_usd: float
    loss_avoided_per_usd: float
    unit: str
    basis: str
    allocated_usd: float | None


@dataclass(frozen=True, slots=True)
class SpendChoices:
    """Spend choices by falling gain of the next dollar; totals are of the division of `budget_usd`, None where none is stated."""

    choices: tuple[SpendChoice, ...]
    budget_usd: float | None
    gain: float | None
    loss_avoided_usd: float | None
