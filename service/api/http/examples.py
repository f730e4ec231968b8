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
                methods[method]["responses"][status]["content"][JSON].update(_shown(methods[method]["operationId"], answer))


def _shown(operation: str, answer: Any) -> dict[str, Any]:
    if len(json.dumps(answer)) <= MOST_CHARACTERS:
        return {"example": answer}
    return {"examples": {"recorded": {"summary": "An answer, too long to stand here", "externalValue": f"{ADDRESS}/{operation}"}}}
