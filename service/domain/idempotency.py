"""Idempotency keys: a response stored under a caller's key, and what a repeated request leads to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from service.domain.errors import DomainError


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """What a caller was told: HTTP status, JSON body, and where the thing made is found."""

    status: int
    body: Mapping[str, Any]
    location: str | None = None


@dataclass(frozen=True, slots=True)
class IdempotencyRecord:
    """What an answer is remembered under: the team, the caller's key, a digest of what was asked; and how to tell of what was made."""

    team: str
    key: str
    digest: str
    at: datetime
    answer: Callable[[Any], StoredResponse]


class IdempotentReplay(Exception):
    """The same was asked under this key before; nothing was made now."""

    def __init__(self, answer: StoredResponse) -> None:
        super().__init__(answer.location)
        self.answer = answer


class IdempotencyKeyReused(DomainError):
    """Another request came under the same key."""

    title = "Idempotency-Key used before"
