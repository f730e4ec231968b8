"""Changes of an estimate as switches: several at once, each taken back by itself, and none for another question than its own."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlencode

import pytest
from flask.testing import FlaskClient

from service.formats.headline import money
from service.web.switches import (
    FIELD,
    Switches,
    change_of,
    changed_fields,
    contradicts,
    read_switches,
    switch_query,
    switch_values,
    toggled,
)
from tests.contract.web.test_estimate_page import REQUEST, RUN
from tests.contract.web.visitor import text_of, words_of

EIGHT_BITS = {"training.precision": "fp8"}
SPOT = {"price.pricing": "spot"}
OTHER_MODEL = {"model.params": "9000000000", "training.seq_len": "8192"}


def address(*on: dict[str, str], own: dict[str, str] | None = None) -> str:
    """The page of a question with changes."""
    return "/estimate?" + switch_query(Switches(RUN if own is None else own, on))


def answer_of(client: FlaskClient, **change: Any) -> dict[str, Any]:
    """What the API answers."""
    found: dict[str, Any] = client.post("/v1/estimate", json=REQUEST | change).get_json()
    return found


def test_changes_that_are_on_are_asked_together(client: FlaskClient) -> None:
    """As the API answers the question with both; charts, files and texts to copy are of it too."""
    answer = answer_of(client, training={"precision": "fp8"}, price={"pricing": "spot"})
    page = client.get(address(EIGHT_BITS, SPOT))
    assert answer["summary"]["text"] in words_of(page)
    assert client.get(address(EIGHT_BITS, SPOT) + "&format=json").get_json()["cost"] == answer["cost"]
    pictures = [unescape(found) for found in re.findall(r'<img src="/estimate/cost.svg\?([^"]+)"', text_of(page))]
    assert [parse_qs(query)["training.precision"] for query in pictures] == [["fp8"]]
    assert "&#34;precision&#34;: &#34;fp8&#34;" in text_of(page)


def test_the_page_says_what_is_on_and_what_it_does(client: FlaskClient) -> None:
    """Cost and days before and after; each has a link without it, and the form carries what is on while one types."""
    before, after = (answer_of(client, **change)["cost"]["total_usd"]["p50"] for change in ({}, {"training": {"precision": "fp8"}}))
    page = client.get(address(EIGHT_BITS))
    assert f"With 1 change: {money(before)} → {money(after)}, {money(before - after)} less" in words_of(page)
    assert "training: precision fp8" in words_of(page)
    (off,) = re.findall(r'class="switch on" id="on-1" href="([^"]+)"', text_of(page))
    assert client.get(unescape(off) + "&format=json").get_json() == answer_of(client)
    carried = re.findall(rf'<input type="hidden" form="estimate" name="{FIELD}" value="([^"]+)"', text_of(page))
    assert [unescape(value) for value in carried] == switch_values(Switches(RUN, (EIGHT_BITS,)))
    assert 'name="training.precision" placeholder' not in text_of(page)


def test_what_is_on_stays_in_the_list_of_changes(client: FlaskClient) -> None:
    """Which is the question's own, in its order, whatever is on."""
    plain, switched = (text_of(client.get(f"/estimate/levers?{switch_query(Switches(RUN, on))}")) for on in ((), (EIGHT_BITS,)))
    titles = [re.findall(r'<th role="rowheader" scope="row">([^<]+)', text) for text in (plain, switched)]
    assert titles[0] == titles[1]
    assert len(re.findall(r'aria-label="on: leave out train in 8 bits">on<', switched)) == 1
    assert ">on<" not in plain


def test_a_change_found_for_another_question_is_left_out(client: FlaskClient) -> None:
    """And that is said: twice the tokens have other changes than these; another price has the same."""
    other = RUN | {"data.tokens": "2T"}
    said = urlencode([*other.items(), *((FIELD, value) for value in switch_values(Switches(RUN, (EIGHT_BITS,))))])
    assert "1 change was found for another question and is left out" in words_of(client.get(f"/estimate?{said}"))
    assert client.get(f"/estimate?{said}&format=json").get_json() == answer_of(client, data={"tokens": "2T"})
    priced = RUN | {"personnel.usd_per_hour": "90"}
    assert read_switches(priced, switch_values(Switches(RUN, (EIGHT_BITS,)))).on == (EIGHT_BITS,)


def test_changes_of_one_field_take_each_others_place() -> None:
    """The last one counts; others stay."""
    batch = {"training.seq_len": "4096"}
    on = toggled(toggled(toggled(Switches(RUN), SPOT), OTHER_MODEL), batch)
    assert on.on == (SPOT, batch)
    assert toggled(on, batch).on == (SPOT,)
    assert contradicts({"model.params": "1"}, {"model.preset": "a"})
    assert not contradicts(SPOT, EIGHT_BITS)


def test_a_change_of_the_model_takes_the_place_of_the_forms() -> None:
    """Whichever way that is stated; a value that is not stated any more is left out."""
    assert changed_fields(RUN, [OTHER_MODEL]) == {name: value for name, value in (RUN | OTHER_MODEL).items() if name != "model"}
    unset = change_of({"training.expert_parallel": None, "training.precision": "fp8"})
    assert changed_fields(RUN | {"training.expert_parallel": "4"}, [unset]) == RUN | EIGHT_BITS


@pytest.mark.parametrize("said", ["", ":", "nonsense", "12345678:a=b", "<script>alert(1)</script>:a=b", 40 * "x=y&"])
def test_whatever_an_address_says_is_a_page(client: FlaskClient, said: str) -> None:
    """What was found for no question is for none."""
    page = client.get("/estimate?" + urlencode({**RUN, FIELD: said}))
    assert page.status_code == 200
    assert "<script>alert" not in text_of(page)


def test_a_change_that_the_request_has_not_is_refused_as_if_typed(client: FlaskClient) -> None:
    """With its name."""
    page = client.get(address({"training.colour": "<b>blue</b>"}))
    assert page.status_code == 422
    assert "<b>blue" not in text_of(page)
