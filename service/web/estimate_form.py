"""The form of an estimate: its fields and what they say as a request."""

from __future__ import annotations

from typing import Any

from service.schemas.training.request import EstimateRequestSchema
from service.web.forms import Fields, FormField, choices_at, request_of, with_model, with_one_model

REQUEST = EstimateRequestSchema()
MODEL = "model"
"""One field for a preset's name and for a size."""

MAIN_FIELDS = (
    FormField(MODEL, "Model", "llama-3-70b, or 70B", known="models"),
    FormField("data.tokens", "Training tokens", "15T"),
    FormField("hardware.accelerator", "Accelerator", "H100", known="accelerators"),
    FormField("hardware.count", "How many", "2048"),
    FormField("price.usd_per_accelerator_hour", "Your price", "left out: list prices", "USD per accelerator-hour"),
    FormField("schedule.start", "Starts", kind="date"),
    FormField("schedule.deadline", "Needed by", kind="date"),
)
MORE_FIELDS = (
    FormField("training.method", "Method", choices=choices_at(REQUEST, "training.method")),
    FormField("training.precision", "Precision", choices=choices_at(REQUEST, "training.precision")),
    FormField("training.seq_len", "Sequence length", "8192", "tokens"),
    FormField("training.global_batch_tokens", "Global batch", "4M", "tokens"),
    FormField("price.provider", "Provider", "any"),
    FormField("price.region", "Region", "any"),
    FormField("price.pricing", "Pricing", choices=("on_demand", "spot", "reserved_1y", "reserved_3y")),
    FormField("personnel.usd_per_hour", "People", "90", "USD per hour"),
    FormField("overhead.evaluation", "Evaluation", "0.05", "share of compute"),
    FormField("overhead.debugging", "Debugging", "0.05", "share of compute"),
    FormField("overhead.reruns", "Reruns", "0.05", "share of compute"),
)
TRIALS = 100_000
"""Trials of the scenario that says how sure an estimate is."""
TRIALS_BUDGET = FormField("budget_usd", "Budget, if there is one", "300,000", "USD")


def estimate_request(fields: Fields) -> dict[str, Any]:
    """The request that the form's fields say."""
    return request_of(with_model(fields, MODEL, ""))


def form_fields(fields: Fields) -> dict[str, str]:
    """The fields as the form shows them: a model's name or size in one field."""
    return with_one_model(fields, MODEL, "")
