"""docs/reference/tracking.md says what is: its example's answer, its table of events, its rates."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from service.cli.tracking import track
from service.domain.tracking.events import API_NAMES, EVENT_FIELDS, PROGRESS_FIELDS, EventFields
from service.formats.documents.render import REPORT_FORMATS
from service.presets.tracking.status import status_rules
from service.usecases.tracking.report import SHOWN

DOCUMENT = (Path(__file__).parents[3] / "docs" / "reference" / "tracking.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```(http|json)\n(.*?)```", re.DOTALL)
RUNNING_WORDS = "the running fields"


def exchanges() -> list[tuple[str, str, Any]]:
    """Method and address, body, and what is shown of the answer, None where nothing is."""
    found: list[tuple[str, str, Any]] = []
    for kind, text in BLOCK.findall(DOCUMENT):
        if kind == "http":
            line, _, body = text.partition("\n")
            found.append((line, body, None))
        else:
            found[-1] = (*found[-1][:2], json.loads(text))
    return found


def shown(answer: Any, part: Any) -> Any:
    """What the answer has at the places that the document shows."""
    if isinstance(part, dict):
        return {name: shown(answer[name], below) for name, below in part.items()}
    if isinstance(part, float):
        return pytest.approx(answer, rel=1e-4)
    return answer


def asked(client: FlaskClient, line: str, body: str, ids: dict[str, str]) -> Any:
    """The answer to an exchange's request."""
    method, _, address = line.partition(" ")
    for name, value in ids.items():
        address = address.replace(f"{{{name}}}", value)
    answer = client.open(address, method=method, json=json.loads(body) if body else None)
    assert answer.status_code in (200, 201), answer.text
    return answer.get_json()


def test_the_example_is_answered_as_it_shows(tracking_app: Flask) -> None:
    """Request by request, on each database; sent again, events are duplicates."""
    client, ids = tracking_app.test_client(), {}
    for line, body, part in exchanges():
        answer = asked(client, line, body, ids)
        if line.endswith("/programs"):
            ids["program"] = answer["id"]
        elif line.endswith("/runs"):
            ids["run"] = answer["id"]
        elif line.endswith("/events"):
            again = asked(client, line, body, ids)
            assert (again["accepted"], again["duplicates"]) == (0, answer["accepted"])
        if part is not None:
            assert shown(answer, part) == part, line
    assert set(ids) == {"program", "run"}


def words(cell: str) -> set[str]:
    """The field names of a cell, those behind its words too."""
    named = set(re.findall(r"`([a-z_]+)`", cell))
    return named | (set(PROGRESS_FIELDS) if RUNNING_WORDS in cell else set())


def fields_of(names: tuple[str, ...]) -> set[str]:
    """Names as the interface has them, the running fields as the domain."""
    return {name if name in PROGRESS_FIELDS else API_NAMES.get(name, name) for name in names}


@pytest.mark.parametrize(("kind", "rule"), EVENT_FIELDS.items())
def test_the_table_of_events_is_the_domains(kind: str, rule: EventFields) -> None:
    """Required fields and others of every type, and no type missing."""
    (row,) = re.findall(rf"^\| `{kind}` \|(.*)\|(.*)\|$", DOCUMENT, flags=re.MULTILINE)
    required, others = row
    if rule.any_of:
        assert set(rule.any_of) == words(required) | words(others)
        assert "at least one of" in required
    elif kind == "correction":
        assert (words(required), others.strip()) == (set(rule.required), "every field of the event it corrects")
        assert fields_of(rule.takes) == {name for other in EVENT_FIELDS.values() for name in fields_of(other.takes)}
    else:
        assert words(required) == fields_of(rule.required)
        assert words(required) | words(others) == fields_of(rule.takes)


def test_the_running_fields_are_the_domains() -> None:
    """The document names each, as the interface does."""
    (sentence,) = re.findall(r"The running fields are (.*?);", DOCUMENT)
    assert words(sentence) == {API_NAMES.get(name, name) for name in PROGRESS_FIELDS}


def test_the_stated_rates_are_the_rules() -> None:
    """False alarms of drift, and the gate's criteria where nobody decided."""
    rules, text = status_rules(), " ".join(DOCUMENT.split())
    assert f"with a chance of {rules.drift.false_alarm_share * 100:g} %" in text
    assert f"continue needs a CPI of {rules.gate.cpi_at_least:g} and stop a CPI below {rules.gate.cpi_below:g}" in text
    assert DOCUMENT.count(f"{SHOWN} ") >= 2


def test_every_format_and_command_is_described() -> None:
    """In the tables of the report and of the command line."""
    assert set(re.findall(r"^\| `([a-z]+)` \|", DOCUMENT.split("## Report")[1], flags=re.MULTILINE)) == {*REPORT_FORMATS, "json", "format"}
    assert set(re.findall(r"`outlay track ([a-z-]+)", DOCUMENT)) == set(track.commands)
