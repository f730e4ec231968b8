"""Scenarios as JSON, the same over HTTP and on the command line."""

from __future__ import annotations

from typing import Any

from service.domain.scenarios import ScenarioDetail, ScenarioRecord
from service.serialization import to_builtins

Body = dict[str, Any]


def entry_body(row: ScenarioRecord) -> Body:
    """A scenario without request and result, as JSON."""
    body: Body = to_builtins(row)
    return body | {"progress": {"done": row.units_done, "total": row.units}}


def scenario_body(scenario: ScenarioDetail) -> Body:
    """A scenario as JSON."""
    return {**entry_body(scenario.row), "request": scenario.request, "result": scenario.result}
