"""Fills what documents show of the service: README's answer and settings, a step's phases, a plan. `make readme` runs it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from bench.harness import offline_client

README = Path(__file__).parents[1] / "README.md"
REINFORCEMENT = README.parent / "docs" / "reinforcement.md"
PROGRAMS = README.parent / "docs" / "programs.md"
SHOWN = {
    "flops": ("total", "petaflop_s_days"),
    "throughput": ("tokens_per_s_per_accelerator", "mfu", "effective_mfu", "bound_by"),
    "memory": ("per_accelerator_gb", "capacity_gb", "fits"),
    "reliability": ("expected_interruptions", "checkpoint_interval_minutes", "goodput"),
    "time": ("accelerator_hours", "wall_clock_hours"),
    "cost": ("total_usd",),
    "energy": ("mwh", "tco2e"),
}
FIGURES = 3


def filled(text: str) -> str:
    """The README's text with its generated parts as they should be."""
    from service.config import markdown_table

    answer = "```json\n" + as_text(shortened(answer_of(request_in(text)))) + "\n```\n"
    return put(put(text, "answer", answer), "settings", markdown_table())


def with_phases(text: str) -> str:
    """The page on reinforcement learning with the phases of the step that it asks for."""
    found = re.search(r"```json\n(\{.*?\n\})\n```", text, flags=re.DOTALL)
    if found is None:
        raise ValueError("the page shows no request")
    throughput = answer_of(json.loads(found[1]))["throughput"]
    rows = [f"| {row['phase']} | {rounded(row['seconds']):g} | {row['tokens']:,.0f} |" for row in throughput["phases"]]
    lines = ["| phase | seconds | tokens |", "|---|---:|---:|", *rows, f"| **step** | {rounded(throughput['step_time_s']):g} | |"]
    return put(text, "phases", "\n".join(lines) + "\n")


def with_plan(text: str) -> str:
    """The page on programs with the part of the answer that it shows of its request."""
    request = text.split("```http\n")[1].split("```", maxsplit=1)[0].split("\n", maxsplit=1)[1]
    part = text.split("```json\n")[1].split("```", maxsplit=1)[0]
    with offline_client() as client:
        answer = client.post("/v1/estimate/program", json=json.loads(request)).get_json()
    return text.replace(part, indented(same_part(answer, json.loads(part))))


def same_part(answer: Any, part: Any) -> Any:
    """What `answer` has where `part` has something, amounts to the cent."""
    if isinstance(part, dict):
        return {name: same_part(answer[name], below) for name, below in part.items()}
    if isinstance(part, list):
        return [same_part(*pair) for pair in zip(answer, part, strict=True)]
    return round(answer, 2) if isinstance(answer, float) else answer


def indented(part: dict[str, Any]) -> str:
    """One line a field, and one a row of a field with rows."""
    lines = []
    for name, value in part.items():
        rows = ",\n".join(f"    {json.dumps(row)}" for row in value) if isinstance(value, list) else None
        lines.append(f"  {json.dumps(name)}: " + (json.dumps(value) if rows is None else f"[\n{rows}\n  ]"))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def put(text: str, name: str, content: str) -> str:
    """`text` with `content` between the marks of that name."""
    return re.sub(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", lambda found: f"{found[1]}{content}{found[2]}", text, flags=re.DOTALL)


def request_in(text: str) -> dict[str, Any]:
    """The request that the README shows, from its curl command."""
    found = re.search(r"/v1/estimate .*? -d '(\{.*?\})'", text, flags=re.DOTALL)
    if found is None:
        raise ValueError("the README shows no request")
    request: dict[str, Any] = json.loads(found[1])
    return request


def answer_of(request: dict[str, Any]) -> dict[str, Any]:
    """What the service answers."""
    with offline_client() as client:
        response = client.post("/v1/estimate", json=request)
    body: dict[str, Any] = response.get_json()
    return body


def shortened(answer: dict[str, Any]) -> dict[str, Any]:
    """The parts shown, to three significant figures."""
    return {block: {name: rounded(answer[block][name]) for name in names} for block, names in SHOWN.items()}


def rounded(value: Any) -> Any:
    """Numbers to a few significant figures, whatever they stand in."""
    if isinstance(value, dict):
        return {name: rounded(below) for name, below in value.items()}
    if isinstance(value, float):
        short = float(f"{value:.{FIGURES}g}")
        return int(short) if abs(short) >= 100 and short < 1e15 else short
    return value


def as_text(answer: dict[str, Any]) -> str:
    """One line a block."""
    lines = [f"  {json.dumps(name)}: {json.dumps(block)}" for name, block in answer.items()]
    return "{\n" + ",\n".join(lines) + ",\n  …\n}"


if __name__ == "__main__":
    README.write_text(filled(README.read_text(encoding="utf-8")), encoding="utf-8")
    REINFORCEMENT.write_text(with_phases(REINFORCEMENT.read_text(encoding="utf-8")), encoding="utf-8")
    PROGRAMS.write_text(with_plan(PROGRAMS.read_text(encoding="utf-8")), encoding="utf-8")
