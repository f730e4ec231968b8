"""The three ways on from a gate: continue, pivot and stop, each with its figures, and what they and the agreed criteria recommend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from service.domain.answer_fields import Doc, share
from service.domain.quantities import Range
from service.domain.training.estimate import FinishDates

BranchName = Literal["continue", "pivot", "stop"]
MIDPOINT = "midpoint"
"""The midpoint gate beside those named by tiers."""


@dataclass(frozen=True, slots=True)
class GateBranch:
    """A way on from a gate. What is spent by then is in none of its figures.

    `cost_usd`: with every gate ahead passed. `outcome_probability`: that every gate ahead is passed, which the target is taken to be
    reached with. `expected_value_usd`: worth of the outcome times that probability, less `expected_cost_usd`.
    """

    branch: Annotated[BranchName, Doc("Continue as planned, go on with another program, or stop")]
    program: Annotated[str | None, Doc("Name of the program that a pivot goes on with; null: none", max_length=200)]
    cost_usd: Annotated[Range | None, Doc("Cost from here with every gate ahead passed; null where unknown", "USD")]
    expected_cost_usd: Annotated[float | None, Doc("Mean cost from here over the gates ahead; null where unknown", "USD")]
    finish: Annotated[FinishDates | None, Doc("Day on which it is over; null where unknown")]
    outcome_probability: Annotated[float | None, share("Probability that the outcome's target is reached; null: not stated")]
    expected_value_usd: Annotated[
        float | None, Doc("Expected worth less expected cost from here; null where unknown", "USD", minimum=-1e40, maximum=1e40)
    ]
    missing: Annotated[tuple[str, ...], Doc("What to state for the figures that are null", max_items=10, max_length=1000)]
    statement: Annotated[str, Doc("The branch in a sentence", max_length=2000)]


@dataclass(frozen=True, slots=True)
class GateDecision:
    """The branches at a gate, and what is recommended: by their figures, and by the criteria agreed up front."""

    sunk_usd: Annotated[float | None, Doc("Spent by the gate whichever branch is taken; null where unknown", "USD")]
    branches: Annotated[tuple[GateBranch, ...], Doc("Continue; pivot, where one is stated; stop", max_items=3)]
    by_figures: Annotated[BranchName | None, Doc("Branch of the highest expected value; null where one is unknown")]
    by_criteria: Annotated[BranchName | None, Doc("Branch that the criteria name; null: none are stated, or they are not measured yet")]
    recommendation: Annotated[BranchName | None, Doc("Recommended branch; null: neither figures nor criteria decide")]
    statement: Annotated[str, Doc("Why, and whether figures and criteria differ", max_length=5000)]
