"""Request of a program: its outcome, what that is worth, and its guardrails."""

from __future__ import annotations

from service.schemas.compound_fields import Items, Part
from service.schemas.fields import NotNegative, Number, Schema, Share, Text
from service.schemas.programs.fields import MAX_USD, short_name, usd_amount

MAX_METRICS = 20
POINT = "How much of the metric is a point; left out: 0.01 where both values are shares, else 1"
POINT_VALUE = "Worth of one point of the metric [USD per point]"


class GuardrailSchema(Schema):
    """A metric that must not fall below a floor."""

    metric = short_name(required=True, description="Name of the metric, as evaluations report it")
    floor = Number(required=True, description="Value below which it is broken [unit of the metric]")


class ValuePointSchema(Schema):
    """Worth of a value of the metric."""

    value = Number(required=True, description="Value of the metric [unit of the metric]")
    usd = NotNegative(required=True, maximum=MAX_USD, description="What it is worth [USD]")


class OutcomeMetricSchema(Schema):
    """A further metric that the program improves. Where less is better, as for a latency, the target lies below the baseline."""

    metric = short_name(required=True, description="Name of the metric")
    baseline = Number(required=True, description="Value of the metric before the program [unit of the metric]")
    target = Number(required=True, description="Value of the metric that is aimed at [unit of the metric]")
    point = Number(minimum=1e-9, description=POINT)
    value_usd_per_point = NotNegative(maximum=MAX_USD, description=POINT_VALUE)


class ServingSavingSchema(Schema):
    """Serving that gets cheaper with the result: half the cost at the same quality, for instance."""

    usd_per_month = NotNegative(required=True, maximum=MAX_USD, description="Cost of serving at present [USD per month]")
    saved_share = Share(required=True, description="Part of that cost that the result saves [1]")
    months = NotNegative(required=True, maximum=1200, description="Time over which it is saved [months]")


class OutcomeSchema(Schema):
    """The metric that the program improves, and what that is worth."""

    metric = Text(required=True, description="Name of the metric")
    baseline = Number(required=True, description="Value of the metric before the program [unit of the metric]")
    target = Number(
        required=True, description="Value of the metric that is aimed at; the baseline's where the program only saves [unit of the metric]"
    )
    point = Number(minimum=1e-9, description=POINT)
    evaluation_usd = usd_amount(description="Evaluation and safety testing of the result")
    decision = Text(max_length=500, description="What the outcome decides")
    value_usd_per_point = NotNegative(maximum=MAX_USD, description=POINT_VALUE)
    value_curve = Items(
        Part(ValuePointSchema), min_items=2, max_items=100, description="Worth at rising values of the metric, instead of one price a point"
    )
    metrics = Items(Part(OutcomeMetricSchema), max_items=MAX_METRICS, description="Further metrics that the program improves")
    saving = Part(ServingSavingSchema, description="Serving that gets cheaper with the result")
    delay_usd_per_day = NotNegative(maximum=MAX_USD, description="What a day's delay costs beside the runs [USD per day]")
    guardrails = Items(Part(GuardrailSchema), max_items=MAX_METRICS, description="Metrics that must not fall below a floor")
