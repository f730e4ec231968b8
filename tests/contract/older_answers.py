"""Answers of plans as the first ones were kept."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

Body = dict[str, Any]

# Members of a plan's answer that the first answers that were kept did not have, by the path to their object.
NEWER: Mapping[tuple[str, ...], tuple[str, ...]] = {
    (): ("risk_register", "evaluation", "serving", "months", "without_contingency_usd"),
    ("outcome",): (
        *("value_usd_per_point", "value_curve", "metrics", "saving", "delay_usd_per_day", "guardrails"),
        *("values", "value_usd", "expected_net_usd"),
    ),
    ("tiers", "gate"): ("sensitivity", "specificity", "continue_if", "stop_if", "committed_usd", "information", "decision"),
    ("risks",): ("days", "mitigation", "owner", "trigger", "state", "planned_probability", "planned_cost_share", "effect"),
    ("schedule",): ("pools",),
    ("endings",): ("pivot",),
    ("spend_choices",): ("usd_per_gain", "missing"),
    ("spend_choices", "choices"): ("usd_returned_per_usd", "pays"),
    ("midpoint_gate",): ("committed_usd", "decision"),
}


def without_newer_fields(answer: Body) -> Body:
    """The answer as it was kept before these fields were there."""
    older: Body = json.loads(json.dumps(answer))
    for path, names in NEWER.items():
        for node in below(older, path):
            for name in names:
                node.pop(name, None)
    return older


def below(node: Any, path: tuple[str, ...]) -> Iterator[Body]:
    """The objects at a path, those of lists too."""
    if isinstance(node, list):
        for each in node:
            yield from below(each, path)
    elif isinstance(node, dict):
        if path:
            yield from below(node.get(path[0]), path[1:])
        else:
            yield node
