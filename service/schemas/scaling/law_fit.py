"""Request and answer schemas of scaling-law fits."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError

from service.domain.counts import parse_count
from service.domain.scaling.fits import LossPrediction
from service.domain.scaling.laws import PARAMETERS
from service.schemas.base import make_schema, range_schema
from service.schemas.compound_fields import Items, Part
from service.schemas.derive import derive
from service.schemas.fields import Choice, Count, Number, Schema
from service.usecases.scaling import law_fit as usecase
from service.usecases.scaling.law_fit import FEWEST_POINTS, FORM, MAX_BOOTSTRAPS, MAX_POINTS, MAX_STARTS, MAX_WORK, MIN_BOOTSTRAPS

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

    params = Size(required=True, description="Parameters of the run")
    tokens = Size(required=True, description="Training tokens of the run")


class LawPointSchema(RunSchema):
    """A finished run: its loss in nats a token, on one data set with one tokenizer for all runs."""

    loss = Number(required=True, minimum=LEAST_LOSS, maximum=MOST_LOSS, description="Final loss [nats per token]")


class DesignRequestSchema(Schema):
    """Which runs to make next to predict the loss of a target best."""

    flops = Number(required=True, minimum=1.0, maximum=1e32, description="What they may take together, at 6 a parameter and token")
    target = Part(RunSchema, required=True, description="Run whose loss is to be known best")


class LawFitRequestSchema(Schema):
    """Finished runs, and the runs to predict from them."""

    points = Items(Part(LawPointSchema), required=True, min_items=FEWEST_POINTS, max_items=MAX_POINTS, description="Finished runs")
    form = Choice((FORM,), description="L = E + A / N^alpha + B / D^beta")
    predict = Items(Part(RunSchema), max_items=MOST_PREDICTIONS, description="Runs whose loss is asked for")
    starts = Count(maximum=MAX_STARTS, suffixes=False, description="Starts of the search; left out: 500")
    bootstraps = Count(
        minimum=MIN_BOOTSTRAPS,
        maximum=MAX_BOOTSTRAPS,
        suffixes=False,
        description=f"Resamples that intervals come from; left out: 200. Times the points at most {MAX_WORK:,}",
    )
    seed = Count(minimum=0, maximum=2**32 - 1, suffixes=False, description="Of the resamples; left out: 0")
    design = Part(DesignRequestSchema, description="Asks for the runs to make next")


def figure(**options: Any) -> Number:
    """A figure of an answer, of any size."""
    return Number(required=True, minimum=-LARGEST, maximum=LARGEST, **options)


FigureRangeSchema = range_schema("FigureRange", minimum=-LARGEST, maximum=LARGEST)
TERMS = {
    "E": "Loss of an infinite model on infinite data [nats per token]",
    "A": "Coefficient of the parameters' term",
    "B": "Coefficient of the tokens' term",
    "alpha": "Exponent of the parameters [1]",
    "beta": "Exponent of the tokens [1]",
}
"""The parameters of L = E + A / N^alpha + B / D^beta."""
ParametersSchema = make_schema("Parameters", {name: figure(description=text) for name, text in TERMS.items()})
IntervalsSchema = make_schema(
    "Intervals",
    {name: Items(figure(), min_items=2, max_items=2, required=True, description=f"10th and 90th percentile of {name}") for name in TERMS},
)


class BeyondSchema(Schema):
    """Size of a run over the largest fitted one; above 1 it is extrapolated."""

    params = figure(description="Parameters over those of the largest run [1]")
    tokens = figure(description="Training tokens over those of the largest run [1]")
    flops = figure(description="Training arithmetic over that of the largest run [1]")


class FittedLawSchema(ParametersSchema):  # type: ignore[misc,valid-type]  # made above
    """The law as `law` of POST /v1/optimal takes it; `draws` carry its uncertainty."""

    largest_params = figure(description="Size of the largest fitted run [parameters]")
    largest_tokens = figure(description="Training tokens of the largest fitted run [tokens]")
    draws = Items(
        Items(figure(), min_items=len(PARAMETERS), max_items=len(PARAMETERS)),
        max_items=MAX_BOOTSTRAPS,
        required=True,
        description="Rows of E, A, B, alpha and beta, one a resample",
    )


derive(LossPrediction, parts={"beyond": BeyondSchema})
derive(usecase.DesignAnswer, ranges=FigureRangeSchema, limits={"runs": {"max_items": MOST_NEXT_RUNS}})
derive(usecase.OptimumExponents, ranges=FigureRangeSchema)
LawFitAnswerSchema = derive(
    usecase.LawFitAnswer,
    limits={"form": {"choices": (FORM,)}, "predictions": {"max_items": MOST_PREDICTIONS}},
    parts={"parameters": ParametersSchema, "intervals": IntervalsSchema, "standard_errors": ParametersSchema, "law": FittedLawSchema},
)
