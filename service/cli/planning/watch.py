"""`outlay plan FILE --watch`: the plan again after every change of its file, with what the change costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from service.cli.terminal.tables import columns, headline
from service.formats.differences import compare_answers

POLL_S = 0.3
Body = Mapping[str, Any]


def watch(file: Path, plan: Callable[[], Body]) -> None:
    """Print the plan's sentence after every change of the file until Ctrl-C; a request that cannot be read is said and waited for."""
    stamp, last = None, None
    try:
        while True:
            if (now := _stamp(file)) != stamp:
                stamp, last = now, _planned(plan, last)
            time.sleep(POLL_S)
    except KeyboardInterrupt:
        return


def _planned(plan: Callable[[], Body], last: Body | None) -> Body | None:
    """The new plan, or the last where the request is wrong."""
    try:
        answer = plan()
    except click.ClickException as error:
        error.show()
        return last
    click.echo("\n".join(headline(answer)))
    if last is not None:
        difference = compare_answers(last, answer)
        click.echo(difference.headline)
        if difference.lines:
            click.echo(columns([("line", "before", "after", "change"), *difference.lines]))
    return answer


def _stamp(file: Path) -> tuple[int, int] | None:
    """Time of the last change and size; None while an editor replaces the file."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return found.st_mtime_ns, found.st_size
