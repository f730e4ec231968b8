"""`python -m bench.accuracy`: one JSON line a data set, and `all`; docs/explanation/accuracy.md with its charts, and the pages below it.

Errors are of iteration time, relative to the measured one. `median_ape`, `mean_ape`, `p90_ape` and `coverage_80` predict each row with
parameters fitted without its document, `publication_out_*` without any document of its publication, `in_sample_*` with all.
`baseline_*` is 6 FLOPs a parameter and token at 40 % of the dense peak; `constant_rate_*` the table's own median share of the peak,
in-sample. What other predictors say stands in peers.toml. `left_out` counts rows left out, by reason.
`refused-rows` counts measured jobs that the service answers with an error, or says not to fit.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.accuracy import cards, finetuning, memory, refused, rl
from bench.accuracy.report import Line, document
from bench.accuracy.score import rows, summaries
from tools.calibration.cases import read_table

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs" / "explanation"


def main() -> None:
    lines = summaries()
    all_lines = [*lines, *memory.summaries(rows()), *refused.summaries(), *finetuning.summaries(), *rl.summaries()]
    for line in all_lines:
        print(json.dumps(line))
    (DOCS / "accuracy" / "finetuning.md").write_text(finetuning.page(), encoding="utf-8")
    (DOCS / "accuracy" / "rl.md").write_text(rl.page(), encoding="utf-8")
    (DOCS / "accuracy" / "model-cards.md").write_text(cards.page(all_lines), encoding="utf-8")
    if importlib.util.find_spec("altair") and importlib.util.find_spec("vl_convert"):
        write_report(lines, all_lines)
    else:
        print("docs/explanation/accuracy.md is left as it is: its charts need altair and vl-convert-python", file=sys.stderr)


def write_report(lines: Sequence[Line], all_lines: Sequence[Line]) -> None:
    """The page and its charts, over those that are there; `all_lines` with those of other pages."""
    from bench.accuracy.carried import carried_rows, carried_table
    from bench.accuracy.peers import peer_tables
    from bench.accuracy.plots import charts

    scored = rows()
    citations = {row["source"]: row["text"] for row in read_table("sources.csv")}
    page, weaknesses = ((HERE / name).read_text(encoding="utf-8") for name in ("page.md", "weaknesses.md"))
    tables = {"large_from_small": carried_table(carried_rows()), **peer_tables(all_lines, scored)}
    tables |= {"peaks": memory.memory_table(memory.summaries(scored)), "refused": refused.refused_table()}
    text = document(lines, scored, citations, page, weaknesses, tables)
    (DOCS / "accuracy").mkdir(exist_ok=True)
    for name, svg in charts(lines, scored).items():
        (DOCS / "accuracy" / f"{name}.svg").write_text(svg, encoding="utf-8")
    (DOCS / "accuracy.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
