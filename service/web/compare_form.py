"""The form of a comparison: its fields and the request that they say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from service.schemas.comparison.request import CompareRequestSchema
from service.web.forms import Fields, FormField, choices_at, joined_lists, places_of, request_of, split_lists, with_model, with_one_model

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
MACHINES = "candidates.machines"
"""Pairs of a number and an accelerator, in one field: 512 H100, 256 B200."""
NO_MACHINES = "must be numbers of accelerators with commas between them, such as 512 H100, 256 B200"
_MACHINE = re.compile(r"(?P<count>\d[\d,]{0,11}k?) {0,9}x? {0,9}(?P<accelerator>[^\d\s,][^,]*)", re.ASCII | re.IGNORECASE)
WORKLOAD_FIELDS = (
    FormField(MODEL, "Model", "llama-3-8b, or 7B", known="models"),
    FormField("workload.data.tokens", "Training tokens", "1T"),
    FormField("candidates.accelerators", "Accelerators", "H100, H200; all"),
    FormField("candidates.counts", "How many", "64, 128, 256"),
    FormField(MACHINES, "Or so many of each", "512 H100, 256 B200"),
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


def is_unread(request: Mapping[str, Any]) -> bool:
    """Whether what stands in the field of machines names none."""
    return isinstance((request.get("candidates") or {}).get("machines"), str)


def compare_request(fields: Fields) -> dict[str, Any]:
    """The request that the form's fields say."""
    return request_of(with_model(split_lists(_with_machines(fields), LISTS), MODEL, "workload."))


def compare_fields(fields: Fields) -> dict[str, str]:
    """The fields as the form shows them: a model in one field, lists with commas, machines in one field."""
    return with_one_model(joined_lists(_with_one_field_of_machines(fields), LISTS), MODEL, "workload.")


def _with_machines(fields: Fields) -> dict[str, str]:
    """The fields with the number and the accelerator of each machine as fields of their own; what says no machines stays as it is."""
    stated = dict(fields)
    if machines := _machines_of(fields.get(MACHINES, "")):
        del stated[MACHINES]
        for at, machine in enumerate(machines):
            stated |= {f"{MACHINES}.{at}.{name}": value for name, value in machine.items()}
    return stated


def _machines_of(text: str) -> list[dict[str, str]]:
    """The machines that a text names with commas between them; none where something else stands there too."""
    if _MACHINE.sub("", text).strip(" ,"):
        return []
    return [{name: value.strip() for name, value in found.groupdict().items()} for found in _MACHINE.finditer(text)]


def _with_one_field_of_machines(fields: Fields) -> dict[str, str]:
    """The fields with the machines that have one in each place in a field."""
    above = [f"{MACHINES}.{place}." for place in places_of(fields, MACHINES)]
    if not above:
        return dict(fields)
    machines = [" ".join(fields[f"{each}{name}"] for name in ("count", "accelerator") if f"{each}{name}" in fields) for each in above]
    return {**{name: value for name, value in fields.items() if not name.startswith(f"{MACHINES}.")}, MACHINES: ", ".join(machines)}
