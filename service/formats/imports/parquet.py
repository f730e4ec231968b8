"""Rows of Parquet files, read by a process of their own.

The library aborts its process on some damaged files, and a small file may decompress to any size; neither may harm the service. The reader
is `parquet_reader`, with limits on memory, time and output.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection, Iterator

from service.domain.errors import InvalidRequest
from service.formats.imports import rows
from service.formats.imports.rows import Row, check_columns, check_rows

MAGIC = b"PAR1"
MAX_UNPACKED_BYTES = 256 * 2**20
"""Most decompressed bytes of the columns that are read. An invoice of 100,000 rows has about 50 MiB."""
MAX_SECONDS = 120
REFUSED = 3
"""Exit status of the reader for a file that cannot be read."""
READER = "service.formats.imports.parquet_reader"


def is_parquet(content: bytes) -> bool:
    """Whether the bytes begin with the magic number of Parquet."""
    return content.startswith(MAGIC)


def parquet_rows(content: bytes, needed: Collection[str], wanted: Collection[str]) -> Iterator[Row]:
    """The wanted columns of a Parquet file, by lower-case name. Raises InvalidRequest for a damaged file and above the limits."""
    lines = iter(_read(content, wanted).splitlines())
    names: list[str] = json.loads(next(lines))
    check_columns(names, needed)
    for number, line in enumerate(lines, start=1):
        check_rows(number)
        yield Row(number, dict(zip(names, json.loads(line), strict=True)))


def _read(content: bytes, wanted: Collection[str]) -> bytes:
    """Output of the reader: the columns' names, then each row's cells, a JSON list a line."""
    asked = {
        "wanted": sorted(name.lower() for name in wanted),
        "most_rows": rows.MAX_ROWS,
        "most_unpacked_bytes": MAX_UNPACKED_BYTES,
    }
    command = [sys.executable, "-P", "-m", READER, json.dumps(asked)]
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "ARROW_DEFAULT_MEMORY_POOL": "system"}
    try:
        done = subprocess.run(command, input=content, capture_output=True, timeout=MAX_SECONDS, check=False, env=environment)  # noqa: S603 - our own module
    except subprocess.TimeoutExpired:
        raise InvalidRequest(f"the Parquet file takes longer than {MAX_SECONDS} s to read; import it in parts") from None
    if done.returncode == REFUSED:
        raise InvalidRequest(done.stderr.decode(errors="replace").strip())
    if done.returncode:
        raise InvalidRequest("the Parquet file is damaged, or unpacks to more than is taken: its reader gave up")
    return done.stdout
