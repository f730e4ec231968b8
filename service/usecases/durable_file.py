"""Files that appear under their name complete, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from service.domain.errors import InvalidRequest


@contextmanager
def new_file(file: Path) -> Iterator[BinaryIO]:
    """Context that writes a file, readable by its owner alone; it has its name, durably, once the context has ended without an error.

    Raises InvalidRequest where a file of this name exists, or it cannot be written.
    """
    if file.exists():
        raise InvalidRequest(f"{file} exists; name another file")
    partial = file.with_name(f"{file.name}.partial")
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as target:
            yield target
            target.flush()
            os.fsync(target.fileno())
        partial.rename(file)
        _sync_folder(file.parent)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise InvalidRequest(f"{file} cannot be written: {error.strerror or error}") from error


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
