"""The keys that sign records: numbered files in the data directory, on which all processes agree without a lock.

The file with the highest number signs. A file appears complete, by a hard link that fails where the number is taken. Rotation adds the next
number and then removes the private part of the earlier ones, whose public part goes on verifying older records.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from service.domain.errors import StoreReadOnly
from service.formats.signed_records import new_key, public_part

Jwk = Mapping[str, Any]
FOLDER = "signing-keys"
PRIVATE = "d"


def signing_key(data_dir: Path) -> Jwk:
    """The private key that signs now, created where there is none. Raises StoreReadOnly where it cannot be written."""
    folder = data_dir / FOLDER
    try:
        while True:
            number = _newest(folder) or _add(folder, 1)
            key = _read(folder, number)
            if PRIVATE in key:
                return key
            # a rotation came between: the next number exists
    except OSError as error:
        raise StoreReadOnly(f"the signing key cannot be read or written in {folder}: {error}") from error


def rotate(data_dir: Path) -> Jwk:
    """A new key that signs from now on, its public part. Concurrent rotations may agree on one. Raises OSError."""
    folder = data_dir / FOLDER
    number = _add(folder, (_newest(folder) or 0) + 1)
    for earlier in range(1, number):
        _write(folder, earlier, public_part(_read(folder, earlier)), replace=True)
    return public_part(_read(folder, number))


def public_keys(data_dir: Path) -> list[dict[str, Any]]:
    """The public parts of all keys, the newest first; none where nothing was signed yet."""
    folder = data_dir / FOLDER
    return [public_part(_read(folder, number)) for number in range(_newest(folder) or 0, 0, -1)]


def _newest(folder: Path) -> int | None:
    numbers = [int(file.stem) for file in folder.glob("*.json") if file.stem.isdecimal()]
    return max(numbers, default=None)


def _read(folder: Path, number: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / f"{number:04}.json").read_bytes())
    return found


def _add(folder: Path, number: int) -> int:
    """Add a key under this number unless there is one; the number."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _write(folder, number, new_key(), replace=False)
    return number


def _write(folder: Path, number: int, key: Jwk, *, replace: bool) -> None:
    """Write a key's file at once, durably, readable by its owner alone."""
    handle, name = tempfile.mkstemp(dir=folder, suffix=".new")
    target = folder / f"{number:04}.json"
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(dict(key), file)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            Path(name).replace(target)
        else:
            _link(Path(name), target)
    finally:
        Path(name).unlink(missing_ok=True)
    _sync_folder(folder)


def _link(file: Path, target: Path) -> None:
    try:
        target.hardlink_to(file)
    except FileExistsError:
        return  # another process was first: its key counts


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
