"""How long the service waits for its parts while tests run: on a busy machine they answer late, and a test must not see an outage.

A test of a part that hangs sets the wait that it is about itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module

import pytest

PATIENT_GUNICORN = ("-m", "gunicorn", "-c", "python:tests.support.patient_gunicorn", "service:create_app()")
"""Arguments of Python that serve the service, for tests that are not about its time limits."""
PATIENCE_S = 120.0
"""Longer than anything takes that is not hung [s]."""
IMPATIENCE_S = 0.25
"""As the service waits for Redis where nobody tests [s]."""
REDIS_WAITS = ("service.cache.TIMEOUT_S", "service.queue.PING_S")
STORE_WAITS = (
    *REDIS_WAITS,
    "service.prices.catalog.MAX_WAIT_S",
    "service.prices.catalog.FIRST_MAX_WAIT_S",
    "service.store.hang_guard.PING_S",
    "service.store.database.BUSY_TIMEOUT_S",
    "service.store.database.POOL_TIMEOUT_S",
    "service.store.database_clock.FIRST_WAIT_S",
)
ANSWER_WAITS = (
    "service.api.http.metrics.DEADLINE_S",
    "service.api.resources.operations.health.DEADLINE_S",
    "service.api.resources.training.estimate.BATCH_BUDGET_S",
    "service.slack.signatures.CACHE_WAIT_S",
    "service.runtime.webhooks.CONNECT_S",
    "service.runtime.webhooks.READ_S",
    "service.runtime.webhooks.TOTAL_S",
    "service.usecases.diagnosis.PING_S",
    "service.usecases.openid.TURN_S",
    "service.web.bundle.LONGEST_S",
)
CLIENT_WAITS = (
    "service.api.http.request_body.STALL_S",
    "service.api.http.request_body.MAX_BODY_S",
    "service.api.http.request_body.DRAIN_S",
)


def wait_for_up_to(seconds: Mapping[str, float]) -> None:
    """Set waits of the service, by where they stand, in a process of their own: nothing sets them back."""
    for place, wait_s in seconds.items():
        module, _, name = place.rpartition(".")
        setattr(import_module(module), name, wait_s)


@contextmanager
def patient(waits: tuple[str, ...], seconds: float = PATIENCE_S) -> Iterator[None]:
    """Waits of the service, by where they stand, are of so many seconds in the block: they outlast a busy machine."""
    with pytest.MonkeyPatch.context() as patch:
        for wait in waits:
            patch.setattr(wait, seconds)
        yield
