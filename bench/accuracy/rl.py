"""Steps of reinforcement learning against published ones: seconds of a step, of its phases, and the range.

Every row is predicted with rates that were fitted without its document, and without its publication (tools/calibration/rl/fit.py).
"""

from __future__ import annotations

import functools
import string
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.accuracy.naive import rule_figures, spreadsheet_rate
from bench.accuracy.report import percent, table
from service.presets.training.reinforcement import rollout_rates
from tools.calibration.cases import read_table
from tools.calibration.rl.cases import FILE, RlCase, predict_seconds, rl_cases
from tools.calibration.rl.fit import fit_spread, left_out_ratios, read_rl_folds

Summary = dict[str, object]
PAGE = Path(__file__).parent / "rl.md"


@dataclass(frozen=True)
class RlRow:
    """One published set-up: predicted over measured seconds of the step, without its document, without its publication, in sample.

    `phases`: predicted over measured seconds of published phases, without its document. `covered`: whether the range of the other
    documents' errors, no narrower than the machine's pre-training, holds it.
    """

    case: RlCase
    document_out: float
    publication_out: float
    in_sample: float
    phases: dict[str, float]
    covered: bool


@functools.cache
def rows() -> tuple[RlRow, ...]:
    """Every row that is not excluded."""
    cases, folds, known = rl_cases(), read_rl_folds(), rollout_rates()
    found = []
    for case in cases:
        away = predict_seconds(case, folds.documents[case.document])
        further, here = predict_seconds(case, folds.publications[case.source]), predict_seconds(case, known)
        ratios = {name: away[name] / seconds for name, seconds in case.measured.items()}
        step, measured = ratios.pop("step_s"), case.measured["step_s"]
        own = fit_spread(left_out_ratios([other for other in cases if other.document != case.document], folds))
        machine = case.utilisation.spread
        covered = min(own.p10, machine.p10) <= step <= max(own.p90, machine.p90)
        found.append(RlRow(case, step, further["step_s"] / measured, here["step_s"] / measured, ratios, covered=covered))
    return tuple(found)


def summaries() -> list[Summary]:
    """One line of all rows, one a published phase, one a document."""
    names = sorted({row.case.document for row in rows()})
    documents = [_summary(f"rl: {name}", [row for row in rows() if row.case.document == name]) for name in names]
    return [_summary("rl-steps", rows()) | rule_figures(_rule_errors()), *_phases(), *documents]


def _rule_errors() -> dict[str, list[float]]:
    """Errors of 6 FLOPs a parameter and token that is trained on, at one MFU, and at the documents' own median of it."""
    ratios = np.array([_spreadsheet_seconds(row.case) / row.case.measured["step_s"] for row in rows()])
    documents = np.array([row.case.document for row in rows()])
    own = np.array([np.median(ratios[documents == document]) for document in documents])
    return {"baseline": _errors(ratios), "constant_rate": _errors(ratios / own)}


def _spreadsheet_seconds(case: RlCase) -> float:
    rate = spreadsheet_rate(case.model, case.training, case.cluster)
    return case.training.global_batch * case.training.seq_len / rate / case.cluster.count


def _summary(name: str, some: Sequence[RlRow]) -> Summary:
    away = _errors([row.document_out for row in some])
    return {
        "name": name,
        "rows": len(some),
        "median_ape": _rounded(np.median(away)),
        "mean_ape": _rounded(np.mean(away)),
        "p90_ape": _rounded(np.quantile(away, 0.9)),
        "publication_out_median_ape": _rounded(np.median(_errors([row.publication_out for row in some]))),
        "in_sample_median_ape": _rounded(np.median(_errors([row.in_sample for row in some]))),
        "bias": _rounded(np.median([row.document_out for row in some]) - 1),
        "coverage_80": round(float(np.mean([row.covered for row in some])), 3),
    }


def _phases() -> list[Summary]:
    """Published phases, without the rows' documents."""
    names = sorted({name for row in rows() for name in row.phases})
    found = {name: [row.phases[name] for row in rows() if name in row.phases] for name in names}
    return [
        {"name": f"rl-phase: {name.removesuffix('_s')}", "rows": len(ratios), "median_ape": _rounded(np.median(_errors(ratios)))}
        for name, ratios in found.items()
    ]


def _errors(ratios: Sequence[float]) -> list[float]:
    """Errors of the time, relative to the measured time."""
    return [abs(ratio - 1) for ratio in ratios]


def _rounded(figure: float | np.floating) -> float:  # type: ignore[type-arg]
    return round(float(figure), 4)


def page() -> str:
    """docs/explanation/accuracy/rl.md."""
    return string.Template(PAGE.read_text(encoding="utf-8")).substitute(
        in_short=_in_short(), rows=_rows_table(), phases=_phases_table(), not_scored=_not_scored()
    )


def _in_short() -> str:
    head = ["steps", "rows", "median error", "mean", "90 % below", "without its publication", "in sample", "in range"]
    shares = ("median_ape", "mean_ape", "p90_ape", "publication_out_median_ape", "in_sample_median_ape")
    lines = [line for line in summaries() if "coverage_80" in line]
    cells = [
        [
            str(line["name"]).removeprefix("rl: "),
            str(line["rows"]),
            *(percent(float(str(line[name]))) for name in shares),
            percent(float(str(line["coverage_80"])), 0),
        ]
        for line in lines
    ]
    return table(head, [["**all**", *cells[0][1:]], *cells[1:]])


def _rows_table() -> str:
    head = ["row", "model", "accelerators", "steps off", "measured s", "predicted over measured", "without its publication", "in range"]
    ordered = sorted(rows(), key=lambda row: (-abs(np.log(row.document_out)), row.case.id))
    return table(head, [_row_cells(row) for row in ordered])


def _row_cells(row: RlRow) -> list[str]:
    case = row.case
    assert case.training.rl is not None
    machine = f"{case.cluster.count} x {case.cluster.accelerator.name}"
    ratios = [f"{row.document_out:.2f}", f"{row.publication_out:.2f}"]
    lag, seconds = str(case.training.rl.asynchronous_steps), f"{case.measured['step_s']:g}"
    return [case.id, case.name, machine, lag, seconds, *ratios, "yes" if row.covered else "no"]


def _phases_table() -> str:
    names = sorted({name for row in rows() for name in row.phases})
    cells = [
        [name.removesuffix("_s"), row.case.id, f"{row.case.measured[name]:g}", f"{row.phases[name]:.2f}"]
        for name in names
        for row in rows()
        if name in row.phases
    ]
    return table(["phase", "row", "measured s", "predicted over measured"], cells)


def _not_scored() -> str:
    reasons: dict[str, int] = {}
    for row in read_table(FILE):
        if row["excluded"]:
            reasons[row["excluded"]] = reasons.get(row["excluded"], 0) + 1
    return table(["why", "rows"], [[reason, str(count)] for reason, count in sorted(reasons.items())])
