"""docs/reference/programs.md is up to date: its example's answer, the request's fields and their defaults."""

from __future__ import annotations

import json
import re
import tomllib
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from service.domain.programs.runs import RunRepetition
from service.presets.defaults import default
from service.presets.programs import filter_yield, find_program_default
from service.presets.scaling.laws import default_law
from service.schemas.programs.request import ProgramRequestSchema
from service.usecases.programs.tokens import DEFAULT_COMPLEXITY, DEFAULT_GENERALISATION
from tests.support.service import served

WRITTEN = datetime(2026, 11, 28, tzinfo=UTC)
TEXT = (Path(__file__).parents[3] / "docs" / "reference" / "programs.md").read_text(encoding="utf-8")
TABLE = TEXT.split("| in | fields")[1].split("\n\n")[0].splitlines()[2:]
ROWS = {row.strip("| ").split(" | ")[0]: row.strip("| ").split(" | ")[1] for row in TABLE}
FIELD = re.compile(r"`(\w+)`(?: \(([^)]*)\))?")
PIVOT = "tiers.gate.pivot"
ASSUMED = "no field; always assumed"
PROGRAM_DEFAULTS = tomllib.loads(resources.files("service.presets").joinpath("data", "program.toml").read_text(encoding="utf-8"))["default"]
# A default that is a word in the table: twice as many accelerators.
IN_WORDS = {"off_track_below", "taken", "blocking", "overheads_before_runs", "accelerators_factor"}
IN_WORDS |= {"evaluation_blocking", "evaluation_at", "scored_tokens", "generated_tokens"}
OWN = {"data.filter_yield": filter_yield()[0].p50, "tiers.runs.repeat": RunRepetition().repeat, "tiers.runs.seeds": RunRepetition().seeds}


def shown(answer: Any, part: Any) -> Any:
    """The part of an answer that the document shows."""
    if isinstance(part, dict):
        return {name: shown(answer[name], below) for name, below in part.items()}
    if isinstance(part, list):
        return [shown(*pair) for pair in zip(answer, part, strict=True)]
    return pytest.approx(answer, abs=0.005) if isinstance(part, float) else answer


def test_the_example_has_the_answer_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The request of the document, posted at the time at which it was written: later the same plan costs a little less."""
    monkeypatch.setattr("service.container.utc_now", lambda: WRITTEN)
    line, body = TEXT.split("```http\n")[1].split("```")[0].split("\n", maxsplit=1)
    part = json.loads(TEXT.split("```json\n")[1].split("```")[0])
    with served(tmp_path) as client:
        answer = client.post(line.removeprefix("POST "), json=json.loads(body)).get_json()
    assert shown(answer, part) == part


def path_of(label: str) -> str:
    """The path that a row begins with; "" for the request itself."""
    found = re.match(r"`([\w.]+)`", label)
    return found[1] if found else ""


def fields_of(path: str) -> dict[str, Any]:
    """The schema's fields at a path."""
    schema: Any = ProgramRequestSchema()
    for name in filter(None, path.split(".")):
        field = schema.fields[name]
        schema = getattr(field, "inner", field).schema
    return {field.data_key or name: field for name, field in schema.fields.items()}


def stated(path: str, name: str) -> float:
    """The default that is taken for a field."""
    if (whole := f"{path}.{name}") in OWN:
        return OWN[whole]
    return find_program_default(name).value if name in PROGRAM_DEFAULTS else default(whole).value  # type: ignore[no-any-return]


@pytest.mark.parametrize("label", sorted(set(ROWS) - {ASSUMED}))
def test_a_row_has_the_fields_of_its_section(label: str) -> None:
    """All of them, and no other."""
    named = [name for name, _ in FIELD.findall(ROWS[label])]
    assert sorted(named) == sorted(fields_of(path_of(label)))


def test_every_section_has_a_row() -> None:
    """Objects and lists of objects that are the program's own, at any depth; an estimate is documented where it is asked alone.

    A pivot has one row, for tiers' gates: its sections are those of a program.
    """
    paths = {path_of(label) for label in ROWS if label != ASSUMED}
    assert PIVOT in paths
    for path in paths - {PIVOT}:
        for name, field in fields_of(path).items():
            inner = getattr(field, "inner", field)
            whole = f"{path}.{name}".strip(".")
            if hasattr(inner, "schema") and name not in {"estimate", "defaults", "stop_if", "pivot"}:
                assert whole in paths


def test_numbers_in_the_table_are_the_defaults() -> None:
    """Each is what the data files have; every default of a program has its place."""
    found = {
        (path_of(label), name): float(said)
        for label, row in ROWS.items()
        for name, said in FIELD.findall(row)
        if re.fullmatch(r"[\d.]+", said)
    }
    assert found == {(path, name): stated(path, name) for path, name in found}
    assert {name for _, name in found} | IN_WORDS >= set(PROGRAM_DEFAULTS)
    assert find_program_default("accelerators_factor").value == 2


def test_words_in_the_table_are_the_defaults() -> None:
    """Levels and the law."""
    said = {name: words for row in ROWS.values() for name, words in FIELD.findall(row)}
    assert (said["complexity"], said["generalisation"], said["law"]) == (DEFAULT_COMPLEXITY, DEFAULT_GENERALISATION, default_law().name)
