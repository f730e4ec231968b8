"""A page's question as texts to copy: a command, curl, Python. What is typed in a name never ends a text before its end."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pprint import pformat
from typing import Any

from service.api.http import sessions

WIDTH = 100
KEY_HEADER = "Authorization: Bearer $OUTLAY_API_KEY"
PYTHON = """import os

import requests

question = {question}
answer = requests.post(f"{{os.environ['OUTLAY_SERVER']}}/v1/{name}", json=question, {headers}timeout=60)
answer.raise_for_status()
print(answer.json()["summary"]["text"])"""
PYTHON_HEADERS = """headers={"Authorization": f"Bearer {os.environ['OUTLAY_API_KEY']}"}, """


def copies(name: str, request: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Title and text of each way to ask this again. `name`: the command, and the address below /v1/.

    The server is that of $OUTLAY_SERVER, and where it has keys the key that of $OUTLAY_API_KEY, as the command reads them.
    """
    body = shlex.quote(json.dumps(request))
    is_keyed = bool(sessions.form_token())
    question = pformat(dict(request), width=WIDTH, sort_dicts=False)
    return (
        ("As a command", f"printf %s {body} | outlay {name} -"),
        ("As curl", curl_text(f"/v1/{name}", request)),
        ("As Python", PYTHON.format(question=question, name=name, headers=PYTHON_HEADERS if is_keyed else "")),
    )


def curl_text(path: str, body: object, method: str = "POST", *, header: str = "") -> str:
    """A request as curl sends it, with the key where the server has keys. `header`: one more, which is no secret."""
    key = f' -H "{KEY_HEADER}"' if sessions.form_token() else ""
    more = f" -H {shlex.quote(header)}" if header else ""
    how = "" if method == "POST" else f" -X {method}"
    return f'curl -s{how} "$OUTLAY_SERVER{path}"{key}{more} -H "Content-Type: application/json" --data-raw {shlex.quote(json.dumps(body))}'
