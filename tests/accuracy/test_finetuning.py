"""Fine-tuning against published measurements: speed and its range, peak memory, and whether a job fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.accuracy import finetuning

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "accuracy" / "finetuning.md"


@pytest.fixture(scope="module")
def lines() -> dict[str, dict[str, Any]]:
    return {str(line["name"]): line for line in finetuning.summaries()}


def test_speed_without_the_document(lines: dict[str, dict[str, Any]]) -> None:
    """Under a tenth of the measured time in the median, under 15 % with documents alike; ranges hold about four in five."""
    speed = lines["finetuning-speed"]
    assert speed["rows"] == 171
    assert speed["median_ape"] < 0.1
    assert speed["documents_alike_median_ape"] < 0.15
    assert 0.75 <= speed["coverage_80"] <= 0.9


def test_peak_memory_is_that_measured(lines: dict[str, dict[str, Any]]) -> None:
    """5 % in the median of 164 published peaks, under 10 % with documents alike."""
    memory = lines["finetuning-memory"]
    assert memory["rows"] == 164
    assert memory["median_ape"] < 0.05
    assert memory["documents_alike_median_ape"] < 0.1


def test_jobs_that_ran_fit_and_others_do_not(lines: dict[str, dict[str, Any]]) -> None:
    """Of 281 published jobs, 26 of which ran out of memory, 98 % are told apart."""
    fits = lines["finetuning-fits"]
    assert (fits["rows"], fits["out_of_memory"]) == (281, 26)
    assert fits["right_share"] >= 0.98


def test_every_method_and_document_has_a_line(lines: dict[str, dict[str, Any]]) -> None:
    """Three methods, and every document of the table."""
    groups = [name.removeprefix("finetuning: ") for name in lines if name.startswith("finetuning: ")]
    assert {"full_finetune", "lora", "qlora"} <= set(groups)
    assert {row.document for row in finetuning.rows()} <= set(groups)


def test_the_page_is_of_these_figures() -> None:
    """`make accuracy` would change nothing."""
    assert PAGE.read_text(encoding="utf-8") == finetuning.page()
