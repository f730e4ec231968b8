"""Pages speak in words: names of the API stand in code alone, and behind what they are in words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

import pytest
from flask.testing import FlaskClient

from service.domain.ask import EXAMPLES
from service.web.program_tabs import TABS
from tests.contract.tracking.tracked_program import told
from tests.contract.web.test_restated_assumptions import OWNED, QUESTIONS
from tests.contract.web.visitor import text_of, words_of
from tests.support.service import served

CODE = {"code", "pre", "script", "style", "textarea", "title"}
READ = {"alt", "aria-label"}
"""Attributes that are read to people. A placeholder is what is typed, a title the aside."""
NAME = re.compile(r"(?<![\w./-])[a-z][a-z0-9]*(?:[_.][a-z0-9]+)+")
OPEN = (
    "/",
    "/estimate",
    "/compare",
    "/buy-or-rent",
    "/buy-or-rent/quotes",
    "/programs",
    "/programs/new",
    "/scenarios",
    "/prices",
    "/settings",
)
WRONG = (
    "/estimate?model=7B&training.colour=1",
    "/estimate?model=7B&data.tokens=1T&hardware.accelerator=H100&hardware.count=8&training.parallelism.tensor=3",
    "/buy-or-rent?demand.accelerator=H100&own.0.kw_per_accelerator=x",
)
SPOT = "/estimate?model=mixtral-8x7b&data.tokens=1T&hardware.accelerator=A100-80GB&hardware.count=64&price.pricing=spot&levers=true"


class Reader(HTMLParser):
    """The texts of a page that a person reads, outside of code."""

    def __init__(self) -> None:
        super().__init__()
        self.texts, self._code = list[str](), 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._code += tag in CODE
        self.texts += [value for name, value in attrs if name in READ and value]

    def handle_endtag(self, tag: str) -> None:
        self._code -= tag in CODE

    def handle_data(self, data: str) -> None:
        if not self._code:
            self.texts.append(data)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    """A service without keys, with a tracked program."""
    with served(tmp_path_factory.mktemp("words")) as made:
        yield made


@pytest.fixture(scope="module")
def names(client: FlaskClient) -> frozenset[str]:
    """Names of fields in the description of the API, and the words that they take."""

    def found(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            properties = node.get("properties")
            yield from properties if isinstance(properties, dict) else ()
            yield from (each for each in node.get("enum", ()) if isinstance(each, str))
            for each in node.values():
                yield from found(each)
        elif isinstance(node, list):
            for each in node:
                yield from found(each)

    return frozenset(found(client.get("/openapi.json").get_json()["components"]))


@pytest.fixture(scope="module")
def addresses(client: FlaskClient) -> list[str]:
    """Every page, with every example that it leads to."""
    shown = [*OPEN, *(f"/?{urlencode({'text': text})}" for text in EXAMPLES), *WRONG, SPOT]
    shown += [f"{address}?{query}" for address, query in QUESTIONS if "trials" in query]
    for address in OPEN:
        shown += [unescape(link) for link in re.findall(rf'href="({address}\?[^"]+)"', text_of(client.get(address)))]
    program = f"/programs/{told(client)['id']}"
    return [*dict.fromkeys(shown), *(f"{program}?tab={tab}" for tab in TABS), f"{program}/versions"]


def read(page: str) -> list[str]:
    """What a person reads of it."""
    reader = Reader()
    reader.feed(page)
    return reader.texts


def test_no_name_of_the_api_stands_outside_of_code(client: FlaskClient, addresses: list[str], names: frozenset[str]) -> None:
    """Neither of a field, by itself or with points, nor of a choice; names of other programs and addresses may."""
    assert len(names) > 400
    assert len(addresses) > 25
    texts = [(address, text) for address in addresses for text in read(text_of(client.get(address)))]
    said = [(address, found, text) for address, text in texts for found in NAME.findall(text)]
    wrong = [each for each in said if each[1] in names or {each[1].split(".")[0], each[1].split(".")[-1]} <= names]
    assert wrong == []


def test_the_name_is_behind_the_words(client: FlaskClient) -> None:
    """With what the field means, for whoever writes a program."""
    page = client.get(SPOT)
    assert "state preemptions a node-hour (failures)" in words_of(page)
    named = 'title="Rate at which a node is taken away [per node-hour] · failures.preemptions_per_node_hour"'
    assert f"<span {named}>preemptions a node-hour (failures)</span>" in text_of(page)
    assert "for a vit · training.seq_len" in text_of(page)


def test_what_is_wrong_says_what_is_typed(client: FlaskClient) -> None:
    """Choices of a field are names in code: in words they would be refused."""
    page = client.get("/buy-or-rent?demand.accelerator=H100&demand.count=8&demand.years=3&" + OWNED.replace("reserved_3y", "for ever"))
    assert "<code>reserved_3y</code>" in text_of(page)
