"""Make `data/rl.csv` from a folder of reference data: `python -m tools.calibration.rl.import_reference FOLDER`.

One published set-up of reinforcement learning a row, with the seconds of a step and, where printed, of its phases. `excluded` says why a
row is left out of fits and scores.
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
    """Write rl.csv."""
    with (folder / "rl_steps.csv").open(encoding="utf-8", newline="") as file:
        rows = [_row(row) for row in csv.DictReader(file)]
    with (DATA / "rl.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _row(row: Row) -> Row:
    made = {ours: _plain(row[theirs]) for ours, theirs in REFERENCE["columns"].items()}
    made["source"] = next((name for part, name in REFERENCE["publications"].items() if part in row["source"]), "")
    lag = re.match(r"(\d+)-step-off", row["policy"])
    made["asynchronous_steps"] = lag[1] if lag else "0"
    made["generation_count"] = _sampling_accelerators(row, asynchronous=bool(lag))
    eager = REFERENCE["eager"]
    made["eager"] = str(int(made["source"] in eager["publications"] or made["id"] in eager["rows"]))
    made["recompute"] = REFERENCE["recompute"].get(made["source"], "")
    made["fitted"] = str(int(made["id"] not in REFERENCE["not_fitted"]["rows"]))
    made["excluded"] = row["excluded"] or _reason(made)
    return made


def _plain(text: str) -> str:
    """Numbers that were written as decimals for no reason."""
    return text.removesuffix(".0").removesuffix("-amp")


def _sampling_accelerators(row: Row, *, asynchronous: bool) -> str:
    """Accelerators that only sample: of asynchronous set-ups half, as the recipes have it, but for those listed."""
    stated: str = REFERENCE["generation_count"].get(row["row_id"], "")
    return stated or (str(int(row["accelerator_count"]) // 2) if asynchronous else "")


def _reason(made: Row) -> str:
    needed = ("model", "accelerator", "count", "responses", "prompt_tokens", "response_tokens", "step_s")
    absent = [name for name in needed if not made[name]]
    return f"{', '.join(absent)} not published" if absent else ""


if __name__ == "__main__":
    main(Path(sys.argv[1]))
