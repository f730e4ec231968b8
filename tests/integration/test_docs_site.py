"""The site of the documentation: it is built without a warning, so that no link or anchor is broken, and loads nothing from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECTIONS = ("start", "tutorials", "how-to", "reference", "explanation")
LISTED = re.compile(r"^- \[[^\]]*\]\(([^)#:]+\.md)\)", flags=re.MULTILINE)
LOADED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc="([^"]*)"|"""
    r"""<link\b[^>]*\brel="(?:stylesheet|preload|icon)"[^>]*\bhref="([^"]*)\""""
)
ELSEWHERE = re.compile(r"url\(\s*['\"]?(?:https?:)?//")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", str(ROOT / "docs"), str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    return folder


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    """Neither fonts nor scripts nor pictures: the site works without a network."""
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(SECTIONS)
    loaded = {(page.name, one or other) for page in pages for one, other in LOADED.findall(page.read_text(encoding="utf-8"))}
    assert {each for each in loaded if re.match(r"[a-z]+:|//", each[1])} == set()
    assert [sheet.name for sheet in site.rglob("*.css") if ELSEWHERE.search(sheet.read_text(encoding="utf-8"))] == []


def test_search_works_from_files(site: Path) -> None:
    """Its index is a script, which a browser loads without a server."""
    assert (site / "searchindex.js").read_text(encoding="utf-8").startswith("Search.setIndex(")


def test_every_page_stands_in_one_section() -> None:
    """What nobody lists is not found; what two list is in nobody's care."""
    listed = [
        (ROOT / "docs" / section / page).resolve()
        for section in SECTIONS
        for page in LISTED.findall((ROOT / "docs" / section / "index.md").read_text(encoding="utf-8"))
    ]
    pages = {page for page in (ROOT / "docs").rglob("*.md") if page.name != "index.md" and "examples" not in page.parts}
    assert sorted(listed) == sorted(pages)
