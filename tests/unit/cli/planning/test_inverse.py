"""`outlay inverse`: the answer of POST /v1/estimate/inverse from flags, whole or as a table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from service.api.resources.inverse import EXAMPLE
from service.config import Settings
from service.schemas.strict_json import dumps
from tests.unit.cli.invoke import output_of

pytestmark = pytest.mark.usefixtures("at_noon")
FLAGS = (
    *("--find", "repeats", "--usd", "50000", "--days", "14", "--params", "1B", "--tokens", "20B"),
    *("--accelerator", "H100", "--count", "32", "--set", "accelerators=256", "--set", "price.usd_per_accelerator_hour=2.5"),
)


def test_flags_and_a_file_answer_what_http_answers(client: FlaskClient, settings: Settings, tmp_path: Path) -> None:
    """Every field and digit; the table names what binds."""
    file = tmp_path / "inverse.json"
    file.write_text(json.dumps(EXAMPLE), encoding="utf-8")
    answer = client.post("/v1/estimate/inverse", json=EXAMPLE)
    assert answer.status_code == 200, answer.text
    assert dumps(json.loads(output_of(settings, "inverse", str(file), "--json"))) == answer.get_data(as_text=True)
    assert json.loads(output_of(settings, "inverse", *FLAGS, "--json")) == answer.get_json()
    table = output_of(settings, "inverse", *FLAGS)
    assert "bound by" in table
    assert f"{answer.get_json()['value']:,} runs" in table
