"""`outlay track`: the same programs, figures and documents as over HTTP, from the database itself."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from flask.testing import FlaskClient

from service import create_app
from service.cli.tracking import FORMATS, KINDS
from service.cli.tracking import track as command
from service.config import load_settings
from service.formats.documents.render import accepted_types
from service.formats.imports.readers import READERS
from service.store.tracking.tables import track_hours
from tests.contract.tracking.tracked_program import AS_OF, PROGRAM, told
from tests.unit.cli.test_cli import HEAVY

ROOT = Path(__file__).parents[4]
PLAN = ROOT / "examples" / "program-1b-64.json"
SACCT = ROOT / "tests" / "data" / "tracking" / "sacct.txt"


@pytest.fixture(autouse=True)
def at_noon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A time for both doors at which the imported files' runs are over."""
    monkeypatch.setattr("service.container.utc_now", lambda: datetime(2027, 3, 1, 12, tzinfo=UTC))


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A machine where nothing was ever kept."""
    return {"OUTLAY_DATA_DIR": str(tmp_path / "data"), "OUTLAY_OFFLINE": "1"}


@pytest.fixture
def client(environment: dict[str, str]) -> FlaskClient:
    """The HTTP door on the same database."""
    Path(environment["OUTLAY_DATA_DIR"]).mkdir()
    app = create_app(load_settings(environment))
    app.extensions["context"].store.migrate()
    return app.test_client()


@pytest.fixture
def program(client: FlaskClient) -> str:
    """The story's program, by its id."""
    return str(told(client)["id"])


def run(environment: dict[str, str], *arguments: str) -> Result:
    """`outlay track` with these arguments."""
    return CliRunner().invoke(command, arguments, env=environment)


def output(environment: dict[str, str], *arguments: str) -> str:
    """What it prints, having ended well."""
    result = run(environment, *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def complaint(environment: dict[str, str], *arguments: str) -> str:
    """What it says, having ended badly, in words."""
    result = run(environment, *arguments)
    assert result.exit_code != 0
    assert "Traceback" not in result.output
    return result.output


def test_help_imports_nothing_heavy() -> None:
    """So it answers at once, for the group and for a command."""
    script = (
        "import sys; from service.cli.tracking import track; track(['report', '--help'], standalone_mode=False);"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "Usage:" in done.stdout
    assert set(done.stderr.split()).isdisjoint(HEAVY)


def test_kinds_and_formats_are_those_of_the_interface() -> None:
    """The command line states them for its help alone."""
    assert set(FORMATS) == set(accepted_types("report"))
    assert tuple(READERS) == KINDS


class TestStanding:
    """programs, show, report."""

    def test_show_answers_what_http_answers(self, environment: dict[str, str], client: FlaskClient, program: str) -> None:
        """As JSON, to the last digit."""
        served = client.get(f"/v1/track/programs/{program}/status?as_of={AS_OF}").get_json()
        assert json.loads(output(environment, "show", program, "--as-of", AS_OF, "--json")) == served

    def test_the_table_has_the_figures(self, environment: dict[str, str], client: FlaskClient, program: str) -> None:
        """Spend, CPI, forecast and every run, and the headline first."""
        status = client.get(f"/v1/track/programs/{program}/status?as_of={AS_OF}").get_json()
        lines = output(environment, "show", program, "--as-of", AS_OF).splitlines()
        assert lines[0] == f"{PROGRAM['name']}, {AS_OF}"
        assert "budget" in lines[1]
        rows = {line.split("  ")[0]: line for line in lines}
        assert f"{status['spend']['usd']:,.0f} USD" in rows["spent"]
        assert f"{status['earned_value']['cpi']:.3g}" in rows["CPI, SPI"]
        assert status["forecast"]["finish"]["p50"] in rows["forecast"]
        assert {"main", "ablations"} <= rows.keys()

    @pytest.mark.parametrize("form", FORMATS)
    def test_a_report_is_the_one_of_http(
        self, environment: dict[str, str], client: FlaskClient, program: str, tmp_path: Path, form: str
    ) -> None:
        """In every format, written to a file; a workbook carries the moment it was made at."""
        served = client.get(f"/v1/track/programs/{program}/report?as_of={AS_OF}&format={form}").get_data()
        file = tmp_path / f"report.{form}"
        assert output(environment, "report", program, "--format", form, "-o", str(file), "--as-of", AS_OF) == ""
        if form == "json":
            assert json.loads(file.read_bytes()) == json.loads(served)
        elif form == "xlsx":
            assert file.read_bytes()[:2] == served[:2] == b"PK"
        else:
            assert file.read_bytes() == served

    def test_programs_lists_them(self, environment: dict[str, str], client: FlaskClient, program: str) -> None:
        """As a table, and as over HTTP."""
        assert json.loads(output(environment, "programs", "--json")) == client.get("/v1/track/programs").get_json()["items"]
        _, row = output(environment, "programs").splitlines()
        assert row.startswith(program)
        assert PROGRAM["name"] in row

    def test_another_teams_program_is_not_there(self, environment: dict[str, str], client: FlaskClient, program: str) -> None:
        """A team sees its own; a team that was never made is told, and not made."""
        other = CliRunner().invoke(_main(), ["keys", "create", "--team", "vision", "--name", "ci"], env=environment)
        assert other.exit_code == 0
        assert "there is no program" in complaint(environment, "show", program, "--team", "vision")
        assert output(environment, "programs", "--team", "vision", "--json") == "[]\n"
        assert "there is default, vision" in complaint(environment, "programs", "--team", "visoin")

    def test_a_wrong_time_is_told(self, environment: dict[str, str], client: FlaskClient, program: str) -> None:
        """With the option it stands in."""
        assert "--as-of" in complaint(environment, "show", program, "--as-of", "yesterday")

    def test_where_nothing_was_made_it_says_so(self, environment: dict[str, str]) -> None:
        """And makes nothing."""
        assert "no program is tracked yet" in complaint(environment, "programs")
        assert not Path(environment["OUTLAY_DATA_DIR"]).exists()


class TestStarting:
    """start."""

    def test_a_plan_is_tracked(self, environment: dict[str, str]) -> None:
        """On a machine where nothing was ever kept; it can be shown at once."""
        body = json.loads(output(environment, "start", str(PLAN), "--json"))
        assert body["name"] == json.loads(PLAN.read_text())["name"]
        assert body["budget_usd"] > 0
        assert body["planned_runs"]
        assert output(environment, "programs").splitlines()[1].startswith(body["id"])
        table = output(environment, "start", str(PLAN), "--name", "again")
        assert "again: " in table
        assert "production: " in table

    def test_a_plan_that_cannot_be_read_is_told_where(self, environment: dict[str, str], tmp_path: Path) -> None:
        """With a pointer into it."""
        file = tmp_path / "plan.json"
        file.write_text('{"name": "x", "tiers": [{"tier": "nonsense", "runs": []}]}')
        assert f"Error: {file}, tiers.0.tier: " in complaint(environment, "start", str(file))


class TestTaking:
    """import, pull and rebuild."""

    def test_an_import_counts_once(self, environment: dict[str, str], client: FlaskClient, program: str) -> None:
        """The second time everything is a duplicate."""
        target = client.get(f"/v1/track/programs/{program}/runs").get_json()["items"][0]["id"]
        first = json.loads(output(environment, "import", "sacct", str(SACCT), "--run", target, "--json"))
        assert first["accepted"] > 0
        again = json.loads(output(environment, "import", "sacct", str(SACCT), "--run", target, "--json"))
        assert (again["accepted"], again["duplicates"]) == (0, first["accepted"])
        assert output(environment, "import", "sacct", str(SACCT), "--run", target).startswith("events: 0 accepted, ")

    def test_what_cannot_be_read_as_its_kind_is_told(self, environment: dict[str, str], client: FlaskClient, program: str) -> None:
        """In words."""
        assert complaint(environment, "import", "dcgm", str(SACCT), "--program", program)

    def test_a_pull_takes_the_servers_runs(
        self, environment: dict[str, str], client: FlaskClient, program: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What `track_pull` brings goes in as an import does."""
        recorded: Any = json.loads((ROOT / "tests" / "data" / "tracking" / "mlflow.json").read_text())
        monkeypatch.setattr("service.cli.tracking.pull.pull_mlflow", lambda url, experiments: recorded)
        target = client.get(f"/v1/track/programs/{program}/runs").get_json()["items"][0]["id"]
        taken = json.loads(output(environment, "pull", "http://127.0.0.1:1", "--run", target, "--json"))
        assert taken["accepted"] > 0

    def test_a_rebuild_says_how_many_hours_differed(self, environment: dict[str, str], client: FlaskClient, program: str) -> None:
        """None of a projection that is right; one that was changed by hand is found, mended, and found no more."""
        assert output(environment, "rebuild", "--check") == "2 runs rebuilt from the log: 0 hours differed\n"
        with client.application.extensions["context"].store.engine.begin() as connection:
            changed = connection.execute(track_hours.update().where(track_hours.c.hour == _newest_hour(connection)).values(body="[]"))
        assert changed.rowcount == 1
        result = run(environment, "rebuild", "--program", program, "--check")
        assert (result.exit_code, result.stdout) == (1, "2 runs rebuilt from the log: 1 hours differed\n")
        assert run(environment, "rebuild", "--check").exit_code == 0


def _newest_hour(connection: Any) -> int:
    return int(connection.execute(track_hours.select().order_by(track_hours.c.hour.desc())).mappings().first()["hour"])


def _main() -> Any:
    from service.cli import main

    return main
