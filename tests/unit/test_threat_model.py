"""The threat model has each risk with its tests, and the lock files the hashes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/explanation/threat-model.md").read_text(encoding="utf-8")
RISKS = 10


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


def test_the_record_of_advisories_is_of_the_locked_versions() -> None:
    """A package that is locked anew is asked about anew."""
    asked = re.findall(r"^\| ([\w.-]+) \| ([\d.]+) \| [^|]+ \|$", (ROOT / "SECURITY.md").read_text(encoding="utf-8"), re.MULTILINE)
    locked = dict(re.findall(r"^([\w.-]+)==([^\s;]+)", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE))
    assert len(asked) > 5
    assert [(name, version, locked.get(name)) for name, version in asked if locked.get(name) != version] == []
