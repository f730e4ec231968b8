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
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

from flask import Flask

from service import create_app
from service.api.http import openapi
from service.api.http.examples import FILE
from service.config import load_settings
from tools.example_requests import SLACK_SECRET, example_body, request_of

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
JSON = "application/json"
BAD_REQUEST = 400
Body = Any
NO_HEADERS: Mapping[str, str] = MappingProxyType({})
Operation = tuple[str, str, dict[str, Any]]

LAST = ("cancelScenario", "cancelImport", "deletePriceFile", "revokeResultLink", "deleteAlertRule", "deleteResult")
"""Operations that end what others show."""
ONLINE = "refreshPriceSource"
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
    ("importEvents", "import_id", "id"),
    ("testAlertRule", "", ""),
)
"""Operations that make something, the name that addresses have for it, and the member of the answer that holds it."""
NOT_ASKED = {
    "getSpecification": "the specification, which would hold itself",
    "getExample": "the other examples",
    "getDocsAsset": "a file of the documentation's page",
    "watchScenario": "a stream that ends with the scenario, which no worker evaluates here",
}
"""Operations that have no example, and what they answer; all others are asked."""


@dataclass(slots=True)
class Recording:
    """A service, what was made in it so far by the names of path parameters, and the answers by operation and status."""

    app: Flask
    made: dict[str, str] = field(default_factory=lambda: {"name": "aws"})
    answers: dict[str, dict[str, Body]] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)

    def ask(self, operation: Operation, body: Body = None, headers: Mapping[str, str] = NO_HEADERS) -> Body:
        """Ask with this body, else with the example, and these further headers, and record.

        Raises ValueError for an answer that is no success or not described.
        """
        path, method, described = operation
        request = request_of(described, self.made, NOW) | ({} if body is None else {"json": body})
        request["headers"] = {**request["headers"], **headers}
        answer = self.app.test_client().open(path.format_map(self.made), method=method, **request)
        status, content = str(answer.status_code), answer.get_data()
        if answer.status_code >= BAD_REQUEST or status not in described["responses"]:
            raise ValueError(f"{method} {path}: {status} {answer.get_data(as_text=True)[:500]}")
        if content and answer.mimetype not in described["responses"][status].get("content", {}):
            raise ValueError(f"{method} {path} answers {answer.mimetype}, which is not described")
        self.asked.add(described["operationId"])
        if content and answer.mimetype == JSON:
            self.answers.setdefault(described["operationId"], {})[status] = answer.get_json()
        return answer.get_json(silent=True)


def record() -> Recording:
    """The answers of all operations."""
    with _service() as app:
        described = _operations(openapi.document(app))
        recording = Recording(app)
        for name in FIRST:
            recording.ask(described[name])
        for name, part, member in ORDER:
            _make(recording, described[name], part, member)
        middle = [name for name in described if name not in (*FIRST, *LAST, ONLINE, *(row[0] for row in ORDER))]
        for name in middle:
            recording.ask(described[name])
        with _online(app):
            recording.ask(described[ONLINE])
        for name in LAST:
            recording.ask(described[name])
    return recording


@contextmanager
def _online(app: Flask) -> Iterator[None]:
    """The service not offline: it accepts a refresh, which no worker fetches."""
    offline = app.extensions["context"]
    app.extensions["context"] = replace(offline, settings=replace(offline.settings, offline=False))
    yield
    app.extensions["context"] = offline


def _make(recording: Recording, operation: Operation, part: str, member: str) -> None:
    answer = recording.ask(operation)
    if part == "price_file":
        body = example_body(operation[2])
        sha256 = hashlib.sha256(base64.b64decode(body["content_base64"])).hexdigest()
        answer = recording.ask(operation, {**body, "confirm": True, "sha256": sha256})
    if part == "import_id":
        answer = recording.ask(operation, headers={"Prefer": "respond-async"})
    if part:
        recording.made[part] = answer[member]


def _operations(document: Mapping[str, Any]) -> dict[str, Operation]:
    """Operations that are asked, by id."""
    each = (
        (path, method, methods[method]) for path, methods in document["paths"].items() for method in sorted(set(methods) - {"parameters"})
    )
    return {
        operation["operationId"]: (path, method.upper(), operation)
        for path, method, operation in each
        if operation["operationId"] not in NOT_ASKED
    }


@contextmanager
def _service() -> Iterator[Flask]:
    """An offline service on an empty database with a fixed clock, whose ids and secrets are the same every time."""
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory())
        stack.enter_context(patch("uuid.uuid4", _numbered_ids()))
        stack.enter_context(patch("secrets.token_bytes", lambda size=32: bytes(size)))
        stack.enter_context(patch("secrets.token_urlsafe", lambda size=32: "A" * (size * 4 // 3)))
        app = create_app(load_settings({"OUTLAY_DATA_DIR": folder, "OUTLAY_OFFLINE": "1", "OUTLAY_SLACK_SIGNING_SECRET": SLACK_SECRET}))
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
    lines = (f"{json.dumps(name)}: {json.dumps(answers, ensure_ascii=False)}" for name, answers in sorted(record().answers.items()))
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
