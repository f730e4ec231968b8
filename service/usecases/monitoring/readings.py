"""Readings of the service as a whole: database, disk, waiting work, price sources. They name no team."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import get_args

from service.context import AppContext
from service.domain import metrics as m
from service.domain.metrics import Measurement
from service.presets.version import engine_version
from service.usecases.diagnosis import WORKER_SILENCE
from service.usecases.prices.providers import Condition, list_providers

JOB_STATES = ("queued", "running", "lost")


def machine_readings(context: AppContext) -> Iterator[Measurement]:
    """The version, and space on the disk of the data directory: nothing here waits for anything."""
    yield Measurement(m.BUILD, (engine_version(),), 1)
    with suppress(FileNotFoundError):  # before the first start
        disk = shutil.disk_usage(context.settings.data_dir)
        yield Measurement(m.DISK_FREE, (), disk.free)
        yield Measurement(m.DISK_SIZE, (), disk.total)


def database_readings(context: AppContext) -> tuple[Measurement, ...]:
    """Waiting work, sizes and price sources. Raises StoreUnavailable."""
    began = time.monotonic()
    context.store.last_beat()
    latency_s = time.monotonic() - began
    now = context.clock()
    return (
        Measurement(m.DATABASE_LATENCY, (), latency_s),
        Measurement(m.DATABASE_BYTES, (), context.store.size_bytes()),
        *_backlog(context, now),
        *_prices(context, now),
        *([] if context.settings.embedded else [Measurement(m.REDIS_UP, (), context.cache.ping())]),
    )


def _backlog(context: AppContext, now: datetime) -> Iterator[Measurement]:
    waiting = context.store.backlog(now, now - WORKER_SILENCE)
    for state in JOB_STATES:
        yield Measurement(m.JOBS, (state,), waiting.jobs.get(state, 0))
    yield Measurement(m.JOBS_OLDEST, (), _age_s(waiting.oldest_job, now))
    yield Measurement(m.WORKERS, (), waiting.workers)
    yield Measurement(m.DELIVERIES, (), waiting.deliveries)
    yield Measurement(m.DELIVERIES_OVERDUE, (), _age_s(waiting.oldest_delivery, now))
    yield Measurement(m.EVENTS_WAITING, (), waiting.events)


def _prices(context: AppContext, now: datetime) -> Iterator[Measurement]:
    for entry in list_providers(context):
        for state in get_args(Condition):
            yield Measurement(m.PROVIDER_STATE, (entry.name, state), entry.state == state)
        if entry.last_success_at is not None:
            yield Measurement(m.PRICE_AGE, (entry.name,), _age_s(entry.last_success_at, now))
        if entry.fresh_for_hours is not None:
            yield Measurement(m.PRICE_FRESH_FOR, (entry.name,), entry.fresh_for_hours * 3600)


def _age_s(since: datetime | None, now: datetime) -> float:
    return 0.0 if since is None else max(0.0, (now - since).total_seconds())
