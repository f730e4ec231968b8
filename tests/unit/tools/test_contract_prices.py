"""The table of published contract prices is what a survey's rows say."""

from __future__ import annotations

import csv
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tools.contract_prices import FILE, is_usable, published_rows, write

SURVEY = Path(__file__).parents[4] / "shared" / "prices" / "contract_prices.csv"


def row(**changes: str) -> dict[str, str]:
    """A one-year reservation as a survey has it."""
    usual = {
        "provider": "aws",
        "accelerator": "NVIDIA-L40S",
        "pricing": "reserved_1y",
        "term_months": "12",
        "upfront": "none",
        "usd_per_accelerator_hour": "2.3728",
        "usd_low": "",
        "usd_high": "",
        "observed_at": "2025-11-30",
        "source": "a price list",
        "verified": "seen",
        "notes": "",
    }
    return usual | changes


def only(*rows: dict[str, str]) -> dict[str, Any]:
    (found,) = published_rows(rows)
    return found


def test_rows_of_one_source_become_low_median_and_high() -> None:
    """Regions of a seller are one row with their number."""
    found = only(*(row(usd_per_accelerator_hour=usd) for usd in ("2", "5", "3")))
    assert [found[f"{end}_usd_per_accelerator_hour"] for end in ("low", "mid", "high")] == [2, 3, 5]
    assert (found["prices"], found["term"], found["kind"]) == (3, "1y", "reserved_list")


def test_bounds_have_no_middle() -> None:
    """A list price and the highest discount off it say nothing of what lies between."""
    found = only(row(usd_per_accelerator_hour="", usd_low="2.5", usd_high="3.9", notes="DERIVED: low = list x 0.65"))
    assert "mid_usd_per_accelerator_hour" not in found
    assert found["kind"] == "derived"


@pytest.mark.parametrize(
    "changes",
    [{"verified": "memory"}, {"accelerator": ""}, {"usd_per_accelerator_hour": ""}, {"provider": "unspecified_hyperscaler"}],
)
def test_what_is_recalled_unnamed_unpriced_or_superseded_is_left_out(changes: dict[str, str]) -> None:
    """Blank is not zero."""
    assert is_usable(row())
    assert not is_usable(row(**changes))


def test_titles_and_sentences_of_a_source_are_not_carried() -> None:
    """Where it is to be found is enough."""
    assert (
        only(row(source='a.example/plans (read 2026-09-20): "up to 60% off for commitments"'))["source"]
        == "a.example/plans (read 2026-09-20)"
    )
    assert only(row(source='docs ("up to 35% off"; 6 months) x list'))["source"] == "docs (6 months) x list"


def test_quarters_become_their_first_month() -> None:
    """Dates sort as text."""
    assert only(row(observed_at="2024-Q4"))["observed_at"] == "2024-10"


def test_the_head_of_the_table_stays(tmp_path: Path) -> None:
    """Writing again changes nothing."""
    table = tmp_path / "table.toml"
    table.write_text(FILE.read_text(encoding="utf-8"), encoding="utf-8")
    write(tomllib.loads(table.read_text(encoding="utf-8"))["price"], table)
    assert table.read_text(encoding="utf-8") == FILE.read_text(encoding="utf-8")


@pytest.mark.skipif(not SURVEY.exists(), reason="the survey is not beside this checkout")
def test_the_table_is_that_of_the_survey() -> None:
    """All its rows that can be used, and no other."""
    with SURVEY.open(encoding="utf-8", newline="") as file:
        assert list(published_rows(csv.DictReader(file))) == tomllib.loads(FILE.read_text(encoding="utf-8"))["price"]
