"""The file of an archived program: gzip of JSON lines.

The first line is the manifest, the last one the SHA-256 of all lines before it. Between them are the rows, each with the name of its
table: the program, its runs, and the events of each run, of which corrections come first and the others follow in the order of their times,
so that the hours can be summed up while the file is read.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO

from service.domain.errors import InvalidRequest
from service.domain.tracking.archive import ArchivedRun, ArchiveManifest
from service.domain.tracking.events import Event
from service.store.tracking.event_rows import HOUR_MICROS, EventRow, event_of
from service.usecases.backup import decode_row, encode_row
from service.usecases.tracking.projection import render_hour

FORMAT = 1
PROGRAMS, RUNS, EVENTS = "track_programs", "track_runs", "track_events"
Row = Mapping[str, Any]


def write_archive(target: BinaryIO, manifest: ArchiveManifest, rows: Iterable[tuple[str, Row]]) -> None:
    """Write an archive of rows with the names of their tables."""
    digest = hashlib.sha256()
    with gzip.GzipFile(filename="", fileobj=target, mode="wb", mtime=0) as packed:
        for line in _lines(manifest, rows):
            digest.update(line)
            packed.write(line)
        packed.write(_line({"sha256": digest.hexdigest()}))


def _lines(manifest: ArchiveManifest, rows: Iterable[tuple[str, Row]]) -> Iterator[bytes]:
    yield _line(asdict(manifest))
    for table, row in rows:
        yield encode_row({"table": table, **row})


def _line(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False).encode() + b"\n"


def check_archive(file: Path) -> tuple[ArchiveManifest, str]:
    """Manifest of an archive and the SHA-256 of its lines, after reading all of it.

    Raises InvalidRequest for a file that is no archive, or is damaged: other rows than its manifest or its SHA-256 say.
    """
    with _opened(file) as packed:
        digest, ending = hashlib.sha256(), b""
        for line in packed:
            digest.update(ending)
            ending = line
        if json.loads(ending) != {"sha256": digest.hexdigest()}:
            raise InvalidRequest(f"{file} is damaged: the SHA-256 of its lines is not the one that its last line states")
        packed.rewind()
        manifest, found = _manifest(packed, file), Counter[str]()
        for row in _rows(packed):
            found.update(str(row[name]) for name in ("table", "run") if name in row)
    expected = {**manifest.rows, **{run.id: run.events for run in manifest.runs}}
    if wrong := sorted(name for name in expected | found if found[name] != expected.get(name, 0)):
        raise InvalidRequest(f"{file} is damaged: its rows of {', '.join(wrong)} are not those that its manifest states")
    return manifest, digest.hexdigest()


def archived_events(file: Path) -> Iterator[tuple[str, Row]]:
    """Events of a checked archive, with the ids of their runs."""
    with _opened(file) as packed:
        packed.readline()
        for row in _rows(packed):
            if row["table"] == EVENTS:
                yield row["run"], {name: value for name, value in row.items() if name not in ("table", "run")}


def _rows(lines: Iterable[bytes]) -> Iterator[Row]:
    """Rows after the manifest."""
    return (row for row in map(decode_row, lines) if "table" in row)


def summed_hours(events: Iterable[tuple[str, Row]]) -> dict[str, dict[int, str]]:
    """Texts of the hours of archived events, by the run's id."""
    return {run: dict(_hours(row for _, row in of_run)) for run, of_run in groupby(events, lambda each: each[0])}


def _hours(rows: Iterable[Row]) -> Iterator[tuple[int, str]]:
    corrections: list[Event] = []
    for hour, of_hour in groupby(rows, lambda row: None if row["supersedes"] else row["at"] // HOUR_MICROS):
        events = [event_of(EventRow(**{name: row[name] for name in EventRow._fields})) for row in of_hour]
        if hour is None:
            corrections = events
        else:
            yield hour, render_hour(events, corrections)


def hours_digest(hours: Mapping[int, str]) -> str:
    """SHA-256 of the texts of hours."""
    digest = hashlib.sha256()
    for hour, body in sorted(hours.items()):
        digest.update(encode_row({"hour": hour, "body": body}))
    return digest.hexdigest()


@contextmanager
def _opened(file: Path) -> Iterator[gzip.GzipFile]:
    try:
        with gzip.open(file, "rb") as packed:
            yield packed
    except FileNotFoundError as error:
        raise InvalidRequest(f"there is no file {file}") from error
    except (gzip.BadGzipFile, EOFError, zlib.error, ValueError) as error:
        raise InvalidRequest(f"{file} is damaged or is not an archive: {error}") from error


def _manifest(packed: gzip.GzipFile, file: Path) -> ArchiveManifest:
    stated = json.loads(packed.readline())
    if not isinstance(stated, dict) or stated.get("format") != FORMAT:
        raise InvalidRequest(f"{file} is not an archive of format {FORMAT}; read it with the release that made it")
    try:
        return ArchiveManifest(**{**stated, "runs": tuple(ArchivedRun(**run) for run in stated["runs"])})
    except (TypeError, KeyError) as error:
        raise InvalidRequest(f"{file} has an incomplete manifest: {error}") from error
