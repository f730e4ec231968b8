"""Links of the documentation lead to files and headings that are there; so do the pages that code names."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\((?![a-z]+:)([^)\s#]*)(?:#([^)\s]*))?\)")
NAMED = re.compile(r"(?<![\w/.-])docs/[\w/-]+\.md\b")
FENCED = re.compile(r"```.*?```|<!--.*?-->", flags=re.DOTALL)
CODE = re.compile(r"```.*?```|`[^`\n]*`|<!--.*?-->", flags=re.DOTALL)
OF_OTHERS = ("tools/calibration/", "tests/", "service/presets/data/", "docs/explanation/accuracy", "bench/accuracy/", "service/api/http/")
"""Where documents of other projects, which have such a folder too, are named as sources."""


@cache
def anchors(page: Path) -> set[str]:
    """Of its headings, as code hosts make them."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} (.+)$", text, flags=re.MULTILINE):
        shown = re.sub(r"\]\([^)]*\)", "]", heading).strip().lower()
        found.add(re.sub(r"[^\w\- ]", "", shown).replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    """To a file of the repository, and to a heading of it where one is named."""
    lost = []
    for path, anchor in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            lost.append(f"{path}#{anchor}")
    assert lost == []


def test_pages_that_code_names_exist() -> None:
    """In docstrings, messages, settings and the specification."""
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.splitlines()
    if not names:
        pytest.skip("not a git checkout")
    ours = [name for name in names if not name.startswith(OF_OTHERS) and (ROOT / name).is_file()]
    texts = ((name, (ROOT / name).read_text(encoding="utf-8", errors="replace")) for name in ours)
    assert [(name, page) for name, text in texts for page in NAMED.findall(text) if not (ROOT / page).is_file()] == []
