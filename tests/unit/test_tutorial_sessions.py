"""Tutorials with state: commands of `console` blocks run in order, on one data directory and one service, and answer as shown."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from string import Template

import pytest
from click.testing import CliRunner

from service import create_app
from service.cli import main
from service.config import load_settings
from tests.unit.served import listening_at

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / "tutorials" / f"{name}.md" for name in ("operator", "slack-administrator")]
FOLDER, ADDRESS = "/tmp/outlay-tutorial", "http://127.0.0.1:8080"
"""What pages say in place of the test's own."""
NOT_EVERYWHERE = ("docker", "kubectl", "promtool")
"""Programs that a machine may lack; a command that begins with one is then left out."""
EXPORT = re.compile(r"export (\w+)=(?:\$\((.+)\)|(\S+))")
SETTING = re.compile(r"(\w+)=(\S+) +")


def steps(text: str) -> Iterator[tuple[str, list[str]]]:
    """Commands of a page with the lines that they print."""
    for block in re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL):
        for step in re.split(r"^\$ ", block.replace("\\\n", ""), flags=re.MULTILINE)[1:]:
            command, *lines = step.rstrip("\n").split("\n")
            yield command, lines


def is_shown(printed: list[str], shown: list[str]) -> bool:
    """Whether lines are as shown: `…` and spaces after it stand for anything within a line, alone for any lines; columns may be wider."""
    lines = (re.escape("  ".join(re.split(" {2,}", line))) for line in shown)
    forms = [r"(?:[^\n]*\n)*" if line == "…" else re.sub(r"…(?:\\ )*", r"[^\\n]*", line) + "\n" for line in lines]
    text = "\n".join(re.sub(" {2,}", "  ", line.rstrip()) for line in printed).rstrip() + "\n" * bool(shown)
    return re.fullmatch("".join(forms), text) is not None


@dataclass
class Reader:
    """Somebody who types what a page says, in the root of a clone."""

    folder: Path
    services: ExitStack
    address: str | None = None
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environment |= {"PATH": path, "PWD": str(ROOT), "HOME": str(self.folder), "PYTHONPATH": str(ROOT)}

    def types(self, command: str) -> list[str]:
        """The lines that a command prints."""
        exported = EXPORT.fullmatch(command)
        if exported is None:
            return self._printed(command)[0].splitlines()
        name, inner, value = exported.groups()
        said, value = self._printed(inner, apart=True) if inner else ("", value)
        self.environment[name] = self._here(value).strip()
        return said.splitlines()

    def _here(self, text: str) -> str:
        return Template(text).safe_substitute(self.environment).replace(FOLDER, str(self.folder))

    def _printed(self, command: str, *, apart: bool = False) -> tuple[str, str]:
        """What a terminal shows of a command, with `apart` without its standard output, and that output."""
        if ADDRESS in command:
            command = command.replace(ADDRESS, self._service())
        command, settings = self._here(command), dict(self.environment)
        while (found := SETTING.match(command)) is not None:
            settings[found[1]], command = found[2], command[found.end() :]
        if command.startswith("outlay ") and "|" not in command:
            ran = CliRunner().invoke(main, shlex.split(command)[1:], env=settings)
            return self._there(ran.stderr if apart else ran.output), ran.stdout
        done = subprocess.run(["bash", "-c", command], cwd=ROOT, env=settings, capture_output=True, text=True, check=False)
        return self._there(done.stderr if apart else done.stdout + done.stderr), done.stdout

    def _there(self, text: str) -> str:
        return text.replace(str(self.folder), FOLDER).replace(self.address or ADDRESS, ADDRESS)

    def _service(self) -> str:
        """The address of the service, begun when it is first asked, with a worker that is alive."""
        if self.address is None:
            app = create_app(load_settings(self.environment))
            context = app.extensions["context"]
            self.services.enter_context(closing(context.store))
            context.store.migrate()
            context.store.beat("worker", context.clock())
            self.address = self.services.enter_context(listening_at(app))
        return self.address


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_followed_literally_answers_as_it_shows(page: Path, tmp_path: Path) -> None:
    """Each command as it stands on the page; the folder and the port are the test's."""
    with ExitStack() as services:
        reader = Reader(tmp_path, services)
        for command, shown in steps(page.read_text(encoding="utf-8")):
            program = command.split()[0]
            if program in NOT_EVERYWHERE and shutil.which(program) is None:
                continue
            printed = reader.types(command)
            assert is_shown(printed, shown), f"$ {command}\n" + "\n".join(printed)


def test_shown_lines_may_leave_out_what_differs() -> None:
    """Parts of a line, and whole lines; nothing else."""
    assert is_shown(["key 12 of ops", "a", "b", "end"], ["key … of ops", "…", "end"])
    assert not is_shown(["key 12 of ops", "a"], ["key … of ops"])
