"""Colour and width: of a terminal, which a pseudo-terminal is here; never in a pipe, never with NO_COLOR."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from service.config import Settings
from tests.unit.cli.invoke import output_of

ROOT = Path(__file__).parents[4]
RUN = ["estimate", "--model", "llama-2-7b", "--tokens", "1T", "--accelerator", "H100", "--count", "256"]
WIDTH = 70


def on_terminal(settings: Settings, *arguments: str, **environment: str) -> str:
    """What a command shows on a terminal of that width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, WIDTH, 0, 0))
    variables = {"OUTLAY_DATA_DIR": str(settings.data_dir), "OUTLAY_OFFLINE": "1", "PYTHONPATH": str(ROOT), "TERM": "xterm", **environment}
    command = [sys.executable, "-m", "service.cli", *arguments]
    with subprocess.Popen(command, env=variables, cwd=ROOT, stdout=theirs, stderr=subprocess.DEVNULL):
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:
            pass  # Linux ends a terminal whose process has closed it with EIO
    os.close(ours)
    return shown.decode().replace("\r\n", "\n")


def test_a_terminal_is_coloured_and_fitted(settings: Settings) -> None:
    """The sentence bold, warnings yellow, tables within the width."""
    shown = on_terminal(settings, *RUN)
    assert shown.startswith("\x1b[1m")
    assert "\x1b[33mwarning: " in shown
    assert max(map(len, on_terminal(settings, "accelerators").splitlines())) <= WIDTH


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colour_can_be_turned_off(settings: Settings, variables: dict[str, str]) -> None:
    """By https://no-color.org, and by a terminal that has none."""
    assert "\x1b" not in on_terminal(settings, *RUN, **variables)


def test_a_pipe_has_no_colour_and_no_width(settings: Settings) -> None:
    """A row is one line for the next program."""
    shown = output_of(settings, "accelerators")
    assert "\x1b" not in output_of(settings, *RUN)
    assert max(map(len, shown.splitlines())) > WIDTH
