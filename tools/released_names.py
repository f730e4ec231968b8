"""Keep the names of a released specification: those that a later one must still have.

`python -m tools.released_names` writes them to tests/data/released_names.txt; run it when a version is released.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
FILE = ROOT / "tests" / "data" / "released_names.txt"


def names_of(document: Mapping[str, Any]) -> dict[str, set[str]]:
    """Operations with their parameters and statuses, and schemas with their fields and enum values."""
    found = {}
    for path, methods in document["paths"].items():
        shared = methods.get("parameters", [])
        for method in set(methods) - {"parameters"}:
            operation = methods[method]
            given = [*shared, *operation.get("parameters", [])]
            parts = {part for parameter in given if "name" in parameter for part in _part(parameter["name"], parameter["schema"])}
            successes = {status for status in operation["responses"] if status < "4"}
            found[f"{operation['operationId']} {method.upper()} {path}"] = parts | successes
    for name, schema in document["components"]["schemas"].items():
        found[name] = {part for field, below in schema.get("properties", {}).items() for part in _part(field, below)}
    return found


def read_names() -> dict[str, set[str]]:
    """The names of the last release."""
    lines = (line.split(": ", 1) for line in FILE.read_text(encoding="utf-8").splitlines())
    return {name: set(parts.split()) for name, parts in lines}


def _part(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield name
    for value in schema.get("enum") or schema.get("items", {}).get("enum", ()):
        yield f"{name}={str(value).replace(' ', '_')}"


def main() -> None:
    """Write the file."""
    names = names_of(yaml.safe_load((ROOT / "openapi.yaml").read_text(encoding="utf-8")))
    FILE.write_text("".join(f"{name}: {' '.join(sorted(names[name]))}\n" for name in sorted(names)), encoding="utf-8")


if __name__ == "__main__":
    main()
