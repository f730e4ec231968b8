"""How many connections to PostgreSQL each process has: what a pooler, or the server's limit, has to bear."""

from __future__ import annotations

import http.client
import sys
import time
from collections import defaultdict
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from service.config import Settings
from tests.integration.import_workers import BILL_HEADER
from tests.integration.load import figure, outcome
from tests.integration.test_noisy_team import RUN, ask, several
from tests.integration.test_serve import processes, spaced_in, starting, status
from tests.support.freezing_proxy import FreezingProxy
from tests.support.servers import wait_for

pytestmark = [pytest.mark.soak, pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's /proc to look for processes")]

MOST_OF_A_WEB_PROCESS, MOST_OF_A_WORKER_PROCESS = 8, 4
"""What docs/explanation/scaling.md states."""
MEASURED_S = 30.0
ESTABLISHED = "01"
SCENARIO = {"kind": "monte_carlo", "base": RUN, "trials": 2_000_000}


def connections(settings: Settings, port: int) -> dict[str, int]:
    """Connections to a port by process, with its name and id."""
    found = {}
    for process, name in processes(settings).items():
        with suppress(OSError):
            inodes = {str(handle.readlink()) for handle in Path(f"/proc/{process}/fd").iterdir()}
            rows = [line.split() for line in Path(f"/proc/{process}/net/tcp").read_text().splitlines()[1:]]
            there = [row for row in rows if row[2].endswith(f":{port:04X}") and row[3] == ESTABLISHED and f"socket:[{row[9]}]" in inodes]
            found[f"{command(process, name)} {process}"] = len(there)
    return found


def command(process: int, name: str) -> str:
    """What a process does: web or worker."""
    line = Path(f"/proc/{process}/cmdline").read_bytes().decode()
    return "web" if "gunicorn" in line or "gunicorn" in name else "worker" if "celery" in line else "other"


def test_each_process_has_few_connections(postgres_url: str, tmp_path: Path) -> None:
    """While every thread of the web processes asks for something, and workers import, evaluate and do what is due."""
    with closing(FreezingProxy.before(postgres_url)) as proxy, starting(tmp_path) as run:
        settings = replace(spaced_in(tmp_path), database_url=proxy.url(postgres_url), web_workers=2, worker_concurrency=3)
        run(settings)
        wait_for(lambda: status(settings, "/readyz") == 200, "/readyz to answer 200")
        port = settings.port
        line = "USD,2026-02-01T00:00:00Z,2026-02-02T00:00:00Z,2.0,2.0,Usage,Compute,i-{}\n"
        bill = (BILL_HEADER + "".join(map(line.format, range(30_000)))).encode()
        assert ask(port, "POST", "/v1/scenarios", "", SCENARIO)[0] == 202
        assert send_bill(port, bill) == 202
        most: dict[str, int] = defaultdict(int)
        until_s = time.monotonic() + MEASURED_S

        def use() -> None:
            outcome(port, "GET", "/v1/track/programs")
            time.sleep(0.02)  # the way to the database is a thread of this process

        with several(12, use):
            while time.monotonic() < until_s:
                for name, number in connections(settings, proxy.port).items():
                    most[name] = max(most[name], number)
                outcome(port, "GET", "/metrics")
    kinds: dict[str, list[int]] = defaultdict(list)
    for name, number in sorted(most.items()):
        kinds[name.partition(" ")[0]].append(number)
    for kind, numbers in kinds.items():
        for number in numbers:
            figure(f"connections_of_a_{kind}_process", number, "connections")
    assert max(kinds["web"]) <= MOST_OF_A_WEB_PROCESS
    assert 0 < max(kinds["worker"]) <= MOST_OF_A_WORKER_PROCESS


def send_bill(port: int, content: bytes) -> int:
    """The status of the answer to an import by a worker."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        headers = {"Content-Type": "text/csv", "Prefer": "respond-async"}
        connection.request("POST", "/v1/track/imports?kind=focus", content, headers)
        return connection.getresponse().status
