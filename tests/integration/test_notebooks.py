"""Notebooks show what they answer, and their files for Jupyter have the same. `make clients`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.notebooks import FOLDER, installed_client, pages, run
from tools.pictures import words

pytestmark = pytest.mark.clients

IMAGE = "image/svg+xml"


@pytest.fixture(scope="module", autouse=True)
def client() -> Iterator[None]:
    """outlay-sdk, made of the present specification."""
    with installed_client():
        yield


def in_words(jupyter: str) -> Any:
    """A notebook with the words of its pictures: places differ with the fonts of a machine."""
    notebook = json.loads(jupyter)
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            if IMAGE in output.get("data", {}):
                output["data"][IMAGE] = words(output["data"][IMAGE])
    return notebook


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_a_notebook_shows_what_its_reader_sees(page: Path) -> None:
    """Run from its beginning against a new service; `python -m bench.notebooks` writes it."""
    made = run(page)
    assert made.page == page.read_text(encoding="utf-8")
    assert in_words(made.jupyter) == in_words(page.with_suffix(".ipynb").read_text(encoding="utf-8"))
    for name, picture in made.pictures.items():
        assert words(picture) == words((FOLDER / name).read_text(encoding="utf-8"))


def test_a_changed_answer_is_noticed(tmp_path: Path) -> None:
    """Text and HTML below a cell are written anew."""
    page = tmp_path / "page.md"
    page.write_text("# T\n\n```python\nprint(1)\n```\n\n```text\n2\n```\n\n```python\nx = 1\nx + 1\n```\n", encoding="utf-8")
    made = run(page)
    assert made.page == "# T\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n\n```python\nx = 1\nx + 1\n```\n\n```text\n2\n```\n"
    assert [cell["cell_type"] for cell in json.loads(made.jupyter)["cells"]] == ["markdown", "code", "code"]
