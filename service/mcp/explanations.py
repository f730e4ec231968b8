"""Why a kept result is what it is, and the short text of any answer."""

from __future__ import annotations

from typing import Any

Body = dict[str, Any]
WARNINGS = 3
"""Warnings in the short text; the structured answer has all."""


_OBJECTS: Body = {"type": "array", "items": {"type": "object"}}
_TEXT: Body = {"type": ["string", "null"]}
EXPLANATION: Body = {
    "type": "object",
    "properties": {
        "result": {
            "type": "object",
            "description": "The kept result",
            "properties": {name: {"type": "string"} for name in ("id", "kind", "title", "created_at")},
        },
        "summary": {"type": "object", "description": "The result in a sentence and few figures"},
        "drivers": _OBJECTS | {"description": "What moves it most, the strongest first"},
        "cost_lines": _OBJECTS | {"description": "What it costs, line by line, with the sum each line is made of [USD]"},
        "price": {"type": ["object", "null"], "description": "The price of an accelerator-hour with its source; null: none, or several"},
        "assumptions": _OBJECTS | {"description": "Values that nobody stated: field, value, source"},
        "warnings": {"type": "array", "items": {"type": "string"}, "description": "What to mind"},
        "price_snapshot": _TEXT | {"description": "Name of the prices used"},
        "engine_version": _TEXT | {"description": "Version of the engine and its data"},
    },
    "required": ["result", "summary", "drivers", "cost_lines", "price", "assumptions", "warnings", "price_snapshot", "engine_version"],
}
"""The JSON schema of `explained`."""


def short_text(answer: Body) -> str:
    """The answer's sentence with its first warnings; of a question in words what was read, and what is asked back."""
    understood = answer.get("understood")
    lines = [understood["echo"]] if understood else []
    lines += [_question(entry) for entry in answer.get("unclear", ())]
    summary = answer.get("summary") or {}
    lines += [summary["text"]] if summary.get("text") else []
    if answer.get("problem"):
        lines.append(answer["problem"]["detail"])
    warned = (answer.get("answer") or {}) if understood else answer
    lines += [f"warning: {warning}" for warning in (warned.get("warnings") or ())[:WARNINGS]]
    return "\n".join(lines)


def _question(entry: Body) -> str:
    """What is asked back, with the words it is about and what may be meant."""
    named = f"'{entry['text']}': " if entry["text"] else ""
    candidates = f" ({', '.join(entry['candidates'])})" if entry["candidates"] else ""
    return f"{named}{entry['question']}{candidates}"


def explained(kept: Body) -> Body:
    """What moves a kept result, its cost lines, price, assumptions and warnings."""
    answer = kept["answer"]
    summary = answer.get("summary") or {}
    lines = answer.get("lines") or (answer.get("cost") or {}).get("lines") or []
    return {
        "result": {name: kept[name] for name in ("id", "kind", "title", "created_at")},
        "summary": summary,
        "drivers": summary.get("drivers", []),
        "cost_lines": lines,
        "price": answer.get("price"),
        "assumptions": answer.get("assumptions", []),
        "warnings": answer.get("warnings", []),
        "price_snapshot": answer.get("price_snapshot"),
        "engine_version": answer.get("engine_version"),
    }


def explanation_text(explanation: Body) -> str:
    """The sentence, what moves it, and how many values were assumed."""
    drivers = [f"{driver['field']}: {driver['effect']}" for driver in explanation["drivers"]]
    price = explanation["price"]
    paid = [f"price: {price['usd_per_accelerator_hour']} USD an accelerator-hour, source {price['source']}"] if price else []
    count = f"{len(explanation['assumptions'])} values were assumed, each with its source in `assumptions`"
    return "\n".join([short_text(explanation), *drivers, *paid, count])
