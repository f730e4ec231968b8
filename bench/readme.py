"""Fills what documents show of the service: answers, settings, a step's phases, a plan, commands' output. `make readme` runs it."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench.harness import offline_client
from bench.session import BLOCK, SHOWN_AT, Followed, follow, session

README = Path(__file__).parents[1] / "README.md"
DOCS = README.parent / "docs"
TOUR = DOCS / "start" / "tour.md"
TRUST = DOCS / "start" / "trust.md"
ACCURACY = DOCS / "explanation" / "accuracy.md"
REINFORCEMENT = DOCS / "how-to" / "reinforcement.md"
PROGRAMS = DOCS / "reference" / "programs.md"
SCENARIOS = DOCS / "reference" / "scenarios.md"
RESULTS = DOCS / "reference" / "results.md"
NEVER_THE_SAME = ("id", "url", "sha256", "engine_version")
"""Fields of a kept result that differ each time it is made, or with every release."""
NOT_FOLLOWED = ("limits", "observability")
"""Pages whose commands show a service under load, which a clone has not."""
FOLLOWED = tuple(
    page
    for page in (README, *sorted(DOCS.rglob("*.md")))
    if page.stem not in NOT_FOLLOWED and BLOCK.search(page.read_text(encoding="utf-8"))
)
"""Pages that show commands with their output."""
AT_THE_TIME_OF_DAY = ("operator", "slack-administrator", "trainers")
"""Pages that need the real time: keys are listed by it, requests are signed at it, clients report at it."""
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
LANGUAGES = {".json": "json", ".yaml": "yaml", ".py": "python"}
"""Of files that a page shows, by their endings; others are plain text."""
ASKED = {
    "speed, layout as published": "the speed of a step, layout stated",
    "speed, goal alone": "the speed of a step from the goal alone",
    "accelerator-hours of whole runs, goal alone": "the accelerator-hours of a whole run",
}
"""By what the page on accuracy calls it what a reader asks for."""


def filled(text: str) -> str:
    """The tour with its answers as they should be."""
    answer = "```json\n" + as_text(shortened(answer_of(request_in(text)))) + "\n```\n"
    return put(put(text, "answer", answer), "optimum", optimum_in_words(request_in(text, "/v1/optimal")))


def with_accuracy(text: str) -> str:
    """The page on trust with the figures of the page on accuracy, in plain words."""
    lines = ["| you ask for | compared with | typical error | rule of thumb | range held |", "|---|---|---:|---:|---:|"]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in ACCURACY.read_text(encoding="utf-8").splitlines()]
    for asked, words in ASKED.items():
        row = next(row for row in rows if row[0] == asked and row[1].endswith(" rows"))
        count, error, rule, held = (row[place] for place in (1, 2, 5, 7))
        lines.append(f"| {words} | {count} | {error} | {rule} | {held} |")
    return put(text, "accuracy", "\n".join(lines) + "\n")


def optimum_in_words(request: dict[str, Any]) -> str:
    """What the tour says about the answer of POST /v1/optimal to its request."""
    from service.formats.headline import short_count

    answer = answer_of(request, "/v1/optimal")
    params, lifetime = answer["params"], answer["lifetime"]
    low, middle, high = (short_count(params[point]) for point in ("p10", "p50", "p90"))
    alone, joint = lifetime["training_only"]["params"], lifetime["joint"]["params"]
    tokens = short_count(answer["tokens"]["p50"])
    return (
        f"The answer is a model with {middle} parameters ({low} to {high}, given the law's uncertainty), trained on {tokens} tokens.\n"
        f"It uses up the million, and no other model with the same loss costs less to train and serve. If you counted training\n"
        f"alone, you would train {short_count(alone)} parameters. A model with {short_count(joint)} is as good, costs\n"
        f"{lifetime['extra_training_share']:.0%} more to train, and saves {lifetime['saves_share']:.0%} once serving is counted.\n"
    )


def with_files(text: str) -> str:
    """The page with the examples that it shows between marks of their paths."""
    for name in re.findall(r"<!-- (examples/\S+) -->", text):
        content = (README.parent / name).read_text(encoding="utf-8")
        text = put(text, name, f"```{LANGUAGES.get(Path(name).suffix, '')}\n{content}```\n")
    return text


def followed(page: Path) -> Followed:
    """A page of FOLLOWED as its reader would see it."""
    now = None if page.stem in AT_THE_TIME_OF_DAY else SHOWN_AT
    return follow(with_files(page.read_text(encoding="utf-8")), now)


def with_trials(text: str) -> str:
    """The page on scenarios with the part of the result that it shows of its first request."""
    request, part = (text.split("```json\n")[place].split("```", maxsplit=1)[0] for place in (1, 2))
    with session() as reader:
        (reader.clone / "scenario.json").write_text(request, encoding="utf-8")
        printed, _ = reader.run("outlay scenario run scenario.json --json")
    result = json.loads(printed[printed.index("{") :])["result"]
    return text.replace(part, indented(same_part(result, json.loads(part))))


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
    request, part = request_and_part(text)
    with offline_client() as client:
        answer = client.post("/v1/estimate/program", json=request).get_json()
    return text.replace(part, indented(same_part(answer, json.loads(part))))


def with_result(text: str) -> str:
    """The page on kept results with the part of the answer that it shows of its request; ids and digests stay as they are."""
    request, part = request_and_part(text)
    now = patch("service.container.utc_now", lambda: SHOWN_AT)
    with now, offline_client() as client, closing(client.application.extensions["context"].store) as store:
        store.migrate()
        answer = client.post("/v1/results", json=request).get_json()
    shown = json.loads(part)
    return text.replace(part, indented(same_part(answer | {name: shown[name] for name in NEVER_THE_SAME}, shown)))


def request_and_part(text: str) -> tuple[dict[str, Any], str]:
    """The first request that a page shows, and the first part of an answer, as text."""
    request = text.split("```http\n")[1].split("```", maxsplit=1)[0].split("\n", maxsplit=1)[1]
    return json.loads(request), text.split("```json\n")[1].split("```", maxsplit=1)[0]


def same_part(answer: Any, part: Any) -> Any:
    """What `answer` has where `part` has something, amounts to the cent and shares to four places; of a list as many as it has."""
    if isinstance(part, dict):
        return {name: same_part(answer[name], below) for name, below in part.items()}
    if isinstance(part, list):
        return [same_part(*pair) for pair in zip(answer[: len(part)], part, strict=True)]
    return round(answer, 4 if abs(answer) < 1 else 2) if isinstance(answer, float) else answer


def indented(part: dict[str, Any]) -> str:
    """One line a field, and one a row of a field with rows."""
    lines = []
    for name, value in part.items():
        rows = ",\n".join(f"    {json.dumps(row, ensure_ascii=False)}" for row in value) if isinstance(value, list) else None
        lines.append(f"  {json.dumps(name)}: " + (json.dumps(value, ensure_ascii=False) if rows is None else f"[\n{rows}\n  ]"))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def put(text: str, name: str, content: str) -> str:
    """`text` with `content` between the marks of that name."""
    return re.sub(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", lambda found: f"{found[1]}{content}{found[2]}", text, flags=re.DOTALL)


def request_in(text: str, path: str = "/v1/estimate") -> dict[str, Any]:
    """The request to a path that a page shows, from its curl command."""
    found = re.search(rf"{path} .*? -d '(\{{.*?\}})'", text, flags=re.DOTALL)
    if found is None:
        raise ValueError(f"the page shows no request to {path}")
    request: dict[str, Any] = json.loads(found[1])
    return request


def answer_of(request: dict[str, Any], path: str = "/v1/estimate") -> dict[str, Any]:
    """What the service answers."""
    with offline_client() as client:
        response = client.post(path, json=request)
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
    TOUR.write_text(filled(TOUR.read_text(encoding="utf-8")), encoding="utf-8")
    TRUST.write_text(with_accuracy(TRUST.read_text(encoding="utf-8")), encoding="utf-8")
    REINFORCEMENT.write_text(with_phases(REINFORCEMENT.read_text(encoding="utf-8")), encoding="utf-8")
    PROGRAMS.write_text(with_plan(PROGRAMS.read_text(encoding="utf-8")), encoding="utf-8")
    SCENARIOS.write_text(with_trials(SCENARIOS.read_text(encoding="utf-8")), encoding="utf-8")
    RESULTS.write_text(with_result(RESULTS.read_text(encoding="utf-8")), encoding="utf-8")
    for page in FOLLOWED:
        found = followed(page)
        page.write_text(found.text, encoding="utf-8")
        if found.unsaid:
            print(f"{page.relative_to(README.parent)}: no command prints", *found.unsaid, sep="\n")
