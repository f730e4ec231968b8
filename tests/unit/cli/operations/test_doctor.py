"""`outlay doctor`: what is wrong, what to do, and an exit code."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest
from click.testing import CliRunner

from service.cli import main
from service.config import Settings
from service.store import Store
from tests.support.servers import find_free_port
from tests.unit.cli.invoke import run


def findings(settings: Settings, expected: int, **environment: str) -> dict[str, dict[str, Any]]:
    """The findings by subject, having ended with this code."""
    variables = {"OUTLAY_DATA_DIR": str(settings.data_dir), **environment}
    result = CliRunner().invoke(main, ["doctor", "--json"], env=variables)
    assert result.exit_code == expected, result.output
    return {finding["subject"]: finding for finding in json.loads(result.stdout)}


def test_a_fresh_machine_is_not_ill(settings: Settings) -> None:
    """What does not exist yet is made by the first start; nothing is made by asking."""
    found = findings(settings, 0)
    assert {finding["state"] for finding in found.values()} <= {"good", "warning"}
    assert {"configuration", "data directory", "disk", "database", "Redis", "worker", "prices", "clock"} == set(found)
    assert not settings.data_dir.exists()


def test_a_setting_that_cannot_be_used_is_bad(settings: Settings) -> None:
    """Nothing else can be checked then."""
    found = findings(settings, 1, OUTLAY_PORT="x")
    assert "OUTLAY_PORT" in found["configuration"]["detail"]
    assert set(found) == {"configuration"}


def test_a_database_that_is_away_is_bad(settings: Settings) -> None:
    """With what to do."""
    found = findings(settings, 1, OUTLAY_DATABASE_URL=f"postgresql+psycopg://me@127.0.0.1:{find_free_port()}/outlay")
    assert (found["database"]["state"], "OUTLAY_DATABASE_URL" in found["database"]["advice"]) == ("bad", True)


def test_a_redis_that_is_away_is_bad(settings: Settings) -> None:
    """With the variable that names it."""
    found = findings(settings, 1, OUTLAY_REDIS_URL=f"redis://127.0.0.1:{find_free_port()}/0")
    assert (found["Redis"]["state"], "OUTLAY_REDIS_URL" in found["Redis"]["advice"]) == ("bad", True)


def test_a_clock_behind_the_prices_is_bad(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prices cannot have been read in the future."""
    monkeypatch.setattr("service.container.utc_now", lambda: datetime(2020, 1, 1, tzinfo=UTC))
    assert "NTP" in findings(settings, 1)["clock"]["advice"]


def test_a_migrated_database_is_good_and_a_foreign_one_is_not(settings: Settings) -> None:
    """One without this release's tables needs a migration."""
    with closing(Store(settings.database_url)) as store:
        store.migrate()
    assert findings(settings, 0)["database"]["state"] == "good"
    assert findings(settings, 1, OUTLAY_DATABASE_URL="sqlite:////dev/null")["database"]["state"] == "bad"


def test_a_directory_that_others_write_is_a_warning(settings: Settings) -> None:
    """It holds the signing keys."""
    settings.data_dir.mkdir()
    settings.data_dir.chmod(0o777)
    assert findings(settings, 0)["data directory"]["advice"].startswith("chmod 700")


def test_the_table_says_what_to_do(settings: Settings) -> None:
    """Below each finding that is not good."""
    shown = run(settings, "doctor").stdout
    assert "OUTLAY_OFFLINE is set" in shown
    assert "    unset OUTLAY_OFFLINE" in shown


def test_a_server_that_is_away_is_bad(settings: Settings) -> None:
    """Its way is checked instead of this machine."""
    result = run(settings, "doctor", "--server", f"http://127.0.0.1:{find_free_port()}")
    assert result.exit_code == 1
    assert "cannot be reached" in result.stdout
