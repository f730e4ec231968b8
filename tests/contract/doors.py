"""A service with two teams and keys of every kind: what the tests of keys, limits and repeated requests knock at."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from flask import Flask
from flask.testing import FlaskClient

from service import create_app
from service.config import Settings
from service.context import AppContext
from service.domain.teams import SCOPES
from service.usecases.keys import make_key

KEYS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "ours": ("ours", SCOPES),
    "theirs": ("theirs", SCOPES),
    "we may read": ("ours", ("read",)),
    "we may write": ("ours", ("write",)),
    "we may all but read": ("ours", ("write", "admin")),
    "we may all but write": ("ours", ("read", "admin")),
    "we may all but admin": ("ours", ("read", "write")),
    "they may read": ("theirs", ("read",)),
    "revoked": ("ours", SCOPES),
    "expired": ("ours", SCOPES),
}
"""Team and scopes of each key, by the name the tests call it."""


@dataclass(frozen=True)
class House:
    """The service, and the tokens of its keys by name."""

    app: Flask
    tokens: Mapping[str, str]

    def ask(self, key: str | None, method: str, path: str, **more: Any) -> Any:
        """What is answered to somebody with that key, or with none; the process has forgotten nothing meanwhile."""
        headers = {**more.pop("headers", {}), **({"Authorization": f"Bearer {self.tokens[key]}"} if key else {})}
        client: FlaskClient = self.app.test_client()
        return client.open(path, method=method, headers=headers, **more)

    @property
    def context(self) -> AppContext:
        """The service's context."""
        context: AppContext = self.app.extensions["context"]
        return context


@contextmanager
def house(settings: Settings) -> Iterator[House]:
    """A service on a migrated store with a key of each kind."""
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    app = create_app(settings)
    context: AppContext = app.extensions["context"]
    context.store.migrate()
    past = replace(context, clock=lambda: context.clock() - timedelta(hours=2))
    tokens = {name: make_key(past if name == "expired" else context, team, name, scopes, "1h")[1] for name, (team, scopes) in KEYS.items()}
    context.store.revoke_key(key_id(tokens["revoked"]), context.clock())
    try:
        yield House(app, tokens)
    finally:
        context.store.close()


def key_id(token: str) -> str:
    """The part of a token that is no secret."""
    return token.split("_")[1]


def secret(token: str) -> str:
    """The part of a token that is."""
    return token.split("_", 2)[2]


def shown(answer: Any, *hidden: str) -> tuple[int, str]:
    """Status and body without what differs between any two answers: the request's id, and the ids that were asked for."""
    text = answer.get_data(as_text=True)
    for part in (answer.headers["X-Request-Id"], *hidden):
        text = text.replace(part, "…")
    return answer.status_code, text


def is_problem(answer: Any, status: int) -> dict[str, Any]:
    """The answer is a problem of that status."""
    body: dict[str, Any] = json.loads(answer.get_data())
    assert (answer.status_code, body["status"], answer.content_type) == (status, status, "application/problem+json")
    return body
