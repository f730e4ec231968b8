"""Pages of docs/reference and pictures say what is: `make readme` would change nothing."""

from __future__ import annotations

import re

import pytest

from tools import pictures
from tools.reference.operations import pretty, slug
from tools.reference.pages import FOLDER, PAGES
from tools.reference.tables import table


@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_what_is(name: str) -> None:
    """`python -m tools.reference` writes it."""
    assert (FOLDER / f"{name}.md").read_text(encoding="utf-8") == PAGES[name]()


def test_pictures_show_the_present_answers() -> None:
    """`python -m tools.pictures` draws them."""
    drawn = {name: pictures.words(picture) for name, picture in pictures.drawn().items()}
    assert drawn == {path.stem: pictures.words(path.read_text(encoding="utf-8")) for path in pictures.FOLDER.glob("*.svg")}
    assert all(drawn.values())


def test_terms_of_the_glossary_are_in_order() -> None:
    """So that a reader finds one; none stands twice."""
    terms = re.findall(r"^\| ([^|]+?) \|", (FOLDER / "glossary.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert terms == sorted(set(terms), key=str.lower)


def test_a_bar_does_not_end_a_cell() -> None:
    """Nor does a line break."""
    assert table(("a",), [("x | y\nz",)]).splitlines()[-1] == "| x \\| y z |"


def test_long_json_takes_a_line_a_field() -> None:
    """Short JSON one line."""
    assert pretty({"a": 1}) == '{"a": 1}'
    assert pretty({"a": "x" * 200, "b": [1]}) == '{\n  "a": "' + "x" * 200 + '",\n  "b": [1]\n}'


def test_anchors_are_those_of_code_hosts() -> None:
    """Lower case, without marks, a hyphen for each space."""
    assert slug("GET /v1/track/runs/{run_id}") == "get-v1trackrunsrun_id"
