"""Why a kept result is what it is, and the short text of any answer."""

from __future__ import annotations

from typing import Any

Body = dict[str, Any]
WARNINGS = 3
"""Warnings in the short text; the structured answer has all."""


def short_text(answer: Body) -> str:
    """The answer's sentence with its first warnings; of a question in words what was read, and what is asked back."""
    understood = answer.get("understood")
    lines = [understood["echo"]] if understood else []
    lines += [entry["question"] for entry in answer.get("unclear", ())]
    summary = answer.get("summary") or {}
    lines += [summary["text"]] if summary.get("text") else []
    if answer.get("problem"):
        lines.append(answer["problem"]["detail"])
    lines += [f"warning: {warning}" for warning in answer.get("warnings", ())[:WARNINGS]]
    return "\n".join(lines)


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
