"""A plan as a workbook: LibreOffice calculates the plan's amounts from its formulas, and others where a reader changes an input."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook, load_workbook

from service.domain.programs.program import Reserves, Tier
from service.formats.documents.program import render
from tests.conftest import missing
from tests.unit.engine.program_builders import planned, program
from tests.unit.formats.documents.program.program_answers import HOSTILE, answer_of, complete

Changes = Mapping[tuple[str, str], float]


def workbook(answer: dict[str, Any]) -> Workbook:
    """The document with its formulas, as a reader of another make has them; its saved values are dropped when it is written again."""
    return load_workbook(BytesIO(render(answer, "xlsx")[0]))


def calculated(made: Workbook, folder: Path, changes: Changes | None = None) -> Workbook:
    """What LibreOffice makes of the formulas after changes to cells."""
    program = shutil.which("soffice")
    if program is None:
        missing("LibreOffice (soffice)")
    for (sheet, cell), value in (changes or {}).items():
        made[sheet][cell] = value
    made.save(folder / "plan.xlsx")
    command = [str(program), f"-env:UserInstallation={(folder / 'profile').as_uri()}", "--headless", "--convert-to", "xlsx"]
    subprocess.run([*command, "--outdir", str(folder / "out"), str(folder / "plan.xlsx")], check=True, capture_output=True, timeout=240)
    return load_workbook(folder / "out" / "plan.xlsx", data_only=True)


def amounts(made: Workbook) -> dict[str, float]:
    """The budget's amounts by their line, those of one name added up."""
    found: dict[str, float] = {}
    for line, usd, *_ in made["Budget"].iter_rows(min_row=5, values_only=True):
        if isinstance(usd, int | float):
            found[line] = found.get(line, 0.0) + usd
    return found


def planned_amounts(answer: dict[str, Any]) -> dict[str, float]:
    parts = {name.removesuffix("_usd"): usd for name, usd in answer["envelope"].items()}
    whole = {"total": answer["total_usd"]["p50"], "expected over the gates": answer["expected_usd"]}
    return {line["line"]: line["usd"] for line in answer["lines"]} | parts | whole


def test_libreoffice_calculates_what_the_plan_says(tmp_path: Path) -> None:
    """Every line, the envelope, the total and the expected cost come out of the formulas to the cent."""
    answer = answer_of(complete())
    assert amounts(calculated(workbook(answer), tmp_path)) == pytest.approx(planned_amounts(answer), abs=0.001)


@pytest.mark.parametrize("stated", [0.01, 0.3])
def test_a_stated_contingency_follows_the_rest(tmp_path: Path, stated: float) -> None:
    """A contingency that is a share of the rest follows the rest, not the risks, whether it is below their expected losses or above."""
    answer = answer_of(replace(complete(), reserves=Reserves(0.05, 0.8, stated)))
    assert workbook(answer)["Shares"]["C9"].value == stated
    assert amounts(calculated(workbook(answer), tmp_path)) == pytest.approx(planned_amounts(answer), abs=0.001)


def test_what_shows_without_calculation_is_the_plan() -> None:
    """Programs that only show a workbook have the amounts saved with its formulas."""
    answer = answer_of(complete())
    saved = load_workbook(BytesIO(render(answer, "xlsx")[0]), data_only=True)
    assert amounts(saved) == pytest.approx(planned_amounts(answer), abs=0.001)


def test_a_changed_input_changes_the_total(tmp_path: Path) -> None:
    """Twice the price, three runs for one, half the share and a surer gate give the amounts that the engine gives."""
    run = planned("main", 1000.0, 2.0)
    made = workbook(answer_of(program(Tier("production", (run,)), reserves=Reserves(0.1, 0.8, 0.0))))
    assert (made["Runs"]["E5"].value, made["Runs"]["G5"].value, made["Shares"]["C5"].value) == (1, 2, 0.1)
    found = amounts(calculated(made, tmp_path, {("Runs", "G5"): 4.0, ("Runs", "E5"): 3, ("Shares", "C5"): 0.05}))
    assert found["production"] == pytest.approx(12_000)
    assert found["reserve: evaluation and debugging"] == pytest.approx(600)
    assert found["total"] == pytest.approx(12_600)


def test_an_overhead_is_counted_on_its_own_tier() -> None:
    """An overhead around one tier's runs names it, one around all says so."""
    sheet = workbook(answer_of(complete()))["Shares"]
    assert [sheet.cell(row, 2).value for row in (5, 6, 7)] == ["all tiers", "all tiers", "production"]


def test_surer_gates_raise_the_expected_cost_to_the_budget(tmp_path: Path) -> None:
    """With every gate passed for certain, the mean over the gates is the whole budget."""
    answer = answer_of(complete())
    found = amounts(calculated(workbook(answer), tmp_path, {("Gates", "C5"): 1.0, ("Gates", "C6"): 1.0}))
    assert found["expected over the gates"] == pytest.approx(answer["total_usd"]["p50"], abs=0.02)
    assert found["expected over the gates"] > answer["expected_usd"]


def test_a_name_that_begins_like_a_formula_is_text() -> None:
    """No cell with a caller's words is calculated."""
    made = workbook(answer_of(complete()))
    cells = [cell for sheet in made for row in sheet.iter_rows() for cell in row if cell.value == HOSTILE]
    assert len(cells) >= 3
    assert {cell.data_type for cell in cells} == {"s"}


def test_the_burn_plan_adds_up_to_the_budget() -> None:
    """The weeks' sum, saved with its formula, is the total."""
    answer = answer_of(complete())
    sheet = load_workbook(BytesIO(render(answer, "xlsx")[0]), data_only=True)["Burn plan"]
    assert sheet.cell(sheet.max_row, 2).value == pytest.approx(answer["total_usd"]["p50"], abs=0.001)
