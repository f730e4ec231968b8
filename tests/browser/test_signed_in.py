"""Pages in Chromium with API keys: signing in and out, keeping, sharing, and who can open what was shared."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from service.config import Settings, to_env
from service.container import build_context
from service.domain.teams import SCOPES
from service.usecases.keys import make_key
from tests.browser.test_pages import RUN, SERIOUS, View, view
from tests.conftest import wait_for
from tests.integration.test_nginx import running
from tests.integration.test_serve import ROOT, spaced_in, status

KEYED = ("/settings", "/", "/sign-in")


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Of a service with keys, in a folder of its own."""
    made = spaced_in(tmp_path_factory.mktemp("keyed"))
    made.data_dir.mkdir()
    return made


@pytest.fixture(scope="module")
def keys(settings: Settings) -> dict[str, str]:
    """A key of each of two teams."""
    context = build_context(settings)
    with closing(context.store) as store:
        store.migrate()
        return {team: make_key(context, team, "browser", SCOPES, "never")[1] for team in ("ours", "theirs")}


@pytest.fixture(scope="module")
def service(settings: Settings, keys: dict[str, str]) -> Iterator[str]:
    """Where the service with keys is."""
    del keys
    command = [sys.executable, "-m", "gunicorn", "-c", "python:service.runtime.gunicorn_conf", "service:create_app()"]
    with running(command, settings.data_dir.parent, {**os.environ, **to_env(settings), "PYTHONPATH": str(ROOT)}):
        wait_for(lambda: status(settings, "/readyz") == 200, "the service")
        yield f"http://127.0.0.1:{settings.port}"


def sign_in(seen: View, key: str) -> None:
    """Type the key, and go on."""
    seen.page.get_by_label("API key").fill(key)
    seen.page.get_by_role("button", name="Sign in").click()
    seen.page.wait_for_load_state()


def test_a_result_is_kept_shared_and_opened_by_others(service: str, keys: dict[str, str], browser: Browser) -> None:
    """A wrong key is told of, a right one leads on; a link opens the result signed out, and another team opens nothing else."""
    with view(browser) as ours, view(browser) as nobody, view(browser) as theirs:
        page = ours.page
        ours.open(f"{service}/estimate?{RUN}")
        sign_in(ours, "outlay_wrong")
        assert page.locator("#e-api_key").inner_text()
        ours.said.clear()
        sign_in(ours, keys["ours"])
        assert "on 256 H100" in page.locator(".sentence").inner_text()
        page.get_by_role("button", name="Keep this estimate").click()
        page.wait_for_url("**/r/*")
        kept = page.url
        page.get_by_role("link", name="Share it by a link").click()
        page.get_by_role("button", name="Make a link").click()
        link = page.get_by_label("The link; it is shown this once").input_value()
        for path in KEYED:
            ours.open(service + path)
            assert [each for each in Axe().run(page).response["violations"] if each["impact"] in SERIOUS] == [], path
        nobody.open(link)
        assert "Kept at" in nobody.page.locator("body").inner_text()
        nobody.open(kept)
        assert "/sign-in" in nobody.page.url
        theirs.open(kept)
        sign_in(theirs, keys["theirs"])
        assert "Kept at" not in theirs.page.locator("body").inner_text()
        ours.open(service)
        page.get_by_role("button", name="Sign out").click()
        ours.open(kept)
        assert "/sign-in" in page.url
        assert [address for address in ours.asked if not address.startswith(service)] == []
        assert ours.said == []
