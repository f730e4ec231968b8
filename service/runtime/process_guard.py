"""Processes that end with their parent, so that a killed supervisor leaves none running."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

SUPERVISOR = "_OUTLAY_SUPERVISOR_PID"
"""Environment variable that `service.runtime.serve` sets for its children; not a setting."""
POLL_S = 0.5
GRACE_S = 30.0


def follow_supervisor() -> None:
    """In a child of `service.runtime.serve`: shut down when it is gone. No effect elsewhere."""
    parent = os.environ.get(SUPERVISOR, "")
    if parent.isdigit():
        _watch(int(parent), _end_group)


def follow_parent() -> None:
    """In a forked child: exit when the parent process is gone."""
    _watch(os.getppid(), lambda: os._exit(1))


def _watch(parent: int, then: Callable[[], None]) -> None:
    threading.Thread(target=_wait, args=(parent, then), name="lifeline", daemon=True).start()


def _wait(parent: int, then: Callable[[], None]) -> None:
    while os.getppid() == parent:
        time.sleep(POLL_S)
    then()


def _end_group() -> None:
    """Terminate this process; kill its group, made by `service.runtime.serve`, if that takes too long."""
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_S)
    os.killpg(os.getpgrp(), signal.SIGKILL)
