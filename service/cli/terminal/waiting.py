"""What a terminal shows while an answer takes longer than a second."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SHOWN_AFTER_S = 1.0


@contextmanager
def waiting(text: str = "computing") -> Iterator[None]:
    """A moving bar with the time that has passed, on the error stream of a terminal, from the second second on."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    over = threading.Event()
    thread = threading.Thread(target=_show_until, args=(over, text), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _show_until(over: threading.Event, text: str) -> None:
    if over.wait(SHOWN_AFTER_S):
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    shown = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*shown, console=Console(stderr=True), transient=True) as progress:
        progress.add_task(text, total=None)
        over.wait()
