"""/scenarios: started from an estimate, followed, cancelled, and read off."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest

from service.config import load_settings
from service.formats.documents.charts import draw_svg
from service.formats.documents.scenario_charts import cost_chart, finish_chart
from service.formats.scenario_figures import chance_at, cost_points
from tests.contract.doors import House, house
from tests.contract.scenarios.test_scenario_ends import work
from tests.contract.web.visitor import Visitor, text_of, words_of

RUN = {
    "model": "llama-3-8b",
    "data.tokens": "100B",
    "hardware.accelerator": "H100",
    "hardware.count": "64",
    "schedule.start": "2027-01-04",
    "schedule.deadline": "2027-01-07",
}
BASE = {
    "model": {"preset": "llama-3-8b"},
    "data": {"tokens": "100B"},
    "hardware": {"accelerator": "H100", "count": 64},
    "schedule": {"start": "2027-01-04", "deadline": "2027-01-07"},
}
TRIALS = {"kind": "monte_carlo", "base": BASE, "trials": 2000, "seed": 7, "budget_usd": 14_000}
KINDS: dict[str, dict[str, Any]] = {
    "monte_carlo": TRIALS,
    "sensitivity": {"kind": "sensitivity", "base": BASE, "swing": 0.1, "points": 0},
    "sweep": {"kind": "sweep", "base": BASE, "axes": {"hardware.count": [32, 64], "data.tokens": ["50B", "100B"]}},
    "optimize": {"kind": "optimize", "base": BASE, "candidates": {"accelerators": ["H100"], "counts": [64]}},
}
CHARTS = {"monte_carlo": ["cost", "finish", "drivers"], "sensitivity": ["tornado"], "sweep": ["sweep"], "optimize": []}


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A service with keys, for all tests of scenarios."""
    with house(load_settings({"OUTLAY_DATA_DIR": str(tmp_path_factory.mktemp("scenarios") / "data"), "OUTLAY_OFFLINE": "1"})) as made:
        yield made


@pytest.fixture(scope="module", autouse=True)
def ended(doors: House) -> dict[str, str]:
    """A scenario of each kind that has succeeded: its id. Made first: workers would go on with what tests leave waiting."""
    made = {kind: doors.ask("ours", "POST", "/v1/scenarios", json=body).get_json()["id"] for kind, body in KINDS.items()}
    work(doors.context)
    return made


@pytest.fixture
def visitor(doors: House) -> Visitor:
    """Somebody of the team who may write."""
    made = Visitor(doors)
    made.sign_in("ours")
    return made


def started(doors: House) -> str:
    """A scenario that waits for workers."""
    return str(doors.ask("ours", "POST", "/v1/scenarios", json=TRIALS | {"trials": 1_000_000, "early_stop": False}).get_json()["id"])


def test_an_estimate_leads_to_trials_of_it(doors: House, visitor: Visitor) -> None:
    """With a budget or without; the page that follows has the estimate's request."""
    page = text_of(visitor.open("/estimate?" + urlencode(RUN | {"levers": "true"})))
    action = re.search(r'action="(/estimate/trials\?[^"]+)"', page)
    assert action is not None
    led = visitor.send(unescape(action[1]), {"csrf_token": visitor.form_token(), "budget_usd": "200,000"})
    assert led.status_code == 303
    address = led.headers["Location"]
    scenario = visitor.open(f"{address}?format=json").get_json()
    assert scenario["request"]["base"] == BASE
    assert (scenario["request"]["budget_usd"], scenario["progress"]["total"]) == (200_000, 100_000)
    assert scenario == doors.ask("ours", "GET", f"/v1{address}").get_json()


def test_a_budget_that_is_none_is_said_beside_its_field(visitor: Visitor) -> None:
    """On the estimate's page, with what was typed; nothing is started."""
    refused = visitor.send("/estimate/trials?" + urlencode(RUN), {"csrf_token": visitor.form_token(), "budget_usd": "lots"})
    assert refused.status_code == 422
    assert re.search(r'id="f-budget_usd"[^>]*value="lots"[^>]*aria-invalid="true"', text_of(refused))
    assert re.search(r'<p class="error" id="e-budget_usd">[^<]+</p>', text_of(refused))


def test_trials_of_what_is_no_estimate_lead_back_to_its_form(visitor: Visitor) -> None:
    """Which says what is wrong."""
    led = visitor.send("/estimate/trials?" + urlencode(RUN | {"hardware.count": "lots"}), {"csrf_token": visitor.form_token()})
    assert (led.status_code, led.headers["Location"].partition("?")[0]) == (303, "/estimate")


def test_who_may_only_read_starts_and_cancels_nothing(doors: House) -> None:
    """And is offered no cancelling."""
    scenario, reader = started(doors), Visitor(doors)
    reader.sign_in("we may read")
    token = {"csrf_token": reader.form_token()}
    assert reader.send("/estimate/trials?" + urlencode(RUN), token).status_code == 403
    assert reader.send(f"/scenarios/{scenario}/cancel", token).status_code == 403
    assert "/cancel" not in text_of(reader.open(f"/scenarios/{scenario}"))


def test_a_scenario_is_its_teams_alone(doors: House, ended: dict[str, str]) -> None:
    """Page, picture, events and cancelling say that there is none; the list has none."""
    other = Visitor(doors)
    other.sign_in("theirs")
    address = f"/scenarios/{ended['monte_carlo']}"
    assert [other.open(address + part).status_code for part in ("", "/cost.svg", "/events", "?format=json")] == [404] * 4
    assert other.send(f"{address}/cancel", {"csrf_token": other.form_token()}).status_code == 404
    assert ended["monte_carlo"] not in text_of(other.open("/scenarios"))


def test_it_says_how_far_it_is_and_can_be_cancelled(doors: House, visitor: Visitor) -> None:
    """Without scripts by looking again."""
    scenario = started(doors)
    page = visitor.open(f"/scenarios/{scenario}")
    assert f'data-events="/scenarios/{scenario}/events"' in text_of(page)
    assert "0 of 1,000,000 trials are done" in words_of(page)
    assert "Look again" in words_of(page)
    assert visitor.send(f"/scenarios/{scenario}/cancel", {"csrf_token": visitor.form_token()}).status_code == 303
    assert "It has been cancelled" in words_of(visitor.open(f"/scenarios/{scenario}"))


def test_its_events_end_with_it(visitor: Visitor, ended: dict[str, str]) -> None:
    """As over the API."""
    stream = visitor.open(f"/scenarios/{ended['monte_carlo']}/events")
    assert (stream.status_code, stream.content_type) == (200, "text/event-stream")
    assert "event: end" in stream.text


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_is_its_sentence_with_pictures_and_figures(visitor: Visitor, doors: House, ended: dict[str, str], kind: str) -> None:
    """The same figures as over the API."""
    address = f"/scenarios/{ended[kind]}"
    page, result = visitor.open(address), doors.ask("ours", "GET", f"/v1{address}").get_json()["result"]
    text = text_of(page)
    assert result["summary"]["text"] in words_of(page)
    charts = re.findall(r'<img src="([^"]+)"', text)
    assert [chart.partition(".svg")[0].rpartition("/")[2] for chart in charts] == CHARTS[kind]
    for chart in charts:
        for theme in ("light", "dark"):
            themed = unescape(chart) + ("&" if "?" in chart else "?") + f"theme={theme}"
            drawn = visitor.open(themed)
            assert (drawn.status_code, drawn.content_type) == (200, "image/svg+xml")
            assert draw_svg(visitor.open(f"{themed}&format=vega").get_json()) == drawn.text
    assert "<table>" in text
    assert "data-events" not in text


def test_a_budget_and_a_deadline_are_read_off(visitor: Visitor, ended: dict[str, str]) -> None:
    """By the address; those of the request say what the result says."""
    address = f"/scenarios/{ended['monte_carlo']}"
    result = visitor.open(f"{address}?format=json").get_json()["result"]
    stated = words_of(visitor.open(f"{address}?budget_usd={result['budget_usd']}&deadline=2027-01-07"))
    assert f"{result['budget_probability']:.0%} to keep to the budget" in stated
    assert f"{result['deadline_probability']:.0%} to meet the deadline" in stated
    half = words_of(visitor.open(f"{address}?budget_usd={result['cost_usd']['p50']}"))
    assert "About 50% to keep to the budget" in half
    assert "Less than 1% to keep to the budget" in words_of(visitor.open(f"{address}?budget_usd=1"))
    assert "At least 99% to keep to the budget" in words_of(visitor.open(f"{address}?budget_usd=1e12"))


def test_a_chart_says_which_field_moves_its_line(visitor: Visitor, ended: dict[str, str]) -> None:
    """Between the ends of the bins, from where the address has it; the share at the line is that of the sentence."""
    address = f"/scenarios/{ended['monte_carlo']}"
    result = visitor.open(f"{address}?format=json").get_json()["result"]
    middle = result["cost_usd"]["p50"]
    cost = visitor.open(f"{address}/cost.svg?format=vega&budget_usd={middle}").get_json()
    moved = cost["usermeta"]
    assert moved["moves"] == "budget_usd"
    assert moved["lowest"] <= result["histograms"]["cost_usd"]["edges"][0] < middle < moved["highest"]
    assert [param["value"] for param in cost["params"]] == [middle]
    assert ">50%</text>" in visitor.open(f"{address}/cost.svg?budget_usd={middle}").text
    finish = visitor.open(f"{address}/finish.svg?format=vega&deadline=2027-01-07").get_json()
    assert (finish["usermeta"]["moves"], finish["usermeta"]["is_day"]) == ("deadline", True)
    assert [param["value"] for param in finish["params"]] == [datetime(2027, 1, 7, tzinfo=UTC).timestamp() * 1000]


def test_a_result_of_before_the_bins_is_drawn_from_its_percentiles(visitor: Visitor, ended: dict[str, str]) -> None:
    """As a curve alone."""
    result = visitor.open(f"/scenarios/{ended['monte_carlo']}?format=json").get_json()["result"]
    earlier = {name: value for name, value in result.items() if name != "histograms"}
    assert len(cost_chart(result, None).to_dict()["vconcat"]) == 2
    for chart in (cost_chart(earlier, None), finish_chart(earlier, None, None)):
        assert len(chart.to_dict()["vconcat"]) == 1
    assert len(cost_points(earlier)) < len(cost_points(result))


def test_what_cannot_be_read_off_is_said_beside_its_field(visitor: Visitor, ended: dict[str, str]) -> None:
    """The rest of the page stays."""
    page = visitor.open(f"/scenarios/{ended['monte_carlo']}?budget_usd=lots&deadline=soon")
    assert page.status_code == 422
    for name, typed in (("budget_usd", "lots"), ("deadline", "soon")):
        assert re.search(rf'id="f-{name}"[^>]*value="{typed}"[^>]*aria-invalid="true"', text_of(page))
    assert "Figures" in words_of(page)


def test_the_list_leads_to_each(visitor: Visitor, ended: dict[str, str]) -> None:
    """The newest first."""
    links = re.findall(r'href="/scenarios/([^"]+)"', text_of(visitor.open("/scenarios")))
    assert set(ended.values()) <= set(links)


@pytest.mark.parametrize(
    ("value", "words"),
    [(5, "less than 10%"), (10, "about 10%"), (15, "about 30%"), (20, "about 50%"), (30, "about 90%"), (31, "at least 90%")],
)
def test_a_chance_is_read_off_a_straight_line(value: float, words: str) -> None:
    """Beyond the ends it is bounded."""
    assert chance_at([(10, 0.1), (20, 0.5), (30, 0.9)], value) == words


HOSTILE = "<script>alert(1)</script>\"'&\u202e"


def test_what_is_typed_is_text(visitor: Visitor, ended: dict[str, str]) -> None:
    """Never markup, wherever it is shown again."""
    typed = urlencode({"budget_usd": HOSTILE, "deadline": HOSTILE, HOSTILE: HOSTILE})
    page = visitor.open(f"/scenarios/{ended['monte_carlo']}?{typed}")
    assert "<script>alert" not in text_of(page)
    assert "unsafe" not in page.headers["Content-Security-Policy"]
