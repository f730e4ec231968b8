"""Every command beside a server: it asks that server and nothing of this machine, or says at once why it cannot and what to do."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from service.cli import COMMANDS, main
from tests.support.servers import find_free_port

ROOT = Path(__file__).parents[4]
RUN = "--model llama-2-7b --tokens 1T --accelerator H100 --count 64"
FILE, PROGRAM = "examples/runs/llama-7b-256.json", "examples/program-1b-64.json"
NO_SERVICE = {"serve", "openapi", "completion", "secrets new-key"}
"""Commands that ask no service: they start one, describe one, or write a script."""
ASKING = {
    "accelerators": "",
    "ask": "7B on 1T tokens on 64 h100",
    "audit": "",
    "buy-or-rent": "--accelerator H100 --count 64 --years 1 --quote x=2.1",
    "check": f"{FILE} --max-usd 1",
    "compare": "--model llama-2-7b --tokens 1T --accelerators H100 --counts 64",
    "diff": "kept-1 kept-2",
    "doctor": "",
    "estimate": RUN,
    "fit": "{points}",
    "inverse": "examples/questions/inverse.json",
    "login": "",
    "loss-curve": "{points}",
    "models": "",
    "offers": "",
    "optimal": "--flops 1e21",
    "plan": PROGRAM,
    "portfolio": "examples/questions/portfolio.json",
    "prices contracts": "",
    "prices files": "",
    "prices forget": "quote",
    "prices import": "{sheet}",
    "prices refresh": "aws",
    "prices show": "",
    "reprice": f"{FILE} --since snapshot-1",
    "results delete": "kept-1",
    "results keep": f"estimate {FILE}",
    "results list": "",
    "results show": "kept-1",
    "scenario cancel": "s-1",
    "scenario run": FILE,
    "scenario watch": "s-1",
    "serving": "--model llama-2-7b --prompt 500 --output 100 --rate 2",
    "track import": "sacct {sheet}",
    "track import-job": "i-1",
    "track pivot": "p-1 --at validation",
    "track programs": "",
    "track report": "p-1",
    "track show": "p-1",
    "track start": PROGRAM,
    "usage": "",
    "verify": "{sheet}",
}
"""Arguments of the commands that ask a server where one is stated."""
NO_REQUEST = {"logout", "mcp", "track pull"}
"""Commands that know the server without a request: it forgets its key, serves what will be asked, or first reads MLflow."""
REFUSING = {
    "archive",
    "backup",
    "calibrate",
    "keys create",
    "keys list",
    "keys revoke",
    "keys rotate",
    "keys rotate-signing",
    "migrate",
    "prices prune",
    "restore",
    "secrets drop",
    "secrets rotate",
    "slack list",
    "slack map",
    "slack unmap",
    "track rebuild",
    "unarchive",
}


def leaves(group: click.Group = main, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Every command by its words."""
    with click.Context(group) as context:
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            if isinstance(command, click.Group):
                yield from leaves(command, (*path, name))
            else:
                yield " ".join((*path, name)), command


def outlay(tmp_path: Path, *arguments: str, **environment: str) -> Result:
    """The command on a machine without a database, from the project's folder."""
    kept = {"OUTLAY_DATA_DIR": str(tmp_path / "none"), "OUTLAY_OFFLINE": "1", "XDG_CONFIG_HOME": str(tmp_path / "config")}
    return CliRunner().invoke(main, arguments, env=kept | environment, input="outlay_key\n")


def test_every_command_has_its_place_here() -> None:
    """A new one is put into one of these lists."""
    places = [set(ASKING), NO_REQUEST, REFUSING, NO_SERVICE]
    assert {name for name, _ in leaves()} == set().union(*places)
    assert sum(map(len, places)) == len(set().union(*places))


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_list_of_commands_says_what_their_help_says(name: str) -> None:
    """It does not import them."""
    command = main.get_command(click.Context(main), name)
    assert command is not None
    assert " ".join(str(command.help).split()).startswith(COMMANDS[name][1].removesuffix("."))


@pytest.mark.parametrize("words", sorted(ASKING))
def test_a_command_asks_the_stated_server(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is away is named, and nothing of this machine is read or made in its place."""
    monkeypatch.chdir(ROOT)
    (tmp_path / "points.json").write_text(json.dumps({"points": [{"loss": 3.0, "tokens": 1e9, "params": 1e8}] * 8}))
    (tmp_path / "sheet.csv").write_text("GPU,Price\nH100,2\n")
    files = {"points": tmp_path / "points.json", "sheet": tmp_path / "sheet.csv"}
    url = f"http://127.0.0.1:{find_free_port()}"
    result = outlay(tmp_path, *words.split(), *shlex.split(ASKING[words].format_map(files)), "--server", url)
    # 1; of `check` 2, since its 1 is a verdict
    assert result.exit_code == (2 if words == "check" else 1), result.output
    assert "cannot be reached" in result.output, result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("words", sorted(REFUSING))
@pytest.mark.parametrize("way", ["option", "variable"])
def test_a_command_of_the_machine_refuses_a_server(words: str, way: str, tmp_path: Path) -> None:
    """With why, and with what to do; nothing is asked and nothing made."""
    url = "http://127.0.0.1:1"
    options = ("--server", url) if way == "option" else ()
    result = outlay(tmp_path, *words.split(), *options, **({} if options else {"OUTLAY_SERVER": url}))
    assert result.exit_code == 2
    assert f"not over HTTP as of {url}. Run it on the service's machine, or state --server ''" in " ".join(result.output.split())
    assert not (tmp_path / "none").exists()


def test_a_command_of_the_machine_works_there_although_the_variable_is_set(tmp_path: Path) -> None:
    """With an empty --server."""
    listed = outlay(tmp_path, "keys", "list", "--server", "", "--json", OUTLAY_SERVER="http://127.0.0.1:1")
    assert (listed.exit_code, json.loads(listed.stdout)) == (0, [])


def test_a_team_beside_a_server_is_refused(tmp_path: Path) -> None:
    """Its key decides the team; one that is stated would be ignored."""
    result = outlay(tmp_path, "track", "programs", "--team", "vision", "--server", "http://127.0.0.1:1")
    assert (result.exit_code, "key decides the team" in result.output) == (2, True)


def test_standard_input_is_one_file_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second `-` would read nothing."""
    monkeypatch.chdir(ROOT)
    result = outlay(tmp_path, "diff", "-", "-")
    assert result.exit_code != 0
    assert "Traceback" not in result.output
