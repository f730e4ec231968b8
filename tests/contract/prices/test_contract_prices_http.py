"""Published contract prices over HTTP and on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from service import create_app
from service.config import Settings, load_settings
from tests.unit.cli.invoke import output_of, run

H100 = "NVIDIA-H100-80GB-SXM"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings({"OUTLAY_DATA_DIR": str(tmp_path), "OUTLAY_OFFLINE": "1"})


@pytest.fixture
def client(settings: Settings) -> FlaskClient:
    """The service's client."""
    return create_app(settings).test_client()


def test_bands_say_what_they_are_and_where_they_come_from(client: FlaskClient) -> None:
    """Marked as bands, each price dated and sourced; none is among the offers."""
    items = client.get("/v1/contract-prices?accelerator=H100-80GB-SXM&term=1y").get_json()["items"]
    assert [(item["accelerator"], item["term"], item["seller"]) for item in items] == [
        (H100, "1y", "hyperscaler"),
        (H100, "1y", "specialist"),
    ]
    assert {item["record"] for item in items} == {"band"}
    assert items[1]["low_usd_per_accelerator_hour"] == 1.7
    assert all(price["source"] and price["observed_at"] for item in items for price in item["published"])
    offers = client.get(f"/v1/offers?accelerator={H100}&pricing=reserved_1y").get_json()["items"]
    assert not [offer for offer in offers if "survey" in offer["provider"]]


def test_pages_hold_every_band_once(client: FlaskClient) -> None:
    """By cursor, in one order."""
    whole = client.get("/v1/contract-prices?limit=1000").get_json()["items"]
    found, cursor = [], ""
    while cursor is not None:
        page = client.get(f"/v1/contract-prices?limit=7{cursor and f'&cursor={cursor}'}").get_json()
        found, cursor = found + page["items"], page["next_cursor"]
    assert found == whole


@pytest.mark.parametrize(("query", "status"), [("accelerator=H1000", 422), ("term=2y", 422), ("seller=aws", 422)])
def test_what_is_not_known_is_refused_with_its_pointer(client: FlaskClient, query: str, status: int) -> None:
    """An accelerator, a term, a filter."""
    answer = client.get(f"/v1/contract-prices?{query}")
    assert answer.status_code == status
    assert query.partition("=")[0] in json.dumps(answer.get_json())


def test_the_command_line_shows_the_same(client: FlaskClient, settings: Settings) -> None:
    """As JSON, and as a table that says that they are no offers."""
    served = client.get("/v1/contract-prices?accelerator=H200").get_json()["items"]
    assert json.loads(output_of(settings, "prices", "contracts", "--accelerator", "H200", "--json")) == served
    table = output_of(settings, "prices", "contracts", "--accelerator", "H200")
    assert "no offers" in table.splitlines()[-1]
    assert run(settings, "prices", "contracts", "--accelerator", "H1000").exit_code == 1
