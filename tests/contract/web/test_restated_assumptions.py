"""What a page shows as assumed can be stated back: every field takes its own value, and the answer stays what it was."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contract.web.visitor import text_of

OWNED = "own.0.name=dc1&own.0.capex_usd_per_accelerator=32000&rent.quotes.0.pricing=reserved_3y&rent.quotes.0.usd_per_accelerator_hour=1.89"
QUESTIONS = (
    ("/estimate", "model=llama-3-70b&data.tokens=15T&hardware.accelerator=H100&hardware.count=2048"),
    (
        "/estimate",
        "model=1B&data.tokens=20B&hardware.accelerator=H100&hardware.count=8&price.usd_per_accelerator_hour=2&training.method=lora",
    ),
    ("/estimate", "model=mixtral-8x7b&data.tokens=1T&hardware.accelerator=A100-80GB&hardware.count=64&price.pricing=spot"),
    ("/estimate", "model=8B&data.tokens=100B&hardware.accelerator=MI300X&hardware.count=64&price.provider=crusoe"),
    ("/buy-or-rent", f"demand.accelerator=H100&demand.count=256&demand.years=3&{OWNED}&trials=100"),
    ("/buy-or-rent", "demand.accelerator=H200&demand.count=64&demand.years=2&rent.pricing=on_demand&trials=100"),
    ("/compare", "model=7B&workload.data.tokens=100B&candidates.accelerators=H100&candidates.counts=64&limit=3"),
)
COUPLED = {
    "failures.checkpoint_write_minutes": "a stated write is one that training waits for, unless its share is stated too",
    "own.0.kw_per_accelerator": "stated power is what is drawn, unless load_factor is stated too",
    "model.attention_heads": "a width is chosen that stated heads divide",
}
"""Assumptions whose statement changes what else is assumed, and why."""
FIELD = re.compile(r'form="[a-z-]+" name="([a-z0-9_.]+)" placeholder="([^"]*)"')


@pytest.fixture(scope="module", params=QUESTIONS, ids=lambda question: f"{question[0][1:]} {question[1][:40]}")
def asked(request: pytest.FixtureRequest, client: FlaskClient) -> tuple[str, dict[str, str], dict[str, str]]:
    """A question's page and fields, and its assumptions as the page's fields show them."""
    address, query = request.param
    page = client.get(f"{address}?{query}")
    assert page.status_code == 200
    return address, dict(parse_qsl(query)), {name: unescape(value) for name, value in FIELD.findall(text_of(page))}


def answer(client: FlaskClient, address: str, fields: dict[str, str]) -> Any:
    """The answer as JSON; the page with what is wrong is none."""
    found = client.get(f"{address}?{urlencode(fields | {'format': 'json'})}")
    assert found.content_type.startswith("application/json"), re.findall(r'id="e-[^>]*>([^<]*)', found.get_data(as_text=True))
    return found.get_json()


def figures(body: Any) -> list[float]:
    """The middle of cost and time of an answer, and the middles of its options' costs."""
    options = [option["npv_usd"] for option in body.get("options", ()) if "npv_usd" in option]
    parts = [body["cost"]["total_usd"], body["time"]["wall_clock_hours"]] if "cost" in body else options
    return [part["p50"] for part in parts]


@given(data=st.data())
@settings(max_examples=max(3, settings.default.max_examples // 5), suppress_health_check=list(HealthCheck))  # type: ignore[union-attr]
def test_an_assumption_can_be_stated_as_it_is_shown(client: FlaskClient, asked: Any, data: st.DataObject) -> None:
    """Each alone or several at a time; the figures stay within what the shown digits leave open."""
    address, fields, shown = asked
    if not shown:
        return
    names = data.draw(st.sets(st.sampled_from(sorted(shown)), min_size=1, max_size=4))
    found = answer(client, address, fields | {name: shown[name] for name in names})
    if not names & set(COUPLED):
        assert figures(found) == pytest.approx(figures(answer(client, address, fields)), rel=2e-3)


def test_all_assumptions_can_be_stated_at_once(client: FlaskClient, asked: Any) -> None:
    """Those that are coupled included: together they are what was assumed."""
    address, fields, shown = asked
    found = answer(client, address, fields | shown)
    apart = {"model.attention_heads"} & set(shown)
    if not apart:
        assert figures(found) == pytest.approx(figures(answer(client, address, fields)), rel=5e-3)
