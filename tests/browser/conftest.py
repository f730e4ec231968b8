"""The system's Chromium, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.support.servers import DEADLINE_S, missing

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The system's Chromium."""
    program = shutil.which("chromium") or missing("Chromium")
    expect.set_options(timeout=1000 * DEADLINE_S)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=program, args=FLAGS, timeout=1000 * DEADLINE_S)
        try:
            yield launched
        finally:
            launched.close()
