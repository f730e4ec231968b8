"""Other layouts and context lengths of an estimate, as addresses that show what each changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from service.web.forms import Fields
from service.web.rendering import query_string
from service.web.what_if import BEFORE

CONTEXT = "training.seq_len"
TIMES = (0.5, 2, 4, 8)
"""Context lengths that are offered, over that of the estimate [1]."""
LEAST_TOKENS, MOST_TOKENS = 512, 1_048_576
BESIDE_AXES = frozenset({"micro_batch", "zero_stage", "activation_recompute"})
"""Choices of a layout that are no axes of its parallelism."""
Body = dict[str, Any]


def layout_query(fields: Fields, chosen: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """The query of the estimate with another layout, next to that with the chosen one: both stated, so that one basis holds for both."""
    before = query_string(_with_layout(fields, chosen))
    return query_string({**_with_layout(fields, other), BEFORE: before})


def context_queries(fields: Fields, assumptions: Iterable[Mapping[str, Any]]) -> list[tuple[int, str]]:
    """Shorter and longer context lengths [tokens], each with the query of its estimate next to the present one."""
    assumed = next((entry["value"] for entry in assumptions if entry["field"] == CONTEXT), None)
    stated = fields.get(CONTEXT, assumed)
    if stated is None or not str(stated).isdecimal():
        return []
    lengths = [round(int(stated) * times) for times in TIMES]
    return [
        (length, query_string({**fields, CONTEXT: str(length), BEFORE: query_string(fields)}))
        for length in lengths
        if LEAST_TOKENS <= length <= MOST_TOKENS
    ]


def _with_layout(fields: Fields, layout: Mapping[str, Any]) -> Body:
    names = {name: f"training.{name}" if name in BESIDE_AXES else f"training.parallelism.{name}" for name in layout}
    kept = {name: value for name, value in fields.items() if not name.startswith("training.parallelism")}
    return {**kept, **{names[name]: str(value) for name, value in layout.items()}}
