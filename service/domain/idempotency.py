"""Idempotency keys: responses stored under a caller's key, and replays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from service.domain.errors import DomainError


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response: HTTP status, JSON body, and the address of what was created."""

    status: int
    body: Mapping[str, Any]
    location: str | None = None


@dataclass(frozen=True, slots=True)
class IdempotencyRecord:
    """Key of a response: team, the caller's key and a digest of the request; `answer` makes the response of what was created."""

    team: str
    key: str
    digest: str
    at: datetime
    answer: Callable[[Any], StoredResponse]


class IdempotentReplay(Exception):
    """The same request was answered under this key before; nothing was created now."""

    def __init__(self, answer: StoredResponse) -> None:
        super().__init__(answer.location)
        self.answer = answer


class IdempotencyKeyReused(DomainError):
    """Another request used the same key."""

    title = "Idempotency-Key used before"
