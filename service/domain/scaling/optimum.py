"""Answer of a request for a compute-optimal model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from service.domain.answer_fields import Doc
from service.domain.quantities import Range

BudgetKind = Literal["flops", "usd", "accelerator_hours", "wall_clock_hours"]


@dataclass(frozen=True, slots=True)
class Budget:
    """Budget for training: FLOPs, USD, or hours."""

    kind: Annotated[BudgetKind, Doc("What the budget is in")]
    amount: Annotated[float, Doc("The budget, in the unit of `kind`", "unit of kind", maximum=1e100)]


@dataclass(frozen=True, slots=True)
class CostedModel:
    """A model with its costs; null where they are unknown or the model does not fit. `flops` are 6 x parameters x tokens."""

    params: Annotated[float, Doc("Size of the model", "parameters", maximum=1e100)]
    tokens: Annotated[float, Doc("Training tokens", "tokens", maximum=1e100)]
    loss: Annotated[float | None, Doc("Predicted loss; null where the law knows none", "nats per token", maximum=1e100)]
    flops: Annotated[float, Doc("Training arithmetic, 6 x parameters x tokens", "FLOP", maximum=1e100)]
    training_usd: Annotated[
        float | None, Doc("Cost of training; null without a machine or a price, or where it does not fit", "USD", maximum=1e100)
    ]
    accelerator_hours: Annotated[
        float | None,
        Doc("Accelerator-hours of training; null without a machine, or where it does not fit", "accelerator-hours", maximum=1e100),
    ]
    serving_usd: Annotated[
        float | None, Doc("Cost of serving the lifetime's tokens; null without a machine, a price or a lifetime", "USD", maximum=1e100)
    ]
    serving_flops: Annotated[
        float | None, Doc("Arithmetic of serving the lifetime's tokens; null with a machine, or without a lifetime", "FLOP", maximum=1e100)
    ]


@dataclass(frozen=True, slots=True)
class LawDetails:
    """The law, and the optimum's size over the largest run the law was fitted to; above 1 it is extrapolated."""

    title: Annotated[str, Doc("Name of the law")]
    source: Annotated[str, Doc("Publication of the law", max_length=5000)]
    counts: Annotated[str, Doc("Which parameters the law counts")]
    params_beyond: Annotated[
        float | None, Doc("Size over the largest run the law was fitted to; null where that is not known", "1", maximum=1e100)
    ]
    tokens_beyond: Annotated[
        float | None, Doc("Tokens over the largest run the law was fitted to; null where that is not known", "1", maximum=1e100)
    ]


@dataclass(frozen=True, slots=True)
class OptimumTraining:
    """Training of the optimum, as `estimate` has it; of an optimum that is not estimated, as the law's own uncertainty moves it."""

    usd: Annotated[Range | None, Doc("Cost of training; null without a price", "USD")]
    accelerator_hours: Annotated[Range, Doc("Accelerator-hours of training", "accelerator-hours")]
    wall_clock_hours: Annotated[Range, Doc("Time of training on the clock", "h")]


@dataclass(frozen=True, slots=True)
class PlanComparison:
    """The caller's plan against the best use of its FLOPs and the cheapest way to its loss.

    The wasted FLOPs, their share and their cost are what the plan's loss does not need; `params_share` and `overtraining` are relative to
    the best use of its FLOPs.
    """

    plan: Annotated[CostedModel, Doc("The caller's plan")]
    same_flops: Annotated[CostedModel, Doc("Best use of its FLOPs")]
    same_loss: Annotated[CostedModel, Doc("Fewest FLOPs for its loss")]
    loss_excess: Annotated[float, Doc("Loss above what its FLOPs could reach", "nats per token", maximum=1e100)]
    wasted_flops: Annotated[float, Doc("FLOPs that its loss does not need", "FLOP", maximum=1e100)]
    wasted_share: Annotated[float, Doc("Part of its FLOPs that its loss does not need", "1", maximum=1e100)]
    wasted_usd: Annotated[float | None, Doc("Cost of these FLOPs; null without a machine or a price", "USD", maximum=1e100)]
    params_share: Annotated[float, Doc("Size over that of the best use of its FLOPs", "1", maximum=1e100)]
    overtraining: Annotated[float, Doc("Tokens a parameter over those of the best use of its FLOPs", "1", maximum=1e100)]


@dataclass(frozen=True, slots=True)
class GivenModel:
    """The model of the request, trained on what the budget affords, against the law's optimum for its size and for the budget."""

    text: Annotated[str, Doc("Distance from the optimum in words", max_length=2000)]
    params: Annotated[float, Doc("All parameters of the model", "parameters", maximum=1e100)]
    active_params: Annotated[float, Doc("Parameters that a token meets: all but for mixtures of experts", "parameters", maximum=1e100)]
    tokens_per_param: Annotated[float, Doc("Tokens for each of the parameters in `params` of the answer", "1", maximum=1e100)]
    optimal_tokens: Annotated[
        float | None,
        Doc("Tokens that this size is compute-optimal with, all unique; null where the law does not apply", "tokens", maximum=1e100),
    ]
    tokens_over_optimal: Annotated[
        float | None, Doc("Tokens over `optimal_tokens`; above 1 the model is trained for longer", "1", maximum=1e100)
    ]
    optimum: Annotated[
        CostedModel | None,
        Doc("Compute-optimal model of the budget: the answer to the request without a model; null where the law does not apply"),
    ]
    loss_excess: Annotated[
        float | None, Doc("Loss above that of `optimum`; null where the law knows none", "nats per token", maximum=1e100)
    ]


@dataclass(frozen=True, slots=True)
class LifetimeOptimum:
    """Training and serving together: within the training budget, and as good as the best model for training alone (`joint`).

    Savings are those of `joint` against `training_only`, of the same loss, in USD with hardware at a price, in FLOPs without hardware; null
    where `training_only` does not fit or cannot be served.
    """

    inference_tokens: Annotated[float, Doc("Tokens served over the lifetime", "tokens", maximum=1e100)]
    within_budget: Annotated[CostedModel, Doc("Cheapest to train and serve for its loss, with training that costs the budget: the plan")]
    training_only: Annotated[CostedModel, Doc("Best model for training alone")]
    joint: Annotated[CostedModel, Doc("Best model for training and serving together, of the loss of training_only, beyond the budget")]
    saves_usd: Annotated[
        float | None,
        Doc(
            "What the joint optimum saves over the lifetime; null without a machine or a price, or where training_only does not fit",
            "USD",
            maximum=1e100,
        ),
    ]
    saves_flops: Annotated[
        float | None,
        Doc("The same where there is no machine, at 2 x parameters a token served; null with a machine", "FLOP", maximum=1e100),
    ]
    saves_share: Annotated[
        float | None, Doc("Saving over the lifetime's cost of training_only; null where it does not fit", "1", maximum=1e100)
    ]
    extra_training_share: Annotated[
        float | None, Doc("Extra cost of training over that of training_only; null where it does not fit", "1", maximum=1e100)
    ]


@dataclass(frozen=True, slots=True)
class ServingVariant:
    """The optimum as it is served: as trained, quantised, or distilled into a smaller model."""

    variant: Annotated[str, Doc("The variant in words", max_length=1000)]
    change: Annotated[dict[str, Any], Doc("Fields of a request to POST /v1/serving by their path; none: as trained")]
    preparation_usd: Annotated[float, Doc("Cost of quantising or distilling, at the price of serving", "USD", maximum=1e100)]
    serving_usd: Annotated[float, Doc("Cost of serving the lifetime's tokens", "USD", maximum=1e100)]
    total_usd: Annotated[float, Doc("Training of the optimum, preparation and serving, at the median", "USD", maximum=1e100)]
    quality_loss_percent: Annotated[Range, Doc("Loss of benchmark scores; below 0 they improve", "%")]
    risk: Annotated[str, Doc("What may go wrong", max_length=1000)]
    source: Annotated[str, Doc("Where this comes from", max_length=1000)]


@dataclass(frozen=True, slots=True)
class LayoutSuggestion:
    """A layout of whole layers and heads: `model` and `data` are sections of an estimate's request."""

    model: Annotated[dict[str, Any], Doc("Model of a request to POST /v1/estimate")]
    params: Annotated[float, Doc("Size of this layout", "parameters", maximum=1e100)]
    data: Annotated[dict[str, Any], Doc("Data of a request to POST /v1/estimate")]


@dataclass(frozen=True, slots=True)
class OtherLawOptimum:
    """Optimum of another law for the same training FLOPs."""

    law: Annotated[str, Doc("Name of the law as a request takes it")]
    title: Annotated[str, Doc("Name of the law in words")]
    params: Annotated[float, Doc("Size of the model", "parameters", maximum=1e100)]
    tokens: Annotated[float, Doc("Tokens trained on", "tokens", maximum=1e100)]


@dataclass(frozen=True, slots=True)
class PublishedPlan:
    """A published plan or training run."""

    name: Annotated[str, Doc("Name of the model")]
    flops: Annotated[float, Doc("Training arithmetic", "FLOP", maximum=1e100)]
    params: Annotated[float, Doc("Size of the model", "parameters", maximum=1e100)]
    tokens: Annotated[float, Doc("Tokens trained on", "tokens", maximum=1e100)]
    source: Annotated[str, Doc("Where this comes from", max_length=1000)]


@dataclass(frozen=True, slots=True)
class SmallerModel:
    """A smaller model of the same loss at an extra cost."""

    extra_share: Annotated[float, Doc("Extra cost over the optimum's", "1", maximum=1e100)]
    params: Annotated[float, Doc("Size of the model", "parameters", maximum=1e100)]
    tokens: Annotated[float, Doc("Tokens trained on", "tokens", maximum=1e100)]
    params_share: Annotated[float, Doc("Size over the optimum's", "1", maximum=1e100)]
    overtraining: Annotated[float, Doc("Tokens a parameter over the optimum's", "1", maximum=1e100)]
