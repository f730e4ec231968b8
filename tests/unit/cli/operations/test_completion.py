"""`outlay completion`: its script, sourced in a real shell, completes commands and options."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from service.cli import main

ROOT = Path(__file__).parents[4]
COMPLETE = {
    "bash": "COMP_WORDS=(outlay {word}); COMP_CWORD=1; _outlay_completion outlay; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
    "zsh": "COMP_WORDS='outlay {word}' COMP_CWORD=1 _OUTLAY_COMPLETE=zsh_complete outlay",
    "fish": "complete --do-complete 'outlay {word}'",
}


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A PATH with `outlay`, as an installation has it."""
    program = tmp_path / "outlay"
    start = "from service.cli import main; main(prog_name='outlay')"
    program.write_text(f'#!/bin/sh\nexport PYTHONPATH="{ROOT}"\nexec "{sys.executable}" -c "{start}" "$@"\n')
    program.chmod(0o755)
    return f"{tmp_path}{os.pathsep}{os.environ['PATH']}"


@pytest.mark.parametrize("shell", sorted(COMPLETE))
def test_a_shell_completes_commands(shell: str, path: str) -> None:
    """After its script has been read."""
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell} here")
    script = CliRunner().invoke(main, ["completion", shell])
    assert script.exit_code == 0, script.output
    begun = "autoload -U compinit; compinit -u\n" if shell == "zsh" else ""
    words = f"{begun}{script.stdout}\n{COMPLETE[shell].format(word='est')}"
    done = subprocess.run([program, "-c", words], env={"PATH": path, "HOME": "/nonexistent"}, capture_output=True, text=True, check=False)
    assert "estimate" in done.stdout, done.stderr


@pytest.mark.parametrize("shell", sorted(COMPLETE))
def test_every_shell_has_a_script(shell: str) -> None:
    """Also where the shell is not installed."""
    script = CliRunner().invoke(main, ["completion", shell])
    assert "_OUTLAY_COMPLETE" in script.stdout


def test_another_shell_is_refused() -> None:
    """With those there are."""
    assert CliRunner().invoke(main, ["completion", "tcsh"]).exit_code == 2
