"""The form of a comparison: its fields and the request that they say."""

from __future__ import annotations

from typing import Any

from service.schemas.comparison.request import CompareRequestSchema
from service.web.forms import Fields, FormField, choices_at, request_of, with_model

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
    FormField(MODEL, "Model", "llama-3-8b, or a size: 7B", known="models"),
    FormField("workload.data.tokens", "Training tokens", "1T"),
    FormField("candidates.accelerators", "Accelerators", "H100, H200, A100-80GB; left out: all"),
    FormField("candidates.counts", "How many", "64, 128, 256"),
)
FILTER_FIELDS = (
    FormField("candidates.pricing", "Pricing", "on_demand, spot, reserved_1y"),
    FormField("candidates.providers", "Providers", "aws, nebius; left out: all"),
    FormField("candidates.regions", "Regions", "left out: all"),
    FormField("constraints.jurisdictions", "Where", "EU, USA; left out: anywhere"),
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
    single = {name: value for name, value in fields.items() if name not in LISTS}
    several = {
        f"{name}.{at}": part.strip()
        for name, value in fields.items()
        if name in LISTS
        for at, part in enumerate(part for part in value.split(",") if part.strip())
    }
    return request_of(with_model(single, MODEL, "workload.") | several)


def compare_fields(fields: Fields) -> dict[str, str]:
    """The fields as the form shows them: a model in one field, lists with commas."""
    shown: dict[str, str] = {}
    for name, value in fields.items():
        above, _, last = name.rpartition(".")
        if above in LISTS and last.isdigit():
            shown[above] = f"{shown[above]}, {value}" if above in shown else value
        elif name in ("workload.model.preset", "workload.model.params"):
            shown[MODEL] = value
        else:
            shown[name] = value
    return shown
