"""AMD, Gaudi and Trainium against published measurements that the large fit has few or none of: other_accelerators.csv.

Each row is predicted without its document: by the share of its family that the other documents say, or the relative's. A rate that is a
lower bound is missed only where the machine is predicted slower, and in range unless the whole range lies below it.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bench.accuracy.naive import NAMES, constant_rates, flop_per_peak, rule_figures, spreadsheet_rate
from service.domain.quantities import Range
from service.domain.training.run import TUNED
from service.engine.training.search.layout_search import choose_layout
from service.presets.training.finetuning import finetuning_spread
from service.presets.training.throughput_parameters import FittedParameters, load_parameters
from service.presets.training.utilisation import utilisation
from tools.calibration.cases import MeasuredCase, read_table
from tools.calibration.folds import read_folds
from tools.calibration.other_accelerators.cases import NAME, OtherCase, other_cases
from tools.calibration.other_accelerators.fit import with_other_families, without_other_families

Summary = dict[str, object]


@dataclass(frozen=True)
class OtherRow:
    """Measured over predicted rate of a row, without its document and in sample, and whether its range holds it.

    `baseline`, `constant_rate`: the same of both rules; the constant rate is its vendor's median share of the peak.
    """

    id: str
    vendor: str
    at_least: bool
    left_out: float
    in_sample: float
    baseline: float
    constant_rate: float
    covered: bool


@functools.cache
def rows() -> tuple[OtherRow, ...]:
    """Every row that is not excluded."""
    here, cases = load_parameters(), other_cases()
    questions = [case.question for case in cases]
    rates = np.array([question.rates[0] for question in questions])
    constant = constant_rates(rates, np.array(list(map(flop_per_peak, questions))), [one.accelerator.vendor for one in questions])
    return tuple(_row(case, here, over) for case, over in zip(cases, (rates / constant).tolist(), strict=True))


def _row(case: OtherCase, here: FittedParameters, over_constant: float) -> OtherRow:
    question = case.question
    ratio, spread = _predicted(question, _without(question.document, question.source))
    return OtherRow(
        id=question.ids[0],
        vendor=question.accelerator.vendor,
        at_least=case.at_least,
        left_out=ratio,
        in_sample=_predicted(question, here)[0],
        baseline=float(question.rates[0]) / spreadsheet_rate(question.model, question.training, question.cluster),
        constant_rate=over_constant,
        covered=(case.at_least or spread.p10 <= ratio) and ratio <= spread.p90,
    )


@functools.cache
def _without(document: str, source: str) -> FittedParameters:
    """Parameters that saw neither the document nor, in the large fit, its publication."""
    base, fold = without_other_families(load_parameters()), read_folds().publications.get(source)
    if fold is not None:
        base = replace(base, shared=fold.shared, matmul=fold.matmul, attention=fold.attention)
    return with_other_families(base, [case for case in other_cases() if case.question.document != document])


def _predicted(question: MeasuredCase, parameters: FittedParameters) -> tuple[float, Range]:
    """Measured over predicted rate in the fastest of the row's layouts, and the range of such ratios."""
    training, count = question.training, question.cluster.count
    used = utilisation(parameters, question.accelerator, training.precision, "layout", count, training.software_year)
    steps = choose_layout(question.model, training, question.cluster, used).steps
    rate = float(steps.batch[0]) * training.seq_len / float(steps.total[0]) / count
    spread = used.spread
    if training.method in TUNED:
        tuned = finetuning_spread()
        spread = Range(min(spread.p10, tuned.p10), 1.0, max(spread.p90, tuned.p90))
    return float(question.rates[0]) / rate, spread


def error(row: OtherRow, ratio: float) -> float:
    """Error of the time, relative to the measured time; none where a bound is passed."""
    return 0.0 if row.at_least and ratio < 1 else abs(ratio - 1)


def summaries() -> list[Summary]:
    """One line over all rows, one over those that are no bounds, then one a vendor."""
    reasons = Counter(row["excluded"] for row in read_table(NAME) if row["excluded"])
    vendors = sorted({row.vendor for row in rows()})
    by_vendor = [_summary(f"other-accelerators: {vendor}", [row for row in rows() if row.vendor == vendor]) for vendor in vendors]
    measured = _summary("other-accelerators: measured", [row for row in rows() if not row.at_least])
    return [_summary("other-accelerators", rows()) | {"left_out": dict(sorted(reasons.items()))}, measured, *by_vendor]


def _summary(name: str, some: Sequence[OtherRow]) -> Summary:
    away, here = ([error(row, getattr(row, kind)) for row in some] for kind in ("left_out", "in_sample"))
    return {
        "name": name,
        "rows": len(some),
        "lower_bounds": sum(row.at_least for row in some),
        "median_ape": _rounded(np.median(away)),
        "mean_ape": _rounded(np.mean(away)),
        "p90_ape": _rounded(np.quantile(away, 0.9)),
        "coverage_80": _rounded(np.mean([row.covered for row in some])),
        "bias": _rounded(np.median([row.left_out for row in some]) - 1),
        "bounds_as_measured_median_ape": _rounded(np.median([abs(row.left_out - 1) for row in some])),
        "in_sample_median_ape": _rounded(np.median(here)),
        "in_sample_mean_ape": _rounded(np.mean(here)),
        **rule_figures({name: [error(row, getattr(row, name)) for row in some] for name in NAMES}),
        "left_out": {},
    }


def _rounded(figure: float | np.floating) -> float:  # type: ignore[type-arg]
    return round(float(figure), 4)
