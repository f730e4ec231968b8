"""/v1/scenarios: long evaluations by workers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

from flask import Response, g, url_for

from service.api.http.auth import app_context, needs, principal
from service.api.http.blueprint import Blueprint, json_response
from service.api.http.errors import HttpError
from service.api.http.idempotency import IDEMPOTENT, idempotency_record
from service.api.http.paging import numbered_page
from service.api.resources.training.estimate import EXAMPLE as ESTIMATE
from service.context import AppContext
from service.domain.deliveries import WEBHOOK_HEADERS
from service.domain.errors import NotFound, StoreUnavailable
from service.domain.jobs import OPEN_STATES
from service.domain.scenarios import ScenarioDetail, ScenarioRecord
from service.domain.teams import Principal
from service.schemas.paging import page_schema
from service.schemas.scenarios.presenters import scenario_body, submitted_body
from service.schemas.scenarios.request import (
    KIND_FIELDS,
    ScenarioEndSchema,
    ScenarioEntrySchema,
    ScenarioQuerySchema,
    ScenarioRequestSchema,
    ScenarioSchema,
    SubmittedScenarioSchema,
    build_request,
)
from service.schemas.strict_json import dumps, parse
from service.usecases.scenarios import scenarios as usecase
from service.usecases.scenarios.end_messages import scenario_entry
from service.usecases.scenarios.registry import load_kind

Body = dict[str, Any]
blueprint = Blueprint("scenarios", __name__, description="Monte Carlo, sensitivity, sweeps and optimisation")

EXAMPLE: Body = {
    "kind": "monte_carlo",
    "base": ESTIMATE,
    "trials": 100_000,
    "seed": 7,
    "early_stop": True,
    "distributions": {"hardware.count": {"choice": [512, 1024], "weights": [0.3, 0.7]}},
}
CALLBACKS: Body = {
    "scenarioEnded": {
        "{$request.body#/notify/url}": {
            "post": {
                "operationId": "scenarioEnded",
                "summary": "The scenario has ended: it has succeeded, failed or been cancelled",
                "parameters": [
                    {"in": "header", "name": name, "required": True, "description": text, "schema": {"type": "string"}}
                    for name, text in WEBHOOK_HEADERS.items()
                ],
                "requestBody": {"required": True, "content": {"application/json": {"schema": ScenarioEndSchema}}},
                "responses": {
                    "2XX": {"description": "Taken; every other answer but 410 is followed by attempts for 28 hours"},
                    "410": {"description": "Not wanted: this ends the delivery"},
                },
                "security": [],
            }
        }
    }
}
EVENTS = "text/event-stream"
POLL_S = 0.5
STREAM_S = 25.0
"""Duration of a stream; its client reconnects. A restart of the service waits no longer than this."""
RETRY_MS = 1000
MOST_STREAMS = 2
"""Of a process's 4 threads; the others serve short requests."""
_streams = threading.BoundedSemaphore(MOST_STREAMS)
for _name in KIND_FIELDS:
    load_kind(_name)  # loaded at start, not by the first request


def known_scenario(scenario_id: str) -> ScenarioDetail:
    """The team's scenario of this id. Raises NotFound."""
    return usecase.find_scenario(app_context(), principal(), scenario_id)


@blueprint.route("/v1/scenarios", methods=["POST"])
@needs("write")
@blueprint.arguments(ScenarioRequestSchema, example=EXAMPLE)
@blueprint.response(202, SubmittedScenarioSchema)
@blueprint.doc(**IDEMPOTENT, callbacks=CALLBACKS)
def start_scenario(request: Body) -> Response:
    """Evaluate a base request many times: Monte Carlo, sensitivity, sweep or optimisation

    The scenario is stored and readable when this answers, whether or not a worker is alive. The same request with the same seed has the
    same result on any number of workers. `notify.url` is called when it has ended
    (docs/reference/scenarios.md). A team has at most 100 open scenarios, and 1e10 evaluations in them (429 beyond).
    """
    notify = usecase.webhook_of(app_context(), request.get("notify"))
    shown = partial(submitted_body, notify=notify)
    kept = idempotency_record(202, shown, _url)
    made = usecase.submit(app_context(), principal(), build_request(request), parse(g.body), kept, notify=notify)
    return json_response(shown(made), 202, {"Location": _url(made)})


@blueprint.route("/v1/scenarios", methods=["GET"])
@blueprint.arguments(ScenarioQuerySchema, location="query")
@blueprint.response(200, page_schema(ScenarioEntrySchema))
def list_scenarios(query: Body) -> Response:
    """The team's scenarios, the newest first"""
    return numbered_page(query, partial(usecase.list_scenarios, app_context(), principal(), query.get("state")), scenario_entry)


@blueprint.route("/v1/scenarios/<scenario_id>", methods=["GET"])
@blueprint.response(200, ScenarioSchema)
def get_scenario(scenario_id: str) -> Response:
    """One scenario: its state, progress and result

    It is deleted 30 days after its end.
    """
    return json_response(scenario_body(known_scenario(scenario_id)))


@blueprint.route("/v1/scenarios/<scenario_id>", methods=["DELETE"])
@needs("write", known_scenario)
@blueprint.response(202, ScenarioSchema)
def cancel_scenario(scenario_id: str) -> Response:
    """Cancel a scenario; workers stop within 2 s

    A scenario that has ended is not changed.
    """
    return json_response(scenario_body(usecase.cancel_scenario(app_context(), principal(), scenario_id)), 202)


@blueprint.route("/v1/scenarios/<scenario_id>/progress", methods=["GET"])
@blueprint.response(200, {"type": "string"}, content_type=EVENTS)
def watch_scenario(scenario_id: str) -> Response:
    """A scenario's progress as server-sent events, each with the scenario without request and result as its data

    `event: progress` after every change, `event: end` when it has ended. A stream lasts at most 25 s: reconnect, as browsers do by
    themselves. A process has at most 2 streams (503 beyond).
    """
    return progress_stream(known_scenario(scenario_id).row)


def progress_stream(row: ScenarioRecord) -> Response:
    """The events of a scenario of the caller's team. Raises HttpError 503 where this process has no stream left."""
    if not _streams.acquire(blocking=False):
        raise HttpError(503, f"This process has {MOST_STREAMS} streams open already; ask again.", headers={"Retry-After": "5"})
    release = cache(_streams.release)  # once: at the end of the stream, or when the response closes unread
    events = _events(app_context(), principal(), row, release)
    response = Response(events, content_type=EVENTS, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
    response.call_on_close(release)
    return response


def _events(context: AppContext, who: Principal, row: ScenarioRecord, release: Callable[[], None]) -> Iterator[str]:
    try:
        yield f"retry: {RETRY_MS}\n\n"
        yield from _progress_events(context, who, row)
    finally:
        release()


def _progress_events(context: AppContext, who: Principal, row: ScenarioRecord) -> Iterator[str]:
    ends, last = time.monotonic() + STREAM_S, ""
    while row.state in OPEN_STATES and time.monotonic() < ends:
        data = dumps(scenario_entry(row))
        yield f"event: progress\ndata: {data}\n\n" if data != last else ": still there\n\n"
        last = data
        time.sleep(POLL_S)
        try:
            row = usecase.find_scenario(context, who, row.id).row
        except (StoreUnavailable, NotFound):
            return  # the headers are sent already: a reconnecting client gets the error
    if row.state not in OPEN_STATES:
        yield f"event: end\ndata: {dumps(scenario_entry(row))}\n\n"


def _url(row: ScenarioRecord) -> str:
    return url_for("scenarios.get_scenario", scenario_id=row.id)
