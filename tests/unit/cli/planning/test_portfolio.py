"""`outlay portfolio`: the answer of POST /v1/portfolio, whole or as a table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from service.api.resources.portfolio import EXAMPLE
from service.config import Settings
from service.schemas.strict_json import dumps
from tests.unit.cli.invoke import output_of

pytestmark = pytest.mark.usefixtures("at_noon")


def test_a_file_answers_what_http_answers(client: FlaskClient, settings: Settings, tmp_path: Path) -> None:
    """Every field and digit; the table names who waits, what to delay and what to rent."""
    file = tmp_path / "portfolio.json"
    file.write_text(json.dumps(EXAMPLE), encoding="utf-8")
    answer = client.post("/v1/portfolio", json=EXAMPLE)
    assert dumps(json.loads(output_of(settings, "portfolio", str(file), "--json"))) == answer.get_data(as_text=True)
    table = output_of(settings, "portfolio", str(file))
    for said in ("assistant", "translator", "days later", "in use", "waits", "delay: ", "rent: ", "values were assumed"):
        assert said in table, said
