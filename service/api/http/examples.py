"""Examples of answers in the specification: recorded by tools.record_examples from the requests that the specification shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "data" / "examples.json"
JSON = "application/json"
ADDRESS = "/docs/examples"
MOST_CHARACTERS = 20_000
"""Length of an answer as JSON up to which it stands in the specification; longer ones are at ADDRESS."""


def read_examples() -> dict[str, dict[str, Any]]:
    """Answers by operation and status."""
    found: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def add_examples(document: dict[str, Any]) -> None:
    """Add each operation's recorded answers to its responses."""
    examples = read_examples()
    for methods in document["paths"].values():
        for method in set(methods) - {"parameters"}:
            for status, answer in examples.get(methods[method].get("operationId"), {}).items():
                _show(methods[method], status, answer)


def _show(operation: dict[str, Any], status: str, answer: Any) -> None:
    response = operation["responses"][status]
    if len(json.dumps(answer)) <= MOST_CHARACTERS:
        response["content"][JSON]["example"] = answer
    else:  # `externalValue` takes a generator of clients to the folder that the specification is in
        response["description"] += f"; an example, too long to stand here, is at `{ADDRESS}/{operation['operationId']}`"
