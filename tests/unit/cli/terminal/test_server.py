"""The same commands against a running service: same output, errors by their flags, keys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from flask.testing import FlaskClient

from service.cli import main
from service.config import Settings
from service.remote.transport import Server
from tests.support.servers import find_free_port
from tests.unit.cli.invoke import run
from tests.unit.served import guarded_service, listening_at

pytestmark = pytest.mark.usefixtures("at_noon")
RUN = ["--model", "llama-2-7b", "--tokens", "2T", "--accelerator", "A100-80GB", "--count", "1024"]
FLEET = ["--accelerator", "H100", "--count", "64", "--years", "1", "--capex", "30000", "--quote", "x=2.1", "--trials", "200", "--seed", "1"]
EXAMPLES = Path(__file__).parents[4] / "examples"


@pytest.fixture
def server(client: FlaskClient) -> Iterator[str]:
    """A running service without keys."""
    with listening_at(client.application) as url:
        yield url


@pytest.fixture
def guarded(settings: Settings) -> Iterator[tuple[str, str]]:
    """A running service that needs a key, and such a key."""
    with guarded_service(settings) as served:
        yield served


def away(tmp_path: Path, *arguments: str, **more: Any) -> Result:
    """`outlay` on a machine without a database, with a configuration directory of its own."""
    environment = {"OUTLAY_DATA_DIR": str(tmp_path / "none"), "OUTLAY_OFFLINE": "1", "XDG_CONFIG_HOME": str(tmp_path / "config")}
    return CliRunner().invoke(main, arguments, env=environment | more.pop("env", {}), **more)


@pytest.mark.parametrize(
    "arguments",
    [
        ["estimate", *RUN],
        ["estimate", *RUN, "--levers", "-v"],
        ["estimate", *RUN, "--json"],
        ["compare", "--model", "llama-2-7b", "--tokens", "1T", "--accelerators", "H100", "--counts", "64"],
        ["optimal", "--flops", "1e21"],
        ["buy-or-rent", *FLEET],
        ["serving", "--model", "llama-2-7b", "--accelerators", "H100", "--prompt", "500", "--output", "100", "--rate", "2"],
        ["plan", str(EXAMPLES / "program-1b-64.json")],
        ["ask", "7B", "on", "1T", "tokens", "on", "64", "h100"],
        ["accelerators"],
        ["models", "--developer", "meta"],
        ["offers", "--accelerator", "H100", "--limit", "5"],
        ["prices", "contracts", "--accelerator", "H100"],
        ["prices", "show"],
    ],
    ids=lambda arguments: " ".join(arguments[:1] + arguments[-1:]),
)
def test_a_server_answers_what_the_command_answers(server: str, settings: Settings, arguments: list[str]) -> None:
    """Character for character."""
    here, there = run(settings, *arguments), run(settings, *arguments, "--server", server)
    assert (here.exit_code, there.exit_code) == (0, 0), there.output
    assert there.stdout == here.stdout


def test_errors_of_a_server_name_flags(server: str, settings: Settings) -> None:
    """As errors of this process do."""
    arguments = ["estimate", *RUN[:-1], "0", "--set", "training.zero_stage=9"]
    here, there = run(settings, *arguments), run(settings, *arguments, "--server", server)
    assert there.stderr == here.stderr
    assert "--count: " in there.stderr
    assert "--set training.zero_stage: " in there.stderr


def test_a_missing_field_names_the_flags_that_state_it(settings: Settings) -> None:
    """Where there is no file."""
    said = run(settings, "estimate", "--model", "llama-2-7b", "--tokens", "1T").stderr
    assert "--accelerator or --count" in said


def test_a_field_of_a_file_is_named_with_the_file(settings: Settings, tmp_path: Path) -> None:
    """Its path as `--set` takes it, to be overridden or corrected."""
    file = tmp_path / "run.json"
    file.write_text(
        json.dumps({"model": {"preset": "llama-2-7b"}, "data": {"tokens": -1}, "hardware": {"accelerator": "H100", "count": 8}})
    )
    assert f"{file}, data.tokens (--tokens): " in run(settings, "estimate", str(file)).stderr
    assert "--tokens: " in run(settings, "estimate", str(file), "--tokens", "-1").stderr


def test_a_setting_that_makes_a_wrong_object_is_named(settings: Settings) -> None:
    """Not the flags that might have stated the object."""
    assert "--set hardware.0.b: " in run(settings, "estimate", "--set", "hardware.0.b=1").stderr


def test_messages_name_the_command_that_lists(settings: Settings) -> None:
    """Not its address over HTTP."""
    assert "`outlay models` lists them" in run(settings, "estimate", *RUN, "--model", "lama-2-7b").stderr


def test_an_empty_standard_input_is_said_to_be_empty(tmp_path: Path) -> None:
    """Whatever was expected there."""
    assert "standard input: it is empty" in away(tmp_path, "track", "start", "-", input="").stderr


def test_a_request_is_read_from_standard_input(settings: Settings, tmp_path: Path) -> None:
    """`-`; its errors are of standard input."""
    request = {"model": {"preset": "llama-2-7b"}, "data": {"tokens": "1T"}, "hardware": {"accelerator": "H100", "count": 8}}
    found = away(tmp_path, "estimate", "-", "--json", input=json.dumps(request))
    assert json.loads(found.stdout)["tokens"]["trained"] == 1e12
    request["data"] = {"tokens": -1}
    assert "standard input, data.tokens (--tokens): " in away(tmp_path, "estimate", "-", input=json.dumps(request)).stderr


def test_places_of_lists_are_set(settings: Settings, tmp_path: Path) -> None:
    """One that is there is changed, the next is made; a place beyond is refused."""
    base = ["compare", "--model", "llama-2-7b", "--tokens", "1T", "--accelerators", "H100", "--counts", "64"]
    owned = [*("--set", "on_prem.0.name=dc1"), *("--set", "on_prem.0.accelerator=H100"), *("--set", "on_prem.0.count=64")]
    capital = ["--set", "on_prem.0.capex_usd_per_accelerator=30000"]
    found = json.loads(run(settings, *base, *owned, *capital, "--set", "on_prem.0.utilisation=1", "--json").stdout)
    assert [cluster["name"] for cluster in found["on_prem"]] == ["dc1"]
    beyond = run(settings, *base, "--set", "on_prem.1.name=x")
    assert beyond.exit_code == 2
    assert "1 in on_prem.1.name is no place of a list of 0" in beyond.stderr
    assert "on_prem.0.utilisation" in run(settings, *base, *owned, *capital, "--set", "on_prem.0.utilisation=7").stderr


class TestKeys:
    """`outlay login`, `outlay logout`, OUTLAY_API_KEY."""

    def test_a_kept_key_opens_the_server(self, guarded: tuple[str, str], tmp_path: Path) -> None:
        """Until it is forgotten."""
        url, token = guarded
        refused = away(tmp_path, "models", "--server", url)
        assert refused.exit_code == 1
        assert f"`outlay login --server {url}`" in refused.stderr
        kept = away(tmp_path, "login", "--server", url, input=f"{token}\n")
        assert kept.exit_code == 0, kept.output
        assert token not in kept.output
        assert (tmp_path / "config" / "outlay" / "credentials.json").stat().st_mode & 0o777 == 0o600
        assert away(tmp_path, "models", "--server", url).exit_code == 0
        assert away(tmp_path, "logout", "--server", url).exit_code == 0
        assert away(tmp_path, "models", "--server", url).exit_code == 1

    def test_the_environment_states_server_and_key(self, guarded: tuple[str, str], tmp_path: Path) -> None:
        """As in a pipeline; an empty --server answers here."""
        url, token = guarded
        assert away(tmp_path, "results", "list", env={"OUTLAY_SERVER": url, "OUTLAY_API_KEY": token}).exit_code == 0
        assert "nothing is kept here yet" in away(tmp_path, "results", "list", "--server", "", env={"OUTLAY_SERVER": url}).stderr

    def test_a_wrong_key_is_not_kept(self, guarded: tuple[str, str], tmp_path: Path) -> None:
        """The server is asked first."""
        assert away(tmp_path, "login", "--server", guarded[0], input="outlay_wrong\n").exit_code == 1
        assert not (tmp_path / "config" / "outlay").exists()

    def test_results_are_kept_listed_shown_and_deleted_there(self, guarded: tuple[str, str], tmp_path: Path) -> None:
        """Nothing is written here."""
        url, token = guarded
        environment = {"OUTLAY_SERVER": url, "OUTLAY_API_KEY": token}
        kept = away(
            tmp_path, "results", "keep", "program", str(EXAMPLES / "program-1b-64.json"), "--title", "mine", "--json", env=environment
        )
        result_id = json.loads(kept.stdout)["id"]
        assert "mine" in away(tmp_path, "results", "list", env=environment).stdout
        assert "1B base model" in away(tmp_path, "results", "show", result_id, env=environment).stdout
        assert away(tmp_path, "results", "show", result_id, "--record", env=environment).stdout.count(".") == 2
        assert away(tmp_path, "results", "delete", result_id, env=environment).exit_code == 0
        assert away(tmp_path, "results", "show", result_id, env=environment).exit_code == 1
        assert not (tmp_path / "none").exists()


def test_a_server_that_is_away_or_no_address_is_named(tmp_path: Path) -> None:
    """In one line."""
    said = away(tmp_path, "models", "--server", f"http://127.0.0.1:{find_free_port()}")
    assert said.exit_code == 1
    assert "cannot be reached" in said.stderr
    said = away(tmp_path, "models", "--server", "outlay")
    assert said.exit_code == 2
    assert "--server" in said.stderr


def test_programs_of_a_server_are_listed_shown_and_reported(guarded: tuple[str, str], tmp_path: Path) -> None:
    """As those of this machine."""
    url, token = guarded
    environment = {"OUTLAY_SERVER": url, "OUTLAY_API_KEY": token}
    program = {"name": "support", "budget_usd": 1e6, "planned_tokens": 1e12, "start": "2027-01-04", "deadline": "2027-06-30"}
    program_id = Server(url, token).post("/v1/track/programs", program)["id"]
    assert "support" in away(tmp_path, "track", "programs", env=environment).stdout
    assert "support, 20" in away(tmp_path, "track", "show", program_id, env=environment).stdout
    assert "support" in away(tmp_path, "track", "report", program_id, env=environment).stdout
    assert away(tmp_path, "track", "show", "none", env=environment).exit_code == 1
    assert not (tmp_path / "none").exists()


def test_a_scenario_of_a_server_is_begun_there_and_cancelled(guarded: tuple[str, str], tmp_path: Path) -> None:
    """Its worker evaluates it; this process only waits, here for the end that was asked for."""
    url, token = guarded
    environment = {"OUTLAY_SERVER": url, "OUTLAY_API_KEY": token}
    base = {"model": {"preset": "llama-2-7b"}, "data": {"tokens": "1T"}, "hardware": {"accelerator": "H100", "count": 64}}
    scenario_id = Server(url, token).post("/v1/scenarios", {"kind": "monte_carlo", "base": base, "trials": 1e9})["id"]
    assert away(tmp_path, "scenario", "cancel", scenario_id, env=environment).stdout == f"scenario {scenario_id} is cancelled\n"
    watched = away(tmp_path, "scenario", "watch", scenario_id, env=environment)
    assert (watched.exit_code, "is cancelled" in watched.stderr) == (1, True), watched.output
    refused = away(tmp_path, "scenario", "run", "-", input='{"kind": "tea"}', env=environment)
    assert "standard input, kind: " in refused.stderr
