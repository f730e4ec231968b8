"""Runs the notebooks of docs/notebooks, which are pages: their blocks of Python in order, with outlay-sdk, and what each shows below it.

Text is shown as a block, what has `_repr_html_` as HTML, and a picture is the SVG that the line below the block names. `make readme` writes
all of it, and the same notebooks as .ipynb for Jupyter.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench.harness import ROOT
from bench.session import session

FOLDER = ROOT / "docs" / "notebooks"
CLIENT = ROOT / "clients" / "python"
PICTURE = re.compile(r"!\[[^\]]*\]\((?P<name>[\w-]+\.svg)\)\n")
CELL = re.compile(
    rf"^```python\n(?P<code>.*?)^```\n(?:\n(?P<shown>```text\n.*?^```\n|<div class=\"output\">\n.*?^</div>\n|{PICTURE.pattern}))?",
    flags=re.DOTALL | re.MULTILINE,
)
RELEASE = re.compile(r"<p><small>.*?</small></p>")
"""Names of prices and engine, which differ with each release."""


@dataclass(frozen=True)
class Run:
    """A notebook as it should be: its page, its pictures by their names, and its file for Jupyter."""

    page: str
    pictures: dict[str, str]
    jupyter: str


def pages() -> list[Path]:
    """The notebooks."""
    return sorted(path for path in FOLDER.glob("*.md") if path.stem != "index")


@contextmanager
def installed_client() -> Iterator[None]:
    """outlay-sdk, made of the specification, can be imported."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, str(CLIENT)]
        subprocess.run(command, check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
        with patch.object(sys, "path", [folder, *sys.path]):
            yield


def run(page: Path) -> Run:
    """A notebook, run against a service of its own. Raises what its code raises."""
    pictures: dict[str, str] = {}
    cells: list[dict[str, Any]] = []
    text, done = page.read_text(encoding="utf-8"), 0
    with session() as reader, patch.dict(os.environ, {**reader.environment, "OUTLAY_SERVER": reader.address}), contextlib.chdir(FOLDER):
        names: dict[str, Any] = {"__name__": "__main__"}
        made = ""
        for found in CELL.finditer(text):
            printed, value = _ran(found["code"], names)
            made += text[done : found.start()] + f"```python\n{found['code']}```\n"
            shown = _shown(printed, value, found, pictures)
            made += f"\n{shown}" if shown else ""
            cells += [_words(text[done : found.start()]), _cell(found["code"], printed, value)]
            done = found.end()
        made += text[done:]
        cells.append(_words(text[done:]))
    return Run(made, pictures, _jupyter([cell for cell in cells if cell["source"]]))


def _ran(code: str, names: dict[str, Any]) -> tuple[str, Any]:
    """What a cell prints, and the value of its last line."""
    printed = io.StringIO()
    tree = ast.parse(code)
    last = ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "notebook", "exec"), names)
        value = None if last is None else eval(compile(last, "notebook", "eval"), names)
    return printed.getvalue(), value


def _shown(printed: str, value: Any, found: re.Match[str], pictures: dict[str, str]) -> str:
    """What the page has below a cell."""
    if hasattr(value, "_repr_svg_"):
        picture = PICTURE.fullmatch(found["shown"] or "")
        if picture is None:
            raise ValueError(f"a picture needs a line ![what it says](name.svg) below its block:\n{found['code']}")
        pictures[picture["name"]] = value._repr_svg_()
        return found["shown"]
    if hasattr(value, "_repr_html_"):
        return f'<div class="output">\n{_html(value)}\n</div>\n'
    text = printed + ("" if value is None else f"{value!r}\n")
    return f"```text\n{text}```\n" if text else ""


def _html(value: Any) -> str:
    """A value as HTML, a row a line."""
    found: str = RELEASE.sub("", value._repr_html_())
    return re.sub(r"(?=<tr>|<p>|<li>|<table>)", "\n", found).strip().replace("\n\n", "\n")


def _words(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text.strip()}


def _cell(code: str, printed: str, value: Any) -> dict[str, Any]:
    """A cell of code with what it shows, as Jupyter keeps it."""
    outputs: list[dict[str, Any]] = []
    if printed:
        outputs.append({"output_type": "stream", "name": "stdout", "text": printed})
    if value is not None:
        shown = {"text/plain": type(value).__name__ if hasattr(value, "_repr_html_") or hasattr(value, "_repr_svg_") else repr(value)}
        if hasattr(value, "_repr_html_"):
            shown["text/html"] = _html(value)
        if hasattr(value, "_repr_svg_"):
            shown["image/svg+xml"] = value._repr_svg_()
        outputs.append({"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": shown})
    return {"cell_type": "code", "metadata": {}, "execution_count": None, "source": code.rstrip("\n"), "outputs": outputs}


def _jupyter(cells: list[dict[str, Any]]) -> str:
    """The notebook in the format 4.5 of nbformat."""
    numbered = [{"id": f"cell-{place}", **cell} for place, cell in enumerate(cells, 1)]
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return json.dumps({"cells": numbered, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    with installed_client():
        for notebook in pages():
            made = run(notebook)
            notebook.write_text(made.page, encoding="utf-8")
            notebook.with_suffix(".ipynb").write_text(made.jupyter, encoding="utf-8")
            for name, picture in made.pictures.items():
                (FOLDER / name).write_text(picture, encoding="utf-8")
