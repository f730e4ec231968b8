"""Which engine answered: the release, and a digest of the data it counts with."""

from __future__ import annotations

import functools
import hashlib
from importlib.metadata import version
from pathlib import Path


@functools.cache
def engine_version() -> str:
    """Release and first 8 hex digits of the data files' SHA-256, such as `0.1.0+data.1a2b3c4d`."""
    digest = hashlib.sha256()
    for file in sorted((Path(__file__).parent / "data").glob("*.toml")):
        digest.update(file.name.encode())
        digest.update(file.read_bytes())
    return f"{version('outlay')}+data.{digest.hexdigest()[:8]}"
