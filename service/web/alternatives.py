"""Other layouts and context lengths of an estimate, as addresses that show what each changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from service.formats.headline import counted
from service.web.forms import Fields
from service.web.rendering import query_string
from service.web.what_if import BEFORE

CONTEXT = "training.seq_len"
TIMES = (0.5, 2, 4, 8)
"""Context lengths that are offered, over that of the estimate [1]."""
LEAST_TOKENS, MOST_TOKENS = 512, 1_048_576
BESIDE_AXES = frozenset({"micro_batch", "zero_stage", "activation_recompute"})
"""Choices of a layout that are no axes of its parallelism."""
AS_FAST = 0.0005
"""Parts of the speed that are none: less than a tenth of a per cent, rounded."""
Body = dict[str, Any]


def layout_query(fields: Fields, chosen: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """The query of the estimate with another layout, next to that with the chosen one: both stated, so that one basis holds for both."""
    before = query_string(_with_layout(fields, chosen))
    return query_string({**_with_layout(fields, other), BEFORE: before})


def layouts_finding(others: Sequence[Mapping[str, Any]]) -> str:
    """How many other layouts there are, and how much slower the best of those is that fit: "3 other layouts, the best 2.0% slower"."""
    many, is_one = counted(len(others), "other layout"), len(others) == 1
    fitting = [float(other["slower_by"]) for other in others if other["fits"]]
    if not fitting:
        return f"{many}, {'which does not fit' if is_one else 'none of which fits'}"
    best = min(fitting)
    change = "as fast" if abs(best) < AS_FAST else f"{abs(best):.1%} {'slower' if best > 0 else 'faster'}"
    return f"{many}, {change if is_one else f'the best {change}'}"


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
