"""What a fit of a scaling law is asked with, and what it answers."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError

from service.domain.counts import parse_count
from service.domain.scaling.laws import PARAMETERS
from service.schemas.base import Choice, Count, Items, Number, Part, RangeSchema, Schema, Share, Text
from service.schemas.training.answer import AssumptionSchema
from service.usecases.scaling.law_fit import FEWEST_BOOTSTRAPS, FEWEST_POINTS, FORM, MOST_BOOTSTRAPS, MOST_POINTS, MOST_STARTS, MOST_WORK

MOST_PREDICTIONS = 1000
MOST_NEXT_RUNS = 100
# Anything above 0 is taken, in any unit: what is below the least is a slip of the pen.
LEAST_SIZE, LEAST_LOSS, MOST_LOSS = 1e-6, 1e-6, 1e6
# Terms of a law fitted to anything, and bad predictions, may be of any size.
LARGEST = 1e308


class Size(Number):
    """Parameters or tokens: a number above 0, or text with a suffix such as "70B"."""

    def __init__(self, **options: Any) -> None:
        super().__init__(minimum=LEAST_SIZE, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> float:
        if isinstance(value, str):
            try:
                value = parse_count(value)
            except ValueError as error:
                raise ValidationError(str(error)) from None
        return super()._deserialize(value, attr, data, **kwargs)

    def openapi(self) -> dict[str, Any]:
        """A number, or a text with a power of 1000 for a suffix."""
        return {"anyOf": [super().openapi(), Count().openapi()["anyOf"][1]]}


class RunSchema(Schema):
    """A run by its parameters and training tokens."""

    params = Size(required=True)
    tokens = Size(required=True)


class LawPointSchema(RunSchema):
    """A finished run: its loss in nats a token, on one data set with one tokenizer for all runs."""

    loss = Number(required=True, minimum=LEAST_LOSS, maximum=MOST_LOSS)


class DesignRequestSchema(Schema):
    """Which runs to make next, so that the loss of a target is known best."""

    flops = Number(required=True, minimum=1.0, maximum=1e32, description="What they may take together, at 6 a parameter and token")
    target = Part(RunSchema, required=True)


class LawFitRequestSchema(Schema):
    """Runs, and what is to be told from them."""

    points = Items(Part(LawPointSchema), required=True, min_items=FEWEST_POINTS, max_items=MOST_POINTS)
    form = Choice((FORM,), description="L = E + A / N^alpha + B / D^beta")
    predict = Items(Part(RunSchema), max_items=MOST_PREDICTIONS)
    starts = Count(maximum=MOST_STARTS, suffixes=False, description="Starts of the search; left out: 500")
    bootstraps = Count(
        minimum=FEWEST_BOOTSTRAPS,
        maximum=MOST_BOOTSTRAPS,
        suffixes=False,
        description=f"Resamples that intervals come from; left out: 200. Times the points at most {MOST_WORK:,}",
    )
    seed = Count(minimum=0, maximum=2**32 - 1, suffixes=False, description="Of the resamples; left out: 0")
    design = Part(DesignRequestSchema)


def figure(**options: Any) -> Number:
    """A figure of an answer, of any size."""
    return Number(required=True, minimum=-LARGEST, maximum=LARGEST, **options)


class FigureRangeSchema(RangeSchema):
    """An uncertain figure of any size: its 10th, 50th and 90th percentile."""

    p10 = figure()
    p50 = figure()
    p90 = figure()


class ParametersSchema(Schema):
    """E, A, B, alpha and beta of L = E + A / N^alpha + B / D^beta."""

    E = figure()
    A = figure()
    B = figure()
    alpha = figure()
    beta = figure()


def _interval() -> Items:
    return Items(figure(), min_items=2, max_items=2, required=True)


class IntervalsSchema(Schema):
    """10th and 90th percentile of each parameter over the resamples."""

    E = _interval()
    A = _interval()
    B = _interval()
    alpha = _interval()
    beta = _interval()


class BeyondSchema(Schema):
    """How many times a run exceeds the largest fitted one; above 1 it is extrapolated."""

    params = figure()
    tokens = figure()
    flops = figure()


class PredictionSchema(FigureRangeSchema):
    """A run foretold: loss in nats a token, with the runs' scatter in the interval. `best_fit` is the law's own, without resamples."""

    params = figure()
    tokens = figure()
    best_fit = figure()
    beyond = Part(BeyondSchema, required=True)
    warnings = Items(Text(max_length=5000), max_items=10, required=True)


class HeldOutSchema(Schema):
    """The tenth of the runs of most compute, foretold from the others.

    `error` is the median relative one, `covered` the share within their interval of 80 %, `miss` the typical error over the expected.
    """

    points = Count(required=True)
    error = figure()
    covered = Share(required=True)
    miss = figure()


class NextRunSchema(Schema):
    """A run to make. `narrowed_to`: what is left of the interval's width once it and those before it are made."""

    params = figure()
    tokens = figure()
    flops = figure()
    narrowed_to = Share(required=True)


class DesignSchema(Schema):
    """Runs to make next, and the interval of the target's loss before and, as expected, after them."""

    runs = Items(Part(NextRunSchema), max_items=MOST_NEXT_RUNS, required=True)
    flops = figure()
    before = Part(FigureRangeSchema, required=True)
    after = Part(FigureRangeSchema, required=True)


class OptimumExponentsSchema(Schema):
    """By which power of the training compute the optimal parameters and tokens grow."""

    params = Part(FigureRangeSchema, required=True)
    tokens = Part(FigureRangeSchema, required=True)


class FittedLawSchema(ParametersSchema):
    """The law as `law` of POST /v1/optimal takes it; `draws` carry its uncertainty."""

    largest_params = figure()
    largest_tokens = figure()
    draws = Items(
        Items(figure(), min_items=len(PARAMETERS), max_items=len(PARAMETERS)),
        max_items=MOST_BOOTSTRAPS,
        required=True,
        description="Rows of E, A, B, alpha and beta, one a resample",
    )


class LawFitAnswerSchema(Schema):
    """The law, how sure it is, and what it foretells. `residual` is the typical relative distance of a run from it."""

    form = Choice((FORM,), required=True)
    parameters = Part(ParametersSchema, required=True)
    intervals = Part(IntervalsSchema, required=True)
    standard_errors = Part(ParametersSchema, required=True)
    residual = figure()
    points_used = Count(required=True, description="Exact copies count once")
    optimum_exponents = Part(OptimumExponentsSchema, required=True)
    predictions = Items(Part(PredictionSchema), max_items=MOST_PREDICTIONS, required=True)
    held_out = Part(HeldOutSchema, required=True, allow_none=True)
    design = Part(DesignSchema, required=True, allow_none=True)
    law = Part(FittedLawSchema, required=True)
    engine_version = Text(required=True)
    assumptions = Items(Part(AssumptionSchema), max_items=100, required=True)
    warnings = Items(Text(max_length=5000), max_items=100, required=True)
