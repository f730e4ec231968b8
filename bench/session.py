"""Follows pages as their reader does: their commands in order, in a clone without network, and what they print beside what is shown.

A block that begins with `$ ` is run. One without a language shows the output as it is, with ids of the page's own in place of those that
differ each time; one of `console` may show `…` for what differs. A line that begins with `> ` quotes what a command of the page prints.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, chdir, closing, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING
from unittest.mock import patch

from bench.harness import ROOT, offline_settings

if TYPE_CHECKING:
    from service.context import AppContext

BLOCK = re.compile(r"^```(console)?\n(\$ .*?)^```$", flags=re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"(?:.*\\\n)*.*\n")
QUOTE = re.compile(r"^> (.*)$", flags=re.MULTILINE)
EXPORT = re.compile(r"export (\w+)=(?:\$\((.+)\)|(\S+))")
SETTING = re.compile(r"(\w+)=(\S+) +")
SHELL = re.compile(r" [|>] ")
ID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|(?<=token=)[\w-]{43}|(?<=\"request_id\": \")[0-9a-f]{24}")
SHOWN_AT = datetime(2026, 9, 21, tzinfo=UTC)
"""What commands take for now: which prices are stale depends on it."""
ADDRESS, FOLDER = "http://127.0.0.1:8080", "/tmp/outlay-tutorial"
"""What pages say in place of the session's own."""
NOT_EVERYWHERE = ("docker", "kubectl", "promtool")
"""Programs that a machine may lack: their commands are then left out."""
CLIENTS = ("python examples/tutorials/ask_service.py", "node build/")
"""Commands that need a client to be installed: `make clients` runs them."""
ANSWERED = (0, 2)
"""Exit codes of commands whose output is written into pages: answered, and asked back."""
LONGEST_S = 300


@dataclass(frozen=True)
class Followed:
    """A page with the answers that its reader gets; `unsaid` are quotes that no command of it prints."""

    text: str
    unsaid: list[str]


def follow(page: str, now: datetime | None = SHOWN_AT) -> Followed:
    """The page with the real output of its commands where it shows another. `now`: what they take for now, None for the time of day.

    Raises ValueError where a command fails whose whole output is shown.
    """
    with session(now) as reader:
        text = BLOCK.sub(lambda found: f"```{found[1] or ''}\n{_answered(reader, found[2], exact=found[1] is None)}```", page)
        return Followed(text, [quote for quote in QUOTE.findall(page) if quote not in reader.said])


def _answered(reader: Session, block: str, *, exact: bool) -> str:
    """The commands of a block, each with what it prints."""
    return "".join(_step(reader, step, exact=exact) for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:])


def _step(reader: Session, step: str, *, exact: bool) -> str:
    command = step[: COMMAND.match(step).end()]  # type: ignore[union-attr]
    shown, program = step[len(command) :], command.split()[0]
    if command.startswith(CLIENTS) or (program in NOT_EVERYWHERE and shutil.which(program) is None):
        return f"$ {step}"
    printed, code = reader.run(command)
    if exact and code not in ANSWERED:
        raise ValueError(f"{command}{printed}")
    return f"$ {command}{shown if not exact and is_shown(printed, shown) else printed}"


def is_shown(printed: str, shown: str) -> bool:
    """Whether output is as shown: `…` and spaces after it stand for anything within a line, alone for any lines; columns may be wider."""
    lines = (re.escape("  ".join(re.split(" {2,}", line))) for line in shown.splitlines())
    forms = [r"(?:[^\n]*\n)*" if line == "…" else re.sub(r"…(?:\\ )*", r"[^\\n]*", line) + "\n" for line in lines]
    text = "\n".join(re.sub(" {2,}", "  ", line.rstrip()) for line in printed.splitlines()).rstrip() + "\n" * bool(shown)
    return re.fullmatch("".join(forms), text) is not None


class Session:
    """What a reader has between two commands: a clone, variables, a service once it is asked, and ids that differ from the page's."""

    def __init__(self, folder: Path, services: ExitStack) -> None:
        self.folder, self._services = folder, services
        self.clone = folder / "clone"
        self.environment = offline_settings(str(folder / "data")) | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PWD": str(self.clone),
            "HOME": str(folder),
            "PYTHONPATH": str(ROOT),
        }
        self.shown: dict[str, str] = {}
        self.said = ""
        self._address: str | None = None
        self._context: AppContext | None = None

    @property
    def address(self) -> str:
        """That of the service, begun when it is first asked for, with the settings that the page has made by then."""
        if self._address is None:
            self._address, self._context = self._services.enter_context(_service(self.environment))
        return self._address

    def run(self, command: str) -> tuple[str, int]:
        """What a command prints, as the page would show it, and its exit code."""
        for actual, shown in self.shown.items():
            command = command.replace(shown, actual)
        if self._context is not None:
            _beat(self._context)
        exported = EXPORT.fullmatch(command.strip())
        printed, code = self._export(*exported.groups()) if exported else self._printed(command)[1:]
        for actual in ID.findall(printed):
            made = uuid.uuid5(uuid.NAMESPACE_URL, f"{len(self.shown)}")
            self.shown.setdefault(actual, str(made) if len(actual) == len(str(made)) else made.hex[: len(actual)])
        if self._context is not None:
            _work(self._context)
        whole = ID.sub(lambda found: self.shown[found[0]], printed).replace(str(self.folder / "tutorial"), FOLDER)
        whole = whole.replace(self._address or ADDRESS, ADDRESS)
        self.said += whole
        return _shortened(whole) if command.startswith("outlay ") else whole, code

    def _export(self, name: str, inner: str | None, value: str) -> tuple[str, int]:
        """Set a variable, to what a command prints where one stands for its value; the terminal then shows the command's errors alone."""
        said, code = "", 0
        if inner is not None:
            value, both, code = self._printed(inner)
            said = both.removeprefix(value) if both.startswith(value) else both.replace(value, "")
        self.environment[name] = self._here(Template(value).safe_substitute(self.environment)).strip()
        return said, code

    def _here(self, text: str) -> str:
        text = text.replace(FOLDER, str(self.folder / "tutorial"))
        return text.replace(ADDRESS, self.address) if ADDRESS in text else text

    def _printed(self, command: str) -> tuple[str, str, int]:
        """The standard output of a command, all that it prints, and its exit code."""
        command, settings = self._here(command.strip()), dict(self.environment)
        while (found := SETTING.match(command)) is not None:
            settings[found[1]], command = found[2], command[found.end() :]
        if not SHELL.search(command) and command.startswith(("outlay ", "python examples/")):
            words = [Template(word).safe_substitute(settings) for word in shlex.split(command.replace("\\\n", " "))]
            return (_outlay if words[0] == "outlay" else _python)(words[1:], settings)
        bash = ["bash", "-c", command]
        ran = subprocess.run(bash, cwd=self.clone, env=settings, capture_output=True, text=True, check=False, timeout=LONGEST_S)
        ends = "\n" if ran.stdout and not ran.stdout.endswith("\n") else ""
        return ran.stdout, ran.stdout + ran.stderr + ends, ran.returncode


def _shortened(printed: str) -> str:
    """Output of `outlay` up to the names of prices and engine, which differ with each release."""
    lines = printed.splitlines()
    kept = list(itertools.takewhile(lambda line: not line.startswith(("prices", "engine ")), lines))
    return "".join(f"{line.rstrip()}\n" for line in kept) + ("…\n" if len(kept) < len(lines) else "")


def _outlay(arguments: list[str], environment: dict[str, str]) -> tuple[str, str, int]:
    """Run `outlay` in this process."""
    from click.testing import CliRunner

    from service.cli import main

    ran = CliRunner().invoke(main, arguments, env=environment)
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    return ran.stdout, ran.output, ran.exit_code


def _python(arguments: list[str], environment: dict[str, str]) -> tuple[str, str, int]:
    """Run a script of this project in this process."""
    printed = io.StringIO()
    with patch.dict(os.environ, environment), patch.object(sys, "argv", arguments), contextlib.redirect_stdout(printed):
        runpy.run_path(str(ROOT / arguments[0]), run_name="__main__")
    return printed.getvalue(), printed.getvalue(), 0


def _beat(context: AppContext) -> None:
    """A sign of life of the worker, however long the commands before have taken."""
    context.store.beat("worker", context.clock())


def _work(context: AppContext) -> None:
    """Run the jobs that the last command has left to a worker."""
    from service.job_kinds import JOB_KINDS
    from service.usecases.jobs import Worker, run_job
    from service.usecases.scenarios.worker import KIND, maintain_scenarios

    maintain_scenarios(context)
    while jobs := context.store.open_jobs(KIND):
        for job in jobs:
            run_job(context, job.id, JOB_KINDS, Worker("page/1"))
        maintain_scenarios(context)


@contextmanager
def session(now: datetime | None = SHOWN_AT) -> Iterator[Session]:
    """A reader in a clone of their own, at a time or, for None, at that of day, without this process' own settings of Outlay."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("OUTLAY_")}
    clock = nullcontext() if now is None else patch("service.container.utc_now", lambda: now)
    with ExitStack() as services, patch.dict(os.environ, own, clear=True), clock:
        folder = Path(services.enter_context(tempfile.TemporaryDirectory()))
        reader = Session(folder, services)
        reader.clone.mkdir()
        for entry in ROOT.iterdir():
            if not entry.name.startswith("."):
                (reader.clone / entry.name).symlink_to(entry)
        services.enter_context(chdir(reader.clone))
        yield reader


@contextmanager
def _service(environment: dict[str, str]) -> Iterator[tuple[str, AppContext]]:
    """Address and context of a service in threads of this process, with a worker that is alive."""
    from werkzeug.serving import WSGIRequestHandler, make_server

    from service import create_app
    from service.config import load_settings
    from service.runtime import metrics

    metrics.begin_anew()
    app = create_app(load_settings(environment))
    context = app.extensions["context"]
    silent = patch.object(WSGIRequestHandler, "log_request", lambda *_: None)
    with closing(context.store) as store, silent:
        store.migrate()
        _beat(context)
        server = make_server("127.0.0.1", 0, app, threaded=True)
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", context
        finally:
            server.shutdown()
            serving.join()
            server.server_close()
