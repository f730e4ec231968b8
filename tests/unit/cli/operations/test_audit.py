"""`outlay audit`: what was changed from the terminal, found again there, and the check of the whole trail."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from service.cli import main


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A machine where nothing was ever kept."""
    return {"OUTLAY_DATA_DIR": str(tmp_path / "data"), "OUTLAY_OFFLINE": "1", "LOGNAME": "ada"}


def outlay(environment: dict[str, str], *arguments: str) -> Result:
    """The command's result."""
    return CliRunner().invoke(main, [*arguments], env=environment)


def entries(environment: dict[str, str], *arguments: str) -> list[dict[str, Any]]:
    """What the trail shows of the team vision."""
    result = outlay(environment, "audit", "--team", "vision", *arguments, "--json")
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


def with_key(environment: dict[str, str]) -> str:
    """The id of a new key of the team vision."""
    made = outlay(environment, "keys", "create", "--team", "vision", "--name", "ci", "--json")
    key: str = json.loads(made.stdout)["id"]
    return key


def test_a_change_names_the_user_of_the_machine(environment: dict[str, str]) -> None:
    """Filters find it, and a table shows it."""
    key = with_key(environment)
    outlay(environment, "keys", "revoke", key)
    revoked, made = entries(environment)
    assert [entry["operation"] for entry in (revoked, made)] == ["key.revoke", "key.create"]
    assert {made[name] for name in ("via", "user", "object")} == {"cli", "ada", key}
    assert entries(environment, "--operation", "key.create", "--object", key) == [made]
    assert entries(environment, "--since", "2100-01-01") == []
    assert "key.create" in outlay(environment, "audit", "--team", "vision").stdout
    assert outlay(environment, "audit", "--team", "vision", "--verify").stdout == "2 entries, whole\n"


def test_a_broken_trail_fails_the_check(environment: dict[str, str]) -> None:
    """Even of somebody who removes the database's own guard first."""
    with_key(environment)
    database = sqlite3.connect(Path(environment["OUTLAY_DATA_DIR"]) / "outlay.db")
    with database:
        database.execute("DROP TRIGGER audit_entries_no_update")
        database.execute("UPDATE audit_entries SET user = 'bob'")
    database.close()
    result = outlay(environment, "audit", "--team", "vision", "--verify")
    assert result.exit_code == 1
    assert "entry 1 was changed" in result.output


def test_without_a_database_there_is_nothing_to_show(environment: dict[str, str]) -> None:
    """It says what makes one, and makes none."""
    result = outlay(environment, "audit")
    assert result.exit_code == 1
    assert "`outlay serve` makes one" in result.output
    assert not Path(environment["OUTLAY_DATA_DIR"]).exists()
