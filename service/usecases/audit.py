"""The audit trail: which changes there were, and whether the trail is whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from service.context import AppContext
from service.domain.audit import FIRST_PREVIOUS, AuditEntry, AuditFilter, body_digest, entry_body
from service.domain.teams import Principal

Body = Mapping[str, Any]
READ_AT_ONCE = 1000


class BrokenTrail(Exception):
    """An entry was changed, is missing or was put in between; the text says which."""


def list_entries(context: AppContext, who: Principal, wanted: AuditFilter, before: int, limit: int) -> list[AuditEntry]:
    """Entries of the caller's team with a number below `before` (0: all), the newest first."""
    return context.store.audit_entries(who.team, before, limit, wanted)


def check_stored(context: AppContext, who: Principal) -> int:
    """The number of entries of the caller's team. Raises BrokenTrail unless all are there, up to the newest by the store's own record."""
    head = context.store.audit_head(who.team)
    return check_trail(_stored(context, who, head[0]), head)


def _stored(context: AppContext, who: Principal, newest: int) -> Iterator[Body]:
    before = newest + 1
    while page := context.store.audit_entries(who.team, before, READ_AT_ONCE, AuditFilter()):
        yield from map(entry_body, page)
        before = page[-1].number
        if before <= 1:
            return


def check_trail(entries: Iterable[Body], head: tuple[int, str] | None = None) -> int:
    """The number of entries of a whole trail, which are given as they are shown, the newest first, without filters.

    `head`: number and digest that the newest must have. Raises BrokenTrail.
    """
    expected, count = head, 0
    for entry in entries:
        number, digest = entry["number"], entry["digest"]
        if body_digest(entry) != digest:
            raise BrokenTrail(f"entry {number} was changed: its digest is not that of its members")
        if expected is not None and expected != (number, digest):
            raise BrokenTrail(f"entry {expected[0]} is missing or was changed: {number} follows with another number or digest")
        expected, count = (number - 1, entry["previous"]), count + 1
    if expected is not None and expected != (0, FIRST_PREVIOUS):
        raise BrokenTrail(f"entry {expected[0]} and those before it are missing")
    return count
