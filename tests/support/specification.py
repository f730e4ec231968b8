"""Reading an OpenAPI specification."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

Document = dict[str, Any]


def read_yaml(text: str) -> Document:
    """A specification in YAML, by the quick reader where it was compiled: the file has a megabyte."""
    found: Document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return found


def operations(document: Document) -> Iterator[tuple[str, str, Document]]:
    """Every path, method and operation of a specification."""
    for path, methods in document["paths"].items():
        for method in sorted(set(methods) - {"parameters"}):
            yield path, method.upper(), methods[method]


def references(node: Any) -> Iterator[str]:
    """Every `$ref` below a node."""
    if isinstance(node, dict):
        for name, below in node.items():
            if name == "$ref" and isinstance(below, str):
                yield below
            else:
                yield from references(below)
    elif isinstance(node, list):
        for below in node:
            yield from references(below)


def used_components(document: Document) -> set[str]:
    """References of all components that the paths reach, directly or through others."""
    seen: set[str] = set()
    waiting = list(references(document["paths"]))
    while waiting:
        reference = waiting.pop()
        if reference not in seen:
            seen.add(reference)
            _, _, kind, name = reference.split("/")
            waiting.extend(references(document["components"][kind][name]))
    return seen
