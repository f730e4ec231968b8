"""Ten million events over a thousand programs: what appending, sizes, answers and archiving are as the log grows.

`python -m bench.tracking_scale [EVENTS] [DATABASE]`: half an hour and 4 GB of disk for each database, and so no part of `make bench`.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from flask.testing import FlaskClient
from sqlalchemy import text

from bench.harness import report, timed
from bench.tracking_service import START, databases, happened
from service import create_app
from service.config import load_settings
from service.context import AppContext
from service.domain.teams import DEFAULT_TEAM, EVERYBODY
from service.domain.tracking.records import ProgramRecord, RunRecord
from service.store import Store
from service.usecases.archiving.archive import archive_program, unarchive_program
from service.usecases.tracking.programs import change_program
from service.usecases.tracking.projection import project_run

EVENTS, PROGRAMS, BATCH = 10_000_000, 1_000, 1_000
MEASURED_AT = (0.01, 0.1, 0.3, 1.0)
"""Parts of all events at which it is measured."""
SAMPLED, REQUESTS = 20, 5
"""Programs that are asked, and how often each."""
PLANNED = {"tokens": 10**12, "usd": 5e6, "accelerator_hours": 2e6}
Tracked = tuple[ProgramRecord, RunRecord]


def tracking_scale(events: int, wanted: str) -> None:
    """Fill the databases, and measure them on the way. Raises ValueError for fewer events than a batch of each program."""
    if events < PROGRAMS * BATCH:
        raise ValueError(f"{events:,} events are fewer than a batch of {BATCH:,} for each of {PROGRAMS:,} programs")
    with databases() as environments:
        for name, environment in environments.items():
            if wanted in ("", name):
                settings = load_settings(environment)
                app = create_app(replace(settings, team_stored_rows=10 * events, team_stored_bytes=10**13))
                context: AppContext = app.extensions["context"]
                with closing(context.store) as store:
                    store.migrate()
                    _grow(name, context, app.test_client(), events)
                    report(f"track_scale.{name}.bytes_an_event", _stored_bytes(store) / events, "bytes")


def _grow(name: str, context: AppContext, client: FlaskClient, events: int) -> None:
    tracked = [_program(context, number) for number in range(PROGRAMS)]
    a_run = events // PROGRAMS
    rounds = [[happened(number) for number in range(first, first + BATCH)] for first in range(0, a_run, BATCH)]
    batches = ((run, batch) for batch in rounds for _, run in tracked)  # programs take turns, as in life
    done, begun = 0, time.perf_counter()
    for part in MEASURED_AT:
        since, cpu_s, at = done, time.process_time(), time.perf_counter()
        while done < part * events:
            run, batch = next(batches)
            context.store.append_events(run, batch, START)
            done += len(batch)
        label = f"track_scale.{name}.{done}"
        report(f"{label}.appended_per_s", (done - since) / (time.perf_counter() - at), "events/s")
        report(f"{label}.append_cpu_us", (time.process_time() - cpu_s) / (done - since) * 1e6, "us an event")
        _measure(label, context, client, tracked)
    report(f"track_scale.{name}.wall_s", time.perf_counter() - begun, "s")
    _archive(f"track_scale.{name}", context, tracked[PROGRAMS // 2])


def _program(context: AppContext, number: int) -> Tracked:
    body = {"name": f"program {number}", "state": "open", "budget_usd": 5e6, "planned_tokens": 10**12}
    body |= {"start": "2025-09-01", "deadline": "2026-01-31"}
    program = context.store.create_program(DEFAULT_TEAM, body, None, START)
    return program, context.store.create_run(
        program, "main", {"name": "main", "state": "open", "tier": "production", "planned": PLANNED}, START
    )


def _measure(label: str, context: AppContext, client: FlaskClient, tracked: list[Tracked]) -> None:
    """Of programs spread over all, whose new events are projected first, as the worker does."""
    sample = random.Random(1).sample(tracked, SAMPLED)
    spent_s, _ = timed(lambda: [project_run(context, run) for _, run in sample])
    report(f"{label}.project_a_program_ms", spent_s / SAMPLED * 1e3, "ms")
    for what, path in {
        "status": "/v1/track/programs/{program}/status",
        "program": "/v1/track/programs/{program}",
        "list_of_programs": "/v1/track/programs",
        "page_of_events": "/v1/track/runs/{run}/events?limit=100",
    }.items():
        paths = [path.format(program=program.id, run=run.id) for program, run in sample] * REQUESTS
        times_s = [timed(lambda at=at: _asked(client, at))[0] for at in paths]  # type: ignore[misc]
        report(f"{label}.{what}_p50_ms", statistics.median(times_s) * 1e3, "ms")
        report(f"{label}.{what}_p90_ms", statistics.quantiles(times_s, n=10)[-1] * 1e3, "ms")


def _asked(client: FlaskClient, path: str) -> Any:
    answer = client.get(path)
    if answer.status_code != 200:
        raise RuntimeError(f"{path} answered {answer.status_code}: {answer.text}")
    return answer.get_json()


def _archive(label: str, context: AppContext, tracked: Tracked) -> None:
    """Archive one closed program of all, and bring it back."""
    program = change_program(context, EVERYBODY, tracked[0], {"state": "closed"})
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "archive"
        there_s, _ = timed(lambda: archive_program(context, EVERYBODY, program.id, file))
        report(f"{label}.archive_a_program_s", there_s, "s")
        report(f"{label}.archive_bytes", file.stat().st_size, "bytes")
        back_s, _ = timed(lambda: unarchive_program(context, EVERYBODY, file))
        report(f"{label}.unarchive_a_program_s", back_s, "s")


def _stored_bytes(store: Store) -> int:
    """The whole database, its write-ahead log included."""
    url = store.engine.url
    if url.get_backend_name() == "sqlite":
        return sum(path.stat().st_size for path in Path(str(url.database)).parent.glob("outlay.db*"))
    with store.engine.connect() as connection:
        return int(connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one())


if __name__ == "__main__":
    tracking_scale(int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS, sys.argv[2] if len(sys.argv) > 2 else "")
