"""Versions of programs on every database: who made each and when, their bodies, and the plan that a program was started with."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from service.domain.teams import DEFAULT_TEAM
from service.domain.tracking.records import ProgramVersion
from service.store import Store
from service.usecases.tracking.versions import figures_of
from tests.contract.store.test_keys import key_of

NOW = datetime(2027, 1, 4, 12, tzinfo=UTC)
BODY = {"name": "a", "state": "open"}
PLAN = {"request": None, "answer": {"total_usd": None}}


def test_versions_come_newest_first_with_the_name_of_their_key(store: Store) -> None:
    """None where the change was made without a key, or with one that is not known."""
    key = key_of(store)
    program = store.create_program(key.team, BODY, PLAN, NOW)
    for hour, by in enumerate((key.id, None, "ffff"), 1):
        program = store.change_program(program, BODY | {"budget_usd": hour}, NOW + timedelta(hours=hour), by)
    names = {1: None, 2: key.name, 3: None, 4: None}
    found = [ProgramVersion(version, NOW + timedelta(hours=version - 1), names[version]) for version in (4, 3, 2, 1)]
    assert store.program_versions(program.id, 10) == found
    assert store.program_versions(program.id, 2) == found[:2]
    assert store.body_of_version(program.id, 3) == BODY | {"budget_usd": 2}
    assert store.body_of_version(program.id, 5) is None
    assert store.first_body(program.id) == BODY


def test_the_first_plan_stays(store: Store) -> None:
    """Whatever the program follows later; None of one that was started without."""
    program = store.create_program(DEFAULT_TEAM, BODY, PLAN, NOW)
    store.change_program(program, BODY | {"plan": {}}, NOW, None)
    assert store.first_plan(program.id) == PLAN
    assert store.first_plan(store.create_program(DEFAULT_TEAM, BODY, None, NOW).id) is None


def test_a_version_of_an_earlier_service_has_no_figures() -> None:
    """Its body has neither a total nor an end."""
    assert figures_of(BODY, {"request": None, "answer": {}}) == {}
