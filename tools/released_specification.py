"""Keep what clients of a released specification rely on, and find what a later one breaks of it.

`python -m tools.released_specification` writes it to tests/data/released_specification.json; run it when a version is released.

A request may take more than it did, never less; an answer has all that it had, and no other type of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
FILE = ROOT / "tests" / "data" / "released_specification.json"
UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems")
LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems")
Facts = dict[str, Any]
Breaks = Iterator[str]


def facts_of(document: Mapping[str, Any]) -> Facts:
    """Operations and schemas of a specification, as far as clients rely on them."""
    each = [
        (f"{method.upper()} {path}", [*methods.get("parameters", []), *methods[method].get("parameters", [])], methods[method])
        for path, methods in document["paths"].items()
        for method in methods
        if method != "parameters"
    ]
    schemas = document["components"]["schemas"]
    return {
        "operations": {operation["operationId"]: _operation(address, given, operation) for address, given, operation in each},
        "schemas": {name: _object(schema) for name, schema in schemas.items()},
        "taken": sorted(_reached([operation.get("requestBody") for _, _, operation in each], schemas)),
        "answered": sorted(_reached([operation["responses"] for _, _, operation in each], schemas)),
    }


def breaks(released: Facts, present: Facts) -> list[str]:
    """What clients of the released specification would miss in the present one, a sentence each."""
    found = [f"{name} is gone" for kind in ("operations", "schemas") for name in released[kind] if name not in present[kind]]
    for name, before in released["operations"].items():
        if name in present["operations"]:
            found += _operation_breaks(name, before, present["operations"][name])
    for name, before in released["schemas"].items():
        now = present["schemas"].get(name)
        if now is not None:
            found += _request_breaks(name, before, now, (released["schemas"], present["schemas"])) if name in released["taken"] else ()
            found += _answer_breaks(name, before, now) if name in released["answered"] else ()
    return found


def read_released() -> Facts:
    """What clients of the last release rely on."""
    found: Facts = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def _operation(address: str, given: list[Any], operation: Mapping[str, Any]) -> Facts:
    parameters = {each["name"]: each for each in given if "name" in each}
    return {
        "address": address,
        "takes": _contents(operation.get("requestBody", {})),
        "answers": {status: _contents(answer) for status, answer in operation["responses"].items() if status < "4"},
        "fields": {name: _field(each["schema"]) for name, each in parameters.items()},
        "required": sorted(name for name, each in parameters.items() if each.get("required") and each["in"] != "path"),
    }


def _contents(body: Mapping[str, Any]) -> dict[str, list[str]]:
    """Types of a body by its media types."""
    return {media_type: _types(content.get("schema", {})) for media_type, content in body.get("content", {}).items()}


def _object(schema: Mapping[str, Any]) -> Facts:
    fields = dict(_fields(schema, ""))
    return {"fields": {name: _field(each) for name, each in fields.items()}, "required": sorted(_required(schema, ""))}


def _fields(schema: Mapping[str, Any], above: str) -> Iterator[tuple[str, Any]]:
    """Fields by their paths, those of objects without a name of their own among them."""
    for name, below in schema.get("properties", {}).items():
        yield f"{above}{name}", below
        yield from _fields(below, f"{above}{name}.")


def _required(schema: Mapping[str, Any], above: str) -> Iterator[str]:
    yield from (f"{above}{name}" for name in schema.get("required", ()))
    for name, below in schema.get("properties", {}).items():
        yield from _required(below, f"{above}{name}.")


def _field(schema: Mapping[str, Any]) -> Facts:
    values = {"values": sorted(map(str, schema["enum"]))} if "enum" in schema else {}
    limits = {limit: schema[limit] for limit in (*UPPER, *LOWER) if limit in schema}
    return {"types": _types(schema), **values, **limits}


def _types(schema: Mapping[str, Any]) -> list[str]:
    """Names of the types that a value may have; a component is one."""
    if "$ref" in schema:
        return [schema["$ref"].rpartition("/")[2]]
    stated = schema.get("type", [])
    found = {stated} if isinstance(stated, str) else set(stated)
    for below in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        found |= set(_types(below))
    if "items" in schema:
        found = (found - {"array"}) | {f"list of {kind}" for kind in _types(schema["items"])}
    return sorted(found)


def _reached(node: Any, schemas: Mapping[str, Any]) -> set[str]:
    """Names of all components below a node, directly or through others."""
    seen: set[str] = set()
    waiting = [node]
    while waiting:
        below = waiting.pop()
        if isinstance(below, list):
            waiting += below
        elif isinstance(below, Mapping):
            name = str(below.get("$ref", "")).rpartition("/")[2]
            if name in schemas and name not in seen:
                seen.add(name)
                waiting.append(schemas[name])
            waiting += below.values()
    return seen


def _operation_breaks(name: str, before: Facts, now: Facts) -> Breaks:
    if before["address"] != now["address"]:
        yield f"{name} was {before['address']} and is {now['address']}"
    yield from (f"{name} takes {kind} no more" for kind in before["takes"] if kind not in now["takes"])
    for status, contents in before["answers"].items():
        if status not in now["answers"]:
            yield f"{name} answers {status} no more"
        else:
            yield from (f"{name} answers {status} as {kind} no more" for kind in contents if kind not in now["answers"][status])
            for kind, types in contents.items():
                if now["answers"][status].get(kind, types) != types:
                    yield f"{name} answered {status} with {', '.join(types)}, and answers {', '.join(now['answers'][status][kind])}"
    yield from _request_breaks(name, before, now)


def _request_breaks(name: str, before: Facts, now: Facts, schemas: tuple[Facts, Facts] = ({}, {})) -> Breaks:
    """What a request might hold and may no more, and what it must hold and need not before; `schemas`: released and present ones."""
    yield from (f"{name}.{field} is required now" for field in now["required"] if field not in before["required"])
    for field, was in before["fields"].items():
        found = now["fields"].get(field)
        if found is None:
            yield f"{name}.{field} is gone"
            continue
        refused = [kind for kind in was["types"] if not _takes(found["types"], kind) and not _covered(kind, found["types"], *schemas)]
        yield from (f"{name}.{field} takes no {kind} any more" for kind in refused)
        lost = set(was.get("values", ())) - set(found["values"]) if "values" in found else ()
        yield from (f"{name}.{field} takes {value} no more" for value in sorted(lost))
        if "values" in found and "values" not in was:
            yield f"{name}.{field} takes some values only"
        yield from (f"{name}.{field} has a narrower {limit}" for limit in UPPER if _narrower(was, found, limit, lambda one, two: two < one))
        yield from (f"{name}.{field} has a narrower {limit}" for limit in LOWER if _narrower(was, found, limit, lambda one, two: two > one))


def _answer_breaks(name: str, before: Facts, now: Facts) -> Breaks:
    """What an answer had and has no more, and other types that it has now."""
    for field, was in before["fields"].items():
        found = now["fields"].get(field)
        if found is None:
            yield f"{name}.{field} is gone"
            continue
        yield from (f"{name}.{field} may be {kind} now" for kind in found["types"] if was["types"] and not _takes(was["types"], kind))
        if field in before["required"] and field not in now["required"]:
            yield f"{name}.{field} may be absent now"


def _takes(types: list[str], kind: str) -> bool:
    """Whether a value of the kind is one of the types; none stated are all."""
    return not types or kind in types or (kind == "integer" and "number" in types)


def _covered(kind: str, types: list[str], released: Facts, present: Facts) -> bool:
    """Whether one of the types is a present schema of another name that takes all that the released one of that kind took."""
    before = released.get(kind, {"fields": {}})
    return bool(before["fields"]) and any(other in present and not [*_request_breaks(other, before, present[other])] for other in types)


def _narrower(was: Facts, found: Facts, limit: str, tighter: Callable[[float, float], bool]) -> bool:
    return limit in found and (limit not in was or tighter(was[limit], found[limit]))


def main() -> None:
    """Write the file, a line for each operation and schema."""
    facts = facts_of(yaml.safe_load((ROOT / "openapi.yaml").read_text(encoding="utf-8")))
    parts = []
    for kind, members in facts.items():
        lines = (
            [f"{json.dumps(name)}: {json.dumps(each, sort_keys=True)}" for name, each in sorted(members.items())]
            if isinstance(members, dict)
            else [json.dumps(name) for name in members]
        )
        opening, closing = "{}" if isinstance(members, dict) else "[]"
        parts.append(f"{json.dumps(kind)}: {opening}\n" + ",\n".join(lines) + f"\n{closing}")
    FILE.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
