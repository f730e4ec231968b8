"""The page on accuracy: its statistics on rows made by hand, its structure, and that the committed one is of the recorded figures."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench.accuracy import report

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "bench" / "accuracy" / "page.md").read_text(encoding="utf-8")


def row(**changed: Any) -> Any:
    """A measurement of 100 tokens/s that is predicted exactly, but for what is changed."""
    whole = {
        "id": "m1",
        "table": "one",
        "source": "paper",
        "accelerator": "NVIDIA-A100-80GB-SXM",
        "family": "ampere",
        "precision": "bf16",
        "count": 8,
        "params": 7e9,
        "layout_known": "stated",
        "measured": 100.0,
        "predicted_left_out": 100.0,
        "predicted_publication_out": 100.0,
        "predicted_in_sample": 100.0,
        "baseline": 100.0,
        "constant": 100.0,
        "covered": True,
        "kind": "throughput",
    }
    return SimpleNamespace(**(whole | changed))


def run(**changed: Any) -> Any:
    """A published run of 1,000 accelerator-hours, planned exactly but for what is changed."""
    hours = dict.fromkeys(
        ("measured", "predicted_left_out", "predicted_publication_out", "predicted_in_sample", "baseline", "constant"), 1000.0
    )
    goal = {"id": "run-1", "table": "training-runs", "kind": "hours", "layout_known": "goal"}
    return row(**(goal | hours | changed))


ROWS = [
    row(),
    row(id="m2", count=4096, params=2e11, predicted_left_out=80.0, layout_known="partly"),
    row(id="m3", table="two", source="other", family="tpu-v4", count=5000, predicted_left_out=50.0, baseline=90.0, covered=False),
    row(id="m2", count=4096, params=2e11, predicted_left_out=40.0, layout_known="goal"),
    run(predicted_left_out=400.0, covered=False),
]
LINE = {"median_ape": 0.1, "mean_ape": 0.12, "p90_ape": 0.2, "coverage_80": 0.75, "in_sample_median_ape": 0.08, "in_sample_mean_ape": 0.09}
LINE |= {"baseline_median_ape": 0.3, "constant_rate_median_ape": 0.05, "rows": 2, "left_out": {}}
LINES = [
    {**LINE, "name": "all"},
    {**LINE, "name": "one", "left_out": {"no measured rate": 3}},
    {"name": "seen-only", "rows": 4, "in_sample_median_ape": 0.04, "left_out": {}},
    {"name": "none", "rows": 0, "left_out": {"shape not published": 8}},
]
TABLES = dict.fromkeys(("large_from_small", "rules", "peer_rows", "peers", "peaks", "refused"), "a table")
CITATIONS = {"paper": "A paper (arXiv 0000.00000) Table 1", "other": "x" * 20 + " " + "y" * 300}


def cells(text: str, first: str) -> list[str]:
    """The cells of the table row whose first cell is `first`."""
    found = [line for line in text.splitlines() if line.startswith(f"| {first} |")]
    assert found, f"no row {first}"
    return [cell.strip() for cell in found[0].strip("|").split("|")]


def test_errors_are_of_time() -> None:
    """Half the measured rate is twice the time, 100 % off; half the hours are 50 % off."""
    assert report.errors([row(predicted_left_out=50.0)]) == pytest.approx([1.0])
    assert report.errors([run(predicted_left_out=500.0)]) == pytest.approx([0.5])


def test_figures_of_a_group() -> None:
    """Median, 90 % quantile, bias, coverage and the mean of the tables' medians on three rows with errors 0, 25 and 100 %."""
    found = report.figures(ROWS[:3])
    assert (found.rows, found.tables) == (3, 2)
    assert found.median == pytest.approx(0.25)
    assert found.p90 == pytest.approx(0.25 + 0.8 * 0.75)
    assert found.bias == pytest.approx(0.25)
    assert found.alike == pytest.approx((0.125 + 1.0) / 2)
    assert found.coverage == pytest.approx(2 / 3)
    assert (found.in_sample, found.constant) == (0.0, 0.0)


def test_bias_has_a_sign() -> None:
    """A model that says too fast has a negative bias."""
    assert report.figures([row(predicted_left_out=200.0)]).bias == pytest.approx(-0.5)


@pytest.mark.parametrize(
    ("count", "label"),
    [(1, "1 to 8"), (8, "1 to 8"), (9, "9 to 64"), (512, "65 to 512"), (4096, "513 to 4,096"), (4097, "more than 4,096")],
)
def test_an_edge_belongs_to_the_bin_below(count: int, label: str) -> None:
    """Bins of accelerator counts are closed above."""
    assert report.by_count(row(count=count)) == label


def test_bins_stand_in_order_and_empty_ones_are_left_out() -> None:
    """Bins are listed from small to large, without those that hold nothing."""
    groups = report.grouped(ROWS[:3], report.by_count, report.COUNT_LABELS)
    assert [name for name, _ in groups] == ["1 to 8", "513 to 4,096", "more than 4,096"]


def test_a_figure_reads_the_same_from_score_and_rows() -> None:
    """The score rounds to four digits; a percentage of the unrounded figure is rounded there first."""
    assert report.percent(0.328461) == report.percent(round(0.328461, 4))


def test_faults_are_named() -> None:
    """A group is called weak for its error, its coverage and each rule that is ahead; a good one for nothing."""
    worst = report.figures([row(predicted_left_out=50.0, covered=False)])
    assert report.faults(worst) == ("large error", "range too narrow", "behind 6 N D", "behind the constant rate")
    assert report.faults(report.figures([row(constant=90.0, baseline=90.0)])) == ()


def test_groups_of_few_rows_are_not_judged() -> None:
    """Two bad rows make no weak group, three do."""
    bad = [row(id=f"m{index}", predicted_left_out=50.0) for index in range(3)]
    assert report.weak_groups(bad[:2], bad[:2]) == []
    assert "NVIDIA-A100-80GB-SXM" in {weak.name for weak in report.weak_groups(bad, bad)}


def test_the_page_holds_every_part() -> None:
    """Each table of the page has its rows: data sets, groups, pairs, runs, reasons; the weaknesses stand at the end."""
    text = report.document(LINES, ROWS, CITATIONS, PAGE, "- a weakness\n", TABLES)
    assert cells(text, "one")[1:5] == ["2", "10.0 %", "12.0 %", "20.0 %"]
    assert cells(text, "seen-only")[2] == ""
    assert cells(text, "**all**")[1] == "2"
    assert cells(text, "accelerator-hours of whole runs, goal alone")[1:3] == ["1 rows", "60.0 %"]
    assert cells(text, "run-1")[3:6] == ["1,000", "400", "0.40"]
    assert cells(text, "none") == ["none", "shape not published", "8"]
    assert "| **all** |  | **11** |" in text
    assert "| one | 1 | 25.0 % | 150.0 % |" in text
    assert "- other: xxxxxxxxxxxxxxxxxxxx …" in text
    assert "- a weakness" in text
    assert "$" not in text


def test_the_same_rows_make_the_same_page() -> None:
    """The page is a function of the score: no clock, no order of a set."""
    assert report.document(LINES, ROWS, CITATIONS, PAGE, "", TABLES) == report.document(LINES, list(ROWS), CITATIONS, PAGE, "", TABLES)


def test_charts_are_small_and_the_same_twice() -> None:
    """Every chart of the page is drawn without the network, byte for byte alike, on white and with no address to load from."""
    plots = pytest.importorskip("bench.accuracy.plots", reason="altair or vl-convert-python is not installed", exc_type=ImportError)
    first = plots.charts(LINES, ROWS)
    assert first == plots.charts(LINES, ROWS)
    assert {f"accuracy/{name}.svg" for name in first} == set(re.findall(r"\]\((accuracy/.*?\.svg)\)", PAGE))
    for svg in first.values():
        assert 'fill="#ffffff"' in svg
        assert len(svg) < 100_000
        assert not [address for address in re.findall(r"https?://[^\"]*", svg) if "www.w3.org" not in address]


def test_slimming_leaves_what_is_read_as_it_is() -> None:
    """Coordinates lose digits, labels and opacities don't."""
    plots = pytest.importorskip("bench.accuracy.plots", reason="altair or vl-convert-python is not installed", exc_type=ImportError)
    drawn = '<g><path transform="translate(1.234,5.96)" d="M2.5,0A2.5,2.5,0,1,1,-2.5,0" opacity="0.75"/><text x="1.25">0.125</text></g>'
    assert plots.slim(drawn) == '<g><circle cx="1.2" cy="6" r="2.5" opacity="0.75"/><text x="1.2">0.125</text></g>'


def test_the_committed_page_shows_the_recorded_figures() -> None:
    """docs/explanation/accuracy.md and recorded.json are of one score. If not: `make accuracy`, then `python -m bench.accuracy.record`."""
    text = (ROOT / "docs" / "explanation" / "accuracy.md").read_text(encoding="utf-8")
    recorded = json.loads((ROOT / "bench" / "accuracy" / "recorded.json").read_text(encoding="utf-8"))
    for name, figures in recorded.items():
        if "median_ape" not in figures:
            continue
        shown = cells(text, f"**{name}**" if name in report.TOTALS else report.RUN_GROUPS.get(name, name))
        assert int(shown[1].replace(",", "")) == figures["rows"], name
        assert math.isclose(float(shown[2].removesuffix(" %")), 100 * figures["median_ape"], abs_tol=0.1), name


def test_the_committed_page_shows_charts_that_are_there() -> None:
    """Every file that docs/explanation/accuracy.md links to exists."""
    text = (ROOT / "docs" / "explanation" / "accuracy.md").read_text(encoding="utf-8")
    linked = [path for path in re.findall(r"\]\(([^)]+)\)", text) if "://" not in path]
    assert linked
    assert [path for path in linked if not (ROOT / "docs" / "explanation" / path).exists()] == []
