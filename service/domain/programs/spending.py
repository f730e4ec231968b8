"""Spend choices: what scale, data quality, robustness and utilisation work return for the next dollar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from service.domain.answer_fields import Doc


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
    """Return of the next dollar on a choice, and its part of a stated budget (None: no budget is stated).

    `usd_returned_per_usd` and `pays` are None where a gain has no price and the avoided loss alone does not decide.
    """

    choice: Annotated[str, Doc("What money is spent on")]
    gain_per_usd: Annotated[float, Doc("Gain of the next dollar", "unit per USD")]
    loss_avoided_per_usd: Annotated[float, Doc("Expected loss that the next dollar avoids", "USD per USD")]
    usd_returned_per_usd: Annotated[
        float | None,
        Doc(
            "Expected loss avoided by the next dollar and its gain at the stated price; null: the gain has no price",
            "USD per USD",
            older=None,
        ),
    ]
    pays: Annotated[bool | None, Doc("Whether the next dollar returns more than a dollar; null: not known, `missing` says why", older=None)]
    unit: Annotated[str, Doc("Unit of the gain")]
    basis: Annotated[str, Doc("How it is computed", max_length=5000)]
    allocated_usd: Annotated[float | None, Doc("What it is given of the stated budget; null: no budget is stated", "USD")]


@dataclass(frozen=True, slots=True)
class SpendChoices:
    """Spend choices in the order in which they are funded: what avoids more than a dollar a dollar, then by falling gain.

    With `usd_per_gain` they come in the order of the dollars that the next dollar returns. Totals are of the division of `budget_usd`,
    None where none is stated.
    """

    choices: Annotated[tuple[SpendChoice, ...], Doc("Spend choices, those that are funded first first", max_items=20)]
    usd_per_gain: Annotated[
        float | None, Doc("Price of a unit of gain; null: none is known", "USD per unit of the gain", maximum=1e40, older=None)
    ]
    missing: Annotated[tuple[str, ...], Doc("What a comparison in dollars lacks", max_items=20, max_length=1000, older=())]
    budget_usd: Annotated[float | None, Doc("Budget that is divided; null: none is stated", "USD")]
    gain: Annotated[float | None, Doc("Gain of the division; null: no budget is stated", "unit of the gain")]
    loss_avoided_usd: Annotated[float | None, Doc("Expected loss that the division avoids; null: no budget is stated", "USD")]
