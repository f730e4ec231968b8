"""`outlay optimal`: the answers of POST /v1/optimal, readable, whole, and drawn."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from click.testing import Result
from flask.testing import FlaskClient

from service.api.resources.scaling import OPTIMUM as EXAMPLE
from service.config import Settings
from tests.unit.cli.invoke import output_of, run

FLAGS = [
    *("--usd", "1e6", "--law", "besiroglu", "--accelerator", "H100", "--count", "256", "--usd-per-hour", "2.5"),
    *("--inference-tokens", "10T", "--plan-params", "7B", "--plan-tokens", "2T"),
]
pytestmark = pytest.mark.usefixtures("at_noon")


def outlay(settings: Settings, *arguments: str) -> Result:
    return run(settings, "optimal", *arguments)


def printed(settings: Settings, *arguments: str) -> str:
    return output_of(settings, "optimal", *arguments)


def test_flags_are_the_request_that_http_takes(settings: Settings, client: FlaskClient) -> None:
    """The same answer through both doors."""
    assert json.loads(printed(settings, *FLAGS, "--json")) == client.post("/v1/optimal", json=EXAMPLE).get_json()


def test_a_file_with_settings_over_it_is_read(settings: Settings, client: FlaskClient, tmp_path: Path) -> None:
    """JSON or YAML; --set reaches any field."""
    file = tmp_path / "request.yaml"
    file.write_text("budget: {flops: 1e22}\nlaw: hoffmann-3\n", encoding="utf-8")
    found = json.loads(printed(settings, str(file), "--set", "max_unique_tokens=10B", "--json"))
    asked = {"budget": {"flops": 1e22}, "law": "hoffmann-3", "max_unique_tokens": "10B"}
    assert found == client.post("/v1/optimal", json=asked).get_json()


def test_the_table_tells_the_optimum_and_what_stands_beside(settings: Settings) -> None:
    """Size, dollars, layout, lifetime, deviations, the caller's plan, other laws, warnings, assumptions."""
    text = printed(settings, *FLAGS)
    for word in ("parameters", "USD by the law", "layers", "saves", "1% more", "your plan", "hoffmann-1", "warning:", "assumed"):
        assert word in text
    assert "values were assumed" in printed(settings, *FLAGS)


def test_a_stated_model_has_its_tokens_and_the_optimum_beside(settings: Settings, client: FlaskClient, tmp_path: Path) -> None:
    """By preset or by parameters; the same answer as over HTTP."""
    machine = ("--usd", "1e6", "--accelerator", "H100", "--count", "256", "--usd-per-hour", "2.5")
    text = printed(settings, "--model", "mixtral-8x7b", *machine)
    for word in ("the model       46.7B, 12.9B active", "of this size", "of the budget", "USD by the estimate", "for the optimum's FLOPs"):
        assert word in text
    assert "smaller models" not in text
    request = {**{name: EXAMPLE[name] for name in ("budget", "hardware", "price")}, "model": {"params": "7B"}}
    found = printed(settings, "--params", "7B", *machine, "--json", "--plot", str(tmp_path / "curves.svg"))
    assert json.loads(found) == client.post("/v1/optimal", json=request).get_json()
    assert "The stated model" in (tmp_path / "curves.svg").read_text(encoding="utf-8")


def test_flops_alone_need_no_machine(settings: Settings) -> None:
    """And name no dollars."""
    text = printed(settings, "--flops", "1e23")
    assert "nats a token" in text
    assert "USD" not in text
    assert "saves" in printed(settings, "--flops", "1e23", "--inference-tokens", "1T")
    assert "nats a token" not in printed(settings, "--flops", "1e23", "--law", "llama-3")


@pytest.mark.parametrize(("flags", "drawn"), [(FLAGS, "USD"), (["--flops", "1e23", "--inference-tokens", "1T"], "FLOPs")])
def test_the_curves_are_drawn(settings: Settings, tmp_path: Path, flags: list[str], drawn: str) -> None:
    """Equal cost, and what sizes of equal loss cost to train, to serve and together."""
    file = tmp_path / "curves.svg"
    printed(settings, *flags, "--plot", str(file))
    root = ET.fromstring(file.read_text(encoding="utf-8"))
    words = [part for element in root.iter() for part in [element.text] if part and part.strip()]
    assert {"Sizes of equal cost", "Sizes of equal loss", "training", "serving", "together", drawn} <= set(words)


def test_what_cannot_be_drawn_is_told(settings: Settings, tmp_path: Path) -> None:
    """A law without losses has no curves; a folder that is not there holds no file."""
    without = outlay(settings, "--flops", "1e23", "--law", "llama-3", "--plot", str(tmp_path / "a.svg"))
    nowhere = outlay(settings, "--flops", "1e23", "--plot", str(tmp_path / "none" / "a.svg"))
    assert (without.exit_code, nowhere.exit_code) == (1, 1)
    assert "no curves to draw" in without.output
    assert "is not drawn" in nowhere.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "--flops or --usd or --accelerator-hours: this field is required"),
        (["--usd", "1e6"], "--accelerator or --count: a budget in usd needs a machine"),
        (["--flops", "1e23", "--days", "3"], "--accelerator or --count: a budget in days needs a machine"),
        (["--flops", "1e23", "--law", "nope"], "--law: no scaling law is called 'nope'"),
        (["--flops", "many"], "--flops: must be a number"),
    ],
)
def test_mistakes_are_told_with_their_place(settings: Settings, arguments: list[str], told: str) -> None:
    """As over HTTP, a line each."""
    result = outlay(settings, *arguments)
    assert result.exit_code == 1
    assert told in result.output


def test_charts_are_imported_only_where_one_is_asked_for(settings: Settings) -> None:
    """They take a second."""
    code = (
        "import sys; from click.testing import CliRunner; from service.cli import main;"
        "assert CliRunner().invoke(main, ['optimal', '--flops', '1e23']).exit_code == 0; print('altair' in sys.modules)"
    )
    environment = {"OUTLAY_DATA_DIR": str(settings.data_dir), "OUTLAY_OFFLINE": "1"}
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.strip().endswith("False")
