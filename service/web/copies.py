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
    header = f' -H "{KEY_HEADER}"' if is_keyed else ""
    question = pformat(dict(request), width=WIDTH, sort_dicts=False)
    return (
        ("As a command", f"printf %s {body} | outlay {name} -"),
        ("As curl", f'curl -s "$OUTLAY_SERVER/v1/{name}"{header} -H "Content-Type: application/json" --data-raw {body}'),
        ("As Python", PYTHON.format(question=question, name=name, headers=PYTHON_HEADERS if is_keyed else "")),
    )
