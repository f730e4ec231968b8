"""Commands that change something in a running service: programs, imports, price sheets, refreshes; and its diagnosis."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from service import create_app
from service.cli import main
from service.config import load_settings
from service.domain.jobs import ignore_progress
from service.remote.transport import Server
from service.usecases.keys import make_key
from service.usecases.prices.refresh import KIND, refresh_prices
from tests.unit.served import listening_at

ROOT = Path(__file__).parents[4]
PLAN = ROOT / "examples" / "program-1b-64.json"
SACCT = ROOT / "tests" / "data" / "tracking" / "sacct.txt"
SHEET = "Vendor,GPU,Price per GPU-hour (USD),Term\nLambda,H100 SXM,1.11,1 year\nLambda,A100,0.99,6 months\n"
PRICES = "provider,region,instance_type,accelerator,accelerator_count,pricing,usd_per_hour\naws,us-east-1,p5,H100-SXM,8,on_demand,30\n"
Outlay = Callable[..., Result]


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A service with one price source, a file of its own, at a time at which the imported jobs are over."""
    monkeypatch.setattr("service.container.utc_now", lambda: datetime(2027, 3, 1, 12, tzinfo=UTC))
    (tmp_path / "prices.csv").write_text(PRICES)
    settings = {"OUTLAY_DATA_DIR": str(tmp_path / "there"), "OUTLAY_PROVIDERS": "file", "OUTLAY_PRICE_FILES": str(tmp_path / "prices.csv")}
    app = create_app(load_settings(settings))
    found: Any = app.extensions["context"]
    with closing(found.store) as store:
        store.migrate()
        token = make_key(found, "research", "laptop", ["read", "write", "admin"], "1d")[1]
        with listening_at(app) as url:
            app.extensions["reached"] = (url, token)
            yield app


@pytest.fixture
def server(app: Any) -> Server:
    """The service as its clients reach it."""
    return Server(*app.extensions["reached"])


@pytest.fixture
def outlay(server: Server, tmp_path: Path) -> Outlay:
    """`outlay` on a machine without a database, asking that service."""
    environment = {"OUTLAY_SERVER": server.url, "OUTLAY_API_KEY": str(server.key), "OUTLAY_DATA_DIR": str(tmp_path / "here")}
    return lambda *arguments, **more: CliRunner().invoke(main, [str(argument) for argument in arguments], env=environment, **more)


def said(result: Result) -> str:
    """What a command prints that ended well."""
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_plan_is_tracked_there(outlay: Outlay, server: Server) -> None:
    """By its own name or another; the plan may come from standard input."""
    made = json.loads(said(outlay("track", "start", PLAN, "--json")))
    assert server.get(f"/v1/track/programs/{made['id']}")["name"] == made["name"]
    assert "again: " in said(outlay("track", "start", "-", "--name", "again", input=PLAN.read_text()))


def test_what_is_wrong_with_a_plan_is_named_in_its_file(outlay: Outlay, tmp_path: Path) -> None:
    """As here, without the member of the body that holds it."""
    file = tmp_path / "plan.json"
    file.write_text('{"name": "x", "tiers": [{"tier": "nonsense", "runs": []}]}')
    assert f"Error: {file}, tiers.0.tier: " in outlay("track", "start", file).stderr


def test_a_file_is_imported_there_once(outlay: Outlay, server: Server) -> None:
    """Also from standard input."""
    program = server.post("/v1/track/programs", {"name": "support"})["id"]
    run = server.post(f"/v1/track/programs/{program}/runs", {"name": "main", "tier": "production"})["id"]
    first = json.loads(said(outlay("track", "import", "sacct", SACCT, "--run", run, "--json")))
    again = json.loads(said(outlay("track", "import", "sacct", "-", "--run", run, "--json", input=SACCT.read_bytes())))
    assert first["accepted"] > 0
    assert (again["accepted"], again["duplicates"]) == (0, first["accepted"])
    refused = outlay("track", "import", "sacct", SACCT, "--run", "none")
    assert (refused.exit_code, "no run" in refused.stderr) == (1, True)


def test_a_sheet_is_shown_kept_listed_and_forgotten_there(outlay: Outlay, server: Server) -> None:
    """Nothing is kept without --confirm; of standard input a name is needed."""
    assert outlay("prices", "import", "-", input=SHEET).exit_code == 2
    assert "nothing is kept" in said(outlay("prices", "import", "-", "--name", "quote", input=SHEET))
    assert server.items("/v1/price-files") == []
    assert "kept as 'quote', version 1" in said(outlay("prices", "import", "-", "--name", "quote", "--confirm", input=SHEET))
    assert "quote" in said(outlay("prices", "files"))
    assert "not used any more" in said(outlay("prices", "forget", "quote"))
    assert outlay("prices", "forget", "quote").exit_code == 1


def test_a_refresh_waits_for_the_workers_there(outlay: Outlay, app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shown are the states of the sources once they have been asked."""

    def work(pause_s: float) -> None:
        """A worker, in place of the pause between two looks."""
        assert pause_s > 0
        there = app.extensions["context"]
        for job in there.store.open_jobs(KIND):
            claimed = there.store.claim_job(job.id, "test", there.clock(), 60.0)
            there.store.finish_job(claimed, refresh_prices(there, job.payload, ignore_progress), there.clock())

    monkeypatch.setattr("service.cli.prices.refresh.time", SimpleNamespace(monotonic=lambda: 0.0, sleep=work))
    table = said(outlay("prices", "refresh"))
    assert next(line.split()[:3] for line in table.splitlines() if line.startswith("file")) == ["file", "ok", "1"]
    refused = outlay("prices", "refresh", "aws")
    assert (refused.exit_code, "OUTLAY_PROVIDERS leaves it out" in refused.stderr) == (1, True)


def test_a_diagnosis_names_the_key_and_the_price_sources(outlay: Outlay) -> None:
    """A source that was never asked, a worker that is away, and a key that is not taken."""
    found = {finding["subject"]: finding for finding in json.loads(said(outlay("doctor", "--json")))}
    assert "worker" in found["readiness"]["detail"]
    assert found["key"]["detail"] == "it is taken"
    shown = said(outlay("doctor"))
    assert "never asked: file" in shown
    refused = outlay("doctor", "--key", "outlay_wrong")
    assert (refused.exit_code, "outlay login" in refused.stdout) == (1, True)
