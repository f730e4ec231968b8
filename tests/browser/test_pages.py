"""Pages in Chromium, without API keys: at two widths, light and dark, with scripts and without, and what axe finds."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import requests
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect

from service.config import Settings, to_env
from service.container import build_context
from service.formats.documents.charts import DARK_INK
from service.web.program_tabs import TABS
from tests.contract.scenarios.test_scenario_ends import work
from tests.contract.tracking.tracked_program import told
from tests.integration.test_nginx import running
from tests.integration.test_serve import ROOT, spaced_in, status
from tests.support.patience import PATIENT_GUNICORN
from tests.support.servers import DEADLINE_S, wait_for

RUN = "model=llama-3-8b&data.tokens=1T&hardware.accelerator=H100&hardware.count=256"
COMPARISON = "model=7B&workload.data.tokens=100B&candidates.accelerators=H100&candidates.counts=64,128&limit=10"
PURCHASE = "demand.accelerator=H100&demand.count=256&demand.years=3&own.0.capex_usd_per_accelerator=32000"
PAGES = (
    *("/", "/?text=llama+3+8b+1T+tokens+on+256+h100", "/?text=llama+70b+on+h100", "/sign-in"),
    *("/estimate", f"/estimate?{RUN}", "/compare", f"/compare?{COMPARISON}", "/prices", "/prices?accelerator=H100"),
    *("/buy-or-rent", f"/buy-or-rent?{PURCHASE}", "/programs", "/programs/new", "/programs/new?from=example"),
    *("/scenarios", "/settings"),
)
SERIOUS = ("serious", "critical")


@dataclass
class View:
    """A tab of a browser, with all that its console said and every address that it asked for."""

    page: Page
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def open(self, address: str) -> None:
        """Open a page of the service, until nothing is under way."""
        self.page.goto(address)
        self.page.wait_for_load_state("networkidle")


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Of the service without keys, in a folder of its own."""
    made = spaced_in(tmp_path_factory.mktemp("pages"))
    made.data_dir.mkdir()
    return made


@pytest.fixture(scope="module")
def service(settings: Settings) -> Iterator[str]:
    """Where the service without keys is."""
    with closing(build_context(settings).store) as store:
        store.migrate()
    with running_service(settings) as address:
        yield address


@contextmanager
def running_service(settings: Settings) -> Iterator[str]:
    """A service in processes of its own on a migrated database; where it is."""
    command = [sys.executable, *PATIENT_GUNICORN]
    with running(command, settings.data_dir.parent, {**os.environ, **to_env(settings), "PYTHONPATH": str(ROOT)}):
        wait_for(lambda: status(settings, "/readyz") == 200, "the service")
        yield f"http://127.0.0.1:{settings.port}"


@pytest.fixture(scope="module")
def program(service: str) -> str:
    """Where a tracked program is whose half-spend gate is due."""
    return f"{service}/programs/{told(Sender(service))['id']}"  # type: ignore[arg-type]


@dataclass
class Sender:
    """Sends as the client of a test does, to a service."""

    service: str

    def post(self, path: str, json: Mapping[str, Any]) -> SimpleNamespace:
        """The answer to a POST."""
        answer = requests.post(f"{self.service}{path}", json=json, timeout=DEADLINE_S)
        return SimpleNamespace(status_code=answer.status_code, text=answer.text, get_json=answer.json)


@contextmanager
def view(browser: Browser, *, width: int = 1280, scheme: str = "light", scripts: bool = True) -> Iterator[View]:
    """A tab in a browser of its own."""
    with ExitStack() as stack:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if scheme == "dark" else "light", java_script_enabled=scripts
        )
        stack.callback(context.close)
        context.set_default_timeout(1000 * DEADLINE_S)
        made = View(context.new_page())
        made.page.on("console", lambda message: made.said.append(message.text) if message.type in ("error", "warning") else None)
        made.page.on("pageerror", lambda error: made.said.append(str(error)))
        made.page.on("request", lambda request: made.asked.append(request.url))
        yield made


def led(page: Page, to: Locator) -> None:
    """Click what leads to another page, until that is there: a click alone returns while the page before it is still shown."""
    with page.expect_navigation():
        to.click()


LOOKS = [
    (1280, "light"),
    (390, "dark"),
    pytest.param(1280, "dark", marks=pytest.mark.soak),
    pytest.param(390, "light", marks=pytest.mark.soak),
]


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_every_page_is_quiet_accessible_and_of_one_host(service: str, program: str, browser: Browser, width: int, scheme: str) -> None:
    """The console says nothing, axe finds nothing serious, no other host is asked, and nothing is wider than the screen."""
    its = program.removeprefix(service)
    run = requests.get(f"{service}{its.replace('/programs/', '/v1/track/programs/')}/runs", timeout=DEADLINE_S).json()["items"][0]
    parts = ("?tab=" + tab for tab in TABS)
    with view(browser, width=width, scheme=scheme) as seen:
        for path in (*PAGES, *(its + part for part in (*parts, "/versions", f"/runs/{run['id']}"))):
            seen.page.emulate_media(media="screen")
            seen.open(service + path)
            found = [each for each in Axe().run(seen.page).response["violations"] if each["impact"] in SERIOUS]
            assert found == [], path
            assert seen.said == [], path
            assert [address for address in seen.asked if not address.startswith(service)] == [], path
            seen.page.evaluate("() => { for (const each of document.querySelectorAll('details')) each.open = true }")
            assert seen.page.evaluate("document.documentElement.scrollWidth") <= width, path
            seen.page.emulate_media(media="print")
            assert seen.page.locator("input:visible, select:visible, button:visible, .button:visible").count() == 0, path
            assert seen.page.locator("main").is_visible(), path


def test_without_scripts_a_wide_chart_scrolls_in_its_own_box(service: str, program: str, browser: Browser) -> None:
    """At the width of a phone its words keep their size, and the page is no wider than the screen."""
    with view(browser, width=390, scripts=False) as seen:
        seen.open(program)
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= 390
        pictures = seen.page.locator("picture").all()
        wide = [each for each in pictures if each.evaluate("picture => picture.scrollWidth > picture.clientWidth")]
        assert wide
        for each in pictures:
            assert each.locator("img").evaluate("image => image.clientWidth === Number(image.getAttribute('width'))")


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_a_kept_result_is_read_anywhere(service: str, browser: Browser, width: int, scheme: str) -> None:
    """On a phone its tables are as wide as the screen, and no column is squeezed; it leads back to the form."""
    asked = {"model": {"preset": "llama-3-8b"}, "data": {"tokens": "1T"}, "hardware": {"accelerator": "H100", "count": 256}}
    kept = requests.post(f"{service}/v1/results", json={"kind": "estimate", "request": asked}, timeout=DEADLINE_S).json()
    with view(browser, width=width, scheme=scheme) as seen:
        seen.open(f"{service}/r/{kept['id']}")
        page = seen.page
        assert [each for each in Axe().run(page).response["violations"] if each["impact"] in SERIOUS] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        sources = page.locator(".assumptions td:last-child").all()
        assert min(box["width"] for box in (each.bounding_box() for each in sources) if box) > 100
        led(page, page.get_by_role("link", name="Ask again with changes"))
        assert page.locator('[name="hardware.count"]').input_value() == "256"
        assert seen.said == []


def test_a_question_leads_to_its_estimate(service: str, browser: Browser) -> None:
    """By keyboard alone: `/`, the question, Enter; then the button."""
    with view(browser) as seen:
        seen.open(service)
        seen.page.locator("h2").first.click()
        seen.page.keyboard.press("/")
        seen.page.keyboard.type("llama 3 8b, 1T tokens on 256 h100")
        seen.page.keyboard.press("Enter")
        led(seen.page, seen.page.get_by_role("link", name="Open the whole estimate"))
        assert seen.page.locator(".sentence").inner_text().startswith("About $")
        assert seen.page.locator('[name="hardware.count"]').input_value() == "256"


def test_the_answer_follows_what_is_typed(service: str, browser: Browser) -> None:
    """Without another page: an assumption is changed, a mistake is shown beside its field and corrected; the address goes with it."""
    with view(browser) as seen:
        seen.open(f"{service}/estimate?{RUN}")
        page, before = seen.page, seen.page.locator(".sentence").inner_text()
        page.evaluate("window.same = true")
        page.locator('[name="training.precision"][form]').fill("fp8")
        page.wait_for_function("before => document.querySelector('.sentence').innerText !== before", arg=before)
        assert "training.precision=fp8" in page.url
        page.locator('[name="hardware.count"]').fill("lots")
        page.locator('[id="e-hardware.count"]').wait_for()
        page.locator('[name="hardware.count"]').fill("512")
        page.locator('[id="e-hardware.count"]').wait_for(state="detached")
        page.wait_for_function("document.querySelector('.sentence')?.innerText.includes('on 512')")
        assert page.evaluate("window.same")
        shared = page.url
        with view(browser) as other:
            other.open(shared)
            assert other.page.locator(".sentence").inner_text() == page.locator(".sentence").inner_text()


def test_changes_worth_making_are_switched(service: str, browser: Browser) -> None:
    """They come when they are looked at; several are on at once, in place, by keyboard too, and what is typed leaves them on."""
    with view(browser) as seen:
        seen.open(f"{service}/estimate?{RUN}")
        page, before = seen.page, seen.page.locator(".sentence").inner_text()
        page.evaluate("window.same = true")
        page.locator("#levers").scroll_into_view_if_needed()
        page.get_by_role("link", name="off: try train in 8 bits").focus()
        page.keyboard.press("Enter")
        page.get_by_text("With 1 change").wait_for()
        page.get_by_role("link", name="on: leave out train in 8 bits").wait_for()
        assert page.locator(".sentence").inner_text() != before
        page.get_by_role("link", name="off: try run on spot capacity").click()
        page.get_by_text("With 2 changes").wait_for()
        page.locator('[name="personnel.usd_per_hour"]').first.evaluate("field => field.closest('details').open = true")
        page.locator('[name="personnel.usd_per_hour"]').first.fill("95")
        page.wait_for_url("**personnel.usd_per_hour=95**")
        expect(page.get_by_text("With 2 changes")).to_have_count(1)
        page.locator("#lever-1").wait_for()
        expect(page.locator("[aria-busy=true]")).to_have_count(0)
        assert [each for each in Axe().run(page).response["violations"] if each["impact"] in SERIOUS] == []
        page.get_by_role("link", name="on: leave out price: pricing spot").click()
        page.get_by_text("With 1 change").wait_for()
        assert page.evaluate("window.same")
        assert seen.said == []


def test_charts_answer(service: str, browser: Browser) -> None:
    """A point says what it is and leads to its row; the chart follows the scheme, and has the picture's name."""
    with view(browser) as seen:
        seen.open(f"{service}/compare?{COMPARISON}")
        page, chart = seen.page, seen.page.locator(".chart")
        page.locator("figure").scroll_into_view_if_needed()
        chart.locator("svg").wait_for()
        chart.evaluate("chart => chart.scrollIntoView({block: 'center'})")
        assert chart.get_attribute("aria-label") == page.locator("picture img").get_attribute("alt")
        assert not page.locator("picture").is_visible()
        point = chart.locator(".mark-symbol.role-mark path").first
        point.hover()
        expect(page.locator(".tip")).to_contain_text("H100")
        page.keyboard.press("Escape")
        expect(page.locator(".tip")).to_be_hidden()
        point.click()
        page.locator("tr:target", has_text="H100").wait_for()
        page.emulate_media(color_scheme="dark")
        chart.locator(f'text[fill="{DARK_INK}"]').first.wait_for()
        assert seen.said == []


@pytest.mark.parametrize(("width", "scripts"), [(1280, True), (390, False)])
def test_options_are_sorted_filtered_and_pinned(service: str, browser: Browser, width: int, scripts: bool) -> None:
    """As a table and as cards, whose words stand within the screen; what is pinned stays where the order changes."""
    with view(browser, width=width, scripts=scripts) as seen:
        page, rows = seen.page, seen.page.locator("tbody tr[id^=option-]")
        seen.open(f"{service}/compare?{COMPARISON}")
        led(page, rows.nth(1).get_by_role("link", name="pin"))
        expect(page.locator(".columns .card")).to_have_count(1)
        days_head = page.get_by_role("columnheader", name="days")
        led(page, days_head.get_by_role("link"))
        expect(days_head).to_have_attribute("aria-sort", "ascending")
        page.wait_for_load_state()
        days = [float(text) for text in rows.locator('[data-label="days"]').all_inner_texts()]
        assert days == sorted(days)
        expect(page.locator(".columns .card")).to_have_count(1)
        led(page, rows.last.get_by_role("link", name="pin"))
        expect(page.locator(".columns .card")).to_have_count(2)
        page.wait_for_load_state()
        assert rows.first.get_by_role("cell").count() == 7
        assert rows.first.get_by_role("rowheader").count() == 1
        right = max(cell["x"] + cell["width"] for cell in (each.bounding_box() for each in rows.get_by_role("cell").all()) if cell)
        assert right <= width
        page.locator('[name="candidates.pricing"]').fill("on_demand")
        page.locator('[name="candidates.pricing"]').press("Enter")
        page.wait_for_url("**candidates.pricing=on_demand**")
        page.wait_for_load_state()
        assert all("on demand" in text for text in rows.get_by_role("rowheader").all_inner_texts())
        assert [each for each in Axe().run(page).response["violations"] if each["impact"] in SERIOUS] == [] if scripts else True
        assert seen.said == []


def test_heads_of_long_tables_stay_in_sight(service: str, browser: Browser) -> None:
    """While their rows are scrolled through."""
    with view(browser) as seen:
        seen.open(f"{service}/prices")
        page, head = seen.page, seen.page.locator(".matrix thead th").first
        page.locator(".matrix tbody tr").nth(25).evaluate("row => row.scrollIntoView({block: 'center'})")
        box = head.bounding_box()
        assert box is not None
        assert box["y"] == 0


def test_a_picture_stays_where_its_chart_cannot_be_drawn(service: str, browser: Browser) -> None:
    """Without the bundle."""
    with view(browser) as seen:
        seen.page.route("**/vega.js*", lambda route: route.abort())
        seen.open(f"{service}/estimate?{RUN}")
        seen.page.locator("figure").first.scroll_into_view_if_needed()
        seen.page.wait_for_load_state("networkidle")
        assert seen.page.locator("picture").first.is_visible()
        assert seen.page.locator(".chart").count() == 0


def test_pictures_are_drawn(service: str, browser: Browser) -> None:
    """Without scripts, each with its figures as a table behind it."""
    with view(browser, scripts=False) as seen:
        seen.open(f"{service}/estimate?{RUN}")
        for figure in seen.page.locator("figure").all():
            figure.scroll_into_view_if_needed()
            figure.locator("img").evaluate("image => image.decode()")
            assert figure.locator("table tbody tr").count() > 1


def test_a_quote_changes_the_verdict(service: str, browser: Browser) -> None:
    """In place: what is missing of it is shown where it is, opened, and then the verdict follows."""
    with view(browser) as seen:
        seen.open(f"{service}/buy-or-rent?{PURCHASE}")
        page = seen.page
        assert "Reserving" not in page.locator(".sentence").inner_text()
        page.get_by_text("Quote 2", exact=True).click()
        page.locator('[name="rent.quotes.1.usd_per_accelerator_hour"]').fill("0.5")
        page.locator('[id="e-rent.quotes.1.pricing"]').wait_for()
        page.locator('[name="rent.quotes.1.pricing"]').select_option("reserved_3y")
        expect(page.locator(".sentence")).to_contain_text("Reserving")
        page.locator('[name="own.0.staff_fte"][form]').evaluate("field => field.closest('details').open = true")
        page.locator('[name="own.0.staff_fte"][form]').fill("2")
        page.wait_for_url("**staff_fte=2**")


def test_without_scripts_a_verdict_is_kept(service: str, browser: Browser) -> None:
    """With its assumptions changed, and its files there to take away."""
    with view(browser, scripts=False) as seen:
        page = seen.page
        page.goto(f"{service}/buy-or-rent?{PURCHASE}")
        page.locator('[name="demand.utilisation"][form]').fill("0.3")
        led(page, page.get_by_role("button", name="Compare"))
        assert page.locator('[name="demand.utilisation"]').input_value() == "0.3"
        led(page, page.get_by_role("button", name="Keep this verdict"))
        assert "/r/" in page.url
        expect(page.get_by_role("link", name="xlsx")).to_have_count(1)


def test_trials_are_followed_to_their_end(service: str, settings: Settings, browser: Browser) -> None:
    """On one page, which then reads a budget off while one types it."""
    context = build_context(settings)
    with view(browser) as seen, closing(context.store):
        seen.open(f"{service}/estimate?{RUN}")
        page = seen.page
        led(page, page.get_by_role("button", name="Run 100,000 trials"))
        page.locator("[data-state=queued]").wait_for()
        page.evaluate("window.same = true")
        work(context)
        page.get_by_role("button", name="Read off").wait_for()
        page.locator('[name="budget_usd"]').fill("1")
        page.get_by_text("Less than 1% to keep to the budget").wait_for()
        assert page.evaluate("window.same")
        assert "budget_usd=1" in page.url
        page.get_by_role("slider", name="Budget").focus()
        page.keyboard.press("End")
        page.get_by_text("At least 99% to keep to the budget").or_(page.get_by_text("About 99% to keep to the budget")).wait_for()
        assert page.evaluate("document.activeElement.type") == "range"
        page.locator(".chart .role-title-text", has_text="99%").first.wait_for()
        assert [each for each in Axe().run(page).response["violations"] if each["impact"] in SERIOUS] == []
        assert seen.said == []


def test_without_scripts_it_is_read_and_sent(service: str, browser: Browser) -> None:
    """A question, its form with a mistake, the correction, an assumption, and a kept page."""
    with view(browser, scripts=False) as seen:
        page = seen.page
        page.goto(service)
        page.locator('[name="text"]').fill("llama 3 8b, 1T tokens on 256 h100")
        led(page, page.get_by_role("button", name="Ask"))
        led(page, page.get_by_role("link", name="Open the whole estimate"))
        page.locator('[name="hardware.count"]').fill("lots")
        led(page, page.get_by_role("button", name="Estimate", exact=True))
        assert page.locator('[id="e-hardware.count"]').inner_text()
        page.locator('[name="hardware.count"]').fill("512")
        led(page, page.get_by_role("button", name="Estimate", exact=True))
        assert "on 512 H100" in page.locator(".sentence").inner_text()
        page.locator('[name="training.seq_len"][form]').fill("4096")
        led(page, page.get_by_role("button", name="Estimate", exact=True))
        assert "training.seq_len=4096" in page.url
        led(page, page.get_by_role("button", name="Keep this estimate"))
        assert "/r/" in page.url
        assert "Kept at" in page.locator("body").inner_text()


def test_a_gate_is_decided_on_its_page(service: str, browser: Browser) -> None:
    """With scripts and without."""
    for scripts in (True, False):
        made = told(Sender(service), {"program": f"decided {scripts}"})  # type: ignore[arg-type]
        with view(browser, scripts=scripts) as seen:
            page = seen.page
            page.goto(f"{service}/programs")
            led(page, page.get_by_role("link", name=str(made["name"])))
            gate = page.locator("#gate-midpoint")
            gate.get_by_role("radio", name="Pivot").check()
            gate.get_by_label("Why").fill("the smaller one is good enough")
            led(page, gate.get_by_role("button", name="Record the decision"))
            page.wait_for_url("**#gates")
            assert "decided, pivot" in page.locator("#gate-midpoint h3").inner_text()
            assert seen.said == []


def test_a_program_is_begun_changed_and_decided(service: str, browser: Browser) -> None:
    """From an example to its plan, a run, another plan with what it changes, the difference, and a decision."""
    with view(browser) as seen:
        page = seen.page
        seen.open(f"{service}/programs/new?from=example")
        led(page, page.get_by_role("button", name="See what it says"))
        led(page, page.get_by_role("button", name="Track this program"))
        led(page, page.get_by_role("button", name="Track it").last)
        assert page.locator("h1").inner_text().startswith("main")
        led(page, page.get_by_role("link", name="support-assistant 7B"))
        led(page, page.get_by_role("link", name="Plan", exact=True))
        page.get_by_text("Budget, dates, runs").click()
        page.get_by_text("Runs of production").click()
        page.locator('[name="plan.tiers.2.runs.0.estimate.data.tokens"]').fill("500B")
        led(page, page.get_by_role("button", name="See what changes"))
        assert "less" in page.locator(".changes .sentence").inner_text()
        assert [each for each in Axe().run(page).response["violations"] if each["impact"] in SERIOUS] == []
        led(page, page.get_by_role("button", name="Save this plan"))
        assert page.locator("h1").inner_text() == "What changed from version 1 to 2"
        assert "500B" in page.locator("main").inner_text()
        led(page, page.get_by_role("link", name="support-assistant 7B"))
        led(page, page.get_by_role("link", name="Track", exact=True))
        gate = page.locator("#gate-midpoint")
        gate.locator("summary").click()
        gate.get_by_role("radio", name="Continue").check()
        led(page, gate.get_by_role("button", name="Record the decision"))
        assert "decided, continue" in page.locator("#gate-midpoint h3").inner_text()
        assert seen.said == []


def test_a_vendors_file_becomes_quotes_and_a_verdict(service: str, browser: Browser) -> None:
    """Without scripts: read, asked back, answered, chosen, compared."""
    csv = b"Vendor,GPU,USD per GPU-hour,Term\nNimbus,8x H100 SXM5 80GB,2.35,1 year\nNimbus,H100,2.50,3 years\n"
    with view(browser, scripts=False) as seen:
        seen.open(f"{service}/buy-or-rent/quotes?demand.count=256&demand.years=3&trials=200")
        page = seen.page
        page.set_input_files("#file", {"name": "nimbus.csv", "mimeType": "text/csv", "buffer": csv})
        led(page, page.get_by_role("button", name="Read it"))
        page.get_by_label("H100 is").select_option("NVIDIA-H100-80GB-SXM")
        led(page, page.get_by_role("button", name="Read again").first)
        page.get_by_role("checkbox", name="Use C3").uncheck()
        led(page, page.get_by_role("button", name="Compare the chosen prices"))
        assert "costs least" in page.locator(".sentence").inner_text()
        assert page.locator('[name="rent.quotes.0.name"]').input_value() == "Nimbus reserved for 1 year (C2)"
        assert [said for said in seen.said if "Content Security" in said] == []
