"""Errors: of requests, in the caller's terms, and of the database."""

from __future__ import annotations

from collections.abc import Sequence


class DomainError(Exception):
    """Base of everything the caller can cause. `pointer` is a JSON pointer into the request."""

    status = 422
    title = "Unprocessable request"

    def __init__(self, message: str, pointer: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.pointer = pointer

    def below(self, prefix: str) -> DomainError:
        """The same problem, seen from a request that holds this one under `prefix`."""
        return type(self)(self.message, prefix + self.pointer)


class InvalidRequest(DomainError):
    """The request contradicts itself, or asks for what cannot be."""

    title = "Invalid request"


class UnknownName(DomainError):
    """A name that is in no catalogue; `near` are the known names most like it."""

    title = "Unknown name"

    def __init__(self, message: str, pointer: str = "", near: Sequence[str] = ()) -> None:
        super().__init__(message, pointer)
        self.near = tuple(near)

    def below(self, prefix: str) -> DomainError:
        return UnknownName(self.message, prefix + self.pointer, self.near)


class DoesNotFit(DomainError):
    """No layout of the model fits the machine's memory; the message says what would."""

    title = "Does not fit"


class NoOffer(DomainError):
    """No price is known for what was asked. Never answered with a zero."""

    title = "No known price"


class NotFound(DomainError):
    """There is no such thing, or none that the caller may know of."""

    status = 404
    title = "Not found"


class StoreUnavailable(Exception):
    """The database is away, full, locked for too long or read-only: nothing was committed, try again later.

    `public_message` is what somebody who may not know more of the database reads.
    """

    public_message = "The database cannot be reached right now; try again."


class StoreFull(StoreUnavailable):
    """The database's disk is full."""

    public_message = "The database has no space left; nothing of this request was kept. Try again when there is some."


class StoreReadOnly(StoreUnavailable):
    """The database takes no changes, as a standby does, or one on a file system that went read-only."""

    public_message = "The database takes no changes right now; nothing of this request was kept. Try again later."


class StoreNotReady(Exception):
    """The database answers but its schema is not the one this release needs."""


class VersionConflictError(Exception):
    """The version that was to be changed is not the newest one."""
