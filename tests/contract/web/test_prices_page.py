"""/prices: what each provider asks, how old it is, how it moved, and which source fails."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from html import unescape
from typing import Any

import pytest
from flask.testing import FlaskClient

from service.config import Settings
from service.formats.documents.price_history import (
    ProviderHistory,
    cheapest_over_time,
    history_finding,
    named_histories,
    provider_histories,
)
from service.usecases.prices.refresh import refresh_prices
from tests.contract.doors import House, house
from tests.contract.web.visitor import Visitor, text_of, words_of


@pytest.fixture
def doors(settings: Settings) -> Iterator[House]:
    """A service with keys and the shipped prices, read once."""
    with house(settings) as made:
        refresh_prices(made.context, {"provider": "snapshot"}, lambda *_: None)
        yield made


def test_each_accelerator_has_the_price_of_each_provider(client: FlaskClient) -> None:
    """By the pricing that is chosen; fresh before old, and the cheapest first."""
    offers = client.get("/v1/offers?pricing=spot&accelerator=NVIDIA-H200-141GB-SXM&limit=1000").get_json()["items"]
    best: dict[str, tuple[bool, float]] = {}
    for offer in offers:
        best[offer["provider"]] = min(best.get(offer["provider"], (True, 1e9)), (offer["stale"], offer["usd_per_accelerator_hour"]))
    (cheapest, (_, usd)), *others = sorted(best.items(), key=lambda entry: entry[1])
    row = re.search(r">H200-141GB</a>(.*?)</tr>", text_of(client.get("/prices?pricing=spot")), re.DOTALL)
    assert row is not None
    assert re.search(rf'data-label="cheapest"[^>]*>{usd:.2f}<', row[1])
    assert re.search(rf'data-label="from"[^>]*>{cheapest}<', row[1])
    assert re.findall(r"<li[^>]*>([^<]+)</li>", row[1]) == [f"{provider} {usd:.2f}" for provider, (_, usd) in others]


def test_no_row_of_prices_is_empty(client: FlaskClient) -> None:
    """Every accelerator has a price in sight, however many providers there are."""
    text = text_of(client.get("/prices"))
    accelerators = {offer["accelerator"] for offer in client.get("/v1/offers?pricing=on_demand&limit=1000").get_json()["items"]}
    prices = re.findall(r'data-label="cheapest"[^>]*>(\d+\.\d\d)<', text)
    assert len(prices) == text.count('data-label="at others"') >= len(accelerators)
    assert accelerators


def test_an_accelerator_leads_to_its_offers(client: FlaskClient) -> None:
    """Each with the day it was read and its source, the cheapest first."""
    link = re.search(r'<a href="(/prices\?[^"]+)">H100-80GB</a>', text_of(client.get("/prices")))
    assert link is not None
    page = client.get(unescape(link[1]))
    prices = [float(found) for found in re.findall(r'data-label="USD per accelerator-hour" class="n">(\d+\.\d\d)<', text_of(page))]
    assert prices
    assert prices == sorted(prices)
    offers = client.get("/v1/offers?accelerator=NVIDIA-H100-80GB-SXM&pricing=on_demand&limit=1000").get_json()["items"]
    cheapest = min(offers, key=lambda offer: float(offer["usd_per_accelerator_hour"]))
    assert prices[0] == round(cheapest["usd_per_accelerator_hour"], 2)
    assert cheapest["source"] in words_of(page)


def test_a_name_that_is_not_known_is_said_on_a_page(client: FlaskClient) -> None:
    """With names that are near."""
    page = client.get("/prices?accelerator=H1000")
    assert page.status_code == 422
    assert "H100" in words_of(page)


def test_every_source_says_how_it_stands(client: FlaskClient) -> None:
    """In words and shape."""
    text = words_of(client.get("/prices"))
    for source in client.get("/v1/providers?limit=100").get_json()["items"]:
        assert source["name"] in text
    assert "Nothing is fetched, as OUTLAY_OFFLINE is set" in text


def test_only_an_administrator_reads_a_source(doors: House) -> None:
    """Others see no button, and are refused."""
    reader, admin = Visitor(doors), Visitor(doors)
    reader.sign_in("we may all but admin")
    admin.sign_in("ours")
    assert "/prices/refresh" not in text_of(reader.open("/prices"))
    refused = reader.send("/prices/refresh", {"csrf_token": reader.form_token(), "name": "snapshot"})
    assert refused.status_code == 403
    assert "/prices/refresh" in text_of(admin.open("/prices"))
    assert admin.send("/prices/refresh", {"csrf_token": admin.form_token(), "name": "aws"}).status_code == 409
    assert admin.send("/prices/refresh", {"csrf_token": admin.form_token(), "name": "nobody"}).status_code == 404


def test_history_is_drawn_where_there_is_any(doors: House, client: FlaskClient) -> None:
    """Of the accelerator and the pricing that are chosen; prices that were never read have none."""
    visitor = Visitor(doors)
    visitor.sign_in("ours")
    assert "history.svg" in text_of(visitor.open("/prices?accelerator=H100"))
    drawn = visitor.open("/prices/history.svg?accelerator=H100")
    assert (drawn.status_code, drawn.content_type) == (200, "image/svg+xml")
    assert client.get("/prices/history.svg?accelerator=H100").status_code == 404
    assert "history.svg" not in text_of(client.get("/prices?accelerator=H100"))


def change(provider: str, of: str, at: object, usd: float | None) -> dict[str, Any]:
    """A row of price history."""
    return {"provider": provider, "of": of, "at": at, "usd": usd}


def test_the_cheapest_price_follows_what_is_sold() -> None:
    """A cheaper offer takes over, its end gives back, what changes nothing draws nothing."""
    changes = [
        change("a", "x", 1, 3.0),
        change("a", "y", 2, 4.0),
        change("b", "x", 2, 5.0),
        change("a", "y", 3, 2.0),
        change("a", "y", 4, None),
        change("a", "x", 5, None),
    ]
    found = [(row["provider"], row["at"], row["usd"]) for row in cheapest_over_time(changes)]
    assert found == [("a", 1, 3.0), ("b", 2, 5.0), ("a", 3, 2.0), ("a", 4, 3.0), ("a", 5, None)]


def history(**usd: tuple[float | None, ...]) -> list[ProviderHistory]:
    """Histories of providers whose price changes from day to day."""
    first = date(2026, 9, 1)
    return provider_histories(
        [
            change(name, "x", f"{first + timedelta(days)}T00:00:00+00:00", price)
            for name, prices in usd.items()
            for days, price in enumerate(prices)
        ]
    )


def test_the_title_says_who_is_cheapest_and_what_moved() -> None:
    """Also where nothing moved, and where nobody sells any more."""
    assert history_finding(history(a=(3.0, 2.0), b=(2.5,))) == "a is cheapest at $2.00; a moved most, -33% since 1 Sep 2026"
    assert history_finding(history(a=(3.0,), b=(2.5,))) == "b is cheapest at $2.50; no price has moved since 1 Sep 2026"
    assert history_finding(history(a=(3.0, None))) == "Nobody sells it any more; no price has moved since 1 Sep 2026"
    assert history_finding([]) == ""


def test_few_lines_have_names() -> None:
    """The cheapest and the one that moved most, in the order of their prices; the others are grey without a legend."""
    from service.formats.documents.price_charts import history_chart

    found = history(**{f"p{place}": (3.0 + place,) for place in range(9)}, dear=(40.0, 20.0), gone=(1.0, None))
    assert [each.provider for each in named_histories(found)] == ["p0", "p1", "p2", "dear"]
    drawn = history_chart(found, "2026-10-01T00:00:00+00:00").to_dict()
    labels = [row["label"] for rows in drawn["datasets"].values() for row in rows if "label" in row]
    assert labels == ["p0 $3.00", "p1 $4.00", "p2 $5.00", "dear $20.00"]
    assert {row["at"] for rows in drawn["datasets"].values() for row in rows if row.get("provider") == "gone"} == {
        "2026-09-01T00:00:00+00:00",
        "2026-09-02T00:00:00+00:00",
    }
    assert "legend" not in drawn["layer"][0]["encoding"]["color"] or drawn["layer"][0]["encoding"]["color"]["legend"] is None
