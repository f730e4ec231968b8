"""Kept results as JSON, the same over HTTP and on the command line."""

from __future__ import annotations

from typing import Any

from service.domain.results import ResultDetail, ResultRecord
from service.serialization import to_builtins

Body = dict[str, Any]


def entry_body(row: ResultRecord, server: str = "") -> Body:
    """A result without its answer, as JSON; `server`: what the address of its page begins with, such as https://outlay.example."""
    body: Body = to_builtins(row)
    return body | {"url": f"{server}/r/{row.id}"}


def result_body(kept: ResultDetail, server: str = "") -> Body:
    """A result as JSON."""
    body: Body = to_builtins(kept)
    return {**entry_body(kept.row, server), "request": body["request"], "offers": body["offers"], "answer": kept.answer}
