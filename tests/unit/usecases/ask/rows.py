"""The sentences with the requests that they are read as, and those of them that have every combination of fields."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]

ROWS: list[Row] = [
    json.loads(line) for line in (Path(__file__).parents[3] / "data" / "ask" / "sentences.jsonl").read_text(encoding="utf-8").splitlines()
]
TODAY = date(2026, 11, 23)


def fields(value: Any, path: str = "") -> Iterator[str]:
    """The path of each field of a request, with the type of its value."""
    if isinstance(value, dict):
        for name, below in value.items():
            yield from fields(below, f"{path}/{name}")
    elif isinstance(value, list):
        for below in value:
            yield from fields(below, f"{path}/-")
    else:
        yield f"{path} {type(value).__name__}"


def of_each_form(rows: list[Row]) -> list[Row]:
    """The last row of each kind of question, combination of fields and way of asking back: one of six."""
    return [*{(row["kind"], frozenset(fields(row["request"])), bool(row["asked_back"])): row for row in rows}.values()]
