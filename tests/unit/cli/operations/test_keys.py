"""`outlay keys`: making, listing and revoking from the terminal, on the database itself."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from service import create_app
from service.cli import main
from service.config import load_settings


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A machine where nothing was ever kept."""
    return {"OUTLAY_DATA_DIR": str(tmp_path / "new" / "data"), "OUTLAY_OFFLINE": "1"}


def outlay(environment: dict[str, str], *arguments: str) -> Result:
    """The command's result."""
    return CliRunner().invoke(main, ["keys", *arguments], env=environment)


def created(environment: dict[str, str], *arguments: str) -> Any:
    """A new key as JSON."""
    result = outlay(environment, "create", "--team", "vision", "--name", "ci", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def status(environment: dict[str, str], token: str) -> int:
    """What a service that has just started on this database answers to the token."""
    client = create_app(load_settings(environment)).test_client()
    return client.get("/v1/models?limit=1", headers={"Authorization": f"Bearer {token}"}).status_code


def test_the_token_alone_is_on_standard_output(environment: dict[str, str]) -> None:
    """Fit for a script; what it is stands on the error stream, and the service takes it."""
    result = outlay(environment, "create", "--team", "vision", "--name", "ci", "--scope", "read, write", "--expires", "90d")
    assert result.exit_code == 0, result.output
    token = result.stdout.strip()
    assert token.startswith("outlay_")
    assert "of team vision for read, write, until 20" in result.stderr
    assert token not in result.stderr
    assert status(environment, token) == 200


def test_no_list_shows_a_secret(environment: dict[str, str]) -> None:
    """Neither the table nor JSON; both have everything else."""
    token = created(environment, "--expires", "never")["token"]
    table, entries = outlay(environment, "list").stdout, json.loads(outlay(environment, "list", "--json").stdout)
    assert [(entry["team"], entry["name"], entry["scopes"], entry["expires"], entry["state"]) for entry in entries] == [
        ("vision", "ci", "read", None, "good")
    ]
    line = table.splitlines()[1]
    assert line.split()[:4] == [entries[0]["id"], "vision", "ci", "read"]
    assert line.split()[-2:] == ["never", "good"]
    assert token.split("_", 2)[2] not in table + json.dumps(entries)


def test_where_nothing_was_made_the_list_is_empty(environment: dict[str, str]) -> None:
    """And asking makes nothing."""
    assert outlay(environment, "list", "--json").stdout == "[]\n"
    assert outlay(environment, "list").stdout.split() == ["id", "team", "name", "scopes", "created", "last_used", "expires", "state"]
    assert not Path(environment["OUTLAY_DATA_DIR"]).exists()


def test_a_revoked_key_opens_nothing(environment: dict[str, str]) -> None:
    """Its row stays, with its state."""
    key = created(environment)
    assert status(environment, key["token"]) == 200
    result = outlay(environment, "revoke", key["id"])
    assert result.stdout.startswith(f"key {key['id']} of team vision was revoked at ")
    assert status(environment, key["token"]) == 401
    assert json.loads(outlay(environment, "list", "--json").stdout)[0]["state"] == "revoked"
    assert outlay(environment, "revoke", key["id"]).stdout == result.stdout


def test_an_unknown_key_is_named(environment: dict[str, str]) -> None:
    """With where the known ones are found; on a new machine too."""
    for _ in range(2):
        result = outlay(environment, "revoke", "0" * 16)
        assert (result.exit_code, "`outlay keys list`" in result.stderr) == (1, True)
        created(environment)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--scope", "reed"), "scopes are read, write, admin"),
        (("--scope", ","), "scopes are read, write, admin"),
        (("--expires", "soon"), "such as 90d or 12h"),
        (("--team", "a/b"), "a name has 1 to 100 letters"),
        (("--name", "-"), "a name has 1 to 100 letters"),
    ],
)
def test_a_mistake_is_told_with_what_would_be_right(environment: dict[str, str], arguments: tuple[str, ...], said: str) -> None:
    """And nothing is made: the service stays open."""
    result = outlay(environment, "create", "--team", "vision", "--name", "ci", *arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert said in result.stderr
    assert outlay(environment, "list", "--json").stdout == "[]\n"


def test_a_database_that_cannot_be_used_is_said_in_one_line(environment: dict[str, str], tmp_path: Path) -> None:
    """Without a traceback."""
    (tmp_path / "new").write_text("in the way")
    result = outlay(environment, "create", "--team", "a", "--name", "b")
    assert (result.exit_code, result.stderr.startswith("Error: the database cannot be used")) == (1, True)
    assert isinstance(result.exception, SystemExit)


def test_a_key_is_rotated_without_an_interruption(environment: dict[str, str]) -> None:
    """The new key has the earlier one's team, name, scopes and lifetime; both hold until the overlap is over."""
    old = created(environment, "--scope", "read,write", "--expires", "90d")
    result = outlay(environment, "rotate", old["id"], "--overlap", "2h", "--json")
    assert result.exit_code == 0, result.output
    new = json.loads(result.stdout)
    assert new["id"] != old["id"]
    assert [new[name] for name in ("team", "name", "scopes")] == [old[name] for name in ("team", "name", "scopes")]
    lifetimes = [datetime.fromisoformat(key["expires"]) - datetime.fromisoformat(key["created"]) for key in (old, new)]
    assert lifetimes == [timedelta(days=90)] * 2
    assert [status(environment, key["token"]) for key in (old, new)] == [200, 200]
    ends = {entry["id"]: entry for entry in json.loads(outlay(environment, "list", "--json").stdout)}[old["id"]]
    assert timedelta(hours=1) < datetime.fromisoformat(ends["expires"]) - datetime.fromisoformat(new["created"]) <= timedelta(hours=2)
    assert ends["successor"] == new["id"]


@pytest.mark.parametrize(("overlap", "said"), [("never", "such as 24h"), ("soon", "days or hours")])
def test_an_overlap_has_an_end(environment: dict[str, str], overlap: str, said: str) -> None:
    """A key that goes on for ever is not rotated."""
    refused = outlay(environment, "rotate", created(environment)["id"], "--overlap", overlap)
    assert (refused.exit_code, said in refused.output) == (1, True)


def test_a_key_that_is_not_good_is_not_rotated(environment: dict[str, str]) -> None:
    """Neither a revoked one nor one that there is not."""
    key = created(environment)["id"]
    assert outlay(environment, "revoke", key).exit_code == 0
    assert "was revoked" in outlay(environment, "rotate", key).output
    assert "there is no key" in outlay(environment, "rotate", "nothing").output


def test_the_list_says_when_a_key_was_last_used_and_what_its_token_begins_with(environment: dict[str, str]) -> None:
    """So that unused keys are found, and a token's key where one has leaked."""
    made = created(environment)
    assert json.loads(outlay(environment, "list", "--json").stdout)[0]["last_used"] is None
    assert status(environment, made["token"]) == 200
    entry = json.loads(outlay(environment, "list", "--json").stdout)[0]
    assert entry["last_used"] >= entry["created"]
    assert made["token"].startswith(f"{entry['prefix']}_")
