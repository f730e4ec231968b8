"""The data files with what they hold, how many sources they name, and of which dates."""

from __future__ import annotations

import csv
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.reference.tables import table

ROOT = Path(__file__).parents[2]
HEAD = """# Data files

Every figure that Outlay does not compute is in one of these files, with its source. A value that you state takes precedence. The values
assumed for the rest are in `assumptions` of each answer, with their sources.

"""
PRESETS = """## Models, machines and defaults

In `service/presets/data`. *Sources* is the number of different sources that a file names. *Dates* are the oldest and newest date of
publication or of reading among them.

"""
SNAPSHOT = """
## Prices that ship with a release

`providers/data/snapshot.csv` holds {rows} prices of {providers} providers. Live prices take precedence
([price providers](providers.md)).

"""
MEASUREMENTS = """
## Measurements

In `tools/calibration/data`: published figures, to which the throughput model is fitted and with which it is compared
([accuracy](../explanation/accuracy.md)).

"""
DATE = re.compile(r"\b(20[12]\d-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?)\b")


def page() -> str:
    """All data files."""
    presets = sorted((ROOT / "service" / "presets" / "data").glob("*.toml"))
    measured = sorted((ROOT / "tools" / "calibration" / "data").glob("*.csv"))
    rows, sources = _read_csv("snapshot.csv"), _read_csv("snapshot_sources.csv")
    counts = {"rows": f"{len(rows):,}", "providers": str(len({row["provider"] for row in rows}))}
    taken = {row["source"] for row in rows}
    return (
        HEAD
        + PRESETS
        + table(("file", "what", "sources", "dates"), map(_preset, presets))
        + SNAPSHOT.format(**counts)
        + table(
            ("source", "prices", "read", "licence"),
            (
                (row["source"], f"{sum(each['source'] == row['key'] for each in rows):,}", row["observed_at"], row["licence"])
                for row in sources
                if row["key"] in taken
            ),
        )
        + MEASUREMENTS
        + table(("file", "rows"), ((f"`{path.name}`", f"{_count_rows(path):,}") for path in measured))
    )


def _preset(path: Path) -> tuple[str, str, str, str]:
    text = path.read_text(encoding="utf-8")
    dates = sorted(DATE.findall(text))
    span = "" if not dates else dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    sources = len(set(_sources(tomllib.loads(text))))
    return f"`{path.name}`", _first_sentence(text).replace("[", "\\["), str(sources or ""), span


def _first_sentence(text: str) -> str:
    """The first sentence of the comment that a file begins with."""
    lines: list[str] = []
    for line in text.splitlines():
        if not line.startswith("# "):
            break
        lines.append(line[2:].strip())
    return re.split(r"(?<=[.])\s", " ".join(lines), maxsplit=1)[0]


def _sources(value: Any) -> Iterator[str]:
    """The texts of all `source` fields, at every depth."""
    if isinstance(value, dict):
        for name, below in value.items():
            if name == "source" and isinstance(below, str):
                yield below
            else:
                yield from _sources(below)
    elif isinstance(value, list):
        for below in value:
            yield from _sources(below)


def _read_csv(name: str) -> list[dict[str, str]]:
    with (ROOT / "providers" / "data" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _count_rows(path: Path) -> int:
    with path.open(encoding="utf-8", newline="") as file:
        return sum(1 for _ in csv.DictReader(file))
