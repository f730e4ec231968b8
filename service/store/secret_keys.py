"""The file of the keys that secrets in the database are sealed with: one Fernet key a line, the newest first.

It lies beside the database, not in it: who has the database alone reads no secret.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

FILE = "secrets.key"
KEPT = 2
"""Keys of the file after a rotation: the earlier one opens what running processes have sealed with it meanwhile."""


def read_keys(file: Path) -> tuple[str, ...]:
    """The keys of the file, the newest first; none where there is no file."""
    try:
        return tuple(file.read_text(encoding="ascii").split())
    except FileNotFoundError:
        return ()


def new_key() -> str:
    """A new key."""
    from cryptography.fernet import Fernet

    return Fernet.generate_key().decode()


def make_first_key(file: Path) -> None:
    """Make the file with one key, readable by its owner alone, unless there is one. Raises OSError."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    written = _write(file, [new_key()])
    try:
        file.hardlink_to(written)
    except FileExistsError:
        return  # another process was first: its key counts
    finally:
        written.unlink()


def add_key(file: Path) -> None:
    """Put a new key before the others; all but the newest `KEPT` are dropped. Raises OSError."""
    _write(file, [new_key(), *read_keys(file)][:KEPT]).replace(file)


def _write(file: Path, keys: list[str]) -> Path:
    """Write the keys durably to a new file beside `file`; its path."""
    handle, name = tempfile.mkstemp(dir=file.parent, suffix=".new")  # 0600
    with os.fdopen(handle, "w", encoding="ascii") as target:
        target.write("\n".join(keys) + "\n")
        target.flush()
        os.fsync(target.fileno())
    return Path(name)
