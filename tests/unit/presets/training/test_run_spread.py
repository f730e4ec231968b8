"""How much repeated runs of one job differ."""

from __future__ import annotations

from service.presets.training.run_spread import load_run_spreads, run_spread


def test_every_size_has_a_row() -> None:
    """Rows begin at their size, and hold up to the next."""
    assert [run_spread(count).from_count for count in (1, 8, 9, 64, 65, 512, 513, 100_000)] == [1, 1, 9, 9, 65, 65, 513, 513]


def test_runs_of_one_job_differ_by_little() -> None:
    """Less than half a percent in the usual submission; more on many machines, and never as much as predictions of unseen ones."""
    rows = load_run_spreads()
    assert all(0 < row.usual_cv < 0.005 < row.high_cv < 0.05 for row in rows)
    assert rows[-1].high_cv > rows[0].high_cv
