"""Runs the commands of a tutorial one after another, as its reader does, against a service of its own: an empty database, no network.

`$` blocks without a language are run here; those of `console` need clients that are installed, and `make clients` runs them.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import re
import runpy
import shlex
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import chdir, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

from bench.harness import ROOT, offline_settings

if TYPE_CHECKING:
    from service.context import AppContext

BLOCK = re.compile(r"```\n\$ (.*?)```", flags=re.DOTALL)
COMMAND = re.compile(r"(?:.*\\\n)*.*\n")
ID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|(?<=token=)[\w-]{43}|(?<=\"request_id\": \")[0-9a-f]{24}")
SHOWN_AT = datetime(2026, 9, 21, tzinfo=UTC)
"""What commands take for now: which prices are stale depends on it."""
ADDRESS = "http://127.0.0.1:8080"
"""The service's, as pages have it."""
LONGEST_S = 60


class Session:
    """What a reader has between two commands: a service at an address, variables, and ids that differ from the page's."""

    def __init__(self, address: str, folder: str, context: AppContext) -> None:
        self.address, self.context = address, context
        self.environment = {
            "OUTLAY_SERVER": address,
            "OUTLAY_API_KEY": "",
            "OUTLAY_BUFFER_DIR": f"{folder}/events",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        self.shown: dict[str, str] = {}

    def run(self, command: str) -> str:
        """What a command prints, with the address and ids as the page shows them. Raises ValueError where it fails."""
        for actual, shown in self.shown.items():
            command = command.replace(shown, actual)
        printed = self._printed_by(command.replace(ADDRESS, self.address))
        for actual in ID.findall(printed):
            made = uuid.uuid5(uuid.NAMESPACE_URL, f"{len(self.shown)}")
            self.shown.setdefault(actual, str(made) if len(actual) == len(str(made)) else made.hex[: len(actual)])
        _work(self.context)
        return ID.sub(lambda found: self.shown[found[0]], printed).replace(self.address, ADDRESS)

    def _printed_by(self, command: str) -> str:
        words = [
            re.sub(r"\$([A-Z_]+)", lambda found: self.environment[found[1]], word) for word in shlex.split(command.replace("\\\n", " "))
        ]
        if words[0] == "export":
            self.environment.update(dict([words[1].split("=", 1)]))
            return ""
        if words[0] == "outlay":
            return _outlay(words[1:], self.environment)
        if words[0] == "python":
            return _python(words[1:], self.environment)
        ran = subprocess.run(["bash", "-c", command], env=self.environment, capture_output=True, text=True, check=False, timeout=LONGEST_S)
        if ran.returncode != 0:
            raise ValueError(f"{command}: {ran.stdout}{ran.stderr}")
        return ran.stdout if ran.stdout.endswith("\n") or not ran.stdout else ran.stdout + "\n"


def with_session(text: str) -> str:
    """The page with the real output of each of its commands, run in their order."""
    with _session() as session:
        return BLOCK.sub(lambda found: _block(session, found[1]), text)


def _block(session: Session, content: str) -> str:
    found = COMMAND.match(content)
    if found is None:
        raise ValueError(f"no command: {content}")
    return f"```\n$ {found[0]}{session.run(found[0])}```"


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


def _outlay(arguments: list[str], environment: Mapping[str, str]) -> str:
    """Output of `outlay`, up to the names of prices and engine, which differ with each release."""
    from click.testing import CliRunner

    from service.cli import main

    ran = CliRunner().invoke(main, arguments, env=environment)
    if ran.exit_code != 0:
        raise ValueError(f"outlay {' '.join(arguments)}: {ran.output}")
    lines = ran.stdout.splitlines()
    shown = list(itertools.takewhile(lambda line: not line.startswith("prices"), lines))
    return "".join(f"{line.rstrip()}\n" for line in shown) + ("…\n" if len(shown) < len(lines) else "")


def _python(arguments: list[str], environment: Mapping[str, str]) -> str:
    """Output of a script of this project, run in this process."""
    printed = io.StringIO()
    with patch.dict(os.environ, environment), patch.object(sys, "argv", arguments), contextlib.redirect_stdout(printed):
        runpy.run_path(str(ROOT / arguments[0]), run_name="__main__")
    return printed.getvalue()


@contextmanager
def _session() -> Iterator[Session]:
    """A session with a service in threads of this process, on the day that documents are of."""
    from werkzeug.serving import WSGIRequestHandler, make_server

    from service import create_app
    from service.config import load_settings

    silent = patch.object(WSGIRequestHandler, "log_request", lambda *_: None)
    with tempfile.TemporaryDirectory() as folder, silent, patch("service.container.utc_now", lambda: SHOWN_AT):
        app = create_app(load_settings(offline_settings(folder)))
        context = app.extensions["context"]
        with closing(context.store) as store:
            store.migrate()
            server = make_server("127.0.0.1", 0, app, threaded=True)
            serving = threading.Thread(target=server.serve_forever)
            serving.start()
            clone = Path(folder) / "clone"
            clone.mkdir()
            (clone / "examples").symlink_to(ROOT / "examples")
            try:
                with chdir(clone):
                    yield Session(f"http://127.0.0.1:{server.server_port}", folder, context)
            finally:
                server.shutdown()
                serving.join()
                server.server_close()
