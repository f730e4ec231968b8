"""The answer of /metrics: what processes counted, what is read of database and disk, and with the key what programs cost.

It is answered within its deadline whatever hangs: then with what was read last, its age, and that the database does not answer.
"""

from __future__ import annotations

import hmac
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from flask import Request, Response

from service.api.http import budgets
from service.api.http.background_reading import BackgroundReading
from service.api.http.errors import HttpError
from service.context import AppContext
from service.domain import metrics as m
from service.domain.metrics import Measurement, Metric
from service.runtime import metrics as counted
from service.usecases.monitoring.program_figures import program_measurements
from service.usecases.monitoring.readings import database_readings, machine_readings

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric as Family

DEADLINE_S = 0.1
"""How long an answer waits for the database, the first one to find that it hangs; what all processes counted takes as long again."""

MAX_TEAMS = 200
"""Teams whose work is shown."""


class MetricsPage:
    """Readings for the answers of one process."""

    def __init__(self, context: AppContext, counts: budgets.Counts) -> None:
        self._context = context
        self._open = BackgroundReading("metrics-readings", partial(database_readings, context))
        self._keyed = BackgroundReading("metrics-programs", partial(_keyed_readings, context, counts))

    def refresh(self) -> None:
        """Begin to read what all may see."""
        self._open.refresh()

    def answer(self, request: Request) -> Response:
        """All that the request may see, in Prometheus' text format. Raises HttpError (401) for a wrong key."""
        from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

        with_programs = self._may_see_programs(request)
        shown = CollectorRegistry()
        shown.register(_Collector([*machine_readings(self._context), *self._readings(with_programs=with_programs)]))
        return Response(generate_latest(counted.registry()) + generate_latest(shown), content_type=CONTENT_TYPE_LATEST)

    def _readings(self, *, with_programs: bool) -> Iterator[Measurement]:
        """What could be read until the deadline, else what was read before; nothing is waited for while the database does not answer."""
        deadline = time.monotonic() + DEADLINE_S
        wanted = [self._open, self._keyed] if with_programs else [self._open]
        asked = [(reading, reading.refresh()) for reading in wanted]
        answers = self._context.store.ping(DEADLINE_S)
        yield Measurement(m.DATABASE_UP, (), answers)
        for reading, done in asked:
            done.wait(max(0.0, deadline - time.monotonic()) if answers else 0.0)
            newest = reading.newest()
            if newest is not None:
                yield from newest[0]
        if (read := self._open.newest()) is not None:
            yield Measurement(m.READING_AGE, (), read[1])

    def _may_see_programs(self, request: Request) -> bool:
        """Whether the request has the metrics key; one without any sees what names no team."""
        given = request.environ.get("HTTP_AUTHORIZATION")
        if given is None:
            return False
        key = self._context.settings.metrics_key
        scheme, _, token = given.partition(" ")
        if key is None or scheme.lower() != "bearer" or not hmac.compare_digest(token.strip().encode(), key.encode()):
            challenge = {"WWW-Authenticate": 'Bearer error="invalid_token"'}
            raise HttpError(401, "This is not the key in OUTLAY_METRICS_KEY; without any, what names no team is shown.", headers=challenge)
        return True


def _keyed_readings(context: AppContext, counts: budgets.Counts) -> tuple[Measurement, ...]:
    """Figures of programs, and how much of its work budgets each team with a key uses."""
    keys, now = context.store.keys(), context.clock()
    teams = sorted({(key.team_name, key.team) for key in keys if not key.invalid_reason(now)})[:MAX_TEAMS]
    work = ((name, budgets.used_shares(context, counts, team)) for name, team in teams)
    shares = [Measurement(m.TEAM_WORK, (name, budget), share) for name, used in work for budget, share in used.items()]
    return (*program_measurements(context), *shares)


class _Collector:
    """Measurements as prometheus_client collects them."""

    def __init__(self, measurements: Iterable[Measurement]) -> None:
        self._by_metric: dict[Metric, list[Measurement]] = defaultdict(list)
        for measurement in measurements:
            self._by_metric[measurement.metric].append(measurement)

    def collect(self) -> Iterator[Family]:
        """A family for each metric."""
        from prometheus_client.metrics_core import GaugeMetricFamily

        for metric, values in self._by_metric.items():
            family = GaugeMetricFamily(metric.name, f"{metric.help}.", labels=metric.labels)
            for each in values:
                family.add_metric(each.labels, each.value)
            yield family
