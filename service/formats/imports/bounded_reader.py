"""Reading of an imported file in a process of its own, which can be ended at any time and has a limit on its CPU time.

`python -m service.formats.imports.bounded_reader REQUEST < FILE` writes pickles: why the file was refused or None, its contents without
events, the number of its events, the events in parts, and the CPU time that this took [s].
"""

from __future__ import annotations

import json
import math
import os
import pickle
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO

from service.domain.errors import InvalidRequest
from service.domain.tracking.imports import ImportedEvent, ImportedFile
from service.formats.imports.focus import CostBasis
from service.formats.imports.readers import read_file

PART = 5000
"""Events that are handed over at once: between two parts the reading can be stopped."""
POLL_S = 0.1
GRACE_S = 5
"""CPU time between the signal of the limit and the end that cannot be caught [s]."""
MODULE = "service.formats.imports.bounded_reader"


class ReadingTooLong(Exception):
    """The file takes more CPU time to read than it may."""


class ReaderDied(Exception):
    """The reading process ended without a result; the text has its exit status."""


def read_bounded(
    kind: str, content: bytes, basis: CostBasis, cpu_limit_s: float, folder: Path, step: Callable[[], None]
) -> tuple[ImportedFile, float]:
    """Contents of a file, and the CPU time that reading it took [s]. `step` is called ten times a second and may raise to stop it.

    `folder` is where the content is written for the process, to files without a name. Raises InvalidRequest for a file that is not of its
    kind, ReadingTooLong and ReaderDied.
    """
    request = json.dumps({"kind": kind, "basis": basis, "cpu_limit_s": max(1, math.ceil(cpu_limit_s))})
    with tempfile.TemporaryFile(dir=folder) as given, tempfile.TemporaryFile(dir=folder) as found:
        given.write(content)
        given.seek(0)
        _run([sys.executable, "-P", "-m", MODULE, request], given, found, step)
        found.seek(0)
        return _load(found, step)


def _run(command: list[str], given: IO[bytes], found: IO[bytes], step: Callable[[], None]) -> None:
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(  # noqa: S603 - our own module
        command, stdin=given, stdout=found, stderr=subprocess.DEVNULL, env=environment, start_new_session=True
    )
    try:
        while True:
            with suppress(subprocess.TimeoutExpired):
                status = process.wait(POLL_S)
                break
            step()
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # with the reader of Parquet that it may have started
        process.wait()
    if status == -signal.SIGXCPU:
        raise ReadingTooLong
    if status:
        raise ReaderDied(f"the process that reads the file ended with status {status}")


def _load(found: IO[bytes], step: Callable[[], None]) -> tuple[ImportedFile, float]:
    refusal = pickle.load(found)  # noqa: S301 - written by our own process
    if refusal is not None:
        raise InvalidRequest(refusal)
    file: ImportedFile = pickle.load(found)  # noqa: S301
    number: int = pickle.load(found)  # noqa: S301
    events: list[ImportedEvent] = []
    while len(events) < number:
        step()
        events += pickle.load(found)  # noqa: S301
    cpu_s: float = pickle.load(found)  # noqa: S301
    return replace(file, events=tuple(events)), cpu_s


def main() -> None:
    """Read the file from standard input and write what it has, or why it is refused."""
    request = json.loads(sys.argv[1])
    limit_s = request["cpu_limit_s"]
    resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s + GRACE_S))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    out = sys.stdout.buffer
    try:
        file = read_file(request["kind"], sys.stdin.buffer.read(), request["basis"])
    except InvalidRequest as refused:
        pickle.dump(str(refused), out)
        return
    for value in (None, replace(file, events=()), len(file.events)):
        pickle.dump(value, out)
    for first in range(0, len(file.events), PART):
        pickle.dump(file.events[first : first + PART], out)
    pickle.dump(time.process_time(), out)


if __name__ == "__main__":
    main()
