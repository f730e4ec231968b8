"""The audit trail on every database: one entry a change, in its transaction, chained, never changed."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import delete, update
from sqlalchemy.exc import DBAPIError

from service.actor import acting_as
from service.domain.audit import FIRST_PREVIOUS, Actor, AuditFilter, entry_body
from service.domain.errors import StoreUnavailable, VersionConflictError
from service.domain.teams import DEFAULT_TEAM
from service.store import Store
from service.store.audit import audit_entries
from service.usecases.audit import BrokenTrail, check_trail
from tests.contract.store.test_keys import key_of

NOW = datetime(2027, 1, 4, 12, 0, 0, 123456, tzinfo=UTC)
ALL = AuditFilter()
BODY = {"name": "a", "state": "open"}


def trail(store: Store, wanted: AuditFilter = ALL, team: str = DEFAULT_TEAM) -> list[Mapping[str, Any]]:
    """Entries as they are shown, the newest first."""
    return [entry_body(entry) for entry in store.audit_entries(team, 0, 1000, wanted)]


def test_a_change_leaves_who_what_and_both_states(store: Store) -> None:
    """The state after one change is the state before the next; time, key, address and request come back as they were."""
    with acting_as(Actor("http", "00ff", None, "192.0.2.1", "r1")):
        program = store.create_program(DEFAULT_TEAM, BODY, None, NOW)
        store.change_program(program, BODY | {"budget_usd": 5.0}, NOW + timedelta(hours=1), "00ff")
    changed, made = trail(store)
    assert (made["operation"], changed["operation"]) == ("program.create", "program.change")
    assert made["object"] == changed["object"] == program.id
    assert (made["before"], made["after"]) == (None, changed["before"])
    assert changed["after"] not in (None, changed["before"])
    assert (made["at"], changed["number"]) == ("2027-01-04T12:00:00.123456Z", 2)
    assert {name: made[name] for name in ("via", "key", "user", "address", "request")} == {
        "via": "http",
        "key": "00ff",
        "user": None,
        "address": "192.0.2.1",
        "request": "r1",
    }
    assert check_trail(trail(store), store.audit_head(DEFAULT_TEAM)) == 2


def test_a_change_that_is_refused_leaves_no_entry(store: Store) -> None:
    """The entry is part of the change's transaction."""
    program = store.create_program(DEFAULT_TEAM, BODY, None, NOW)
    store.change_program(program, BODY, NOW, None)
    with pytest.raises(VersionConflictError):
        store.change_program(program, BODY, NOW, None)
    assert [entry["number"] for entry in trail(store)] == [2, 1]
    assert store.audit_head(DEFAULT_TEAM)[0] == 2


def test_filters_find_object_key_operation_and_time(store: Store) -> None:
    """Alone and together; another team's entries are never among them."""
    first = store.create_program(DEFAULT_TEAM, BODY, None, NOW)
    with acting_as(Actor("http", "00ff")):
        store.create_run(first, "main", {"name": "main"}, NOW + timedelta(hours=1))
    theirs = store.team("theirs", NOW)
    store.create_program(theirs.id, BODY, None, NOW)
    assert [entry["operation"] for entry in trail(store)] == ["run.create", "program.create"]
    for wanted, found in (
        (AuditFilter(object=first.id), ["program.create"]),
        (AuditFilter(key="00ff"), ["run.create"]),
        (AuditFilter(operation="program.create"), ["program.create"]),
        (AuditFilter(since=NOW + timedelta(hours=1)), ["run.create"]),
        (AuditFilter(until=NOW + timedelta(hours=1)), ["program.create"]),
        (AuditFilter(object=first.id, key="00ff"), []),
    ):
        assert [entry["operation"] for entry in trail(store, wanted)] == found, wanted
    assert [entry["number"] for entry in trail(store, team=theirs.id)] == [1]


def test_entries_cannot_be_changed(store: Store) -> None:
    """The database itself refuses it."""
    store.create_program(DEFAULT_TEAM, BODY, None, NOW)
    before = trail(store)
    for statement in (update(audit_entries).values(key="other"), delete(audit_entries)):
        with pytest.raises((DBAPIError, StoreUnavailable), match="audit entries are not changed"), store.engine.begin() as connection:
            connection.execute(statement)
    assert trail(store) == before


def test_writers_at_once_make_one_chain(store: Store) -> None:
    """Numbers without gaps, each entry on the one before."""
    program = store.create_program(DEFAULT_TEAM, BODY, None, NOW)
    with ThreadPoolExecutor(6) as pool:
        runs = pool.map(lambda number: store.create_run(program, f"run {number}", {"name": f"{number}"}, NOW), range(24))
        programs = pool.map(lambda _: store.create_program(DEFAULT_TEAM, BODY, None, NOW), range(12))
        assert len([*runs, *programs]) == 36
    assert check_trail(trail(store), store.audit_head(DEFAULT_TEAM)) == 37


def test_a_trail_that_is_not_whole_is_noticed(store: Store) -> None:
    """Whether an entry was changed, dropped anywhere or put in between."""
    program = store.create_program(DEFAULT_TEAM, BODY, None, NOW)
    for number in range(4):
        store.create_run(program, f"run {number}", {"name": "main"}, NOW)
    entries, head = trail(store), store.audit_head(DEFAULT_TEAM)
    assert check_trail(entries, head) == 5
    assert check_trail([], (0, FIRST_PREVIOUS)) == 0
    for place in range(5):
        with pytest.raises(BrokenTrail, match=r"entry \d"):
            check_trail(entries[:place] + entries[place + 1 :], head)
        with pytest.raises(BrokenTrail, match=rf"entry {5 - place} was changed"):
            check_trail([*entries[:place], {**entries[place], "key": "other"}, *entries[place + 1 :]], head)
        with pytest.raises(BrokenTrail):
            check_trail([*entries[:place], entries[place], *entries[place:]], head)


def test_keys_are_traced_in_their_team(store: Store) -> None:
    """Made and revoked, each once."""
    key = key_of(store)
    for _ in range(2):
        store.revoke_key(key.id, NOW)
    entries = trail(store, team=key.team)
    assert [entry["operation"] for entry in entries] == ["key.revoke", "key.create"]
    assert entries[0]["before"] == entries[1]["after"]
    assert entries[0]["object"] == key.id
