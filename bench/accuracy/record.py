"""Write the present score to recorded.json, the figures that may not get worse: `python -m bench.accuracy.record`."""

from __future__ import annotations

import json
from pathlib import Path

from bench.accuracy import memory, refused
from bench.accuracy.score import rows, summaries

FILE = Path(__file__).parent / "recorded.json"
KEPT = (
    "rows",
    "median_ape",
    "mean_ape",
    "p90_ape",
    "coverage_80",
    "publication_out_median_ape",
    "publication_out_mean_ape",
    "in_sample_median_ape",
    "in_sample_mean_ape",
    "answered_median_ape",
    "refused",
    "not_fitting",
)


def main() -> None:
    """Keep every data set that has scored rows."""
    lines = [*summaries(), *memory.summaries(rows()), *refused.summaries()]
    kept = {str(line["name"]): {name: line[name] for name in KEPT if name in line} for line in lines if line["rows"]}
    FILE.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
