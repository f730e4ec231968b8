"""A plan as a workbook: LibreOffice calculates the plan's amounts from its formulas, and others where a reader changes an input."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from io import BytesIO
from typing import Any

import pytest
from openpyxl import Workbook, load_workbook

from service.domain.programs.program import Program, Reserves, Tier
from service.formats.documents.render import render
from tests.support.libreoffice import recalculate
from tests.unit.engine.program_builders import planned, program
from tests.unit.formats.documents.program.program_answers import HOSTILE, answer_of, complete

Changes = Mapping[tuple[str, str], float]
CONTINGENCIES = (0.01, 0.3)


def workbook(answer: dict[str, Any]) -> Workbook:
    """The document with its formulas, as a reader of another make has them; its saved values are dropped when it is written again."""
    return load_workbook(BytesIO(render("program", answer, "xlsx")[0]))


def changed(made: Workbook, changes: Changes) -> Workbook:
    """The workbook after a reader's changes to cells."""
    for (sheet, cell), value in changes.items():
        made[sheet][cell] = value
    return made


@pytest.fixture(scope="module")
def calculated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Workbook]:
    """Every workbook whose formulas a test looks at, as LibreOffice calculates them."""
    workbooks = {
        "plan": workbook(answer_of(complete())),
        "surer gates": changed(workbook(answer_of(complete())), {("Gates", "C5"): 1.0, ("Gates", "C6"): 1.0}),
        "other inputs": changed(workbook(answer_of(one_run())), {("Runs", "G5"): 4.0, ("Runs", "E5"): 3, ("Shares", "C5"): 0.05}),
        **{f"contingency {stated}": workbook(answer_of(with_contingency(stated))) for stated in CONTINGENCIES},
    }
    return recalculate(workbooks, tmp_path_factory.mktemp("workbooks"))


def one_run() -> Program:
    return program(Tier("production", (planned("main", 1000.0, 2.0),)), reserves=Reserves(0.1, 0.8, 0.0))


def with_contingency(stated: float) -> Program:
    return replace(complete(), reserves=Reserves(0.05, 0.8, stated))


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


def test_libreoffice_calculates_what_the_plan_says(calculated: dict[str, Workbook]) -> None:
    """Every line, the envelope, the total and the expected cost come out of the formulas to the cent."""
    assert amounts(calculated["plan"]) == pytest.approx(planned_amounts(answer_of(complete())), abs=0.001)


@pytest.mark.parametrize("stated", CONTINGENCIES)
def test_a_stated_contingency_follows_the_rest(calculated: dict[str, Workbook], stated: float) -> None:
    """A contingency that is a share of the rest follows the rest, not the risks, whether it is below their expected losses or above."""
    answer = answer_of(with_contingency(stated))
    assert workbook(answer)["Shares"]["C9"].value == stated
    assert amounts(calculated[f"contingency {stated}"]) == pytest.approx(planned_amounts(answer), abs=0.001)


def test_what_shows_without_calculation_is_the_plan() -> None:
    """Programs that only show a workbook have the amounts saved with its formulas."""
    answer = answer_of(complete())
    saved = load_workbook(BytesIO(render("program", answer, "xlsx")[0]), data_only=True)
    assert amounts(saved) == pytest.approx(planned_amounts(answer), abs=0.001)


def test_a_changed_input_changes_the_total(calculated: dict[str, Workbook]) -> None:
    """Twice the price, three runs for one, half the share and a surer gate give the amounts that the engine gives."""
    made = workbook(answer_of(one_run()))
    assert (made["Runs"]["E5"].value, made["Runs"]["G5"].value, made["Shares"]["C5"].value) == (1, 2, 0.1)
    found = amounts(calculated["other inputs"])
    assert found["production"] == pytest.approx(12_000)
    assert found["reserve: evaluation and debugging"] == pytest.approx(600)
    assert found["total"] == pytest.approx(12_600)


def test_an_overhead_is_counted_on_its_own_tier() -> None:
    """An overhead around one tier's runs names it, one around all says so."""
    sheet = workbook(answer_of(complete()))["Shares"]
    assert [sheet.cell(row, 2).value for row in (5, 6, 7)] == ["all tiers", "all tiers", "production"]


def test_surer_gates_raise_the_expected_cost_to_the_budget(calculated: dict[str, Workbook]) -> None:
    """With every gate passed for certain, the mean over the gates is the whole budget."""
    answer = answer_of(complete())
    found = amounts(calculated["surer gates"])
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
    sheet = load_workbook(BytesIO(render("program", answer, "xlsx")[0]), data_only=True)["Burn plan"]
    assert sheet.cell(sheet.max_row, 2).value == pytest.approx(answer["total_usd"]["p50"], abs=0.001)


def test_every_sheet_prints_whole_with_a_chart_of_the_burn_plan() -> None:
    """One page wide, the head on each, and the chart below the weeks, which it follows."""
    made = workbook(answer_of(complete()))
    assert all(sheet.print_area and sheet.page_setup.orientation == "landscape" and sheet.print_title_rows for sheet in made)
    archive = zipfile.ZipFile(BytesIO(render("program", answer_of(complete()), "xlsx")[0]))
    (chart,) = [archive.read(name).decode() for name in archive.namelist() if re.fullmatch(r"xl/charts/chart\d+\.xml", name)]
    assert chart.count("<c:ser>") == 2
    assert "'Burn plan'!$B$5:" in chart
