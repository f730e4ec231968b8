"""/compare: the form, the options in any order, up to three of them side by side, and why others are out."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest
from flask.testing import FlaskClient

from service.web.pages.compare import MOST_PINNED, ORDERS, REASON_WORDS, summary_parts
from service.web.plain_words import in_plain_text
from tests.contract.web.visitor import text_of, words_of

FIELDS = {
    "model": "7B",
    "workload.data.tokens": "100B",
    "candidates.accelerators": "H100, H200",
    "candidates.counts": "64, 128",
    "constraints.max_wall_clock_days": "30",
    "limit": "20",
}
REQUEST = {
    "workload": {"model": {"params": "7B"}, "data": {"tokens": "100B"}},
    "candidates": {"accelerators": ["H100", "H200"], "counts": [64, 128]},
    "constraints": {"max_wall_clock_days": 30},
    "limit": 20,
}


def shown(client: FlaskClient, **more: str) -> Any:
    """The page with the form filled in so."""
    return client.get("/compare?" + urlencode(FIELDS | more))


@pytest.fixture(scope="module")
def answer(client: FlaskClient) -> dict[str, Any]:
    """What the API answers."""
    found: dict[str, Any] = client.post("/v1/compare", json=REQUEST).get_json()
    return found


def options_in(page: Any) -> list[str]:
    """Ids of the options in the order of the table."""
    return [unescape(found) for found in re.findall(r'aria-label="(?:un)?pin ([^"]+)"', text_of(page))]


def test_the_page_says_what_the_api_answers(client: FlaskClient, answer: dict[str, Any]) -> None:
    """The sentence, every option in its rank, how many are out and why."""
    page = shown(client)
    sentence, said = summary_parts(answer)
    assert sentence.startswith("About $")
    for part in (sentence, *said):
        assert part in words_of(page)
    assert options_in(page) == [in_plain_text(option["id"]) for option in answer["options"]]
    for reason, number in answer["infeasible"].items():
        assert f"{number:,}: {REASON_WORDS[reason]}" in words_of(page)
    assert shown(client, format="json").get_json() == answer


def test_the_answer_comes_first_in_one_sentence(answer: dict[str, Any]) -> None:
    """What it costs, how long it takes and where; how it was found, what comes next and what is out follow, each once."""
    best, text = answer["options"][0], answer["summary"]["text"]
    sentence, (among, *rest) = summary_parts(answer)
    assert sentence.count(". ") == 0
    for part in (f"{best['count']:,} ", best["offer"]["provider"], "days ("):
        assert part in sentence
    assert among.startswith(text.partition(":")[0])
    assert text.endswith(" ".join(rest))
    none = {"summary": {"text": "None of 3 options meets the constraints."}, "options": []}
    assert summary_parts(none) == ("None of 3 options meets the constraints.", [])


@pytest.mark.parametrize("order", list(ORDERS))
def test_a_heading_orders_the_table(client: FlaskClient, answer: dict[str, Any], order: str) -> None:
    """By a link, which says what the order is; an unknown order is that of the ranks."""
    link = dict(re.findall(r'<a href="(/compare\?[^"]+)">([^<]+)</a></th>', text_of(shown(client))))
    addresses = [unescape(address) for address in link if f"sort={order}" in address]
    page = client.get(addresses[0])
    assert options_in(page) == [in_plain_text(option["id"]) for option in sorted(answer["options"], key=ORDERS[order])]
    assert text_of(page).count('aria-sort="ascending"') == 1
    assert options_in(shown(client, sort="colour")) == options_in(shown(client))


def test_up_to_three_options_stand_side_by_side(client: FlaskClient, answer: dict[str, Any]) -> None:
    """Each link adds one; a fourth takes the place of the first; a second click takes one away."""
    page, ids = shown(client), [in_plain_text(option["id"]) for option in answer["options"][: MOST_PINNED + 1]]
    for each in ids:
        page = client.get(pin_link(page, each))
    cards = re.findall(r'<div class="card">', text_of(page))
    assert len(cards) == MOST_PINNED
    assert len(re.findall('aria-label="unpin ', text_of(page))) == MOST_PINNED
    assert f'aria-label="pin {ids[0]}"' in unescape(text_of(page))
    page = client.get(pin_link(page, ids[-1]))
    assert len(re.findall(r'<div class="card">', text_of(page))) == MOST_PINNED - 1


def pin_link(page: Any, option: str) -> str:
    """Where the table's link of an option leads."""
    found = re.search(rf'<a href="([^"]+)" aria-label="(?:un)?pin {re.escape(option)}"', text_of(page))
    assert found is not None, option
    return unescape(found[1])


def test_what_is_wrong_stands_beside_its_field(client: FlaskClient) -> None:
    """Of an entry of a list, beside the list."""
    for name, value in {"candidates.accelerators": "H100, H1000", "candidates.counts": "64, many", "model": "llama-9"}.items():
        page = shown(client, **{name: value})
        assert page.status_code == 422
        assert re.search(rf'<p class="error" id="e-{re.escape(name)}">[^<]+</p>', text_of(page)), name


def test_machines_are_pairs_in_one_field(client: FlaskClient) -> None:
    """As a question in words asks for them, and as somebody types them; what names no machines is said beside the field."""
    asked = client.get("/?" + urlencode({"text": "7b 100B tokens on 512 h100 or 256 b200"}))
    link = re.search(r'href="(/compare\?[^"]+)"', text_of(asked))
    assert link is not None
    opened = client.get(unescape(link[1]))
    assert "Others at their best: " in words_of(opened)
    assert 'name="candidates.machines" type="text" value="512 H100, 256 B200"' in text_of(opened)
    assert 'aria-label="Also stated"' not in text_of(opened)
    typed = {"model": "7B", "workload.data.tokens": "100B", "candidates.machines": "1,024x H100,2k B200"}
    found = client.get("/compare?" + urlencode(typed | {"limit": "100", "format": "json"})).get_json()
    assert {option["count"] for option in found["options"]} == {1024, 2000}
    for text, error in {"H100": "such as 512 H100, 256 B200", "64 H1000": "H1000"}.items():
        refused = client.get("/compare?" + urlencode(typed | {"candidates.machines": text}))
        assert refused.status_code == 422
        wrong = re.search(r'<p class="error" id="e-candidates.machines">(.+?)</p>', text_of(refused), re.DOTALL)
        assert wrong is not None, text
        assert error in wrong[1], text


def test_a_question_in_words_opens_as_a_form(client: FlaskClient) -> None:
    """With lists as people write them."""
    asked = client.get("/?" + urlencode({"text": "compare 7B 1T on h100,h200 x 64,128 in EU under $300k"}))
    link = re.search(r'href="(/compare\?[^"]+)"', text_of(asked))
    assert link is not None
    text = text_of(client.get(unescape(link[1])))
    assert re.search(r'name="candidates.accelerators" type="text" value="[^"]*H100[^"]*, [^"]*H200', text)
    assert 'name="candidates.counts" type="text" value="64, 128"' in text


def test_the_chart_has_an_address(client: FlaskClient) -> None:
    """Its title is what the options say."""
    drawn = client.get("/compare/options.svg?" + urlencode(FIELDS))
    assert (drawn.status_code, drawn.content_type) == (200, "image/svg+xml")
    assert re.search("sooner than the cheapest for [0-9]+% more|both the cheapest and the soonest", drawn.get_data(as_text=True))


def test_a_reason_is_said_in_words(client: FlaskClient) -> None:
    """Of options in the table and of all that are out."""
    page = words_of(client.get("/compare?model=7B&workload.data.tokens=100B&candidates.accelerators=H100&candidates.counts=64&limit=1000"))
    assert "its instances have fewer accelerators than a node of the run needs" in page
    assert "splits nodes" not in page.partition("Why not the others")[2]


def test_a_warning_names_an_offer_as_people_do(client: FlaskClient) -> None:
    """Not by the id of its option."""
    page = words_of(client.get("/compare?model=7B&workload.data.tokens=100B&candidates.accelerators=H100&candidates.counts=64,128"))
    assert re.search(r"the best option with a fresh price is (64|128) H100-80GB at \w+ [\w-]+, [a-z ]+, \$[\d,]+", page)
