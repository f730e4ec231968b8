"""The evidence pack's workbook: LibreOffice computes the answer's amounts from its formulas, and other requests' from its inputs."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest
from flask.testing import FlaskClient
from openpyxl import Workbook, load_workbook

from service.api.resources.procurement import FLEET
from service.formats.documents.render import render
from service.formats.option_words import option_words
from tests.support.libreoffice import recalculate

Body = dict[str, Any]
Change = Callable[[Body], object]
CENT = 0.005
FIRST_ROW = 5
QUOTES = [
    {"name": "year", "pricing": "reserved_1y", "usd_per_accelerator_hour": 2.2, "upfront_share": 0.5},
    {"name": "hourly", "pricing": "on_demand", "usd_per_accelerator_hour": 3.1, "contract": True},
    {"name": "fleeting", "pricing": "spot", "usd_per_accelerator_hour": 1.4},
]
TAXED: Body = {
    "demand": {"accelerator": "H100", "count": 64, "start": "2027-03-15", "years": 3.5, "utilisation": 0.6}
    | {"growth_per_year": 0.4, "peak_utilisation": 0.85},
    "own": [
        {"name": "=1+1", "capex_usd_per_accelerator": 30000, "tax_rate": 0.25, "depreciation": "macrs_5_year", "staff_fte": 2}
        | {"network_share": 0.15, "installation_share": 0.1, "colo_usd_per_kw_month": 150, "lead_time_months": 2.5, "availability": 0.95}
        | {"refresh": [{"after_years": 2, "accelerator": "B200", "speedup": 2.2, "capex_usd_per_accelerator": 45000}]},
        {"name": "leased", "lease_usd_per_month": 90000, "tax_rate": 0.25, "bridge_usd_per_accelerator_hour": 2.9, "lead_time_months": 1}
        | {"colo_usd_per_kw_month": 170, "colo_includes_power": True, "licence_usd_per_accelerator_year": 1000, "residual_share": 0.3},
    ],
    "rent": {"providers": [], "quotes": QUOTES},
    "list_price_change_per_year": -0.1,
    "trials": 200,
}
RENTED: Body = {
    "demand": {"accelerator": "H100", "count": 16, "start": "2027-01-01", "years": 1.25},
    "rent": {"providers": [], "quotes": QUOTES[:2]},
    "trials": 200,
}
REQUESTS: dict[str, Body] = {"contract": FLEET | {"trials": 500}, "taxed": TAXED, "rented": RENTED}


def set_hardware(request: Body) -> None:
    request["own"][0]["capex_usd_per_accelerator"] = 21000.0


def set_terms(request: Body) -> None:
    request["rent"]["quotes"][0]["usd_per_accelerator_hour"] = 1.5
    request["cost_of_capital"] = 0.14
    request["demand"]["utilisation"] = 0.45


def set_course(request: Body) -> None:
    request |= {"cost_of_capital": 0.02, "list_price_change_per_year": 0.3}
    request["demand"] |= {"growth_per_year": -0.2, "peak_utilisation": 1.0}


def set_use(request: Body) -> None:
    request["demand"]["utilisation"] = 0.9


CHANGES: dict[str, tuple[str, Change, dict[tuple[str, str], float]]] = {
    "cheaper hardware": ("contract", set_hardware, {("Owned", "capex usd per accelerator"): 21000.0}),
    "other terms": (
        *("contract", set_terms),
        {("Rented", "lambda 3y"): 1.5, ("Inputs", "cost of capital"): 0.14, ("Inputs", "utilisation"): 0.45},
    ),
    "taxed, another course": (
        *("taxed", set_course),
        {("Inputs", "cost of capital"): 0.02, ("Inputs", "list price change"): 0.3}
        | {("Inputs", "growth per year"): -0.2, ("Inputs", "peak utilisation"): 1.0},
    ),
    "rented, use": ("rented", set_use, {("Inputs", "utilisation"): 0.9}),
}
"""Of a request, what is changed in it, and the same in its workbook: an input that no formula used would leave the old amounts."""


def answered(client: FlaskClient, request: Body) -> Body:
    answer = client.post("/v1/buy-or-rent", json=request)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    body: Body = answer.get_json()
    return body


def workbook(answer: Body) -> Workbook:
    return load_workbook(BytesIO(render("procurement", answer, "xlsx")[0]))


def changed(made: Workbook, inputs: dict[tuple[str, str], float]) -> Workbook:
    """The workbook after a reader's changes of the inputs in the rows of names: their first yellow cells."""
    for (sheet, name), value in inputs.items():
        row = next(row for row in made[sheet].iter_rows(min_row=FIRST_ROW) if row[0].value == name)
        cell = next(cell for cell in row if cell.fill.fgColor.rgb == "FFFFF7D6")
        assert cell.value != value
        cell.value = value
    return made


@pytest.fixture(scope="module")
def answers(client: FlaskClient) -> dict[str, Body]:
    return {name: answered(client, request) for name, request in REQUESTS.items()}


@pytest.fixture(scope="module")
def calculated(answers: dict[str, Body], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Workbook]:
    """Every workbook as LibreOffice computes it, all in one go: its saved values are dropped before."""
    packs = {name: render("procurement", answer, "xlsx")[0] for name, answer in answers.items()}
    workbooks = {name: load_workbook(BytesIO(pack)) for name, pack in packs.items()}
    workbooks |= {name: changed(load_workbook(BytesIO(packs[of])), inputs) for name, (of, _, inputs) in CHANGES.items()}
    return recalculate(workbooks, tmp_path_factory.mktemp("packs"))


def net_present_values(made: Workbook) -> dict[str, float]:
    """Of each option in detail, by its name."""
    rows = made["Verdict"].iter_rows(min_row=FIRST_ROW, max_col=11, values_only=True)
    return {str(row[0]): float(row[3]) for row in rows if row[10] is not None}  # type: ignore[arg-type]


def yearly_cash(made: Workbook) -> dict[str, list[float]]:
    """Cash by year of each option, its sum last."""
    rows = made["Years"].iter_rows(min_row=FIRST_ROW, values_only=True)
    return {str(row[0]): [float(cell) for cell in row[2:] if cell is not None] for row in rows if row[1] == "cash"}  # type: ignore[arg-type]


@pytest.mark.parametrize("name", REQUESTS)
def test_libreoffice_computes_what_the_answer_says(calculated: dict[str, Workbook], answers: dict[str, Body], name: str) -> None:
    """Net present values and the cash of every year come out of the formulas to the cent, and differ from the answer's nowhere."""
    made, options = calculated[name], {option_words(option): option for option in answers[name]["options"]}
    found, years = net_present_values(made), yearly_cash(made)
    assert found
    assert set(years) == set(found)
    for option, npv in found.items():
        assert npv == pytest.approx(options[option]["npv_usd"]["p50"], abs=CENT)
        cash = [year["cash_usd"] for year in options[option]["years"]]
        assert years[option][: len(cash)] == pytest.approx(cash, abs=CENT)
        assert years[option][-1] == pytest.approx(sum(cash), abs=CENT)
    changes = [row[5] for row in made["Verdict"].iter_rows(min_row=FIRST_ROW, max_row=FIRST_ROW + len(found) - 1, values_only=True)]
    assert changes == [0] * len(found)


@pytest.mark.parametrize("name", REQUESTS)
def test_lines_by_year_are_the_answers(calculated: dict[str, Workbook], answers: dict[str, Body], name: str) -> None:
    """Every line of every option in every year, to the cent."""
    options = {option_words(option): option for option in answers[name]["options"]}
    for option, line, *amounts in calculated[name]["Years"].iter_rows(min_row=FIRST_ROW, values_only=True):
        if option is None or line in ("cash", "discounted"):
            continue
        planned = [year["lines_usd"].get(line, 0.0) for year in options[option]["years"]]
        assert amounts[: len(planned)] == pytest.approx(planned, abs=CENT), (option, line)


@pytest.mark.parametrize("name", REQUESTS)
def test_what_shows_without_calculation_is_the_same(calculated: dict[str, Workbook], answers: dict[str, Body], name: str) -> None:
    """Every value that is saved with a formula is the one that LibreOffice computes."""
    saved = load_workbook(BytesIO(render("procurement", answers[name], "xlsx")[0]), data_only=True)
    for sheet in saved:
        for row, computed in zip(sheet.iter_rows(), calculated[name][sheet.title].iter_rows(), strict=False):
            for cell, other in zip(row, computed, strict=False):
                if isinstance(cell.value, int | float) and not isinstance(cell.value, bool):
                    assert other.value == pytest.approx(cell.value, rel=1e-9, abs=1e-4), (sheet.title, cell.coordinate)


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_input_gives_the_answer_to_the_changed_request(client: FlaskClient, calculated: dict[str, Workbook], name: str) -> None:
    """To the cent; a mix is left out, whose reserved part the service chooses anew."""
    of, change, _ = CHANGES[name]
    request: Body = json.loads(json.dumps(REQUESTS[of]))
    change(request)
    expected = {option["name"]: option["npv_usd"]["p50"] for option in answered(client, request)["options"] if option["kind"] != "mix"}
    found = {option: npv for option, npv in net_present_values(calculated[name]).items() if option in expected}
    assert found
    assert found == pytest.approx({option: expected[option] for option in found}, abs=CENT)


def test_the_month_of_break_even_follows(calculated: dict[str, Workbook], answers: dict[str, Body]) -> None:
    """The workbook's own month is the answer's, also where a cheaper plant pays back."""

    def month(made: Workbook) -> object:
        rows = made["Verdict"].iter_rows(min_row=FIRST_ROW, max_col=4, values_only=True)
        return next(row[3] for row in rows if str(row[0]).startswith("month from which"))

    expected = answers["contract"]["verdict"]["break_even_month"]
    assert month(calculated["contract"]) == ("never" if expected is None else expected)
    assert isinstance(month(calculated["cheaper hardware"]), int | float)


def test_the_same_answer_has_the_same_bytes(answers: dict[str, Body]) -> None:
    """Nothing of a workbook depends on when it is written."""
    assert render("procurement", answers["taxed"], "xlsx") == render("procurement", answers["taxed"], "xlsx")


def test_names_are_no_formulas(answers: dict[str, Body]) -> None:
    """A fleet named like a formula stays text, and every sheet is set up for printing."""
    made = load_workbook(BytesIO(render("procurement", answers["taxed"], "xlsx")[0]))
    assert "=1+1" in net_present_values(load_workbook(BytesIO(render("procurement", answers["taxed"], "xlsx")[0]), data_only=True))
    named = [cell for sheet in made for row in sheet.iter_rows() for cell in row if cell.value == "=1+1"]
    assert named
    assert {cell.data_type for cell in named} == {"s"}
    assert all(sheet.freeze_panes and sheet.print_area for sheet in made)
