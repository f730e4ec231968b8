"""Pages that name tests for their claims: each exists, each promise has a test, and each fault test stands on the page of promises."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RELIABILITY = "docs/explanation/reliability.md"
PAGES = (RELIABILITY, "docs/explanation/threat-model.md")
NAMED = re.compile(r"`(tests/[\w/]+\.py(?:::[\w:]+)?)`")
"""A test with its file, or a file for all of its tests."""
FAULT = re.compile(r"^### (.+)\n\n((?!#|- )\S)?", re.MULTILINE)
"""A heading of the third level, and whether it is followed by a sentence."""
HELD = re.compile(r"^- ([^\n]+?)(?: \(on [^)\n]+\))?:\n((?:  [^\n]+\n?)+)", re.MULTILINE)
"""A fault in the list of tests, with the lines that name them."""


def named_on(page: str) -> list[str]:
    """Tests and files that a page names."""
    return NAMED.findall((ROOT / page).read_text(encoding="utf-8"))


def defined_in(file: Path) -> Iterator[tuple[str, ast.AST]]:
    """A file's tests, with their class."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.Assign):  # of a state machine
            yield from ((target.id, node) for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}::{below.name}", below) for below in node.body if isinstance(below, ast.FunctionDef))


def is_soak(test: ast.AST) -> bool:
    """Whether a test is marked as a long fault test by itself."""
    return any("pytest.mark.soak" in ast.unparse(decorator) for decorator in getattr(test, "decorator_list", ()))


@pytest.mark.parametrize("page", PAGES)
def test_every_named_test_exists(page: str) -> None:
    """A test that is renamed is renamed on the page too."""
    named = named_on(page)
    assert len(named) > len(PAGES)
    files = {name: ROOT / name.partition("::")[0] for name in named}
    assert [name for name, file in files.items() if not file.is_file()] == []
    tests = {name: name.partition("::")[2] for name in named if "::" in name}
    assert [name for name, test in tests.items() if test not in dict(defined_in(files[name]))] == []


def test_every_promise_says_what_happens_and_has_a_test() -> None:
    """In the order of the page, which ends with a list of the tests of each."""
    promises, _, tests = (ROOT / RELIABILITY).read_text(encoding="utf-8").partition("\n## Tests\n")
    faults, held = FAULT.findall(promises), HELD.findall(tests)
    assert len(faults) > len(PAGES)
    assert [fault for fault, says in faults if not says] == []
    assert [fault for fault, _ in faults] == [fault for fault, _ in held]
    assert [fault for fault, named in held if not NAMED.search(named)] == []


def test_every_long_fault_test_holds_a_promise() -> None:
    """A new one is named there."""
    named = set(named_on(RELIABILITY))
    missing = []
    for file in sorted((ROOT / "tests" / "integration").glob("test_*.py")):
        place = str(file.relative_to(ROOT))
        whole = any(name == "pytestmark" and "mark.soak" in ast.unparse(node) for name, node in defined_in(file))
        tests = [name for name, node in defined_in(file) if name.startswith("test_") and (whole or is_soak(node))]
        missing += [f"{place}::{name}" for name in tests if not {place, f"{place}::{name}"} & named]
    assert missing == []
