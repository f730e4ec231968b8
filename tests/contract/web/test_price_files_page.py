"""The team's own prices on /prices: how long they count, where they are from, and the end of their use."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from service.config import load_settings
from service.usecases.prices.refresh import refresh_prices
from service.web.pages.prices import MOST_CHANGES
from tests.contract.doors import House, house
from tests.contract.web.visitor import Visitor, text_of, words_of

UNTIL = "valid until 11/30/2026"
SHEET = (Path(__file__).parents[3] / "examples" / "vendor-quote.csv").read_text().replace(UNTIL, "valid until 11/30/2099")


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A service with two teams, keys of every kind, and the shipped prices."""
    with house(load_settings({"OUTLAY_DATA_DIR": str(tmp_path_factory.mktemp("files") / "data"), "OUTLAY_OFFLINE": "1"})) as made:
        refresh_prices(made.context, {"provider": "snapshot"}, lambda *_: None)
        yield made


def member(doors: House, key: str) -> Visitor:
    """Somebody with that key."""
    made = Visitor(doors)
    made.sign_in(key)
    return made


def keep(doors: House, name: str, sheet: str = SHEET, file_name: str = "nimbus.csv") -> None:
    """Keep the offers of a sheet as our team's own."""
    body: dict[str, Any] = {"content_base64": base64.b64encode(sheet.encode()).decode(), "name": name, "file_name": file_name}
    body["sha256"] = doors.ask("ours", "POST", "/v1/price-files", json=body).get_json()["sha256"]
    assert doors.ask("ours", "POST", "/v1/price-files", json=body | {"confirm": True}).status_code == 201


@pytest.mark.parametrize(("days", "words"), [(9, "9 days"), (60, "60 days"), (0, "until today"), (None, "without end")])
def test_each_price_file_says_how_long_it_counts(doors: House, days: int | None, words: str) -> None:
    """When it was kept, from which file, and how many offers it has."""
    end = None if days is None else doors.context.clock().date() + timedelta(days=days)
    keep(doors, f"ends-{days}", SHEET.replace("; valid until 11/30/2099", f"; valid until {end}" if end else ""))
    row = re.search(rf'<a href="/prices/files/ends-{days}">.*?</tr>', text_of(member(doors, "ours").open("/prices")), re.DOTALL)
    assert row is not None
    assert words in row[0]
    assert 'data-label="offers" class="n">4<' in row[0]
    assert "nimbus.csv" in row[0]


def test_a_price_file_shows_its_offers_and_versions(doors: House) -> None:
    """Names of its cells are text."""
    keep(doors, "shown", SHEET.replace("us-east", "<b>us-east"))
    keep(doors, "shown")
    page = member(doors, "ours").open("/prices/files/shown")
    assert "4 offers of your team alone" in words_of(page)
    assert "2, current: 4 offers" in words_of(page)
    assert "1, superseded" in words_of(page)
    assert "<b>" not in text_of(page)


def test_prices_are_of_the_team_alone(doors: House) -> None:
    """Another team neither sees nor ends them; one's own are ended on the page, with the scope write."""
    keep(doors, "ours-alone")
    us, them, reader = member(doors, "ours"), member(doors, "theirs"), member(doors, "we may read")
    assert "ours-alone" not in words_of(them.open("/prices"))
    assert them.open("/prices/files/ours-alone").status_code == 404
    assert them.send("/prices/files/ours-alone/delete", {"csrf_token": them.form_token("/prices")}).status_code == 404
    assert reader.send("/prices/files/ours-alone/delete", {"csrf_token": reader.form_token("/prices")}).status_code == 403
    assert 'action="/prices/files' not in text_of(reader.open("/prices"))
    led = us.send("/prices/files/ours-alone/delete", {"csrf_token": us.form_token("/prices")})
    assert (led.status_code, led.headers["Location"]) == (303, "/prices#own")
    assert us.open("/prices/files/ours-alone").status_code == 404


def test_a_sheet_chosen_here_is_read(doors: House) -> None:
    """By the page that reads and corrects vendors' sheets."""
    us = member(doors, "ours")
    form = re.search(r'<form class="row" action="([^"]+)" method="post" enctype="([^"]+)">', text_of(us.open("/prices")))
    assert form is not None
    fields: Any = {"csrf_token": us.form_token("/prices"), "file": (BytesIO(SHEET.encode()), "nimbus.csv")}
    page = us.send(form[1], fields, content_type=form[2])
    assert (page.status_code, "Nimbus" in words_of(page)) == (200, True)


def test_home_and_prices_count_the_same_sources(doors: House) -> None:
    """Of those that prices are expected of."""
    us = member(doors, "ours")
    counted = [re.search(r"(\d+) of (\d+) sources (?:is|are) fresh", words_of(us.open(path))) for path in ("/", "/prices")]
    assert counted[0] is not None
    assert counted[1] is not None
    assert counted[0].groups() == counted[1].groups()
    states = [entry["state"] for entry in doors.ask("ours", "GET", "/v1/providers").get_json()["items"]]
    assert int(counted[0][2]) == sum(state not in ("not_configured", "off") for state in states) < len(states)


def test_the_history_is_read_once_and_in_parts(doors: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """For its title and its table, with a limit; without an accelerator not at all."""
    asked: list[int] = []
    store = doors.context.store
    monkeypatch.setattr(type(store), "price_changes", lambda _self, _filter, limit, _after: asked.append(limit) or ())
    assert member(doors, "ours").open("/prices?accelerator=H100").status_code == 200
    assert asked == [MOST_CHANGES]
    assert member(doors, "ours").open("/prices").status_code == 200
    assert asked == [MOST_CHANGES]
