"""/estimate: the form, its answer, and what of it can be changed and shared."""

from __future__ import annotations

import re
from datetime import date, timedelta
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest
from flask.testing import FlaskClient

from service.formats import headline
from service.formats.time_words import WORDS, in_order, time_finding
from service.web.plain_words import in_plain_text
from tests.contract.web.visitor import text_of, words_of

RUN = {"model": "llama-3-8b", "data.tokens": "1T", "hardware.accelerator": "H100", "hardware.count": "256"}
REQUEST = {"model": {"preset": "llama-3-8b"}, "data": {"tokens": "1T"}, "hardware": {"accelerator": "H100", "count": 256}}


def shown(client: FlaskClient, fields: dict[str, str]) -> Any:
    """The page with the form filled in so."""
    return client.get("/estimate?" + urlencode(fields))


def switches_in(text: str, state: str = "off") -> list[str]:
    """The addresses of a page's levers that are on or off."""
    return [unescape(link) for link in re.findall(rf'id="lever-\d+" class="switch[^"]*" href="(/estimate\?[^"]+)"[^>]*>{state}<', text)]


def test_the_page_says_what_the_api_answers(client: FlaskClient) -> None:
    """Sentence, price with its source, snapshot and engine."""
    answer = client.post("/v1/estimate", json=REQUEST).get_json()
    text = words_of(shown(client, RUN))
    for part in (answer["summary"]["text"], in_plain_text(answer["price"]["source"]), answer["price_snapshot"], answer["engine_version"]):
        assert part in text
    assert client.get("/estimate?" + urlencode(RUN | {"format": "json"})).get_json() == answer


@pytest.mark.parametrize(
    ("fields", "change"),
    [
        ({"model": "70B"}, {"model": {"params": "70B"}}),
        ({"training.precision": "fp8"}, {"training": {"precision": "fp8"}}),
        ({"price.usd_per_accelerator_hour": "2.25"}, {"price": {"usd_per_accelerator_hour": 2.25}}),
        ({"hardware.count": "1,024"}, {"hardware": {"accelerator": "H100", "count": 1024}}),
        ({"training.flash_attention": "false"}, {"training": {"flash_attention": False}}),
        (
            {"schedule.start": "2027-01-04", "schedule.deadline": "2027-06-30"},
            {"schedule": {"start": "2027-01-04", "deadline": "2027-06-30"}},
        ),
        ({"training.seq_len": " ", "price.provider": ""}, {}),
    ],
)
def test_a_field_is_the_requests(client: FlaskClient, fields: dict[str, str], change: dict[str, Any]) -> None:
    """By its dotted name; blank fields are not stated."""
    asked = client.get("/estimate?" + urlencode(RUN | fields | {"format": "json"})).get_json()
    assert asked == client.post("/v1/estimate", json=REQUEST | change).get_json()


def test_what_is_wrong_stands_beside_its_field(client: FlaskClient) -> None:
    """With what would be right; what was typed stays."""
    page = shown(client, RUN | {"hardware.count": "lots", "hardware.accelerator": "H1000"})
    assert page.status_code == 422
    text = text_of(page)
    assert 'value="lots"' in text
    assert re.search(r'id="f-hardware\.count"[^>]*aria-invalid="true" aria-describedby="e-hardware\.count"', text)
    assert re.search(r'<p class="error" id="e-hardware\.count">[^<]+</p>', text)
    unknown = text_of(shown(client, RUN | {"hardware.accelerator": "H1000"}))
    assert re.search(r'<p class="error" id="e-hardware\.accelerator">[^<]*H1000', unknown)
    assert "unknown field" in words_of(shown(client, RUN | {"training.colour": "blue"}))


def test_an_assumption_can_be_stated(client: FlaskClient) -> None:
    """Its field is there, empty, with the assumed value as a hint; stated, it is no assumption any more."""
    assumed = text_of(shown(client, RUN))
    assert '<input form="estimate" name="training.seq_len" placeholder="8192"' in assumed
    stated = text_of(shown(client, RUN | {"failures.restart_minutes": "30"}))
    assert '<input form="estimate" name="failures.restart_minutes" value="30">' in stated
    assert 'name="failures.restart_minutes" placeholder' not in stated


def test_each_assumption_that_is_a_field_takes_its_own_value(client: FlaskClient) -> None:
    """Every field that the page offers is one of the request: stating what was assumed is no error."""
    for name, value in re.findall(r'form="estimate" name="([a-z_.]+)" placeholder="([^"]*)"', text_of(shown(client, RUN))):
        if name == "energy.region":  # where the offer is sold: of some offers no place is known
            continue
        typed = {"yes": "true", "no": "false"}.get(value, unescape(value))
        stated = {**RUN, name: typed} if name != "model.preset" else RUN
        assert shown(client, stated).status_code == 200, (name, value)


def test_other_layouts_say_why_they_were_not_taken(client: FlaskClient) -> None:
    """As the API's alternatives: what they cost in speed and memory, and why."""
    others = client.post("/v1/estimate", json=REQUEST).get_json()["throughput"]["alternatives"]
    assert others
    text = words_of(shown(client, RUN)).partition("Other layouts, and why not")[2]
    for other in others:
        speed = f"{100 * other['slower_by']:.1f}%" if other["fits"] else "does not fit"
        assert f"{speed} {other['memory_gb']:.1f} {other['why']}" in text


def test_the_page_says_where_the_time_goes(client: FlaskClient) -> None:
    """Every part of the API's split with what makes it less; of a stated speed nothing."""
    split = client.post("/v1/estimate", json=REQUEST).get_json()["throughput"]["split"]
    words = words_of(shown(client, RUN))
    for part in in_order(split):
        name, less = WORDS[part["part"]]
        assert re.search(rf"{re.escape(name)} {100 * part['share']:.1f}% [0-9.e-]* ?{re.escape(less)}", words), part
    assert "Less is lost to arithmetic below the peak by larger micro-batches" in words
    drawn = client.get("/estimate/time.svg?" + urlencode(RUN)).get_data(as_text=True)
    assert time_finding(split) in unescape(drawn)
    stated = RUN | {"efficiency.mfu": "0.4"}
    assert "time.svg" not in text_of(shown(client, stated))
    assert client.get("/estimate/time.svg?" + urlencode(stated)).status_code == 404


def test_levers_come_by_themselves_or_with_the_page(client: FlaskClient) -> None:
    """Each leads to the page with its change, and that page says what the lever has promised."""
    part = text_of(client.get("/estimate/levers?" + urlencode(RUN)))
    whole = text_of(shown(client, RUN | {"levers": "true"}))
    links = switches_in(part)
    assert links
    assert [link + "&levers=true" for link in links] == switches_in(whole)
    levers = client.post("/v1/estimate", json=REQUEST | {"levers": True}).get_json()["levers"]
    for link, lever in zip(links, levers, strict=True):
        answer = client.get(link + "&format=json").get_json()
        assert answer["cost"]["total_usd"]["p50"] == pytest.approx(lever["total_usd"], abs=0.01)


def test_levers_say_which_meet_a_deadline_that_is_in_doubt(client: FlaskClient) -> None:
    """The soonest first, later is said as later, and twice the machine is a link."""
    late = {**RUN, "schedule.start": "2027-01-04", "schedule.deadline": "2027-01-09"}
    schedule = {"start": "2027-01-04", "deadline": "2027-01-09"}
    answer = client.post("/v1/estimate", json=REQUEST | {"schedule": schedule, "levers": True}).get_json()
    assert answer["time"]["deadline_probability"] < 0.8
    page = client.get("/estimate/levers?" + urlencode(late))
    ends = [date.fromisoformat(answer["time"]["finish"]["p50"]) - timedelta(days=lever["saves_days"]) for lever in answer["levers"]]
    meeting = sum(end <= date(2027, 1, 9) for end in ends)
    assert f"{meeting} of {len(ends)} single changes meet 9 Jan 2027 at p50" in words_of(page)
    assert re.findall(r'class="muted">(\d+ \w+ \d{4}), ', text_of(page)) == [headline.day(end) for end in sorted(ends)]
    assert words_of(page).count("meets it") == meeting
    assert (" later" in words_of(page)) == any(lever["saves_days"] < -0.05 for lever in answer["levers"])
    doubled = re.search(r'href="(/estimate\?[^"]+)">take 512 accelerators', text_of(page))
    assert doubled is not None
    larger = client.get(unescape(doubled[1]) + "&format=json").get_json()
    assert larger["time"]["deadline_probability"] > answer["time"]["deadline_probability"]


def test_levers_that_take_another_accelerator_say_which(client: FlaskClient) -> None:
    """Also where there is no deadline, of which nothing is said then."""
    page = client.get("/estimate/levers?" + urlencode(RUN))
    levers = client.post("/v1/estimate", json=REQUEST | {"levers": True}).get_json()["levers"]
    others = [lever["change"]["hardware.accelerator"] for lever in levers if "hardware.accelerator" in lever["change"]]
    assert others
    for name in others:
        assert f"take another accelerator: {headline.short_name(name)}" in words_of(page)
    assert "single changes meet" not in words_of(page)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("chart", ["cost", "memory", "time"])
def test_a_chart_is_a_picture_with_an_address(client: FlaskClient, chart: str, theme: str) -> None:
    """With a table behind it on the page."""
    address = f"/estimate/{chart}.svg?" + urlencode(RUN | {"theme": theme})
    drawn = client.get(address)
    assert (drawn.status_code, drawn.content_type) == (200, "image/svg+xml")
    assert drawn.get_data(as_text=True).startswith("<svg")
    assert client.get(address, headers={"If-None-Match": drawn.headers["ETag"]}).status_code == 304


def test_what_nobody_sells_has_a_time_and_no_cost(client: FlaskClient) -> None:
    """The page says what to state, and draws no cost."""
    page = shown(client, RUN | {"hardware.accelerator": "Ascend-910C"})
    assert page.status_code == 200
    assert "cost.svg" not in text_of(page)
    assert "No price is known: state yours." in words_of(page)


HOSTILE = "<script>alert(1)</script>\"'&\u202e" + 200 * "x"


@pytest.mark.parametrize("name", ["model", "hardware.accelerator", "price.provider", "energy.region", "training.colour", HOSTILE])
def test_what_is_typed_is_text(client: FlaskClient, name: str) -> None:
    """Never markup, wherever it is shown again."""
    text = text_of(shown(client, RUN | {name: HOSTILE}))
    assert "<script>alert" not in text
    assert "default-src 'none'" in shown(client, RUN).headers["Content-Security-Policy"]
    assert "unsafe" not in shown(client, RUN).headers["Content-Security-Policy"]


def test_nothing_asked_is_a_form_with_an_example_that_runs(client: FlaskClient) -> None:
    """Examples lead to answers."""
    links = re.findall(r'href="(/estimate\?[^"]+)"', text_of(client.get("/estimate")))
    assert links
    assert [client.get(unescape(link)).status_code for link in links] == len(links) * [200]
