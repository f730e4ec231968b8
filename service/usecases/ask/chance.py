"""The chance of a run to meet its deadline and its budget: a Monte Carlo scenario, evaluated at once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from service.context import AppContext
from service.usecases.scenarios.monte_carlo import finish, is_sufficient, prepare, run_chunk
from service.usecases.scenarios.registry import PreparedScenario, ScenarioRequest


def chance(context: AppContext, request: ScenarioRequest) -> dict[str, Any]:
    """The result that POST /v1/scenarios has of the request, in some 0.3 s. Raises DomainErrors with pointers into the request."""
    prepared = prepare(context, request)
    key = hashlib.sha256(repr((prepared.request, prepared.snapshot, context.team)).encode()).hexdigest()
    return _evaluate(context, replace(prepared, key=f"ask {key}"))


def _evaluate(context: AppContext, prepared: PreparedScenario) -> dict[str, Any]:
    """The result of the chunks, to the first checkpoint where they are enough."""
    tallies: list[dict[str, Any]] = []
    for index in range(prepared.chunks):
        tallies.append(run_chunk(context, prepared, index, _no_interruption))
        if index + 1 in prepared.checkpoints and is_sufficient(prepared, _copies(tallies)):
            break
    return finish(context, prepared, _copies(tallies))


def _copies(tallies: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return iter(tallies)


def _no_interruption() -> None:
    """Nothing stops it: it is short."""
