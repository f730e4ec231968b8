"""Backups: everything in the database and the keys that sign records, in one file that restores into an empty installation.

The file is a zip archive: `manifest.json`, `tables/NAME.jsonl` with a row a line, and `signing-keys/`. Values that JSON has not are objects
with one member that names their type.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from service.context import AppContext
from service.domain.errors import InvalidRequest
from service.presets.version import engine_version
from service.store import StoreNotEmpty
from service.store.tables import HEAD
from service.usecases.durable_file import new_file
from service.usecases.results.signing_keys import FOLDER

MANIFEST, TABLES = "manifest.json", "tables"
FORMAT = 1
Row = Mapping[str, Any]
DECODERS: Mapping[str, Callable[[Any], object]] = {"time": datetime.fromisoformat, "decimal": Decimal, "bytes": base64.b64decode}
"""Readers of values that JSON has no type of, by the name of the type."""


@dataclass(frozen=True, slots=True)
class TableContent:
    """Number of a table's rows, and the SHA-256 of their lines."""

    rows: int
    sha256: str


def make_backup(context: AppContext, file: Path) -> dict[str, TableContent]:
    """Write a backup of one state of the database, while it is in use; what it has of each table.

    Raises InvalidRequest where the file exists or cannot be written. It appears complete, readable by its owner alone.
    """
    context.store.check_head()
    with new_file(file) as target, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        contents = _write_tables(context, archive)
        for key in sorted((context.settings.data_dir / FOLDER).glob("*.json")):
            archive.write(key, f"{FOLDER}/{key.name}")
        archive.writestr(MANIFEST, json.dumps(_manifest(context, contents), indent=2))
    return contents


def restore_backup(context: AppContext, file: Path) -> dict[str, TableContent]:
    """Write a backup into an empty, migrated database and compare all that was written with the backup; what it has of each table.

    Raises InvalidRequest for a file that is damaged or no backup of this schema, and where there are rows or signing keys already.
    """
    keys = context.settings.data_dir / FOLDER
    if any(keys.glob("*.json")):
        raise InvalidRequest(f"{keys} has keys already; restore into an empty data directory")
    with _opened(file) as archive:
        manifest = _read_manifest(archive)
        try:
            context.store.write_all_rows(lambda name: _read_rows(archive, name))
        except StoreNotEmpty as error:
            raise InvalidRequest(f"the database is not empty, {error}; restore into an empty one") from error
        except (zipfile.BadZipFile, KeyError, ValueError) as error:
            raise InvalidRequest(f"{file} is damaged: {error}") from error
        written = read_contents(context)
        expected = {name: TableContent(**content) for name, content in manifest["tables"].items()}
        if wrong := sorted(name for name in expected | written if expected.get(name) != written.get(name)):
            raise InvalidRequest(f"after restoring, {', '.join(wrong)} differ from the backup's manifest: the file is damaged")
        _restore_keys(archive, keys)
    return written


def read_contents(context: AppContext) -> dict[str, TableContent]:
    """What the database has of each table."""
    with context.store.all_rows() as tables:
        return {name: _measure(encode_row(row) for row in rows) for name, rows in tables}


def encode_row(row: Row) -> bytes:
    """A row as a line of JSON."""
    return json.dumps({name: _encode(value) for name, value in row.items()}, sort_keys=True, ensure_ascii=False).encode() + b"\n"


def decode_row(line: bytes) -> Row:
    """The row of a line. Raises ValueError for a line that is none."""
    match json.loads(line):
        case dict() as row:
            return {name: _decode(value) for name, value in row.items()}
    raise ValueError("a line is no row")


def _encode(value: object) -> object:
    match value:
        case datetime():
            return {"time": value.isoformat()}
        case Decimal():
            return {"decimal": str(value)}
        case bytes():
            return {"bytes": base64.b64encode(value).decode()}
        case dict() | list():
            return {"json": value}
    return value


def _decode(value: object) -> object:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "json":
        return content
    if kind not in DECODERS:
        raise ValueError(f"values of type {kind} are not known")
    try:
        return DECODERS[kind](content)
    except (TypeError, ArithmeticError) as error:
        raise ValueError(f"{content!r} is no {kind}") from error


def _write_tables(context: AppContext, archive: zipfile.ZipFile) -> dict[str, TableContent]:
    contents = {}
    with context.store.all_rows() as tables:
        for name, rows in tables:
            with archive.open(f"{TABLES}/{name}.jsonl", "w", force_zip64=True) as member:
                contents[name] = _measure(_written(member, (encode_row(row) for row in rows)))
    return contents


def _written(member: Any, lines: Iterable[bytes]) -> Iterator[bytes]:
    for line in lines:
        member.write(line)
        yield line


def _measure(lines: Iterable[bytes]) -> TableContent:
    digest, rows = hashlib.sha256(), 0
    for line in lines:
        digest.update(line)
        rows += 1
    return TableContent(rows, digest.hexdigest())


def _manifest(context: AppContext, contents: Mapping[str, TableContent]) -> dict[str, Any]:
    tables = {name: {"rows": content.rows, "sha256": content.sha256} for name, content in contents.items()}
    made = {"format": FORMAT, "schema": HEAD, "engine_version": engine_version(), "made_at": context.clock().isoformat()}
    return {**made, "tables": tables}


def _opened(file: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(file)
    except (zipfile.BadZipFile, FileNotFoundError) as error:
        raise InvalidRequest(f"{file} is no backup: {error}") from error


def _read_manifest(archive: zipfile.ZipFile) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads(archive.read(MANIFEST))
    except (KeyError, ValueError) as error:
        raise InvalidRequest(f"the archive has no readable {MANIFEST}: it is no backup") from error
    if (manifest.get("format"), manifest.get("schema")) != (FORMAT, HEAD):
        raise InvalidRequest(
            f"the backup has schema {manifest.get('schema')}, this release {HEAD}: restore it with the release that made it"
            f" ({manifest.get('engine_version')}), then upgrade"
        )
    return manifest


def _read_rows(archive: zipfile.ZipFile, name: str) -> Iterator[Row]:
    with archive.open(f"{TABLES}/{name}.jsonl") as member:
        yield from map(decode_row, member)


def _restore_keys(archive: zipfile.ZipFile, folder: Path) -> None:
    members = [member for member in archive.namelist() if member.startswith(f"{FOLDER}/")]
    if members:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for member in members:
        target = folder / Path(member).name
        with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as key:
            key.write(archive.read(member))
