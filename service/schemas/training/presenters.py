"""Answers as their JSON objects, the same over HTTP and on the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from service.context import AppContext
from service.presets.version import engine_version
from service.serialization import to_builtins
from service.usecases.training.estimate import estimate
from service.usecases.training.levers import estimate_with_levers


def answered(context: AppContext, request: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to an estimate request, with levers where it asks for them. Raises as `estimate` does."""
    body: dict[str, Any] = to_builtins((estimate_with_levers if request.get("levers") else estimate)(context, request))
    return body


def batch_answer(answers: Sequence[Mapping[str, Any]], price_snapshot: str) -> dict[str, Any]:
    """The answers of a batch as its JSON object."""
    return {"answers": answers, "price_snapshot": price_snapshot, "engine_version": engine_version()}
