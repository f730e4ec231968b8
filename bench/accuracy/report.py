"""docs/explanation/accuracy.md from the score: the figures and tables that page.md asks for. The same lines and rows give the same text."""

from __future__ import annotations

import re
import string
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from bench.accuracy.rows import ScoredRow

Floats = NDArray[np.float64]
Group = tuple[str, Sequence["ScoredRow"]]
Line = Mapping[str, Any]

# Lines of whole runs by the age of their software and by scale: shown in a table of their own.
RUN_GROUPS = {
    "runs-before-2022": "software before 2022",
    "runs-2022-2023": "software of 2022 and 2023",
    "runs-after-2023": "software after 2023",
    "runs-up-to-1000": "up to 1,000 accelerators",
    "runs-above-1000": "more than 1,000 accelerators",
    "runs": "all",
}
TOTALS = ("layout-stated", "layout-given", "goal-alone", "all", "all-tables-alike")
COUNT_EDGES = (8, 64, 512, 4096)
COUNT_LABELS = ("1 to 8", "9 to 64", "65 to 512", "513 to 4,096", "more than 4,096")
PARAMS_EDGES = (1e9, 1e10, 1e11)
PARAMS_LABELS = ("up to 1B", "1B to 10B", "10B to 100B", "more than 100B")
LAYOUT_LABELS = {"stated": "stated in full", "partly": "stated in part, the rest chosen by the engine", "goal": "nothing but the goal"}
# A group is called weak above this error or below this share of rows within the 80 % range; fewer rows than this say too little.
WEAK_ERROR = 0.25
WEAK_COVERAGE = 0.65
ROWS_TO_JUDGE = 3
BEHIND_CONSTANT = "behind the constant rate"
# What is asked, by what is measured and whether the layout is withheld.
QUESTIONS = {
    "speed, layout as published": ("throughput", False),
    "speed, goal alone": ("throughput", True),
    "accelerator-hours of whole runs, goal alone": ("hours", True),
}
PREDICTORS = ("predicted_left_out", "predicted_publication_out", "predicted_in_sample", "baseline", "constant")
CITED = 140
SUMMARY_COLUMNS = {
    "median": "median_ape",
    "mean": "mean_ape",
    "90 % below": "p90_ape",
    "without its publication": "publication_out_median_ape",
    "in sample: median": "in_sample_median_ape",
    "in sample: mean": "in_sample_mean_ape",
}


@dataclass(frozen=True)
class Figures:
    """What a group of rows comes to. Errors are of time, relative to the measured one; `alike` is the mean of the tables' medians."""

    rows: int
    tables: int
    median: float
    p90: float
    alike: float
    bias: float
    in_sample: float
    baseline: float
    constant: float
    coverage: float


def document(
    lines: Sequence[Line], rows: Sequence[ScoredRow], citations: Mapping[str, str], page: str, weaknesses: str, tables: Mapping[str, str]
) -> str:
    """The page filled in. `citations`: the text behind each publication's key; `weaknesses`: what no figure shows, written by hand.

    `tables`: those made elsewhere, by the names that the page has for them.
    """
    given = [row for row in rows if row.kind == "throughput" and row.layout_known != "goal"]
    return string.Template(page).substitute(
        in_short=in_short(rows),
        data_sets=summary_table(lines),
        breakdowns=breakdowns(given, rows, citations),
        with_and_without_layout=pairs_table(given, rows),
        run_groups=run_groups_table(lines),
        runs=runs_table([row for row in rows if row.kind == "hours"]),
        not_scored=not_scored_table(lines),
        rows_to_judge=ROWS_TO_JUDGE,
        weak_error=percent(WEAK_ERROR, 0),
        weak_coverage=percent(WEAK_COVERAGE, 0),
        weak=weak_tables(weak_groups(given, rows)),
        weaknesses=weaknesses.strip(),
        **tables,
    )


def log_time(row: ScoredRow, predictor: str) -> float:
    """Log of predicted over measured time: a rate goes as one over time."""
    ratio = float(np.log(getattr(row, predictor) / row.measured))
    return ratio if row.kind == "hours" else -ratio


def log_times(rows: Iterable[ScoredRow], predictor: str = "predicted_left_out") -> Floats:
    return np.array([log_time(row, predictor) for row in rows])


def errors(rows: Iterable[ScoredRow], predictor: str = "predicted_left_out") -> Floats:
    """Absolute error of the time, relative to the measured time."""
    return np.abs(np.expm1(log_times(rows, predictor)))


def alike(rows: Sequence[ScoredRow], predictor: str = "predicted_left_out") -> float:
    """Mean of the tables' median errors: no table speaks louder for having more rows."""
    return float(np.mean([np.median(errors(members, predictor)) for _, members in grouped(rows, lambda row: row.table)]))


def figures(rows: Sequence[ScoredRow]) -> Figures:
    away = errors(rows)
    return Figures(
        rows=len(rows),
        tables=len({row.table for row in rows}),
        median=float(np.median(away)),
        p90=float(np.quantile(away, 0.9)),
        alike=alike(rows),
        bias=float(np.expm1(np.median(log_times(rows)))),
        in_sample=float(np.median(errors(rows, "predicted_in_sample"))),
        baseline=float(np.median(errors(rows, "baseline"))),
        constant=float(np.median(errors(rows, "constant"))),
        coverage=float(np.mean([row.covered for row in rows])),
    )


def grouped(rows: Iterable[ScoredRow], key: Callable[[ScoredRow], str], order: Sequence[str] = ()) -> list[Group]:
    """Rows by key, in the given order of keys, others after it by name; keys without rows are left out."""
    found: dict[str, list[ScoredRow]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    names = [name for name in order if name in found] + sorted(set(found) - set(order))
    return [(name, found[name]) for name in names]


def labelled(value: float, edges: Sequence[float], labels: Sequence[str]) -> str:
    """The label of the bin that holds `value`; an edge belongs to the bin below it."""
    return labels[int(np.searchsorted(edges, value, side="left"))]


def by_count(row: ScoredRow) -> str:
    return labelled(row.count, COUNT_EDGES, COUNT_LABELS)


def by_params(row: ScoredRow) -> str:
    return labelled(row.params, PARAMS_EDGES, PARAMS_LABELS)


def by_layout(row: ScoredRow) -> str:
    label = LAYOUT_LABELS[row.layout_known]
    return f"{label}: hours of whole runs" if row.kind == "hours" else label


def layout_order() -> list[str]:
    return [*LAYOUT_LABELS.values(), f"{LAYOUT_LABELS['goal']}: hours of whole runs"]


def groupings(given: Sequence[ScoredRow], rows: Sequence[ScoredRow]) -> list[tuple[str, list[Group]]]:
    """What the rows are broken down by, with the groups of each."""
    return [
        ("Publication", grouped(given, lambda row: row.source)),
        ("Accelerator", grouped(given, lambda row: row.accelerator)),
        ("Accelerators in the job", grouped(given, by_count, COUNT_LABELS)),
        ("Parameters of the model", grouped(given, by_params, PARAMS_LABELS)),
        ("Precision", grouped(given, lambda row: row.precision)),
        ("What is known of the layout", grouped(rows, by_layout, layout_order())),
    ]


def breakdowns(given: Sequence[ScoredRow], rows: Sequence[ScoredRow], citations: Mapping[str, str]) -> str:
    """A heading and a table for each way of grouping; under the publications, what they are."""
    parts = []
    for title, groups in groupings(given, rows):
        parts += [f"### {title}", group_table(title, groups)]
        if title == "Publication":
            parts.append("\n".join(f"- {name}: {textwrap.shorten(citations[name], CITED, placeholder=' …')}" for name, _ in groups))
    return "\n\n".join(parts)


def in_short(rows: Sequence[ScoredRow]) -> str:
    """The figures a reader in a hurry needs: each question over its data sets, and over its rows."""
    table_rows = []
    for question, wanted in QUESTIONS.items():
        members = [row for row in rows if (row.kind, row.layout_known == "goal") == wanted]
        if not members:
            continue
        found, tables = figures(members), [figures(part).coverage for _, part in grouped(members, lambda row: row.table)]
        if found.tables > 1:
            shares = [percent(alike(members, predictor)) for predictor in PREDICTORS]
            table_rows.append([question, f"{found.tables} data sets, averaged", *shares, percent(float(np.mean(tables)), 0)])
        shares = [percent(float(np.median(errors(members, predictor)))) for predictor in PREDICTORS]
        table_rows.append([question, f"{found.rows:,} rows", *shares, percent(found.coverage, 0)])
    head = ["what is asked", "median over", "document out", "publication out", "in sample", "6 N D", "constant rate", "in range"]
    return table(head, table_rows)


def pairs_table(given: Sequence[ScoredRow], rows: Sequence[ScoredRow]) -> str:
    """Measurements that were asked for in both ways, by data set."""
    goal = {row.id: row for row in rows if row.kind == "throughput" and row.layout_known == "goal"}
    both = [row for row in given if row.id in goal]
    groups = [*grouped(both, lambda row: row.table), ("**all**", both)] if both else []
    return table(
        ["data set", "rows", "layout given", "goal alone", "6 N D", "constant rate", "in range, given", "in range, goal"],
        [[name, *_pair_cells(members, [goal[row.id] for row in members])] for name, members in groups],
    )


def _pair_cells(given: Sequence[ScoredRow], goal: Sequence[ScoredRow]) -> list[str]:
    with_it, without = figures(given), figures(goal)
    shares = (with_it.median, without.median, with_it.baseline, with_it.constant)
    return [f"{with_it.rows:,}", *(percent(share) for share in shares), percent(with_it.coverage, 0), percent(without.coverage, 0)]


def summary_table(lines: Sequence[Line]) -> str:
    """One row a data set that is scored, totals last."""
    shown = [line for line in lines if line["rows"] and line["name"] not in RUN_GROUPS]
    scored = sorted(shown, key=lambda line: line["name"] in TOTALS)
    return table(["data set", "rows", *SUMMARY_COLUMNS, "in range"], [_summary_cells(line) for line in scored])


def _summary_cells(line: Line) -> list[str]:
    """A data set's figures; those that it does not have are empty."""
    name = f"**{line['name']}**" if line["name"] in TOTALS else str(line["name"])
    shares = [percent(line[key]) if key in line else "" for key in SUMMARY_COLUMNS.values()]
    return [name, f"{line['rows']:,}", *shares, percent(line["coverage_80"], 0) if "coverage_80" in line else ""]


def group_table(title: str, groups: Sequence[Group]) -> str:
    head = [title.lower(), "rows", "data sets", "median", "90 % below", "mean of data sets", "bias", "in sample"]
    return table([*head, "6 N D", "constant rate", "in range"], [[name, *_figure_cells(figures(rows))] for name, rows in groups])


def _figure_cells(found: Figures) -> list[str]:
    shares = map(percent, (found.median, found.p90, found.alike))
    rules = map(percent, (found.in_sample, found.baseline, found.constant))
    return [f"{found.rows:,}", str(found.tables), *shares, f"{round(100 * found.bias):+d} %", *rules, percent(found.coverage, 0)]


def run_groups_table(lines: Sequence[Line]) -> str:
    """Whole runs by the age of their software and by scale."""
    head = ["whole runs", "runs", "median", "mean", "90 % below", "bias", "6 N D", "in range"]
    return table(head, [_run_group_cells(line) for line in lines if line["name"] in RUN_GROUPS])


def _run_group_cells(line: Line) -> list[str]:
    errors_ = [percent(line[name]) for name in ("median_ape", "mean_ape", "p90_ape")]
    bias = f"{100 * line['bias']:+.1f} %"
    return [
        RUN_GROUPS[line["name"]],
        f"{line['rows']:,}",
        *errors_,
        bias,
        percent(line["baseline_median_ape"]),
        percent(line["coverage_80"], 0),
    ]


def runs_table(rows: Sequence[ScoredRow]) -> str:
    """Every published run, the worst first."""
    head = ["run", "accelerator", "count", "published hours", "planned hours", "planned over published", "6 N D", "in range"]
    ordered = sorted(rows, key=lambda row: (-abs(log_time(row, "predicted_left_out")), row.id))
    return table(head, [_run_cells(row) for row in ordered])


def _run_cells(row: ScoredRow) -> list[str]:
    hours = [f"{row.measured:,.0f}", f"{float(f'{row.predicted_left_out:.3g}'):,.0f}"]
    ratios = [f"{value / row.measured:.2f}" for value in (row.predicted_left_out, row.baseline)]
    return [row.id, row.accelerator, f"{row.count:,}", *hours, *ratios, "yes" if row.covered else "no"]


def not_scored_table(lines: Sequence[Line]) -> str:
    """Rows by data set and reason; the totals would count them twice."""
    found = [(str(line["name"]), dict(line["left_out"])) for line in lines if line["name"] not in TOTALS and line.get("left_out")]
    rows = [[name, reason, str(count)] for name, reasons in sorted(found) for reason, count in sorted(reasons.items())]
    total = sum(int(count) for *_, count in rows)
    return table(["data set", "why", "rows"], [*rows, ["**all**", "", f"**{total}**"]])


@dataclass(frozen=True)
class Weak:
    """A group that is predicted badly, and in which respects."""

    what: str
    name: str
    figures: Figures
    why: tuple[str, ...]


def weak_groups(given: Sequence[ScoredRow], rows: Sequence[ScoredRow]) -> list[Weak]:
    """Groups of enough rows with something wrong, the largest error first."""
    whole_runs = [row for row in rows if row.kind == "hours"]
    named = [("Data set", grouped([*given, *whole_runs], lambda row: row.table))]
    named += [(what, groups) for what, groups in groupings(given, rows) if what != "Publication"]
    enough = [(what, name, figures(members)) for what, groups in named for name, members in groups if len(members) >= ROWS_TO_JUDGE]
    found = [Weak(what, name, judged, why) for what, name, judged in enough if (why := faults(judged))]
    return sorted(found, key=lambda weak: (-weak.figures.median, weak.what, weak.name))


def faults(found: Figures) -> tuple[str, ...]:
    """What is wrong with a group, in words; nothing where it is fine."""
    checks = {
        "large error": found.median > WEAK_ERROR,
        "range too narrow": found.coverage < WEAK_COVERAGE,
        "behind 6 N D": found.median > found.baseline,
        BEHIND_CONSTANT: found.median > found.constant,
    }
    return tuple(text for text, is_so in checks.items() if is_so)


def weak_tables(groups: Sequence[Weak]) -> str:
    """The weak groups; then those whose one fault is that the constant rate is ahead."""
    head = ["by", "group", "rows", "median error", "6 N D", "constant rate", "in range", "what is wrong"]
    behind = [weak for weak in groups if weak.why == (BEHIND_CONSTANT,)]
    text = table(head, [_weak_cells(weak) for weak in groups if weak not in behind])
    if behind:
        text += f"\n\nNothing wrong but {BEHIND_CONSTANT}:\n\n" + table(head[:-1], [_weak_cells(weak)[:-1] for weak in behind])
    return text


def _weak_cells(weak: Weak) -> list[str]:
    found = weak.figures
    shares = [percent(share) for share in (found.median, found.baseline, found.constant)]
    return [weak.what.lower(), weak.name, f"{found.rows:,}", *shares, percent(found.coverage, 0), "; ".join(weak.why)]


def percent(share: float, digits: int = 1) -> str:
    """As a percentage, rounded first as the score rounds its own: one figure reads the same wherever it stands."""
    return f"{100 * round(share, 4):.{digits}f} %"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, its columns of figures to the right."""
    right = [all(_is_figure(row[column]) for row in rows) for column in range(len(head))]
    marks = ["---:" if figure else "---" for figure in right]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, marks, *rows])


def _is_figure(cell: str) -> bool:
    return re.fullmatch(r"\**[+-]?[\d,.]*( %)?\**", cell) is not None
