"""Real workers that know the toy scenario, to be killed and restarted by tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from service.config import Settings, to_env
from service.context import AppContext
from service.domain.scenarios import ScenarioRecord
from service.runtime import serve
from service.usecases.scenarios.scenarios import find_scenario
from tests.support.scenario_toy import EVERYBODY, MODULE, NAME
from tests.support.servers import DEADLINE_S, wait_for

ROOT = Path(__file__).parents[2]
APP = f'''
"""The worker with one kind of scenario more."""
from service.usecases.scenarios.registry import KINDS
KINDS["{NAME}"] = "{MODULE}"
from workers.app import app
'''
ENDED = ("succeeded", "failed", "cancelled")
ORDER = {"queued": 0, "running": 1, "succeeded": 2, "failed": 2, "cancelled": 2}


@dataclass
class Workers:
    """Workers on one service's settings, and what was seen of scenarios meanwhile."""

    context: AppContext
    folder: Path
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)
    seen: dict[str, list[str]] = field(default_factory=dict)

    def start(self, concurrency: int = 1, settings: Settings | None = None, **variables: str) -> subprocess.Popen[bytes]:
        """Another worker, with its clock; as on another host with settings and environment of its own."""
        settings = replace(settings or self.context.settings, worker_concurrency=concurrency)
        (self.folder / "toy_worker.py").write_text(APP)
        env = {**os.environ, **to_env(settings), "PYTHONPATH": os.pathsep.join((str(ROOT), str(self.folder))), **variables}
        command = ["toy_worker" if part == "workers.app" else part for part in serve.worker_command(settings)]
        with (self.folder / "worker.log").open("ab") as out:
            worker = subprocess.Popen(
                command, env=env, cwd=self.folder, stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True
            )
        self.started.append(worker)
        return worker

    def kill(self, worker: subprocess.Popen[bytes]) -> None:
        """SIGKILL for a worker and all its processes."""
        with suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)
        worker.wait(DEADLINE_S)

    def holder(self) -> int:
        """The process that works on scenarios now."""
        (job,) = [job for job in self.context.store.open_jobs("scenario_work") if job.state == "running" and job.lease_owner]
        return int(str(job.lease_owner).rpartition("/")[2])

    def state(self, row: ScenarioRecord) -> str:
        """A scenario's state; one that went back fails the test."""
        state = find_scenario(self.context, EVERYBODY, row.id).row.state
        states = self.seen.setdefault(row.id, [state])
        assert ORDER[state] >= ORDER[states[-1]], f"{states[-1]} became {state}"
        assert states[-1] == state or states[-1] not in ENDED, f"{states[-1]} became {state}"
        states.append(state)
        return state

    def wait(self, row: ScenarioRecord, state: str) -> None:
        """Until the scenario is over, which has to be so."""
        wait_for(lambda: self.state(row) in ENDED, f"scenario {row.number} to end")
        assert self.state(row) == state, find_scenario(self.context, EVERYBODY, row.id).row.error

    def digest(self, row: ScenarioRecord) -> str:
        """What any other bit of the result would change."""
        self.wait(row, "succeeded")
        result = find_scenario(self.context, EVERYBODY, row.id).result
        assert result is not None
        return str(result["digest"])

    def at(self, what: object) -> bool:
        """Whether a chunk waits."""
        return (self.folder / f"at-{what}").exists()

    def go(self) -> None:
        """End all waiting."""
        (self.folder / "go").touch()

    def made(self, what: object) -> int:
        """How often a chunk was begun."""
        return (self.folder / "made").read_text().split().count(str(what))


@contextmanager
def workers_on(context: AppContext, folder: Path) -> Iterator[Workers]:
    """Workers that leave nothing behind; their log is shown when the test fails."""
    workers = Workers(context, folder)
    try:
        yield workers
    finally:
        for worker in workers.started:
            workers.kill(worker)
        log = folder / "worker.log"
        sys.stdout.write(log.read_text() if log.exists() else "")
