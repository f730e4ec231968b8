"""Archive a closed program, and bring it back.

The file is written and read back before anything leaves the database. Then one transaction marks the program: from there on its runs take
no events and nothing reads those that are left, which are deleted some at a time, so that no other writer waits. Whatever is killed loses
nothing, and goes on when it is called again with the same file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

from service.context import AppContext
from service.domain.errors import InvalidRequest, VersionConflictError
from service.domain.teams import Principal
from service.domain.tracking.archive import MARK, ArchivedRun, ArchiveManifest, ArchiveMark, archive_mark, where_events_are
from service.domain.tracking.records import ProgramRecord
from service.engine.tracking.runs.hourly_rollup import EPOCH, hour_of
from service.presets.version import engine_version
from service.serialization import to_builtins
from service.store import ProgramLog
from service.store.database import chunks
from service.usecases.archiving.archive_file import (
    EVENTS,
    FORMAT,
    PROGRAMS,
    RUNS,
    archived_events,
    check_archive,
    hours_digest,
    summed_hours,
    write_archive,
)
from service.usecases.durable_file import new_file
from service.usecases.tracking.baseline import CLOSED
from service.usecases.tracking.programs import find_program, list_runs
from service.usecases.tracking.projection import project_run

EVENTS_AT_ONCE = 5000
"""Events that one transaction deletes or writes."""
CLOCK_LAG = timedelta(minutes=10)
"""How far the clock of another host may be behind, so that its present is not an archived hour."""
CHANGED = "the program changed in the meantime, or new events arrived. Nothing was removed from the database: delete {file} and try again"
BUSY = "the program changed in the meantime, or another command archives or restores it: try again"


def archive_program(context: AppContext, who: Principal, program_id: str, file: Path) -> tuple[ArchiveManifest, ArchiveMark]:
    """Move the events of a closed program into a new file; what the file has, and the program's mark.

    Goes on after a kill where the file is there already. Raises NotFound, InvalidRequest for a program that is open, has no events or has
    some in the present hour, and for a file that is not this program's or cannot be written; StoreUnavailable.
    """
    program = find_program(context, who, program_id)
    mark = archive_mark(program)
    if mark is None:
        manifest, mark = _archive(context, who, program, file)
    else:
        manifest, sha256 = check_archive(file)
        _check_same(file, sha256, mark)
    with _conflicts(BUSY):
        _drop_events(context, program)
    return manifest, mark


def unarchive_program(context: AppContext, who: Principal, file: Path) -> ArchiveManifest:
    """Put the events of an archive back into the database, under the present keys of their runs; what the file has.

    Goes on after a kill. Raises NotFound for a program that the team does not have, InvalidRequest for one that is not archived and for a
    file that is damaged, not the program's or not of its hours; StoreUnavailable.
    """
    manifest, sha256 = check_archive(file)
    program = find_program(context, who, manifest.program)
    mark = archive_mark(program)
    if mark is None:
        raise InvalidRequest(f"the program {program.id} is not archived: its events are in the database")
    _check_same(file, sha256, mark)
    _check_hours(context, program, manifest)
    body = {name: value for name, value in program.body.items() if name != MARK}
    with _conflicts(BUSY):
        _put_events(context, program, file)
        context.store.end_archive(program, body, context.clock(), who.key)
    return manifest


def _archive(context: AppContext, who: Principal, program: ProgramRecord, file: Path) -> tuple[ArchiveManifest, ArchiveMark]:
    """Write and check the file, and mark the program."""
    if program.body["state"] != CLOSED:
        raise InvalidRequest('the program is open; close it first: PATCH /v1/track/programs/{id} with {"state": "closed"}')
    for run in list_runs(context, program):
        project_run(context, run)
    manifest, sha256 = _written(context, program, file)
    _check_sums(file, manifest)
    mark = ArchiveMark(context.clock(), sha256)
    positions = {run.id: run.events for run in manifest.runs}
    body = {**program.body, MARK: to_builtins(asdict(mark))}
    with _conflicts(CHANGED.format(file=file)):
        context.store.mark_archived(program, positions, body, mark.at, who.key)
    return manifest, mark


def _written(context: AppContext, program: ProgramRecord, file: Path) -> tuple[ArchiveManifest, str]:
    """The program's archive, read back, and its SHA-256; it is written unless a killed attempt has done so."""
    with context.store.program_log(program.id) as log:
        manifest = _manifest(context, log)
        if not file.exists():
            with new_file(file) as target:
                write_archive(target, manifest, _rows(log))
    found, sha256 = check_archive(file)
    if replace(found, made_at=manifest.made_at, engine_version=manifest.engine_version) != manifest:
        raise InvalidRequest(f"{file} is not the current archive of this program; name another file")
    return found, sha256


def _manifest(context: AppContext, log: ProgramLog) -> ArchiveManifest:
    """What the archive of a program is to have. Raises InvalidRequest for a program without events, or with some in the present hour."""
    runs, last_hours = [], []
    for run in log.runs:
        if run["folded"] != run["position"]:
            raise InvalidRequest("new events arrived in the meantime: try again")
        hours = log.hours(run["key"])
        runs.append(ArchivedRun(run["id"], run["name"], run["position"], len(hours), hours_digest(hours)))
        last_hours += sorted(hours)[-1:]
    events = sum(run.events for run in runs)
    if not events:
        raise InvalidRequest("the program has no events: there is nothing to archive")
    if last_hours and max(last_hours) >= hour_of(context.clock() - CLOCK_LAG):
        past = EPOCH + timedelta(hours=max(last_hours) + 1) + CLOCK_LAG
        raise InvalidRequest(f"the hour of the program's last event is not over; archive the program after {past:%Y-%m-%dT%H:%M}Z")
    program, rows = log.program, {PROGRAMS: 1, RUNS: len(runs), EVENTS: events}
    return ArchiveManifest(
        format=FORMAT,
        engine_version=engine_version(),
        made_at=context.clock().isoformat(),
        team=program["team"],
        program=program["id"],
        name=program["body"]["name"],
        version=program["version"],
        rows=rows,
        runs=tuple(runs),
    )


def _rows(log: ProgramLog) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield PROGRAMS, log.program
    yield from ((RUNS, run) for run in log.runs)
    for run in log.runs:
        yield from ((EVENTS, {**row, "run": run["id"]}) for row in log.events(run["key"]))


def _check_sums(file: Path, manifest: ArchiveManifest) -> None:
    """Raise InvalidRequest where the events of a checked archive do not add up to the hours that stay."""
    sums = {run: hours_digest(hours) for run, hours in summed_hours(archived_events(file)).items()}
    if wrong := [run.name for run in manifest.runs if sums.get(run.id, hours_digest({})) != run.hours_sha256]:
        advice = f"run `outlay track rebuild --program {manifest.program}`, delete {file} and try again"
        raise InvalidRequest(
            f"the hours of {', '.join(wrong)} are not the sums of their events. Nothing was removed from the database: {advice}"
        )


def _check_same(file: Path, sha256: str, mark: ArchiveMark) -> None:
    """Raise InvalidRequest for another file than that of the archived program."""
    if sha256 != mark.sha256:
        raise InvalidRequest(f"{file} is not the archive of this program, which was {where_events_are(mark)}")


def _check_hours(context: AppContext, program: ProgramRecord, manifest: ArchiveManifest) -> None:
    """Raise InvalidRequest unless the hours that stayed are those that the archive's events add up to."""
    kept = {log.run.id: hours_digest(log.hours) for log in context.store.run_logs(list_runs(context, program))}
    if wrong := [run.name for run in manifest.runs if kept.get(run.id) != run.hours_sha256]:
        raise InvalidRequest(f"the hours of {', '.join(wrong)} are not those that were archived; restore a backup of the database")


def _drop_events(context: AppContext, program: ProgramRecord) -> None:
    for run in list_runs(context, program):
        for after in range(0, run.position, EVENTS_AT_ONCE):
            context.store.drop_archived_events(run, after, after + EVENTS_AT_ONCE)


def _put_events(context: AppContext, program: ProgramRecord, file: Path) -> None:
    runs = {run.id: run for run in list_runs(context, program)}
    for run_id, events in groupby(archived_events(file), lambda each: each[0]):
        for rows in chunks((row for _, row in events), EVENTS_AT_ONCE):
            context.store.put_archived_events(runs[run_id], rows)


@contextmanager
def _conflicts(text: str) -> Iterator[None]:
    """Context that reports a concurrent change with this text."""
    try:
        yield
    except VersionConflictError as error:
        raise InvalidRequest(text) from error
