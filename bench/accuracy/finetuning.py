"""Fine-tuning against published measurements: speed and its range, peak memory, and whether a job fits.

Speeds are predicted with rates that were fitted without the row's document, under the step model's own parameters, which saw none of these
rows. Memory has no fitted figures. What only a program's tensors take is compared without what the device and the allocator hold.
"""

from __future__ import annotations

import functools
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.accuracy.naive import constant_rates, flop_per_peak, rule_figures, spreadsheet_rate
from bench.accuracy.report import percent, table
from service.engine.training.search.layout_search import choose_layout
from service.presets.training.utilisation import find_utilisation
from tools.calibration.cases import MeasuredCase
from tools.calibration.finetuning.cases import FineTuningCase, finetuning_cases
from tools.calibration.finetuning.fit import finetuning_table, fit_rates, left_out_rates, speed_cases, spread_of_rows

Floats = NDArray[np.float64]
Summary = dict[str, object]
PAGE = Path(__file__).parent / "finetuning.md"
NO_FIGURE = ""


@dataclass(frozen=True)
class TunedRow:
    """One measured job.

    `speed`, `speed_in_sample`: measured over predicted rate; `covered`: within p10 to p90, found without its document. `memory`: predicted
    over measured peak. None where not measured. `right`: whether it is rightly called to fit or not.
    """

    id: str
    document: str
    method: str
    speed: float | None
    speed_in_sample: float | None
    covered: bool
    memory: float | None
    right: bool
    ran: bool


@functools.cache
def rows() -> tuple[TunedRow, ...]:
    """Every measured job."""
    speeds = _speeds()
    return tuple(_row(case, speeds) for case in finetuning_cases())


def _row(case: FineTuningCase, speeds: Mapping[str, tuple[float, float, bool]]) -> TunedRow:
    question = case.speed
    used = find_utilisation(question.accelerator, question.training.precision, "layout", question.cluster.count)
    choice = choose_layout(question.model, question.training, question.cluster, used)
    held = choice.total_bytes - (choice.memory_bytes["reserve"] if case.allocated else 0.0)
    speed, in_sample, covered = speeds.get(question.ids[0], (None, None, False))
    memory = None if case.gigabytes is None else held / 1e9 / case.gigabytes
    return TunedRow(
        question.ids[0], case.document, case.method, speed, in_sample, covered, memory, right=choice.fits == case.ran, ran=case.ran
    )


def _speeds() -> dict[str, tuple[float, float, bool]]:
    """By row: measured over predicted rate without its document and in sample, and whether its range holds it."""
    cases = speed_cases()
    known = finetuning_table(cases)
    away, here = known.table.rates / left_out_rates(known), known.table.rates / known.predict(fit_rates(known))
    covered = _covered(cases, np.log(away), known.documents)
    found = zip(cases, away.tolist(), here.tolist(), covered, strict=True)
    return {case.ids[0]: (out, inside, bool(within)) for case, out, inside, within in found}


def _rule_errors() -> dict[str, Floats]:
    """Errors of both rules on every measured speed; the constant rate is each document's own."""
    cases = speed_cases()
    rates = np.array([case.rates[0] for case in cases])
    spreadsheet = np.array([spreadsheet_rate(case.model, case.training, case.cluster) for case in cases])
    constant = constant_rates(rates, np.array(list(map(flop_per_peak, cases))), [case.document for case in cases])
    return {"baseline": np.abs(rates / spreadsheet - 1), "constant_rate": np.abs(rates / constant - 1)}


def _covered(cases: Sequence[MeasuredCase], log_ratio: Floats, documents: NDArray[np.str_]) -> NDArray[np.bool_]:
    """Whether each row lies in the range of the other documents' errors, no narrower than the machine's pre-training."""
    within = np.zeros(len(cases), dtype=bool)
    for at, case in enumerate(cases):
        others = documents != documents[at]
        low, high = spread_of_rows(log_ratio[others], documents[others])
        machine = find_utilisation(case.accelerator, case.training.precision, "layout", case.cluster.count).spread
        within[at] = min(low, machine.p10) <= np.exp(log_ratio[at]) <= max(high, machine.p90)
    return within


def summaries() -> list[Summary]:
    """One line a question, then one a method and one a document."""
    return [*_questions(), *(_group(name, some) for name, some in [*_grouped(rows(), _method), *_grouped(rows(), _document)])]


def _questions() -> list[Summary]:
    speed, memory = [row for row in rows() if row.speed], [row for row in rows() if row.memory]
    return [
        {
            "name": "finetuning-speed",
            "rows": len(speed),
            **_figures([_time_error(row.speed) for row in speed]),
            "documents_alike_median_ape": _alike(speed, lambda row: _time_error(row.speed)),
            "in_sample_median_ape": _rounded(np.median([_time_error(row.speed_in_sample) for row in speed])),
            "coverage_80": round(float(np.mean([row.covered for row in speed])), 3),
            **rule_figures(_rule_errors()),
        },
        {
            "name": "finetuning-memory",
            "rows": len(memory),
            **_figures([_size_error(row.memory) for row in memory]),
            "documents_alike_median_ape": _alike(memory, lambda row: _size_error(row.memory)),
        },
        {
            "name": "finetuning-fits",
            "rows": len(rows()),
            "out_of_memory": sum(not row.ran for row in rows()),
            "right_share": _rounded(np.mean([row.right for row in rows()])),
        },
    ]


def _group(name: str, some: Sequence[TunedRow]) -> Summary:
    speed, memory = [row for row in some if row.speed], [row for row in some if row.memory]
    found: Summary = {"name": f"finetuning: {name}", "rows": len(some), "fits_right_share": _rounded(np.mean([row.right for row in some]))}
    if speed:
        found |= {"speed_rows": len(speed), "speed_median_ape": _rounded(np.median([_time_error(row.speed) for row in speed]))}
        found |= {"speed_coverage_80": round(float(np.mean([row.covered for row in speed])), 3)}
    if memory:
        found |= {"memory_rows": len(memory), "memory_median_ape": _rounded(np.median([_size_error(row.memory) for row in memory]))}
    return found


def _figures(errors: Sequence[float]) -> Summary:
    return {"median_ape": _rounded(np.median(errors)), "p90_ape": _rounded(np.quantile(errors, 0.9))}


def _time_error(measured_over_predicted: float | None) -> float:
    """Error of the time, relative to the measured time."""
    return abs((measured_over_predicted or 1.0) - 1)


def _size_error(predicted_over_measured: float | None) -> float:
    return abs((predicted_over_measured or 1.0) - 1)


def _alike(some: Sequence[TunedRow], error: Callable[[TunedRow], float]) -> float:
    """Mean of the documents' medians."""
    return _rounded(np.mean([np.median([error(row) for row in members]) for _, members in _grouped(some, _document)]))


def _grouped(some: Iterable[TunedRow], key: Callable[[TunedRow], str]) -> list[tuple[str, list[TunedRow]]]:
    found: dict[str, list[TunedRow]] = {}
    for row in some:
        found.setdefault(key(row), []).append(row)
    return sorted(found.items())


def _method(row: TunedRow) -> str:
    return row.method


def _document(row: TunedRow) -> str:
    return row.document


def _rounded(figure: float | np.floating) -> float:  # type: ignore[type-arg]
    return round(float(figure), 4)


def page() -> str:
    """docs/explanation/accuracy/finetuning.md."""
    groups = [(name, _group(name, some)) for name, some in [*_grouped(rows(), _method), *_grouped(rows(), _document)]]
    speed, memory, fits = _questions()
    in_short = table(
        ["what is asked", "rows", "median error", "90 % below", "mean of documents", "in range or right"],
        [
            ["tokens a second", str(speed["rows"]), *_shares(speed), percent(float(str(speed["coverage_80"])), 0)],
            ["peak memory", str(memory["rows"]), *_shares(memory), NO_FIGURE],
            ["does it fit", str(fits["rows"]), NO_FIGURE, NO_FIGURE, NO_FIGURE, percent(float(str(fits["right_share"])), 0)],
        ],
    )
    head = ["by", "speeds", "median error", "in range", "peaks", "median error", "jobs", "rightly called to fit or not"]
    return string.Template(PAGE.read_text(encoding="utf-8")).substitute(
        in_short=in_short, groups=table(head, [_cells(*group) for group in groups])
    )


def _shares(line: Summary) -> list[str]:
    return [percent(float(str(line[key]))) for key in ("median_ape", "p90_ape", "documents_alike_median_ape")]


def _cells(name: str, group: Summary) -> list[str]:
    def share(key: str, digits: int = 1) -> str:
        return percent(float(str(group[key])), digits) if key in group else NO_FIGURE

    counts = [str(group.get(key, NO_FIGURE)) for key in ("speed_rows", "memory_rows")]
    speed = [counts[0], share("speed_median_ape"), share("speed_coverage_80", 0)]
    return [name, *speed, counts[1], share("memory_median_ape"), str(group["rows"]), share("fits_right_share", 0)]
