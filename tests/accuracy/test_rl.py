"""Steps of reinforcement learning against published ones: seconds of a step, of its phases, and the range."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.accuracy import rl

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "accuracy" / "rl.md"


@pytest.fixture(scope="module")
def lines() -> dict[str, dict[str, Any]]:
    return {str(line["name"]): line for line in rl.summaries()}


def test_steps_without_the_document(lines: dict[str, dict[str, Any]]) -> None:
    """21 published steps: under 15 % in the median without the row's document, under a quarter without its repository."""
    steps = lines["rl-steps"]
    assert steps["rows"] == 21
    assert steps["median_ape"] < 0.15
    assert steps["publication_out_median_ape"] < 0.25


def test_ranges_hold_four_in_five_and_little_more(lines: dict[str, dict[str, Any]]) -> None:
    """Found from the other documents' errors, and no narrower than the machine's pre-training."""
    assert 0.75 <= lines["rl-steps"]["coverage_80"] <= 0.92


@pytest.mark.parametrize("phase", ["generation", "old_log_prob", "reference", "update_actor", "update_critic", "values"])
def test_each_printed_phase_is_near(lines: dict[str, dict[str, Any]], phase: str) -> None:
    """A step is not right because one phase makes up for another."""
    assert lines[f"rl-phase: {phase}"]["median_ape"] < 0.3


def test_the_page_is_that_of_the_score() -> None:
    """Written by `make accuracy`, with every row's reason where it is not scored."""
    page = PAGE.read_text(encoding="utf-8")
    assert "## What is not scored" in page
    assert all(row.case.id in page for row in rl.rows())
