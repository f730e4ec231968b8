"""Errors: of requests, in the caller's terms, and of the database."""

from __future__ import annotations

from collections.abc import Sequence


class DomainError(Exception):
    """Base of errors that a request causes. `pointer` is a JSON pointer into the request."""

    status = 422
    title = "Unprocessable request"

    def __init__(self, message: str, pointer: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.pointer = pointer

    def below(self, prefix: str) -> DomainError:
        """The same error for a request that contains this one under `prefix`."""
        return type(self)(self.message, prefix + self.pointer)


class InvalidRequest(DomainError):
    """The request contradicts itself, or is impossible."""

    title = "Invalid request"


class UnknownName(DomainError):
    """An unknown name; `near` are the most similar known ones."""

    title = "Unknown name"

    def __init__(self, message: str, pointer: str = "", near: Sequence[str] = ()) -> None:
        super().__init__(message, pointer)
        self.near = tuple(near)

    def below(self, prefix: str) -> DomainError:
        return UnknownName(self.message, prefix + self.pointer, self.near)


class DoesNotFit(DomainError):
    """No layout of the model fits the memory; the message states what would."""

    title = "Does not fit"


class NoOffer(DomainError):
    """No price is known. Never answered with 0."""

    title = "No known price"


class UnpricedAccelerator(NoOffer):
    """No offer of the accelerator is known, whatever the caller might have filtered for: an estimate leaves out its cost."""


class NotFound(DomainError):
    """Not there, or not visible to the caller."""

    status = 404
    title = "Not found"


class StoreUnavailable(Exception):
    """The database is unreachable, full, locked for too long or read-only: nothing was committed.

    `public_message` is shown to API clients, who learn no more of the database.
    """

    public_message = "The database cannot be reached right now; try again."


class StoreFull(StoreUnavailable):
    """The database's disk is full."""

    public_message = "The database has no space left; nothing of this request was kept. Try again when there is some."


class StoreReadOnly(StoreUnavailable):
    """The database is read-only, as a standby is, or a file system after an error."""

    public_message = "The database takes no changes right now; nothing of this request was kept. Try again later."


class SecretsUnavailable(StoreUnavailable):
    """The key of stored secrets is missing, wrong or unreadable; the text names its file."""

    public_message = "The key of the service's stored secrets is missing or wrong; who runs it finds its file named in the log."


class StoreNotReady(Exception):
    """The database's schema is not that of this release."""


class VersionConflictError(Exception):
    """The version to be changed is not the newest."""
