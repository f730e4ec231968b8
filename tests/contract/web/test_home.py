"""/: one box for a question, what is kept and tracked, and how fresh the prices are."""

from __future__ import annotations

import gzip
import re
from html import unescape
from urllib.parse import urlencode

import pytest
from flask.testing import FlaskClient

from service.domain.ask import EXAMPLES
from service.formats import headline
from service.web.pages.compare import summary_parts
from service.web.plain_words import in_plain_text
from tests.contract.web.visitor import text_of, words_of

LARGEST_BYTES = 150_000
REFUSED = "7B 1T tokens 64 h100 on coreweave in us-east-1"


def ask(client: FlaskClient, text: str) -> object:
    """The first page with a question."""
    return client.get("/?" + urlencode({"text": text}))


def test_a_question_is_answered_where_it_was_asked(client: FlaskClient) -> None:
    """With what was read, the sentence, and the way to the whole estimate, which says the same."""
    page = ask(client, EXAMPLES[0])
    answer = client.post("/v1/ask", json={"text": EXAMPLES[0], "answer": True}).get_json()
    assert in_plain_text(answer["understood"]["echo"]) in words_of(page)
    assert answer["summary"]["text"] in words_of(page)
    link = re.search(r'href="(/estimate\?[^"]+)"', text_of(page))
    assert link is not None
    assert answer["summary"]["text"] in words_of(client.get(unescape(link[1])))
    assert "data.tokens=15T&" in unescape(link[1])


@pytest.mark.parametrize("example", EXAMPLES[:-1])
def test_every_example_is_answered(client: FlaskClient, example: str) -> None:
    """All but the status of a program that is not there. A comparison begins with its best option, as its own page does."""
    found = client.post("/v1/ask", json={"text": example, "answer": True}).get_json()
    sentence, said = summary_parts(found["answer"]) if found["understood"]["kind"] == "compare" else (found["summary"]["text"], [])
    for part in (sentence, *said):
        assert in_plain_text(part) in words_of(ask(client, example))


def test_what_was_assumed_has_name_value_and_source(client: FlaskClient) -> None:
    """Dates as people read them."""
    page = ask(client, "llama 3 8b 1T tokens on 256 h100 by june 2030")
    answer = client.post("/v1/ask", json={"text": "llama 3 8b 1T tokens on 256 h100 by june 2030"}).get_json()
    sources = {entry["field"]: entry["source"] for entry in answer["assumptions"]}
    assert f"deadline 1 Jun 2030 : {in_plain_text(sources['schedule.deadline'])}" in words_of(page)
    assert f"accelerator H100 : {sources['hardware.accelerator']}" in words_of(page)


def test_an_answer_with_a_deadline_says_how_sure_it_is(client: FlaskClient) -> None:
    """In words and shape, as the estimate's page does; its range has the middle as a figure too."""
    text = "llama 3 8b 1T tokens on 256 h100 by june 2030"
    page = ask(client, text)
    assert "100% to be done by then: on track" in words_of(page)
    answer = client.post("/v1/ask", json={"text": text, "answer": True}).get_json()["answer"]
    middle = headline.money(answer["cost"]["total_usd"]["p50"])
    assert re.search(rf'text-anchor="middle">{re.escape(middle)}</text>', text_of(page))


def test_a_doubt_is_asked_back_with_links(client: FlaskClient) -> None:
    """Each puts the name in the place of the words that were doubtful."""
    text = text_of(ask(client, "llama 70b 1T tokens on 64 h100"))
    links = [unescape(link) for link in re.findall(r'<li><a href="(/\?text=[^"]+)"', text)]
    assert "/?text=llama-3-70b+1T+tokens+on+64+h100" in links
    assert "About $" in words_of(client.get("/?text=llama-3-70b+1T+tokens+on+64+h100"))


def test_what_is_lacking_is_offered_as_links_that_answer_it(client: FlaskClient) -> None:
    text = text_of(ask(client, "what does llama 3 8b cost on 512 h100?"))
    links = [unescape(link) for link in re.findall(r'<li><a href="(/\?text=[^"]+)"', text)]
    assert links[0] == "/?text=what+does+llama+3+8b+cost+on+512+h100+15+trillion+tokens"
    assert "About $" in words_of(client.get(links[0]))


@pytest.mark.parametrize("text", ["7B 1T 64 h100 from 2027-01-05, micro-batch 0, PUE 0.2", "400B 1T 1 h100", REFUSED])
def test_what_a_question_is_refused_for_is_said_once(client: FlaskClient, text: str) -> None:
    problem = client.post("/v1/ask", json={"text": text, "answer": True}).get_json()["problem"]
    assert problem is not None
    for entry in problem["errors"]:
        assert words_of(ask(client, text)).count(in_plain_text(entry["message"].rstrip("."))) == 1


def test_what_is_not_understood_is_said_with_examples(client: FlaskClient) -> None:
    """And what was typed stays in the box."""
    page = ask(client, '"blah" <b>')
    assert page.status_code == 422  # type: ignore[attr-defined]
    assert EXAMPLES[0] in words_of(page)
    assert 'value="&#34;blah&#34; &lt;b&gt;"' in text_of(page)


def test_an_empty_service_says_what_to_do_first(client: FlaskClient) -> None:
    """And which prices count."""
    text = words_of(client.get("/"))
    assert "Estimate a run" in text
    assert client.get("/v1/offers?limit=1").get_json()["price_snapshot"] in text


def test_pages_load_little_and_from_here_alone(client: FlaskClient) -> None:
    """The first view with its style and scripts is below 150 kB compressed; addresses change with the content and are kept for ever."""
    page = client.get("/")
    loaded = re.findall(r'(?:href|src)="(/assets/[^"]+)"', text_of(page))
    assert len(loaded) == 3
    answers = [client.get(address, headers={"Accept-Encoding": "gzip"}) for address in loaded]
    assert sum(len(answer.data) for answer in answers) + len(gzip.compress(page.data)) < LARGEST_BYTES
    for answer in answers:
        assert "immutable" in answer.headers["Cache-Control"]
        assert client.get(answer.request.full_path, headers={"If-None-Match": answer.headers["ETag"]}).status_code == 304
    assert not re.findall(r'(?:href|src)="(?![/#])', text_of(page))
    assert client.get("/assets/secrets.key").status_code == 404


@pytest.mark.parametrize(
    ("text", "opens"),
    [
        ("llama 3 8b 1T tokens on 256 h100", "Open the whole estimate"),
        ("buy 256 h100 at 32k for 3 years use 70% vs $1.89", "Open the whole verdict"),
        ("compare 7b 1T tokens on 64 h100 and 64 h200", "Open the whole comparison"),
    ],
)
def test_the_button_says_what_it_opens(client: FlaskClient, text: str, opens: str) -> None:
    """By the kind of the question."""
    assert f'">{opens}</a>' in text_of(ask(client, text))
