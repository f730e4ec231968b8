"""`outlay buy-or-rent`: the answers of POST /v1/buy-or-rent, as a table or whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from service.api.resources.procurement import FLEET as EXAMPLE
from service.config import Settings
from service.schemas.strict_json import dumps
from tests.unit.cli.invoke import output_of, run

FLAGS = [
    *("--accelerator", "H100", "--count", "256", "--years", "3", "--start", "2027-01-01", "--utilisation", "0.7"),
    *("--capex", "32000", "--residual-share", "0.25", "--kw", "1.3", "--pue", "1.3", "--usd-per-kwh", "0.09", "--opex-share", "0.06"),
    *("--quote", "lambda 3y=1.89", "--quote", "spare=2.40:on_demand", "--providers", "none", "--cost-of-capital", "0.09"),
    *("--list-price-change", "-0.05", "--trials", "500", "--seed", "7"),
]
pytestmark = pytest.mark.usefixtures("at_noon")


def served(client: FlaskClient, request: dict[str, Any]) -> str:
    answer = client.post("/v1/buy-or-rent", json=request)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return answer.get_data(as_text=True)


def test_a_file_answers_what_http_answers(client: FlaskClient, settings: Settings, tmp_path: Path) -> None:
    """Every field and digit; flags lie over it."""
    file = tmp_path / "fleet.json"
    file.write_text(json.dumps(EXAMPLE), encoding="utf-8")
    assert dumps(json.loads(output_of(settings, "buy-or-rent", str(file), "--json"))) == served(client, EXAMPLE)
    found = output_of(settings, "buy-or-rent", str(file), "--seed", "8", "--json")
    assert dumps(json.loads(found)) == served(client, EXAMPLE | {"seed": 8})


def test_flags_answer_what_http_answers(client: FlaskClient, settings: Settings) -> None:
    """The natural question: what we would pay, what we are quoted."""
    own = {key: EXAMPLE["own"][0][key] for key in ("capex_usd_per_accelerator", "residual_share", "kw_per_accelerator", "pue")}
    own |= {"name": "own", "usd_per_kwh": 0.09, "opex_share_per_year": 0.06}
    quotes = [
        {"name": "lambda 3y", "pricing": "reserved_3y", "usd_per_accelerator_hour": 1.89},
        {"name": "spare", "pricing": "on_demand", "usd_per_accelerator_hour": 2.4},
    ]
    request = {
        "demand": {key: EXAMPLE["demand"][key] for key in ("accelerator", "count", "years", "start", "utilisation")},
        "own": [own],
        "rent": {"providers": [], "quotes": quotes},
        "cost_of_capital": 0.09,
        "list_price_change_per_year": -0.05,
        "trials": 500,
        "seed": 7,
    }
    assert dumps(json.loads(output_of(settings, "buy-or-rent", *FLAGS, "--json"))) == served(client, request)


def test_the_table_has_the_verdict_first(settings: Settings) -> None:
    """Then the options, the mix, what turns it, and the warnings."""
    lines = output_of(settings, "buy-or-rent", *FLAGS).splitlines()
    assert "over three years" in lines[0]
    assert any("lambda 3y with peaks on demand" in line for line in lines)
    assert any(line.startswith("mix: ") for line in lines)
    assert "capex_usd_per_accelerator from 32,000 to " in next(line for line in lines if line.startswith("turned by "))


@pytest.mark.parametrize("wanted", ["xlsx", "html", "pdf", "md"])
def test_the_evidence_pack_is_that_of_http(client: FlaskClient, settings: Settings, tmp_path: Path, wanted: str) -> None:
    """The same bytes, in a file."""
    request, out = tmp_path / "fleet.json", tmp_path / f"pack.{wanted}"
    request.write_text(json.dumps(EXAMPLE | {"trials": 200}), encoding="utf-8")
    output_of(settings, "buy-or-rent", str(request), "--format", wanted, "-o", str(out))
    assert out.read_bytes() == client.post(f"/v1/buy-or-rent?format={wanted}", json=EXAMPLE | {"trials": 200}).data


def test_a_quote_that_is_not_one_is_named(settings: Settings) -> None:
    """With what it should be."""
    found = run(settings, "buy-or-rent", *FLAGS, "--quote", "1.89")
    assert found.exit_code == 2
    assert "NAME=USD[:PRICING]" in found.output
