"""Soft shutdown: on SIGTERM running jobs are given back at their next step, and cut off after `SOFT_S`.

Celery's own soft shutdown sleeps its whole time whenever a task runs and tells the task nothing; this one ends with the last job.
"""

from __future__ import annotations

import mmap
import os
import signal
import threading
import time

SOFT_S = 10.0
HARD_S = 2.0
"""What the processes cut off have to let go of their jobs, and the pool to end."""

_flag = mmap.mmap(-1, 1)  # shared with every process forked from the worker


def stopping() -> bool:
    """Whether this worker has been asked to stop; the same answer in all its processes."""
    return _flag[0] == 1


def begin(**_signal: object) -> None:
    """The worker's main process was asked to stop (Celery's signal `worker_shutting_down`)."""
    if not stopping():
        _flag[0] = 1
        threading.Thread(target=_stop_after_grace, name="soft-shutdown", daemon=True).start()


def release_jobs_on_term() -> None:
    """In a pool process: make the termination that follows `SOFT_S` an orderly exit, so that the job's row is released on the way out."""
    signal.signal(signal.SIGTERM, _leave)


def _stop_after_grace() -> None:
    """End the pool, and then this process: a pool process cut off while it held the pool's queue would keep it waiting for ever."""
    time.sleep(SOFT_S)
    os.kill(os.getpid(), signal.SIGQUIT)
    time.sleep(HARD_S)
    os._exit(0)


def _leave(_number: int, _frame: object) -> None:
    raise SystemExit(0)
