"""Other predictors and the usual rules beside ours: the data file is whole, errors are of time, and the committed page shows them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.accuracy import naive, peers
from bench.accuracy.score import rows, summaries

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "accuracy.md"
SIMUMAX = next(one for one in peers.document()["predicted"] if one["peer"] == "SimuMax")


def test_a_peers_rows_are_those_that_are_scored() -> None:
    """Its errors are of every row of the data set, none left out."""
    scored = {row.id for row in rows() if row.table == SIMUMAX["data_set"]}
    assert {name for name, *_ in SIMUMAX["rows"]} == scored


def test_a_peers_errors_are_those_it_prints() -> None:
    """SimuMax's table has 1.69 % for the first of these rows and 13.54 % for the worst (docs/b200/b200_release_v1.2_summary.md)."""
    away = peers.step_errors(SIMUMAX, rows())
    assert away[0] == pytest.approx(0.0169, abs=1e-4)
    assert away.max() == pytest.approx(0.1354, abs=1e-4)


def test_memory_beside_the_peers() -> None:
    """SimuMax prints 0.08 to 0.77 % for these rows; ours, with no figure fitted to them, stays below 5 % on the average."""
    ours, theirs = peers.memory_errors(SIMUMAX)
    assert theirs.max() == pytest.approx(0.0077, abs=2e-4)
    assert ours.mean() < 0.05


def test_every_published_figure_names_its_ground() -> None:
    """Ours beside it is of a data set that is scored, or there is none; its source and the day it was read stand with it."""
    names = {str(line["name"]) for line in [*summaries(), *peers.memory_lines()]} | {"finetuning-memory", ""}
    for one in peers.document()["published"]:
        assert one["data_set"] in names, one["peer"]
        assert one["source"]
        assert one["basis"] in ("published", "run")


def test_the_constant_rate_is_its_groups_median_share() -> None:
    """Each row is put at the median share of its group, so the middle row of a group is exact."""
    rates, seconds_at_peak = np.array([100.0, 200.0, 300.0, 50.0]), np.array([1e-3, 1e-3, 1e-3, 2e-3])
    found = naive.constant_rates(rates, seconds_at_peak, ["a", "a", "a", "b"])
    assert found == pytest.approx([200.0, 200.0, 200.0, 50.0])


def test_figures_of_the_rules() -> None:
    """Median and 90 % quantile of each rule's errors."""
    found = naive.rule_figures({"baseline": [0.1, 0.2, 0.3], "constant_rate": [0.5]})
    assert (found["baseline_median_ape"], found["baseline_p90_ape"]) == (0.2, pytest.approx(0.28))
    assert found["constant_rate_p90_ape"] == 0.5


def test_the_committed_page_shows_the_peers() -> None:
    """If not: `make accuracy`."""
    text = PAGE.read_text(encoding="utf-8")
    for table in peers.peer_tables(summaries(), rows())["peer_rows"].splitlines():
        assert table in text
    assert all(one["peer"] in text for one in peers.document()["published"])
