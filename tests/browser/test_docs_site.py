"""The site of the documentation: it is built without a warning, so that no link or anchor is broken, and works without a server."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Browser

from tests.support.servers import DEADLINE_S

ROOT = Path(__file__).parents[2]
SECTIONS = ("start", "tutorials", "notebooks", "how-to", "reference", "explanation")
LISTED = re.compile(r"^- \[[^\]]*\]\(([^)#:]+\.md)\)", flags=re.MULTILINE)
LOADED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc="([^"]*)"|"""
    r"""<link\b[^>]*\brel="(?:stylesheet|preload|icon)"[^>]*\bhref="([^"]*)\""""
)
ELSEWHERE = re.compile(r"url\(\s*['\"]?(?:https?:)?//")
FOUND = {
    "how do I use my AWS discount": ("how-to/bring-quotes", "reference/providers"),
    "what does p90 mean": ("start/ranges", "reference/glossary"),
    "why is MFU only 38 %": ("how-to/low-mfu",),
    "who can see my prices": ("how-to/bring-quotes", "start/questions"),
    "upload vendor quote excel": ("how-to/bring-quotes", "reference/quotes"),
    "should we buy or rent GPUs": ("reference/ownership", "tutorials/procurement"),
    "how accurate are the estimates": ("start/trust", "explanation/accuracy"),
    "import wandb history": ("how-to/connect-wandb",),
    "connect slurm": ("how-to/connect-slurm",),
    "restore a backup into postgres": ("how-to/back-up", "reference/backups"),
    "error 429 too many requests": ("reference/limits",),
    "does a 70B model fit in memory on 8 H100": ("how-to/fit-memory",),
    "create an API key for a colleague": ("reference/pages", "reference/commands", "tutorials/operator", "start/questions"),
    "get a slack message when we are over budget": ("reference/alerts",),
    "share a result with someone who has no account": ("how-to/share",),
    "run without internet": ("start/questions", "reference/settings"),
    "deploy on kubernetes": ("how-to/deployment", "tutorials/operator"),
    "what is goodput": ("reference/glossary",),
    "chinchilla optimal tokens for a 7B model": ("reference/optimal", "explanation/scaling-laws"),
    "probability to finish before the deadline": ("reference/schedules", "reference/scenarios", "start/questions"),
    "how old are the prices": ("start/questions", "reference/providers"),
    "verify the webhook signature": ("how-to/jobs-and-webhooks",),
    "compare h100 with b200": ("how-to/comparing",),
    "difference between CPI and SPI": ("reference/glossary", "reference/tracking"),
    "upgrade without downtime": ("how-to/upgrade", "how-to/deployment"),
    "cost of a LoRA fine-tune": ("start/questions", "how-to/comparing", "explanation/accuracy/finetuning"),
    "report from pytorch lightning": ("how-to/trainers",),
    "co2 emissions of training": ("explanation/formulas", "reference/glossary", "start/questions"),
    "is my data sent to anybody": ("start/questions", "explanation/threat-model"),
    "huggingface callback": ("how-to/trainers",),
    "prices in euros": ("start/questions",),
    "export to excel": ("start/questions",),
    "does it support TPU or AMD MI300X": ("start/questions",),
    "log in with single sign-on": ("reference/pages",),
    "include salaries in the budget": ("start/questions", "reference/programs"),
    "an API key has leaked": ("start/questions", "reference/secrets"),
    "how often should I save a checkpoint": ("start/questions",),
    "what happens when the tracking server is down": ("start/questions",),
    "GPU not in the list": ("how-to/gpu-not-in-the-list",),
    "unknown accelerator": ("how-to/gpu-not-in-the-list",),
    "slow": ("how-to/tune",),
    "why is my estimate slow": ("how-to/tune",),
}
"""By a question as people type it the pages that answer it."""
FIRST = 3


def test_the_site_is_whole_and_needs_no_network(tmp_path: Path, browser: Browser) -> None:
    """Built as `make docs` does, once, since that takes seconds: then what its pages load, and its search, from files."""
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", str(ROOT / "docs"), str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert loaded_from_elsewhere(tmp_path) == set()
    found = searched(browser, tmp_path)
    assert {words: pages for words, pages in found.items() if not set(pages) & set(FOUND[words])} == {}


def loaded_from_elsewhere(site: Path) -> set[tuple[str, str]]:
    """Fonts, scripts and pictures that a page or a style would fetch, with its name."""
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(SECTIONS)
    loaded = {(page.name, one or other) for page in pages for one, other in LOADED.findall(page.read_text(encoding="utf-8"))}
    styles = {(sheet.name, found) for sheet in site.rglob("*.css") for found in ELSEWHERE.findall(sheet.read_text(encoding="utf-8"))}
    return {each for each in loaded if re.match(r"[a-z]+:|//", each[1])} | styles


def searched(browser: Browser, site: Path) -> dict[str, list[str]]:
    """The first pages that the site's own search shows for each question, opened as a file."""
    page = browser.new_page()
    page.set_default_timeout(1000 * DEADLINE_S)
    try:
        found = {}
        for words in FOUND:
            page.goto(f"{(site / 'search.html').as_uri()}?q={quote(words)}")
            page.wait_for_selector("#search-results li a", timeout=1000 * DEADLINE_S)
            page.wait_for_function(f"document.querySelectorAll('#search-results li').length >= {FIRST}", timeout=1000 * DEADLINE_S)
            links = page.locator("#search-results li a")
            places = [links.nth(place).get_attribute("href") or "" for place in range(FIRST)]
            found[words] = [place.split("?")[0].split("#")[0].removesuffix(".html") for place in places]
        return found
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
