"""Record the examples of the specification: what an offline service with a fixed clock answers to the requests it describes.

`python -m tools.record_examples` writes service/api/http/data/examples.json, from which the specification takes its answers.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from flask import Flask

from service import create_app
from service.api.http import openapi
from service.api.http.examples import FILE
from service.config import load_settings

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
JSON = "application/json"
ANY_VERSION = {"If-Match": "*"}
Body = Any
Operation = tuple[str, str, dict[str, Any]]

LAST = ("cancelScenario", "deletePriceFile")
"""Operations that end what others show."""
FIRST = ("listSigningKeys",)
"""Signing keys are random: their list is shown as it is before there are any."""
ORDER = (
    ("startProgram", "program_id", "id"),
    ("startRun", "run_id", "id"),
    ("createAlertRule", "rule_id", "id"),
    ("startScenario", "scenario_id", "id"),
    ("keepResult", "result_id", "id"),
    ("createResultLink", "link_id", "id"),
    ("proposePriceFile", "price_file", "name"),
    ("addEvents", "", ""),
    ("testAlertRule", "", ""),
)
"""Operations that make something, the name that addresses have for it, and the member of the answer that holds it."""
WITHOUT_EXAMPLE = (
    "getSpecification",
    "getExample",
    "takeSlackCommand",
    "takeSlackInteraction",
    "showResultPage",
    "importEvents",
    "refreshPriceSource",
)
"""The specification itself and its examples, what only Slack sends, documents, files, and what needs a network."""


@dataclass(slots=True)
class Recording:
    """A service, what was made in it so far by the names of path parameters, and the answers by operation and status."""

    app: Flask
    made: dict[str, str] = field(default_factory=lambda: {"name": "aws"})
    answers: dict[str, dict[str, Body]] = field(default_factory=dict)

    def ask(self, operation: Operation, body: Body) -> Body:
        """Ask and record. Raises ValueError for an answer that is no success."""
        path, method, described = operation
        listed = any(given.get("name") == "limit" for given in described.get("parameters", []))
        query = {"limit": 1} if listed else {}
        headers = {"X-Request-Id": described["operationId"], **(ANY_VERSION if method == "PATCH" else {})}
        answer = self.app.test_client().open(path.format_map(self.made), method=method, json=body, query_string=query, headers=headers)
        if answer.status_code >= 300:
            raise ValueError(f"{method} {path}: {answer.status_code} {answer.get_data(as_text=True)[:500]}")
        if answer.mimetype == JSON:
            self.answers.setdefault(described["operationId"], {})[str(answer.status_code)] = answer.get_json()
        return answer.get_json(silent=True)


def record() -> dict[str, dict[str, Body]]:
    """Answers by operation and status."""
    with _service() as app:
        described = _operations(openapi.document(app))
        recording = Recording(app)
        for name in FIRST:
            recording.ask(described[name], None)
        for name, part, member in ORDER:
            _make(recording, described[name], part, member)
        middle = [name for name in described if name not in (*FIRST, *LAST, *(row[0] for row in ORDER))]
        for name in (*middle, *LAST):
            recording.ask(described[name], _example(described[name]))
    return dict(sorted(recording.answers.items()))


def _make(recording: Recording, operation: Operation, part: str, member: str) -> None:
    body = _example(operation)
    answer = recording.ask(operation, body)
    if part == "price_file":
        sha256 = hashlib.sha256(base64.b64decode(body["content_base64"])).hexdigest()
        answer = recording.ask(operation, {**body, "confirm": True, "sha256": sha256})
    if part:
        recording.made[part] = answer[member]


def _example(operation: Operation) -> Body:
    return operation[2].get("requestBody", {}).get("content", {}).get(JSON, {}).get("example")


def _operations(document: Mapping[str, Any]) -> dict[str, Operation]:
    """Operations with JSON answers, by id."""
    found = {}
    for path, methods in document["paths"].items():
        for method in sorted(set(methods) - {"parameters"}):
            operation = methods[method]
            contents = [response.get("content", {}) for status, response in operation["responses"].items() if status[0] == "2"]
            name = operation["operationId"]
            if name not in WITHOUT_EXAMPLE and any(JSON in content for content in contents):
                found[name] = (path, method.upper(), operation)
    return found


@contextmanager
def _service() -> Iterator[Flask]:
    """An offline service on an empty database with a fixed clock, whose ids and secrets are the same every time."""
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory())
        stack.enter_context(patch("uuid.uuid4", _numbered_ids()))
        stack.enter_context(patch("secrets.token_bytes", lambda size=32: bytes(size)))
        stack.enter_context(patch("secrets.token_urlsafe", lambda size=32: "A" * (size * 4 // 3)))
        app = create_app(load_settings({"OUTLAY_DATA_DIR": folder, "OUTLAY_OFFLINE": "1"}))
        context = replace(app.extensions["context"], clock=lambda: NOW)
        app.extensions["context"] = context
        stack.enter_context(closing(context.store)).migrate()
        yield app


def _numbered_ids() -> Callable[[], uuid.UUID]:
    """Ids that count up in this thread, random ones in all others, whose order nobody knows."""
    numbers, random, here = count(1), uuid.uuid4, threading.get_ident()
    return lambda: uuid.UUID(int=next(numbers), version=4) if threading.get_ident() == here else random()


def main() -> None:
    """Write the file."""
    lines = (f"{json.dumps(name)}: {json.dumps(answers, ensure_ascii=False)}" for name, answers in record().items())
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
