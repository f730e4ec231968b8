"""The site of the documentation: it is built without a warning, so that no link or anchor is broken, and works without a server."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Browser

from tests.conftest import DEADLINE_S

ROOT = Path(__file__).parents[2]
SECTIONS = ("start", "tutorials", "how-to", "reference", "explanation")
LISTED = re.compile(r"^- \[[^\]]*\]\(([^)#:]+\.md)\)", flags=re.MULTILINE)
LOADED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc="([^"]*)"|"""
    r"""<link\b[^>]*\brel="(?:stylesheet|preload|icon)"[^>]*\bhref="([^"]*)\""""
)
ELSEWHERE = re.compile(r"url\(\s*['\"]?(?:https?:)?//")
FOUND = {"who can see my prices": "Questions, and where they are answered", "p90": "How to read a range", "EAC": "Glossary"}
"""By what a reader may search for a page that answers it."""
FIRST = 3


def test_the_site_is_whole_and_needs_no_network(tmp_path: Path, browser: Browser) -> None:
    """Built as `make docs` does, once, since that takes seconds: then what its pages load, and its search, from files."""
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", str(ROOT / "docs"), str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert loaded_from_elsewhere(tmp_path) == set()
    for words, title in FOUND.items():
        assert title in search(browser, tmp_path, words)[:FIRST]


def loaded_from_elsewhere(site: Path) -> set[tuple[str, str]]:
    """Fonts, scripts and pictures that a page or a style would fetch, with its name."""
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(SECTIONS)
    loaded = {(page.name, one or other) for page in pages for one, other in LOADED.findall(page.read_text(encoding="utf-8"))}
    styles = {(sheet.name, found) for sheet in site.rglob("*.css") for found in ELSEWHERE.findall(sheet.read_text(encoding="utf-8"))}
    return {each for each in loaded if re.match(r"[a-z]+:|//", each[1])} | styles


def search(browser: Browser, site: Path, words: str) -> list[str]:
    """Titles of what the site's own search finds, in its order."""
    page = browser.new_page()
    try:
        page.goto(f"{(site / 'search.html').as_uri()}?q={words}")
        page.wait_for_selector("#search-results li a", timeout=1000 * DEADLINE_S)
        return page.locator("#search-results li a").all_inner_texts()
    finally:
        page.close()


def test_every_page_stands_in_one_section() -> None:
    """What nobody lists is not found; what two list is in nobody's care."""
    listed = [
        (ROOT / "docs" / section / page).resolve()
        for section in SECTIONS
        for page in LISTED.findall((ROOT / "docs" / section / "index.md").read_text(encoding="utf-8"))
    ]
    pages = {page for page in (ROOT / "docs").rglob("*.md") if page.name != "index.md" and "examples" not in page.parts}
    assert sorted(listed) == sorted(pages)
