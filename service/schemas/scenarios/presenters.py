"""Scenarios as JSON, the same over HTTP and on the command line."""

from __future__ import annotations

from typing import Any

from service.domain.scenarios import ScenarioDetail, ScenarioRecord
from service.serialization import to_builtins

Body = dict[str, Any]


def entry_body(row: ScenarioRecord) -> Body:
    """A scenario without request and result, as JSON."""
    return {
        "id": row.id,
        "kind": row.kind,
        "state": row.state,
        "progress": {"done": row.units_done, "total": row.units},
        "error": row.error,
        "price_snapshot": row.price_snapshot,
        "engine_version": row.engine_version,
        "created_at": to_builtins(row.created_at),
        "updated_at": to_builtins(row.updated_at),
        "expires_at": to_builtins(row.expires_at),
    }


def scenario_body(scenario: ScenarioDetail) -> Body:
    """A scenario as JSON."""
    return {**entry_body(scenario.row), "request": scenario.request, "result": scenario.result}
