"""Liveness, readiness and metrics: /healthz, /readyz, /metrics."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from flask import Response, current_app, request

from service.api.http.blueprint import Blueprint, json_response
from service.api.http.errors import CONTENT_TYPE, RETRY_AFTER_S, problem, response_name
from service.api.http.metrics import MetricsPage
from service.api.http.web_worker import draining
from service.schemas.base import ProblemSchema
from service.schemas.compound_fields import FreeObject, Items
from service.schemas.fields import Choice, Schema, Text
from service.usecases.diagnosis import DISK_FULL_BYTES

DEADLINE_S = 0.2
WORKER_SILENCE_S = 30

_log = logging.getLogger(__name__)
blueprint = Blueprint("health", __name__, description="Liveness, readiness and metrics")


@dataclass(slots=True)
class Probe:
    """A dependency of the service. `check` raises, or returns False, where it is unavailable.

    Checks run in threads and are waited for until a deadline. A hung check is not started again, so that threads do not pile up.
    """

    name: str
    check: Callable[[], object]
    required: bool = False
    _running: threading.Event | None = None
    _outcome: str = "ok"
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> threading.Event:
        """Start a check, or join a running one; the event is set at its end."""
        with self._lock:
            if self._running is None:
                self._running = threading.Event()
                threading.Thread(target=self._run, args=(self._running,), name=f"probe-{self.name}", daemon=True).start()
            return self._running

    def outcome(self, done: threading.Event, deadline_s: float) -> str:
        """'ok', 'away', or 'hung' where there is no result by `deadline_s` on the monotonic clock."""
        return self._outcome if done.wait(max(0.0, deadline_s - time.monotonic())) else "hung"

    def _run(self, done: threading.Event) -> None:
        outcome = "away"
        try:
            outcome = "away" if self.check() is False else "ok"
        except Exception as error:  # noqa: BLE001 - a probe exists to find out, whatever is raised
            _log.warning("probe failed", extra={"fields": {"probe": self.name, "error": type(error).__name__}})
        finally:
            with self._lock:
                self._outcome, self._running = outcome, None
            done.set()


def run_probes(probes: tuple[Probe, ...]) -> dict[str, str]:
    """Outcome of each probe, run concurrently with one deadline."""
    deadline_s = time.monotonic() + DEADLINE_S
    started = [(probe, probe.start()) for probe in probes]
    return {probe.name: probe.outcome(done, deadline_s) for probe, done in started}


def make_probes(context: Any) -> tuple[Probe, ...]:
    """Probes of the service's dependencies; only the database is required."""
    return (
        Probe("database", lambda: context.store.ping(DEADLINE_S), required=True),
        Probe("cache", context.cache.ping),
        Probe("queue", context.queue.ping),
        Probe("worker", lambda: is_worker_alive(context)),
        Probe("disk", lambda: shutil.disk_usage(context.settings.data_dir).free >= DISK_FULL_BYTES),
    )


def is_worker_alive(context: Any) -> bool:
    """Whether any background worker sent a heartbeat in the last 30 s."""
    last = context.store.last_beat()
    return last is not None and (context.clock() - last).total_seconds() <= WORKER_SILENCE_S


class HealthSchema(Schema):
    """The process answers."""

    status = Choice(("ok",), required=True, description="Whether the process answers")


class ReadinessSchema(Schema):
    """The service can work; `degraded` names what is away without stopping it."""

    status = Choice(("ok", "degraded"), required=True, description="Whether requests can be answered")
    degraded = Items(Text(), max_items=10, required=True, description="Parts that do not work, with the reason")
    checks = FreeObject(required=True, description="Each part's state: ok, away or hung")


class NotReadySchema(ProblemSchema):
    """The service cannot work."""

    degraded = Items(Text(), max_items=10, description="Parts that do not work, with the reason")
    checks = FreeObject(description="Each part's state: ok, away or hung")


@blueprint.route("/healthz")
@blueprint.response(200, HealthSchema)
def check_health() -> Response:
    """Whether the process answers

    Touches nothing else.
    """
    return json_response({"status": "ok"})


@blueprint.route("/readyz")
@blueprint.response(200, ReadinessSchema)
@blueprint.alt_response(
    503, schema=NotReadySchema, content_type=CONTENT_TYPE, description="The database is away, or the process is about to end"
)
def check_readiness() -> Response:
    """Whether the service can work

    503 only when the database is away, or once the process was asked to end; what else is away stands in `degraded`. Answers within 250 ms
    whatever hangs.
    """
    retry = {"Retry-After": str(RETRY_AFTER_S)}
    if draining.IS_DRAINING.is_set():
        return problem(503, "This process ends; others take its place.", headers=retry, degraded=[], checks={})
    probes: tuple[Probe, ...] = current_app.extensions["probes"]
    checks = run_probes(probes)
    degraded = [name for name, outcome in checks.items() if outcome != "ok"]
    if any(probe.required and checks[probe.name] != "ok" for probe in probes):
        return problem(503, "The database is away.", headers=retry, degraded=degraded, checks=checks)
    return json_response({"status": "degraded" if degraded else "ok", "degraded": degraded, "checks": checks})


@blueprint.route("/metrics")
@blueprint.response(200, content_type="text/plain", schema={"type": "string"})
@blueprint.alt_response(401, response_name(401))
def get_metrics() -> Response:
    """Metrics in Prometheus' text format

    Of all processes of this machine, the database, the disk and the price sources; with `Authorization: Bearer` and the key of
    OUTLAY_METRICS_KEY also figures of the tracked programs of all teams. Answers within 250 ms whatever hangs.
    """
    page: MetricsPage = current_app.extensions["metrics"]
    return page.answer(request)
