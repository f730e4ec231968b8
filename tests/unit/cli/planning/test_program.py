"""`outlay plan`: the answers of POST /v1/estimate/program, as a table, whole or as a document, and why plans differ."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from flask.testing import FlaskClient

from service.api.resources.programs import CHEAPER, EXAMPLE
from service.config import Settings
from service.schemas.strict_json import dumps
from tests.unit.cli.invoke import output_of, run

EXAMPLES = sorted((Path(__file__).parents[4] / "examples").glob("*.json"))
pytestmark = pytest.mark.usefixtures("at_noon")


def outlay(settings: Settings, *arguments: str) -> Result:
    return run(settings, "plan", *arguments)


def printed(settings: Settings, *arguments: str) -> str:
    return output_of(settings, "plan", *arguments)


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_a_file_answers_what_http_answers(client: FlaskClient, settings: Settings, file: Path) -> None:
    """Every field and digit."""
    answer = client.post("/v1/estimate/program", json=json.loads(file.read_text(encoding="utf-8")))
    assert answer.status_code == 200
    assert dumps(json.loads(printed(settings, str(file), "--json"))) == answer.get_data(as_text=True)


def test_the_table_tells_the_budget_and_why(settings: Settings) -> None:
    """Lines down to the total, tiers with what is decided, the calendar, the deadline and what buys it back, risks."""
    file = str(next(file for file in EXAMPLES if "70b" in file.stem))
    table = printed(settings, file, "--set", "deadline=2027-08-01")
    for said in (
        *("budget", "expected", "exploration", "FLOPs a point", "contingency", "total", "cost to decide", "gate: production"),
        *("is met with probability", "accelerators instead of", "loss spike needs a rollback", "values were assumed"),
    ):
        assert said in table, said
    assert "USD are spent to decide whether to spend" in table
    assert "schedule.common_share" in printed(settings, str(EXAMPLES[0]), "-v")


def test_settings_lie_over_the_file(settings: Settings) -> None:
    """Any field by its path."""
    file = str(EXAMPLES[0])
    cheap = json.loads(printed(settings, file, "--set", "defaults.price.usd_per_accelerator_hour=1.0", "--json"))
    assert cheap["total_usd"]["p50"] < json.loads(printed(settings, file, "--json"))["total_usd"]["p50"]


def test_a_document_goes_to_a_file(settings: Settings, tmp_path: Path) -> None:
    """As HTTP has it."""
    pytest.importorskip("service.formats.documents.render")
    out = tmp_path / "plan.md"
    assert printed(settings, str(EXAMPLES[0]), "--format", "md", "--out", str(out)) == ""
    assert "1B base model" in out.read_text(encoding="utf-8")
    away = outlay(settings, str(EXAMPLES[0]), "--out", str(tmp_path / "nowhere" / "plan.txt"))
    assert away.exit_code == 1
    assert "cannot be written" in away.output


def test_a_difference_is_a_line(settings: Settings, tmp_path: Path) -> None:
    """Or JSON."""
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    before.write_text(json.dumps(EXAMPLE), encoding="utf-8")
    after.write_text(json.dumps(CHEAPER), encoding="utf-8")
    line = printed(settings, str(after), "--before", str(before))
    assert line.startswith("-")
    assert "price" in line
    assert json.loads(printed(settings, str(after), "--before", str(before), "--json"))["headline"] == line.strip()


def test_problems_are_told_with_their_pointers(settings: Settings, tmp_path: Path) -> None:
    """Of the schema and of the program, without a traceback."""
    file = tmp_path / "program.json"
    file.write_text(json.dumps(EXAMPLE | {"deadline": "2026-01-01"}), encoding="utf-8")
    late = outlay(settings, str(file))
    assert late.exit_code == 1
    assert "program.json, deadline: the deadline 2026-01-01 is before the start 2027-01-04" in late.output
    file.write_text(json.dumps(EXAMPLE | {"tiers": []}), encoding="utf-8")
    assert ", tiers: must have 1 to 3 entries" in outlay(settings, str(file)).output
