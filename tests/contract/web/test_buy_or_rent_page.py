"""/buy-or-rent: the form with fleets and quotes, the verdict with its pictures, what is assumed, and the evidence pack."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest
from flask.testing import FlaskClient

from service.formats.documents.procurement.words import certainty, verdict_sentence
from service.formats.documents.render import PACK_FORMATS
from service.web.plain_words import in_plain_text
from tests.contract.web.visitor import text_of, words_of

FIELDS = {
    "demand.accelerator": "H100",
    "demand.count": "256",
    "demand.years": "3",
    "own.0.name": "dc1",
    "own.0.capex_usd_per_accelerator": "32,000",
    "own.0.residual_share": "0.25",
    "rent.pricing": "reserved_3y, on_demand",
    "rent.quotes.0.name": "lambda 3y",
    "rent.quotes.0.pricing": "reserved_3y",
    "rent.quotes.0.usd_per_accelerator_hour": "1.89",
    "trials": "200",
}
DEMAND = {"accelerator": "H100", "count": 256, "years": 3}
FLEET = {"name": "dc1", "capex_usd_per_accelerator": 32000, "residual_share": 0.25}
QUOTE = {"name": "lambda 3y", "pricing": "reserved_3y", "usd_per_accelerator_hour": 1.89}
RENT = {"pricing": ["reserved_3y", "on_demand"], "quotes": [QUOTE]}
REQUEST: dict[str, Any] = {"demand": DEMAND, "own": [FLEET], "rent": RENT, "trials": 200}
HOSTILE = "<script>alert(1)</script>\"'&\u202e"


def shown(client: FlaskClient, *without: str, **more: str) -> Any:
    """The page with the form filled in so; two underscores stand for a point."""
    stated = {name.replace("__", "."): value for name, value in more.items()}
    return client.get("/buy-or-rent?" + urlencode({name: value for name, value in (FIELDS | stated).items() if name not in without}))


@pytest.fixture(scope="module")
def answer(client: FlaskClient) -> dict[str, Any]:
    """What the API answers."""
    found: dict[str, Any] = client.post("/v1/buy-or-rent", json=REQUEST).get_json()
    return found


def test_the_page_says_what_the_api_answers(client: FlaskClient, answer: dict[str, Any]) -> None:
    """The verdict in a sentence, how sure it is, what was quoted, what to check."""
    text = words_of(shown(client))
    plain = map(in_plain_text, (verdict_sentence(answer), *answer["warnings"]))
    for part in (*plain, certainty(answer)[1], "lambda 3y", "dc1", answer["price_snapshot"]):
        assert part in text
    assert shown(client, format="json").get_json() == answer


@pytest.mark.parametrize(
    ("fields", "change"),
    [
        ({"rent__providers": "none"}, {"rent": RENT | {"providers": []}}),
        ({"rent__providers": "aws, nebius"}, {"rent": RENT | {"providers": ["aws", "nebius"]}}),
        ({"own__0__name": " "}, {"own": [FLEET | {"name": "our own"}]}),
        ({"own__0__name": "2026"}, {"own": [FLEET | {"name": "2026"}]}),
        ({"own__3__capex_usd_per_accelerator": "30000"}, {"own": [FLEET, {"name": "our own 2", "capex_usd_per_accelerator": 30000}]}),
        (
            {"rent__quotes__2__pricing": "on_demand", "rent__quotes__2__usd_per_accelerator_hour": "2"},
            {"rent": RENT | {"quotes": [QUOTE, {"name": "quote 2", "pricing": "on_demand", "usd_per_accelerator_hour": 2}]}},
        ),
        ({"cost_of_capital": "0.12"}, {"cost_of_capital": 0.12}),
        ({"list_price_change_per_year": "-0.1"}, {"list_price_change_per_year": -0.1}),
        ({"demand__utilisation": "0.5", "demand__start": "2027-01-01"}, {"demand": DEMAND | {"utilisation": 0.5, "start": "2027-01-01"}}),
    ],
)
def test_a_field_is_the_requests(client: FlaskClient, fields: dict[str, str], change: dict[str, Any]) -> None:
    """By its dotted name; places may be left free, and who has no name gets one."""
    assert shown(client, format="json", **fields).get_json() == client.post("/v1/buy-or-rent", json=REQUEST | change).get_json()


@pytest.mark.parametrize(
    ("name", "value", "field"),
    [
        ("demand.accelerator", "H1000", "demand.accelerator"),
        ("demand.count", "lots", "demand.count"),
        ("rent.pricing", "on_demand, monthly", "rent.pricing"),
        ("own.0.residual_share", "2", "own.0.residual_share"),
        ("own.4.residual_share", "0.2", "own.4.capex_usd_per_accelerator"),
        ("rent.quotes.2.usd_per_accelerator_hour", "2", "rent.quotes.2.pricing"),
        ("own.4.colour", "blue", ""),
    ],
)
def test_what_is_wrong_stands_beside_its_field(client: FlaskClient, name: str, value: str, field: str) -> None:
    """Also in a place after a free one; what the form has no field for stands above the answer."""
    page = client.get("/buy-or-rent?" + urlencode(FIELDS | {name: value}))
    assert page.status_code == 422
    where = rf'<p class="error" id="e-{re.escape(field)}">.+</p>' if field else r'<div class="error" role="alert">'
    assert re.search(where, text_of(page))


def test_each_assumption_that_is_a_field_takes_its_own_value(client: FlaskClient) -> None:
    """Those of a fleet by its place; stated, it is no assumption any more."""
    found = re.findall(r'form="buy-or-rent" name="([a-z0-9_.]+)" placeholder="([^"]*)"', text_of(shown(client)))
    assert ("own.0.staff_fte", "0") in found
    page = client.get("/buy-or-rent?" + urlencode(FIELDS | {name: unescape(value) for name, value in found}))
    assert page.status_code == 200
    left = re.findall(r'form="buy-or-rent" name="([a-z0-9_.]+)" placeholder', text_of(page))
    assert not {name for name, _ in found} & set(left)


def test_of_two_fields_of_a_name_the_filled_one_counts(client: FlaskClient) -> None:
    """A form sent without scripts has its own, left blank, and that of an assumption."""
    twice = [("demand.utilisation", ""), *FIELDS.items(), ("demand.utilisation", "0.4"), ("format", "json")]
    assert client.get("/buy-or-rent?" + urlencode(twice)).get_json()["demand"]["utilisation"] == 0.4


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("chart", ["curves", "flips", "grid"])
def test_a_chart_is_a_picture_with_an_address(client: FlaskClient, chart: str, theme: str) -> None:
    """With a table behind it on the page."""
    drawn = client.get(f"/buy-or-rent/{chart}.svg?" + urlencode(FIELDS | {"theme": theme}))
    assert (drawn.status_code, drawn.content_type) == (200, "image/svg+xml")
    assert f"/buy-or-rent/{chart}.svg?" in text_of(shown(client))


def test_without_a_purchase_rents_are_compared(client: FlaskClient) -> None:
    """The page says what to state, and draws no grid."""
    bare = {name: value for name, value in FIELDS.items() if not name.startswith("own.")}
    page = client.get("/buy-or-rent?" + urlencode(bare))
    assert "say what an accelerator costs" in words_of(page)
    assert "grid.svg" not in text_of(page)
    assert client.get("/buy-or-rent/grid.svg?" + urlencode(bare)).status_code == 404


@pytest.mark.parametrize("wanted", PACK_FORMATS)
def test_the_evidence_pack_has_an_address(client: FlaskClient, wanted: str) -> None:
    """The same bytes as of the API."""
    found, expected = shown(client, format=wanted), client.post(f"/v1/buy-or-rent?format={wanted}", json=REQUEST)
    assert (found.status_code, found.content_type, found.data) == (200, expected.content_type, expected.data)
    assert found.headers.get("Content-Security-Policy") == expected.headers.get("Content-Security-Policy") or wanted != "html"


def test_a_kept_verdict_has_the_same_figures(client: FlaskClient, answer: dict[str, Any]) -> None:
    """And a page of its own."""
    kept = client.post("/buy-or-rent/keep?" + urlencode(FIELDS))
    assert kept.status_code == 303
    address = kept.headers["Location"]
    assert client.get(f"{address}?format=json").get_json()["verdict"] == answer["verdict"]
    assert client.delete(f"/v1/results/{address.rpartition('/')[2]}").status_code == 204


def test_a_question_in_words_opens_as_a_form(client: FlaskClient) -> None:
    """Which answers it."""
    asked = text_of(client.get("/?" + urlencode({"text": "buy 256 h100 at 32k for 3 years use 70% vs $1.89"})))
    link = re.search(r'href="(/buy-or-rent\?[^"]+)"', asked)
    assert link is not None
    page = client.get(unescape(link[1]))
    assert page.status_code == 200
    assert 'name="own.0.capex_usd_per_accelerator" type="text" value="32000"' in text_of(page)


def test_nothing_asked_is_a_form_with_an_example_that_runs(client: FlaskClient) -> None:
    """It leads to a verdict."""
    link = re.search(r'href="(/buy-or-rent\?[^"]+)"', text_of(client.get("/buy-or-rent")))
    assert link is not None
    assert "costs least" in words_of(client.get(unescape(link[1])))


@pytest.mark.parametrize("name", ["own.0.name", "rent.quotes.0.name", "demand.accelerator", "rent.providers", "colour", HOSTILE])
def test_what_is_typed_is_text(client: FlaskClient, name: str) -> None:
    """Never markup, nor a command in the line to copy."""
    text = text_of(client.get("/buy-or-rent?" + urlencode(FIELDS | {name: HOSTILE})))
    assert "<script>alert" not in text


@pytest.mark.parametrize(
    "odd", ["own", "own.x", "own.0", "own.²", "own." + 400 * "9", "rent", "rent.quotes", "rent.quotes.x.name", 400 * "own."]
)
def test_odd_names_of_fields_are_refused(client: FlaskClient, odd: str) -> None:
    """With what is wrong; none of them stops the page."""
    for fields in ({odd: "5"}, FIELDS | {odd: "5"}, {odd: "5"} | FIELDS):
        assert client.get("/buy-or-rent?" + urlencode(fields)).status_code in (200, 422)


@pytest.mark.parametrize(
    ("asked", "places"),
    [
        ({}, ["0", "1", "2"]),
        ({"quotes": "5"}, ["0", "1", "2", "3", "4"]),
        ({"quotes": "9999"}, ["0", "1", "2"]),
        ({"quotes": "²"}, ["0", "1", "2"]),
    ],
)
def test_the_form_grows_by_places(client: FlaskClient, asked: dict[str, str], places: list[str]) -> None:
    """A button of the form leads to one place more; what is asked stays, and nothing else of it changes."""
    text = text_of(client.get("/buy-or-rent?" + urlencode(FIELDS | asked)))
    assert re.findall(r'id="f-rent\.quotes\.(\d+)\.name"', text) == places
    assert f'name="quotes" value="{len(places) + 1}" formaction="/buy-or-rent#quotes"' in text
    assert 'name="rent.quotes.0.name" type="text" value="lambda 3y"' in text


def test_a_form_has_at_most_twenty_places_besides_filled_ones(client: FlaskClient) -> None:
    """The last has no button for one more."""
    text = text_of(client.get("/buy-or-rent?quotes=400&fleets=20"))
    assert (text.count('capex_usd_per_accelerator" type'), text.count('.usd_per_accelerator_hour" type')) == (20, 20)
    assert "One more" not in text


def test_a_place_is_removed_by_a_button(client: FlaskClient) -> None:
    """Which leads to the same question without it; Enter in a field compares."""
    two = FIELDS | {"rent.quotes.1.name": "x", "rent.quotes.1.pricing": "spot", "rent.quotes.1.usd_per_accelerator_hour": "2"}
    text = text_of(client.get("/buy-or-rent?" + urlencode(two)))
    assert re.findall(r'name="without" value="([a-z0-9.]+)"', text) == ["own.0", "rent.quotes.0", "rent.quotes.1"]
    assert (
        re.search(r"<button[^>]*>", text[text.index('id="buy-or-rent"') :])[0] == '<button class="hidden" tabindex="-1" aria-hidden="true">'
    )  # type: ignore[index]
    left = client.get("/buy-or-rent?" + urlencode(two | {"without": "rent.quotes.1"}))
    assert (left.status_code, left.headers["Location"]) == (303, "/buy-or-rent?" + urlencode(FIELDS))


def test_titles_say_what_is_found(client: FlaskClient, answer: dict[str, Any]) -> None:
    """From which rent on owning pays, between the cells of the grid that differ, and what turns the verdict with the least change."""
    text = text_of(shown(client))
    grid = answer["verdict"]["grid"]
    row = grid["npv_saved_usd"][grid["utilisation"].index(0.7)]
    above = next(usd for usd, saved in zip(grid["usd_per_accelerator_hour"], row, strict=True) if saved > 0)
    pays = re.search(r"Buying dc1 pays where rent is above \$([\d.]+) an hour, 70% used", text)
    assert pays is not None
    assert max(usd for usd in grid["usd_per_accelerator_hour"] if usd < above) < float(pays[1]) <= above
    least = min(answer["verdict"]["flips"], key=lambda flip: abs(flip["to"] / flip["from"] - 1) if flip["from"] else 9)
    assert least["variable"] == "rent.price_factor"
    assert f"Renting costs less once rents fall by {1 - least['to']:.0%}" in text


def test_a_form_with_something_wrong_says_that_nothing_is_answered(client: FlaskClient) -> None:
    """With a link to the first field that is marked; quotes of a vendor's file come without a number of accelerators."""
    page = client.get("/buy-or-rent?demand.accelerator=H100&rent.quotes.0.pricing=reserved_3y&rent.quotes.0.usd_per_accelerator_hour=1.89")
    assert page.status_code == 422
    assert "Nothing is answered yet: 1 field is marked in the form. Go to it" in words_of(page)
    assert '<a href="#f-demand.count">' in text_of(page)
