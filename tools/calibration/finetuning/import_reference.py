"""Make data/finetuning.csv from a folder of reference data: `python -m tools.calibration.finetuning.import_reference FOLDER`.

Rows keep what a question to the engine needs, in its own words; `excluded_speed` and `excluded_memory` say why that figure is not scored.
"""

from __future__ import annotations

import csv
import re
import sys
import tomllib
from pathlib import Path

Row = dict[str, str]

DATA = Path(__file__).parents[1] / "data"
REFERENCE = tomllib.loads((Path(__file__).parent / "reference.toml").read_text(encoding="utf-8"))


def main(folder: Path) -> None:
    """Write finetuning.csv beside this module."""
    with (folder / "finetuning.csv").open(encoding="utf-8", newline="") as file:
        rows = [_measurement(row) for row in csv.DictReader(file)]
    with (DATA / "finetuning.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _measurement(row: Row) -> Row:
    made = {"id": row["row_id"], "document": document(row["source"]), "source": row["source"]}
    made |= {ours: row[theirs] for ours, theirs in REFERENCE["columns"].items()}
    made["targets"] = _targets(row)
    made["fusion"] = _fusion(row)
    made["basis"] = row["memory_basis"].partition(",")[0]
    kind, _, reason = row["excluded"].partition(": ")
    made["excluded_speed"] = reason if kind == "throughput" else ""
    made["excluded_memory"] = reason if kind == "memory" else ""
    return made


def document(source: str) -> str:
    """The document a row stands in, whatever its version: one README, one table, one round of a benchmark's results."""
    return str(next(name for part, name in REFERENCE["documents"].items() if part in source))


def _targets(row: Row) -> str:
    """Layers with adapters in the contract's names; blank where they are not stated."""
    stated = re.sub(r" \(.*\)", "", row["adapter_targets"])
    return str(REFERENCE["targets"].get(stated, stated)) if stated else ""


def _fusion(row: Row) -> str:
    """Whether kernels are fused, by the framework; blank where it does not tell."""
    return str(next((name for part, name in REFERENCE["fusion"].items() if part in row["framework"]), ""))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
