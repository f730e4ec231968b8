"""The evidence pack over HTTP and for hostile names: formats, two pages, and text that stays text."""

from __future__ import annotations

import copy
import json
import re
from io import BytesIO
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import example, given, settings
from hypothesis import strategies as st
from openpyxl import load_workbook

from service.api.resources.procurement import FLEET
from service.formats.documents.procurement.model import cash_model
from service.formats.documents.render import PACK_FORMATS, accepted_types, render

Body = dict[str, Any]
ADDRESS = "/v1/buy-or-rent"
REQUEST: Body = FLEET | {"trials": 200}
BEGINNINGS = {"xlsx": b"PK", "html": b"<!doctype html>", "pdf": b"%PDF", "md": b"# "}
FRAGMENTS = (
    *('#panic("code ran")', "#pagebreak()", '#read("/etc/passwd")', "*", "_", "$", "@x", "<a>", "\\", "//", "/*", '"', "`", "[", "]"),
    *("</svg>", "<script>", "&amp;", "|", "=1+1", "\n", "\x00", "\x1b", "\ufffe", "é", "漢字", "🙂", "x" * 60, "🙂" * 60, " "),
)


def pages(pdf: bytes) -> int:
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


@pytest.fixture(scope="module")
def answer(client: FlaskClient) -> Body:
    body: Body = client.post(ADDRESS, json=REQUEST).get_json()
    return body


@pytest.mark.parametrize("wanted", PACK_FORMATS)
def test_every_format_is_what_it_says(client: FlaskClient, wanted: str) -> None:
    """By the query and by Accept, with the same bytes each time."""
    types = accepted_types("procurement")
    found = client.post(f"{ADDRESS}?format={wanted}", json=REQUEST)
    assert (found.status_code, found.content_type.partition(";")[0]) == (200, types[wanted])
    assert found.data.startswith(BEGINNINGS[wanted])
    accepted = client.post(ADDRESS, json=REQUEST, headers={"Accept": types[wanted]})
    assert (accepted.content_type, accepted.data) == (found.content_type, found.data)


def test_json_is_the_answer_unless_another_format_is_asked_for(client: FlaskClient, answer: Body) -> None:
    """What nobody can have is refused."""
    assert client.post(f"{ADDRESS}?format=json", json=REQUEST).get_json() == answer
    assert client.post(ADDRESS, json=REQUEST, headers={"Accept": "*/*"}).get_json() == answer
    assert client.post(ADDRESS, json=REQUEST, headers={"Accept": "text/calendar"}).status_code == 406
    assert client.post(f"{ADDRESS}?format=ics", json=REQUEST).status_code == 422


def test_the_page_states_its_own_policy_and_runs_nothing(client: FlaskClient) -> None:
    """No script, nothing from elsewhere."""
    page = client.post(f"{ADDRESS}?format=html", json=REQUEST)
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert "<script" not in page.text


def test_the_documents_say_what_the_answer_says(answer: Body) -> None:
    """The choice, what it saves, every flip, every warning, every quote with its last day, and each year's cash."""
    verdict = answer["verdict"]
    for wanted in ("html", "md"):
        text = render("procurement", answer, wanted)[0].decode()
        assert f"{verdict['probability_best']:.0%}" in text
        assert "2027-01-31" in text
        assert text.count("hardware, USD an accelerator") == sum("capex" in flip["variable"] for flip in verdict["flips"])
        for option in cash_model(answer).shown:
            assert all(f"{year['cash_usd']:,.0f}" in text for year in option.option["years"])


def test_the_months_are_those_of_the_answer(answer: Body) -> None:
    """Cash flows made of the answer's inputs alone have the present values of its options."""
    model = cash_model(answer)
    assert len(model.options) > 3
    for shown in model.options:
        assert float(shown.cash @ model.discount) == pytest.approx(shown.option["npv_usd"]["p50"], abs=0.005)


def test_a_pdf_has_two_pages_however_much_there_is(client: FlaskClient) -> None:
    """Fifteen years, twenty fleets and forty quotes are made smaller or cut, and say so."""
    own = [{**FLEET["own"][0], "name": f"fleet {at} {'with a long name ' * 3}"[:60], "residual_share": None} for at in range(20)]
    quotes = [
        {"name": f"vendor {at} {'of a long name ' * 3}"[:60], "pricing": "reserved_3y", "usd_per_accelerator_hour": 1.5 + at / 50}
        for at in range(40)
    ]
    request = {"demand": FLEET["demand"] | {"years": 15, "growth_per_year": 0.2}, "own": own, "rent": {"quotes": quotes}, "trials": 100}
    body = client.post(ADDRESS, json=request).get_json()
    assert pages(render("procurement", body, "pdf")[0]) == 2
    assert render("procurement", body, "xlsx")[0].startswith(b"PK")


@pytest.mark.parametrize("side", ["own", "rent"])
def test_one_side_alone_has_a_pack(client: FlaskClient, side: str) -> None:
    """Without a rival there is no crossing, no grid and no break-even, and no gap in the pages."""
    quote = {"name": "hourly", "pricing": "on_demand", "usd_per_accelerator_hour": 2.5}
    own = {"own": [FLEET["own"][0] | {"lead_time_months": 0}], "rent": {"providers": []}}
    request = {"demand": FLEET["demand"], "trials": 100} | (own if side == "own" else {"rent": {"providers": [], "quotes": [quote]}})
    found = client.post(ADDRESS, json=request)
    assert found.status_code == 200, found.text
    for wanted in PACK_FORMATS:
        content = render("procurement", found.get_json(), wanted)[0]
        assert content.startswith(BEGINNINGS[wanted])
    assert pages(render("procurement", found.get_json(), "pdf")[0]) == 2


def test_few_options_have_those_of_the_verdict(client: FlaskClient) -> None:
    """However few are asked for, the pack finds what its sentence, its curves and its grid name."""
    body = client.post(ADDRESS, json=REQUEST | {"limit": 1}).get_json()
    names, verdict = {option["name"] for option in body["options"]}, body["verdict"]
    assert {verdict["choice"], verdict["against"], verdict["grid"]["against"]} <= names
    assert render("procurement", body, "html")[0].startswith(BEGINNINGS["html"])


def test_a_programs_plan_has_a_pack(client: FlaskClient) -> None:
    """Its accelerators by month are the demand of the workbook."""
    from service.api.resources.programs import EXAMPLE

    request = {"demand": {"accelerator": "H100", "program": EXAMPLE, "years": 2}, "own": FLEET["own"], "trials": 100}
    body = client.post(ADDRESS, json=request).get_json()
    assert body["inputs"]["plan"]
    model = cash_model(body)
    for shown in model.options:
        assert float(shown.cash @ model.discount) == pytest.approx(shown.option["npv_usd"]["p50"], abs=0.005)
    assert render("procurement", body, "xlsx")[0].startswith(b"PK")


@example(name="\ufffe\x00")
@example(name="".join(FRAGMENTS))
@settings(max_examples=settings().max_examples // 10)
@given(name=st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=10), min_size=1, max_size=6).map("".join))
def test_names_are_neither_code_nor_markup(answer: Body, name: str) -> None:
    """Whatever a fleet, a quote and a warning are called, the PDF is made of two pages, and no page has their markup."""
    body = renamed(answer, name)  # a pack takes a second: few names, one of which has every fragment
    assert pages(render("procurement", body, "pdf")[0]) == 2
    page = render("procurement", body, "html")[0].decode()
    assert "<script>" not in page
    assert page.count("<svg") == page.count("</svg>")
    assert load_workbook(BytesIO(render("procurement", body, "xlsx")[0]))["Verdict"].max_row > 5


def renamed(answer: Body, name: str) -> Body:
    """The answer with another name of the owned fleet and of the quote, and a warning that has it."""
    text = json.dumps(answer)
    for known, other in (("dc1", name), ("lambda 3y", f"{name} quote")):
        text = text.replace(json.dumps(known)[1:-1], json.dumps(other)[1:-1])
    body: Body = copy.deepcopy(json.loads(text))
    body["warnings"].append(name)
    return body


def test_bands_are_drawn_where_the_answer_has_them(answer: Body) -> None:
    """An answer of an earlier version has curves without."""
    from service.formats.documents.procurement.charts import curves_chart

    older = {name: value for name, value in answer.items() if name != "curves"}
    drawn, without = (json.dumps(curves_chart(cash_model(body)).to_dict()) for body in (answer, older))
    assert '"type": "area"' in drawn
    assert '"type": "area"' not in without
    assert b"bands: p10 to p90 of" in render("procurement", answer, "html")[0]
    assert b"bands: p10 to p90" not in render("procurement", older, "html")[0]


def test_labels_of_curves_are_whole(answer: Body) -> None:
    """In lines, none of which is cut."""
    from service.formats.documents.procurement.charts import curves_chart

    model = cash_model(answer)
    drawn = curves_chart(model).to_dict()
    labels = {row["label"] for rows in drawn["datasets"].values() for row in rows if "label" in row and "kind" in row}
    assert {label.replace("\n", " ") for label in labels} == {shown.words for shown in model.shown}
    assert all(len(line) <= 40 for label in labels for line in label.split("\n"))
    assert not any("limit" in layer["mark"] for layer in drawn["layer"] if layer["mark"]["type"] == "text")
