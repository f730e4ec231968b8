"""Where files that processes share by mapping them belong."""

from __future__ import annotations

import os
from pathlib import Path

_MEMORY = Path("/dev/shm")  # noqa: S108  # the kernel's file system in memory


def memory_dir() -> str | None:
    """A directory in memory; None, for the usual temporary directory, where this machine has none.

    Such files must not lie on a disk that may fill up: writing to a mapped page without space ends the process.
    """
    return str(_MEMORY) if os.access(_MEMORY, os.W_OK) else None
