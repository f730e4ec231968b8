"""Make data/other_accelerators.csv of reference data: `python -m tools.calibration.other_accelerators.import_reference FOLDER`.

Rows of AMD, Gaudi and Trainium, in the columns of the other tables; `bound` is "lower" where the machine is at least that fast. `excluded`
says why a row is neither fitted nor scored, among them those that stand in another table.
"""

from __future__ import annotations

import csv
import sys
import tomllib
from pathlib import Path

Row = dict[str, str]

DATA = Path(__file__).parents[1] / "data"
REFERENCE = tomllib.loads((Path(__file__).parent / "reference.toml").read_text(encoding="utf-8"))
TAKEN = {
    "id": "row_id",
    "params": "params",
    "method": "task",
    "rank": "lora_rank",
    "unit": "unit",
    "seq": "seq_len",
    "precision": "precision",
    "accelerator": "accelerator",
    "count": "accelerator_count",
    "tensor": "tp",
    "pipeline": "pp",
    "data": "dp",
    "context": "cp",
    "expert": "ep",
    "virtual": "vp",
    "zero": "fsdp",
    "micro_batch": "micro_batch",
    "batch": "global_batch_samples",
    "recompute": "activation_recompute",
    "per_s": "tokens_per_s_per_accelerator",
    "bound": "bound",
}


def main(folder: Path) -> None:
    """Write other_accelerators.csv beside this module."""
    with (folder / "other_accelerators.csv").open(encoding="utf-8", newline="") as file:
        rows = [_measurement(row) for row in csv.DictReader(file)]
    with (DATA / "other_accelerators.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, REFERENCE["columns"], lineterminator="\n")
        writer.writeheader()
        writer.writerows([*REFERENCE["published"], *rows])


def _measurement(row: Row) -> Row:
    made = {ours: row[theirs] for ours, theirs in TAKEN.items()}
    made["model"] = row["model_preset"] or row["model"]
    made |= REFERENCE["shapes"].get(row["model"], {})
    known = next((names for part, names in REFERENCE["documents"].items() if part in row["source"]), ("", row["source"], ""))
    made |= dict(zip(("source", "document", "year"), map(str, known), strict=True))
    made["excluded"] = row["excluded"] or _elsewhere(row)
    return made


def _elsewhere(row: Row) -> str:
    return next((reason for start, reason in REFERENCE["elsewhere"].items() if row["source"].startswith(start)), "")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
