"""Small imports of every kind, written anew in the shape of the real ones, and what an import is held against."""

from __future__ import annotations

from pathlib import Path

from service.domain.tracking.events import EVENT_FIELDS, Event, stated_fields
from service.domain.tracking.imports import ImportedFile

FOLDER = Path(__file__).parents[3] / "data" / "tracking"
MAX_ID_CHARACTERS = 200
"""Characters of an event's id that the store has room for."""


def data(name: str) -> bytes:
    """A file of the recorded imports."""
    return (FOLDER / name).read_bytes()


def of_run(imported: ImportedFile, run: str) -> list[Event]:
    """The events of a run, in the order of the import."""
    return [each.event for each in imported.events if each.reference.run == run]


def reasons(imported: ImportedFile) -> dict[int, str]:
    """Why rows brought nothing, by row."""
    return {each.row: each.reason for each in imported.unmatched}


def assert_takable(imported: ImportedFile) -> None:
    """Every event holds what its type takes and needs, its id is short enough, and no id is there twice for one run."""
    for each in imported.events:
        rule, given = EVENT_FIELDS[each.event.type], stated_fields(each.event)
        assert set(given) <= set(rule.takes)
        assert set(rule.required) <= set(given)
        assert not rule.any_of or set(rule.any_of) & set(given)
        assert 0 < len(each.event.id) <= MAX_ID_CHARACTERS
    ids = [(each.reference, each.event.id) for each in imported.events]
    assert len(set(ids)) == len(ids)
