"""A program's plan from what somebody has: a file as JSON or TOML, an example, an estimate."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from typing import Any

from service.api.resources.programs import EXAMPLE
from service.formats.headline import counted
from service.schemas import strict_json
from service.serialization import to_builtins, to_json

Body = dict[str, Any]
NOT_TEXT = "must be a text file in UTF-8: JSON or TOML"
NO_OBJECT = "must be an object with name and tiers: a request of POST /v1/estimate/program, or its answer"


class UnreadablePlan(Exception):
    """What was given is no plan; the message says why and what would be."""


def read_plan(text: str) -> Body:
    """The plan of a text in JSON or TOML. Raises UnreadablePlan."""
    as_json = text.lstrip().startswith(("{", "["))
    try:
        read = strict_json.parse((text if as_json else _json_of_toml(text)).encode())
    except strict_json.BadJson as error:
        raise UnreadablePlan(f"cannot be read as {'JSON' if as_json else 'TOML'}: {error}") from error
    if not isinstance(read, dict):
        raise UnreadablePlan(NO_OBJECT)
    return read


def decode(content: bytes) -> str:
    """A file's text. Raises UnreadablePlan."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadablePlan(NOT_TEXT) from error


def example_text() -> str:
    """A program to begin with."""
    return json.dumps(EXAMPLE, indent=2)


def described_plan(text: str) -> str:
    """A plan in words: its name, tiers and runs; empty for what is none."""
    try:
        plan = read_plan(text) if text else {}
    except UnreadablePlan:
        return ""
    tiers = [tier for tier in _listed(plan.get("tiers")) if isinstance(tier, dict)]
    if not tiers:
        return ""
    runs = sum(len(_listed(tier.get("runs"))) for tier in tiers)
    named = f"{plan['name']}: " if isinstance(plan.get("name"), str) else ""
    return f"{named}{counted(len(tiers), 'tier')}, {counted(runs, 'run')}"


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def text_of_estimate(request: Mapping[str, Any]) -> str:
    """A program of the one run that an estimate's request says, from its start to its deadline."""
    schedule = dict(request.get("schedule") or {})
    dates = {name: schedule.pop(name) for name in ("start", "deadline") if name in schedule}
    run = {name: value for name, value in request.items() if name not in ("schedule", "levers")}
    model, hardware = request.get("model") or {}, request.get("hardware") or {}
    words = (model.get("preset") or model.get("params"), "on", hardware.get("count"), hardware.get("accelerator"))
    name = " ".join(str(word) for word in words if word) if all(words) else "training run"
    estimate = run | ({"schedule": schedule} if schedule else {})
    return json.dumps(
        {"name": name, **dates, "tiers": [{"tier": "production", "runs": [{"name": "main", "estimate": estimate}]}]}, indent=2
    )


def _json_of_toml(text: str) -> str:
    """A TOML document as JSON, its dates as text. Raises UnreadablePlan."""
    try:
        return to_json(to_builtins(tomllib.loads(text)))
    except tomllib.TOMLDecodeError as error:
        raise UnreadablePlan(f"is neither JSON nor TOML: {error}") from error
    except (ValueError, TypeError, RecursionError) as error:
        raise UnreadablePlan("holds what JSON has not: times without a date, numbers that are none, or too many levels") from error
