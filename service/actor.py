"""On whose behalf a thread changes something: a door says so, and the audit trail records it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from service.domain.audit import SERVICE, Actor

ACTOR: ContextVar[Actor] = ContextVar("actor", default=SERVICE)


def act_as(actor: Actor) -> None:
    """Record what this thread changes from now on as this actor's."""
    ACTOR.set(actor)


@contextmanager
def acting_as(actor: Actor) -> Iterator[None]:
    """Context whose changes are recorded as this actor's."""
    token = ACTOR.set(actor)
    try:
        yield
    finally:
        ACTOR.reset(token)
