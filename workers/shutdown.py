"""Soft shutdown: after SIGTERM running jobs are released at their next step, and terminated after `SOFT_S`.

Celery's own soft shutdown always waits its whole time while a task runs and does not notify the task; this one ends with the last job.
"""

from __future__ import annotations

import mmap
import os
import signal
import threading
import time

SOFT_S = 10.0
HARD_S = 2.0
"""Time for terminated processes to release their jobs, and for the pool to end [s]."""

_flag = mmap.mmap(-1, 1)  # shared with every process forked from the worker


def stopping() -> bool:
    """Whether this worker was asked to stop; the same in all its processes."""
    return _flag[0] == 1


def begin(**_signal: object) -> None:
    """The worker's main process was asked to stop (Celery's signal `worker_shutting_down`)."""
    if not stopping():
        _flag[0] = 1
        threading.Thread(target=_stop_after_grace, name="soft-shutdown", daemon=True).start()


def release_jobs_on_term() -> None:
    """In a pool process: exit in order at the termination after `SOFT_S`, so that the job's row is released."""
    signal.signal(signal.SIGTERM, _leave)


def _stop_after_grace() -> None:
    """Terminate the pool, then this process: a pool process killed while it holds the pool's queue would block it for ever."""
    time.sleep(SOFT_S)
    os.kill(os.getpid(), signal.SIGQUIT)
    time.sleep(HARD_S)
    os._exit(0)


def _leave(_number: int, _frame: object) -> None:
    raise SystemExit(0)
