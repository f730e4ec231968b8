"""The threat model's claims have the tests that it names, and the lock files the hashes."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/threat-model.md").read_text(encoding="utf-8")
RISKS = 10


def named() -> list[str]:
    """Tests that the page names."""
    return re.findall(r"`(tests/[\w/]+\.py::[\w:]+)`", PAGE)


def defined_in(file: Path) -> set[str]:
    """Names of a file's tests, with their class."""
    found = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{below.name}" for below in node.body if isinstance(below, ast.FunctionDef)}
    return found


def test_every_named_test_exists() -> None:
    """A test that is renamed is renamed here too."""
    assert len(named()) > RISKS
    missing = [name for name in named() if name.partition("::")[2] not in defined_in(ROOT / name.partition("::")[0])]
    assert missing == []


def test_every_risk_of_the_ten_has_a_test() -> None:
    """In the order of OWASP's list of 2023."""
    rows = re.findall(r"^\| API(\d+) [^|]+\|[^|]+\|([^|]+)\|$", PAGE, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, RISKS + 1))
    assert all("::test_" in tests for _, tests in rows)


@pytest.mark.parametrize("file", ["requirements.lock", "requirements-dev.lock"])
def test_every_locked_version_has_hashes(file: str) -> None:
    """And one version exactly: pip takes nothing else."""
    entries = re.split(r"\n(?=\S)", (ROOT / file).read_text(encoding="utf-8").strip())
    assert len(entries) > 1
    bad = [entry.splitlines()[0] for entry in entries if not re.match(r"[\w.\[\]-]+==\S+", entry) or "--hash=sha256:" not in entry]
    assert bad == []
