"""`outlay prices`: asking the sources from the terminal, and what is known of them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from service.cli import main
from tests.unit.providers.misbehaving_server import Server, listening

ROUTE = "/api/v1/instance-types"
SHEET = (
    "provider,region,instance_type,accelerator,accelerator_count,pricing,usd_per_hour\n"
    "aws,us-east-1,p5.48xlarge,H100-SXM,8,on_demand,30\n"
    "aws,us-east-1,p5.48xlarge,H100-SXM,8,spot,free\n"
)


@pytest.fixture
def server() -> Iterator[Server]:
    """A cloud."""
    with listening(Server()) as started:
        yield started


@pytest.fixture
def environment(tmp_path: Path, server: Server) -> dict[str, str]:
    """A price sheet with one good row and one bad, and a cloud that is down."""
    server.serving(b"oops", 500)
    (tmp_path / "sheet.csv").write_text(SHEET)
    cloud = {"OUTLAY_PROVIDERS": "file,lambda", "OUTLAY_PROVIDER_URLS": f"lambda=http://{server.host}", "LAMBDA_API_KEY": "key"}
    server.on(lambda handler: handler.answer(b"oops", 500), ROUTE)
    return {"OUTLAY_DATA_DIR": str(tmp_path / "new" / "data"), "OUTLAY_PRICE_FILES": str(tmp_path / "sheet.csv"), **cloud}


def outlay(environment: dict[str, str], *arguments: str) -> Result:
    """The command's result."""
    return CliRunner().invoke(main, ["prices", *arguments], env=environment)


def test_a_refresh_says_what_came_and_what_did_not(environment: dict[str, str]) -> None:
    """On a machine where nothing was ever kept; rows that were not taken are named with the reason."""
    result = outlay(environment, "refresh", "file")
    assert result.exit_code == 0, result.output
    assert "file      new  1       1         0" in result.stdout
    assert "file rejected: " in result.stdout
    assert "free" in result.stdout
    assert "unchanged" in outlay(environment, "refresh", "file").stdout


def test_what_fails_is_said_and_ends_the_command_badly(environment: dict[str, str]) -> None:
    """The others are asked all the same; providers left out by the settings are not."""
    result = outlay(environment, "refresh", "--json")
    assert result.exit_code == 1
    found = {entry["provider"]: entry for entry in json.loads(result.stdout)}
    assert "500" in found["lambda"]["error"]
    assert (found["file"]["offers"], found["file"]["rejected_rows"][0]["row"] != "") == (1, True)
    assert found["aws"]["skipped"] == "off"


def test_an_unknown_provider_is_named(environment: dict[str, str]) -> None:
    """With those that are known."""
    result = outlay(environment, "refresh", "lamda")
    assert result.exit_code == 1
    assert "unknown price provider 'lamda'; known: aws" in result.output


def test_what_is_known_is_shown_as_a_table_as_csv_and_as_json(environment: dict[str, str]) -> None:
    """The same of each provider."""
    outlay(environment, "refresh")
    table = outlay(environment, "show").stdout
    rows = list(csv.DictReader(io.StringIO(outlay(environment, "show", "--csv").stdout)))
    entries = json.loads(outlay(environment, "show", "--json").stdout)
    assert [row["name"] for row in rows] == [entry["name"] for entry in entries]
    shown = {entry["name"]: entry for entry in entries}
    assert (shown["file"]["state"], shown["lambda"]["state"], shown["aws"]["state"]) == ("ok", "failing", "off")
    assert table.splitlines()[0].endswith("missing, last error or warning")
    failing = next(line for line in table.splitlines() if line.startswith("lambda"))
    assert "failing" in failing
    assert "500" in failing


def test_what_the_owner_of_price_files_should_know_is_said(environment: dict[str, str], tmp_path: Path) -> None:
    """A price far from the market is taken; a discount off nothing and a book of a team without keys are told when asked and when shown."""
    row = {"provider": "aws", "region": "us-east-1", "instance_type": "p5.48xlarge", "accelerator": "H100-SXM", "accelerator_count": 8}
    row |= {"pricing": "on_demand", "usd_per_hour": 0.3}
    book = {"prices": [row], "discounts": [{"name": "typo", "percent": 5, "provider": "awss"}]}
    (tmp_path / "book.json").write_text(json.dumps(book))
    (tmp_path / "team.json").write_text(json.dumps({"book": "research", "team": "vision", "prices": [row]}))
    environment |= {"OUTLAY_PRICE_FILES": f"{tmp_path}/book.json,{tmp_path}/team.json"}
    said = outlay(environment, "refresh", "file").stdout
    assert "file      new  1       0         0" in said
    assert "file suspicious: aws us-east-1 p5.48xlarge 8x NVIDIA-H100-80GB-SXM on_demand: 0.0375 USD" in said
    assert "file warning: discount typo matched no offer: provider awss" in said
    assert "file: team vision has 1 of its own" in said
    assert "file warning: no usable API key is of a team called vision: its price book is not used" in said
    shown = {entry["name"]: entry for entry in json.loads(outlay(environment, "show", "--json").stdout)}["file"]
    assert (shown["offers"], shown["suspicious"]["count"], len(shown["warnings"])) == (2, 2, 2)


def test_a_price_file_that_cannot_be_read_is_named_beside_those_that_count(environment: dict[str, str], tmp_path: Path) -> None:
    """With what is wrong, when asked and when shown."""
    (tmp_path / "cut.json").write_text("{")
    environment |= {"OUTLAY_PRICE_FILES": f"{tmp_path}/sheet.csv,{tmp_path}/cut.json"}
    asked = outlay(environment, "refresh", "file").stdout
    assert "file      new  1 " in asked
    assert f"file warning: the price file {tmp_path}/cut.json is no JSON: " in asked
    shown = {entry["name"]: entry for entry in json.loads(outlay(environment, "show", "--json").stdout)}["file"]
    assert (shown["state"], shown["last_error"].partition(" is no ")[0]) == ("ok", f"the price file {tmp_path}/cut.json")


def test_before_anything_was_kept_it_says_how_to_begin(environment: dict[str, str], tmp_path: Path) -> None:
    """And makes nothing."""
    result = outlay(environment, "show")
    assert result.exit_code == 1
    assert "outlay prices refresh" in result.output
    assert not (tmp_path / "new").exists()
