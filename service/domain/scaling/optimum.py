"""What a compute-optimal answer is made of: the names are the API's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from service.domain.quantities import Range

BudgetKind = Literal["flops", "usd", "accelerator_hours", "wall_clock_hours"]


@dataclass(frozen=True, slots=True)
class Budget:
    """What may be spent on training: FLOPs, USD, or hours."""

    kind: BudgetKind
    amount: float


@dataclass(frozen=True, slots=True)
class CostedModel:
    """A model and what it takes. `flops` are 6 N D of training; dollars and hours None without a machine or where it does not fit.

    `serving_usd` of the lifetime's tokens, `serving_flops` where only FLOPs are counted; None without a lifetime.
    """

    params: float
    tokens: float
    loss: float | None
    flops: float
    training_usd: float | None
    accelerator_hours: float | None
    serving_usd: float | None
    serving_flops: float | None


@dataclass(frozen=True, slots=True)
class LawDetails:
    """The law. Times beyond the largest run it was fitted to, None where that is not published; above 1 it is extrapolated."""

    title: str
    source: str
    counts: str
    params_beyond: float | None
    tokens_beyond: float | None


@dataclass(frozen=True, slots=True)
class OptimumTraining:
    """What training the optimum takes, as the law's uncertainty moves it; the step model's own is in the estimate."""

    usd: Range
    accelerator_hours: Range
    wall_clock_hours: Range


@dataclass(frozen=True, slots=True)
class PlanComparison:
    """The caller's plan beside the best use of its FLOPs and the cheapest way to its loss.

    `wasted_share` of its FLOPs, and `wasted_usd`, are what its loss does not need; `loss_excess` is over what its FLOPs could reach.
    """

    plan: CostedModel
    same_flops: CostedModel
    same_loss: CostedModel
    loss_excess: float
    wasted_flops: float
    wasted_share: float
    wasted_usd: float | None
    params_share: float
    overtraining: float


@dataclass(frozen=True, slots=True)
class LifetimeOptimum:
    """Training and serving together against the best for training alone, at the same loss.

    Savings are in USD with a machine, else in FLOPs; the other is None, as are all where `training_only` cannot be had on the machine.
    `extra_training_share` is what training costs more.
    """

    inference_tokens: float
    training_only: CostedModel
    joint: CostedModel
    saves_usd: float | None
    saves_flops: float | None
    saves_share: float | None
    extra_training_share: float | None


@dataclass(frozen=True, slots=True)
class LayoutSuggestion:
    """A real layout of the optimum, as POST /v1/estimate takes it. `params` are the layout's own, `tokens` follow from them."""

    model: dict[str, Any]
    params: float
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class OtherLawOptimum:
    """What another law would make of the same training FLOPs."""

    law: str
    title: str
    params: float
    tokens: float


@dataclass(frozen=True, slots=True)
class PublishedPlan:
    """What others planned or trained."""

    name: str
    flops: float
    params: float
    tokens: float
    source: str
