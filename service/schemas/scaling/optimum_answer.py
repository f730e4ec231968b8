"""What the answer to an optimum holds, and how it becomes JSON."""

from __future__ import annotations

from typing import Any

from service.schemas.base import Choice, FreeObject, Items, Number, Part, RangeSchema, Schema, Text
from service.schemas.training.answer import AssumptionSchema, EstimateAnswerSchema, PriceSchema
from service.serialization import plain
from service.usecases.scaling.optimum import OptimalAnswer


def optimal_body(answer: OptimalAnswer) -> dict[str, Any]:
    """The answer as its JSON object."""
    body: dict[str, Any] = plain(answer)
    return body


def _amount(**options: Any) -> Number:
    return Number(required=True, maximum=1e100, **options)


class OptimalLargeRangeSchema(RangeSchema):
    """A range without a usual bound."""

    p10 = _amount()
    p50 = _amount()
    p90 = _amount()


class OptimalPointSchema(Schema):
    """A model and what it takes; null where it is not known, or the model does not fit on the machine.

    `flops` are 6 x parameters x tokens. `serving_usd` is the whole lifetime's, `serving_flops` where there is no machine.
    """

    params = _amount()
    tokens = _amount()
    loss = _amount(allow_none=True)
    flops = _amount()
    training_usd = _amount(allow_none=True)
    accelerator_hours = _amount(allow_none=True)
    serving_usd = _amount(allow_none=True)
    serving_flops = _amount(allow_none=True)


class OptimalLawDetailsSchema(Schema):
    """The law. `params_beyond` and `tokens_beyond`: times the largest run it was fitted to, null where that is not known."""

    title = Text(required=True)
    source = Text(required=True, max_length=5000)
    counts = Text(required=True, description="Which parameters the law counts")
    params_beyond = _amount(allow_none=True)
    tokens_beyond = _amount(allow_none=True)


class OptimalBudgetAnswerSchema(Schema):
    """The budget as it was counted; days and deadlines as hours on the wall clock."""

    kind = Choice(("flops", "usd", "accelerator_hours", "wall_clock_hours"), required=True)
    amount = _amount()


class OptimalTrainingBlockSchema(Schema):
    """What training the optimum takes, as the law's own uncertainty moves it; the step model's error is in `estimate`."""

    usd = Part(OptimalLargeRangeSchema, required=True)
    accelerator_hours = Part(OptimalLargeRangeSchema, required=True)
    wall_clock_hours = Part(OptimalLargeRangeSchema, required=True)


class OptimalSmallerSchema(Schema):
    """The smallest model of the same loss for `extra_share` more cost: of the budget's unit, or of the lifetime where there is one."""

    extra_share = _amount()
    params = _amount()
    tokens = _amount()
    params_share = _amount()
    overtraining = _amount(description="Tokens a parameter over the optimum's")


class OptimalLifetimeSchema(Schema):
    """Training and serving together. `joint` is the answer's own optimum: as good as `training_only`, the best for the budget alone.

    Savings are null where `training_only` does not fit on the machine, or cannot be served.
    """

    inference_tokens = _amount()
    training_only = Part(OptimalPointSchema, required=True)
    joint = Part(OptimalPointSchema, required=True)
    saves_usd = _amount(allow_none=True)
    saves_flops = _amount(allow_none=True, description="Where there is no machine: 2 x parameters a token served")
    saves_share = _amount(allow_none=True)
    extra_training_share = _amount(allow_none=True, description="What training costs more than by training_only")


class OptimalServingSchema(Schema):
    """Who serves the lifetime's tokens; `usd_per_million_tokens` counts prompts and answers alike, of the optimum's size."""

    accelerator = Text(required=True)
    format = Text(required=True)
    prompt_tokens = _amount()
    output_tokens = _amount()
    load_factor = _amount()
    usd_per_million_tokens = _amount(allow_none=True)
    price = Part(PriceSchema, required=True)


class OptimalPlanAnswerSchema(Schema):
    """The caller's plan beside the best use of its FLOPs and the fewest FLOPs for its loss.

    `wasted_flops`, `wasted_share` of them and `wasted_usd` are what its loss does not need, `loss_excess` [nats a token] what its FLOPs
    could do better; `params_share` and `overtraining` are over the best use of its FLOPs.
    """

    plan = Part(OptimalPointSchema, required=True)
    same_flops = Part(OptimalPointSchema, required=True)
    same_loss = Part(OptimalPointSchema, required=True)
    loss_excess = _amount()
    wasted_flops = _amount()
    wasted_share = _amount()
    wasted_usd = _amount(allow_none=True)
    params_share = _amount()
    overtraining = _amount()


class OptimalSuggestionSchema(Schema):
    """A real layout: `model` and `data` are an estimate's. `params` are the layout's own, its tokens follow from the budget or the loss."""

    model = FreeObject(required=True)
    params = _amount()
    data = FreeObject(required=True)


class OptimalOtherLawSchema(Schema):
    """What another law makes of the same training FLOPs, with data enough."""

    law = Text(required=True)
    title = Text(required=True)
    params = _amount()
    tokens = _amount()


class OptimalPublishedPlanSchema(Schema):
    """A published plan of about as many FLOPs."""

    name = Text(required=True)
    flops = _amount()
    params = _amount()
    tokens = _amount()
    source = Text(required=True, max_length=1000)


class OptimalAnswerSchema(Schema):
    """The optimum and what lies around it.

    Ranges of `params`, `tokens` and `loss_range` are the law's own uncertainty; losses compare within one law only. `curve` holds sizes of
    equal cost (of the budget, or over a lifetime of training and serving), `iso_loss_curve` of equal loss; laws without a loss have
    neither. `estimate` is that of `suggestion` on the stated hardware, with assumptions and warnings of its own.
    """

    params = Part(OptimalLargeRangeSchema, required=True)
    tokens = Part(OptimalLargeRangeSchema, required=True)
    loss = _amount(allow_none=True)
    loss_range = Part(OptimalLargeRangeSchema, required=True, allow_none=True)
    flops = _amount()
    law = Text(required=True)
    law_details = Part(OptimalLawDetailsSchema, required=True)
    budget = Part(OptimalBudgetAnswerSchema, required=True)
    training = Part(OptimalTrainingBlockSchema, required=True, allow_none=True)
    curve = Items(Part(OptimalPointSchema), max_items=100, required=True)
    iso_loss_curve = Items(Part(OptimalPointSchema), max_items=100, required=True)
    smaller = Items(Part(OptimalSmallerSchema), max_items=10, required=True)
    lifetime = Part(OptimalLifetimeSchema, required=True, allow_none=True)
    serving = Part(OptimalServingSchema, required=True, allow_none=True)
    plan = Part(OptimalPlanAnswerSchema, required=True, allow_none=True)
    suggestion = Part(OptimalSuggestionSchema, required=True, allow_none=True)
    estimate = Part(EstimateAnswerSchema, required=True, allow_none=True)
    other_laws = Items(Part(OptimalOtherLawSchema), max_items=100, required=True)
    published = Items(Part(OptimalPublishedPlanSchema), max_items=100, required=True)
    price_snapshot = Text(required=True)
    engine_version = Text(required=True)
    assumptions = Items(Part(AssumptionSchema), max_items=1000, required=True)
    warnings = Items(Text(max_length=5000), max_items=100, required=True)
