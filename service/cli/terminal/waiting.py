"""What a terminal shows while an answer takes longer than a second."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from service.domain.jobs import ReportProgress, ignore_progress

SHOWN_AFTER_S = 1.0
REDRAWN_S = 0.2


@contextmanager
def waiting(text: str = "computing") -> Iterator[ReportProgress]:
    """A moving bar with the time that has passed, on the error stream of a terminal, from the second second on.

    Calls of what it yields, with what is done and the total, give the bar its length.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield ignore_progress
        return
    over, state = threading.Event(), [0, 0]
    thread = threading.Thread(target=_show_until, args=(over, text, state), daemon=True)
    thread.start()
    try:
        yield lambda done, total: state.__setitem__(slice(None), (done, total))
    finally:
        over.set()
        thread.join()


def _show_until(over: threading.Event, text: str, state: Sequence[int]) -> None:
    """`state`: what is done and the total; 0 for a total that is not known."""
    if over.wait(SHOWN_AFTER_S):
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    shown = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*shown, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(text, total=None)
        while not over.wait(REDRAWN_S):
            progress.update(task, completed=state[0], total=state[1] or None)
