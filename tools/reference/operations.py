"""Every operation of the HTTP interface with its parameters and an example, from openapi.yaml."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tools.reference.tables import table

ROOT = Path(__file__).parents[2]
HEAD = """# HTTP interface

Every address with its fields and an example. `openapi.yaml` has the type, unit and bounds of each field. A running service shows it at
`/docs`, where you can try requests. There are typed [clients](../how-to/clients.md) for Python and TypeScript.

- **Format.** Requests and answers are JSON. You can write numbers as `"7B"` or `"2T"`.
- **Keys.** Once API keys exist, send one: `Authorization: Bearer KEY`.
- **Errors** are `application/problem+json`, with a JSON pointer to each wrong field.
- **Retries.** With an `Idempotency-Key`, a repeated `POST` counts once.
- **Lists** have pages: the `next_cursor` of an answer is the `cursor` of the next request.
- **Same prices again.** Every answer with money names its `price_snapshot` and `engine_version`. Send `"price": {"snapshot": …}` to use the
  same prices.

[Web pages](pages.md) are described separately.

"""
MOST_CHARACTERS = 1_400
"""Length up to which an example stands on the page; of longer answers the names of the fields do."""
WIDTH = 100
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The quick one, where it was compiled: the file has a megabyte."""
METHODS = ("get", "post", "put", "patch", "delete")


def page() -> str:
    """All operations by subject, after a table of them."""
    document = yaml.load((ROOT / "openapi.yaml").read_text(encoding="utf-8"), Loader=LOADER)  # noqa: S506 - it is the safe one
    operations = list(_operations(document))
    listed = table(
        ("address", "what"),
        ((f"[`{name}`](#{slug(name)})", operation["summary"]) for name, operation in operations),
    )
    sections = []
    for tag in document["tags"]:
        below = [_section(name, operation, document) for name, operation in operations if operation["tags"] == [tag["name"]]]
        sections.append(f"## {tag['description']}\n\n" + "\n".join(below))
    return HEAD + listed + "\n" + "\n".join(sections)


def slug(heading: str) -> str:
    """The anchor of a heading, as code hosts make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method in METHODS:
            if method in methods:
                yield f"{method.upper()} {path}", methods[method]


def _section(name: str, operation: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    parts = [f"### {name}\n", f"{operation['summary']}. {_plain(operation.get('description', ''))}".strip() + "\n"]
    asked = [each for each in operation.get("parameters", ()) if each.get("in") == "query"]
    if asked:
        parts.append(table(("parameter", "meaning"), ((f"`{each['name']}`", _plain(each.get("description", ""))) for each in asked)))
    parts += _request(name, operation)
    parts += _answer(operation, document)
    return "\n".join(parts)


def _plain(text: str) -> str:
    """Text whose angle brackets are no markup."""
    return text.replace("<", "&lt;")


def _request(name: str, operation: Mapping[str, Any]) -> list[str]:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    if "example" not in content:
        return []
    return [f"```http\n{name}\n{pretty(content['example'])}\n```\n"]


def _answer(operation: Mapping[str, Any], document: Mapping[str, Any]) -> list[str]:
    """The example of the first success, or the names of its fields."""
    status, response = next((status, each) for status, each in operation["responses"].items() if status.startswith("2"))
    content = response.get("content", {}).get("application/json", {})
    if "example" in content and len(shown := pretty(content["example"])) <= MOST_CHARACTERS:
        return [f"answers {status}:\n\n```json\n{shown}\n```\n"]
    schema = content.get("schema", {})
    properties = document["components"]["schemas"].get(schema.get("$ref", "").rpartition("/")[2], schema).get("properties", {})
    if not properties:
        return [f"answers {status}.\n"]
    return [f"answers {status} with {', '.join(f'`{field}`' for field in properties)}.\n"]


def pretty(value: Any, indent: int = 0) -> str:
    """JSON on as few lines as fit the width."""
    flat = json.dumps(value, ensure_ascii=False, default=str)
    if len(flat) + indent <= WIDTH or not isinstance(value, dict | list) or not value:
        return flat
    pad = " " * (indent + 2)
    if isinstance(value, dict):
        inner = [f"{pad}{json.dumps(name)}: {pretty(below, indent + 2)}" for name, below in value.items()]
        return "{\n" + ",\n".join(inner) + "\n" + " " * indent + "}"
    return "[\n" + ",\n".join(f"{pad}{pretty(below, indent + 2)}" for below in value) + "\n" + " " * indent + "]"
