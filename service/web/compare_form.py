"""The form of a comparison: its fields and the request that they say."""

from __future__ import annotations

from typing import Any

from service.schemas.comparison.request import CompareRequestSchema
from service.web.forms import Fields, FormField, choices_at, joined_lists, request_of, split_lists, with_model, with_one_model

REQUEST = CompareRequestSchema()
MODEL = "model"
LISTS = frozenset(
    f"{section}.{name}"
    for section, names in {
        "candidates": ("accelerators", "counts", "providers", "regions", "pricing"),
        "constraints": ("jurisdictions",),
    }.items()
    for name in names
)
"""Fields that take several values, with commas between them."""
WORKLOAD_FIELDS = (
    FormField(MODEL, "Model", "llama-3-8b, or 7B", known="models"),
    FormField("workload.data.tokens", "Training tokens", "1T"),
    FormField("candidates.accelerators", "Accelerators", "H100, H200; all"),
    FormField("candidates.counts", "How many", "64, 128, 256"),
)
FILTER_FIELDS = (
    FormField("candidates.pricing", "Pricing", "on_demand, spot; all"),
    FormField("candidates.providers", "Providers", "aws, nebius; all"),
    FormField("candidates.regions", "Regions", "all"),
    FormField("constraints.jurisdictions", "Where", "EU, USA; anywhere"),
    FormField("constraints.start", "Starts", kind="date"),
    FormField("constraints.deadline", "Needed by", kind="date"),
    FormField("constraints.max_wall_clock_days", "At most", "60", "days"),
    FormField("constraints.max_cost_usd", "At most", "300,000", "USD"),
    FormField("constraints.max_tco2e", "At most", "", "t CO2e"),
    FormField("objective", "Best is", choices=choices_at(REQUEST, "objective")),
)
MORE_FIELDS = (
    FormField("workload.training.method", "Method", choices=choices_at(REQUEST, "workload.training.method")),
    FormField("workload.training.precision", "Precision", choices=choices_at(REQUEST, "workload.training.precision")),
    FormField("workload.training.seq_len", "Sequence length", "8192", "tokens"),
    FormField("constraints.require_available", "Confirmed to be there only", choices=("true",)),
    FormField("candidates.max_age_days", "Prices read within", "30", "days"),
    FormField("limit", "Options shown", "50"),
)


def compare_request(fields: Fields) -> dict[str, Any]:
    """The request that the form's fields say."""
    return request_of(with_model(split_lists(fields, LISTS), MODEL, "workload."))


def compare_fields(fields: Fields) -> dict[str, str]:
    """The fields as the form shows them: a model in one field, lists with commas."""
    return with_one_model(joined_lists(fields, LISTS), MODEL, "workload.")
