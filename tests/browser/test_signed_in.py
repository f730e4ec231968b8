"""Pages in Chromium with API keys: signing in and out, keeping, sharing, and who can open what was shared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from service.config import Settings
from service.container import build_context
from service.domain.teams import SCOPES
from service.usecases.keys import make_key
from tests.browser.test_pages import RUN, SERIOUS, View, led, running_service, view
from tests.integration.test_serve import spaced_in

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
    with running_service(settings) as address:
        yield address


def sign_in(seen: View, key: str) -> None:
    """Type the key, and go on."""
    seen.page.get_by_label("API key").fill(key)
    led(seen.page, seen.page.get_by_role("button", name="Sign in"))


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
        led(page, page.get_by_role("button", name="Keep this estimate"))
        page.wait_for_url("**/r/*")
        kept = page.url
        led(page, page.get_by_role("link", name="Share it by a link"))
        led(page, page.get_by_role("button", name="Make a link"))
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
        led(page, page.get_by_role("button", name="Sign out"))
        ours.open(kept)
        assert "/sign-in" in page.url
        assert [address for address in ours.asked if not address.startswith(service)] == []
        assert ours.said == []
