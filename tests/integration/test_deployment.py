"""The commands that compose.yaml, the manifests and the units run, as processes on PostgreSQL and Redis."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.usecases.secrets import make_key
from tests.support.servers import DEADLINE_S, find_free_port, wait_for

ROOT = Path(__file__).parents[2]
HERE = Path(sys.executable).parent
MODEL = {"preset": "llama-2-7b"}
SCENARIO = {
    "kind": "monte_carlo",
    "base": {
        "model": MODEL,
        "data": {"tokens": "10B"},
        "hardware": {"accelerator": "h100", "count": 8},
        "price": {"usd_per_accelerator_hour": 2.0},
    },
    "trials": 1000,
    "seed": 1,
}


@pytest.fixture
def environment(tmp_path: Path, postgres_url: str, own_redis_url: str, free_port: int) -> dict[str, str]:
    """What the files state, for this machine; each process has a data directory of its own, as in pods."""
    metrics = tmp_path / "metrics"
    metrics.mkdir()
    stated = {"OUTLAY_HOST": "127.0.0.1", "OUTLAY_PORT": str(free_port), "OUTLAY_WEB_WORKERS": "1", "OUTLAY_WORKER_CONCURRENCY": "1"}
    stated["OUTLAY_WORKER_METRICS_PORT"] = str(find_free_port())
    places = {"OUTLAY_DATABASE_URL": postgres_url, "OUTLAY_REDIS_URL": own_redis_url, "PROMETHEUS_MULTIPROC_DIR": str(metrics)}
    return {**os.environ, **stated, **places, "OUTLAY_OFFLINE": "1", "PYTHONPATH": str(ROOT), "OUTLAY_SECRETS_KEY": make_key()}


def command(component: str, environment: Mapping[str, str]) -> list[str]:
    """A unit's command line with this environment's program."""
    text = (ROOT / f"deploy/systemd/outlay-{component}.service").read_text()
    (line,) = [line.partition("=")[2] for line in text.splitlines() if line.startswith("ExecStart=")]
    program, *words = shlex.split(line.replace("${OUTLAY_WORKER_CONCURRENCY}", environment["OUTLAY_WORKER_CONCURRENCY"]))
    return [str(HERE / Path(program).name), *words]


@pytest.fixture
def start(environment: dict[str, str], tmp_path: Path) -> Iterator[Any]:
    """Start a component; all are ended with the test."""
    with ExitStack() as stack:

        def begin(component: str) -> subprocess.Popen[bytes]:
            folder = tmp_path / component
            folder.mkdir()
            log = stack.enter_context((folder / "log").open("wb"))
            own = environment | {"OUTLAY_DATA_DIR": str(folder / "data")}
            (folder / "data").mkdir()
            process = subprocess.Popen(command(component, environment), cwd=folder, env=own, stdout=log, stderr=log, start_new_session=True)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        yield begin


def ask(environment: Mapping[str, str], path: str, body: object = None, token: str = "") -> tuple[int, Any]:
    """Status and body; 0 where nobody listens."""
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    url = f"http://127.0.0.1:{environment['OUTLAY_PORT']}{path}"
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)
    except OSError:
        return 0, None


def alive(environment: Mapping[str, str]) -> bool:
    """Whether the worker answers its liveness probe, as the manifest has it."""
    worker = next(yaml.safe_load_all((ROOT / "deploy/kubernetes/worker.yaml").read_text()))
    probe = worker["spec"]["template"]["spec"]["containers"][0]["livenessProbe"]["httpGet"]
    assert probe["port"] == "metrics"
    try:
        with urllib.request.urlopen(
            f"http://127.0.0.1:{environment['OUTLAY_WORKER_METRICS_PORT']}{probe['path']}", timeout=DEADLINE_S
        ) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@pytest.mark.own_database
def test_web_worker_and_clock_serve_together(environment: dict[str, str], start: Any, tmp_path: Path) -> None:
    """Migrated, a first key made, all ready, a scenario evaluated by the worker; each ends in order when it is asked to."""
    assert start("migrate").wait(DEADLINE_S) == 0
    keys = [str(HERE / "outlay"), "keys", "create", "--team", "ours", "--name", "ops", "--scope", "read,write,admin"]
    made = subprocess.run(keys, env=environment | {"OUTLAY_DATA_DIR": str(tmp_path)}, capture_output=True, text=True, check=True)
    token = made.stdout.strip()
    running = {component: start(component) for component in ("web", "worker", "beat")}
    wait_for(lambda: (ask(environment, "/readyz")[1] or {}).get("status") == "ok", "everything to be ready")
    wait_for(lambda: alive(environment), "the worker to be alive")
    status, begun = ask(environment, "/v1/scenarios", SCENARIO, token)
    assert status == 202, begun
    at = f"/v1/scenarios/{begun['id']}"
    wait_for(lambda: ask(environment, at, token=token)[1].get("state") == "succeeded", "the scenario's end")
    (entry,) = ask(environment, f"/v1/audit?object={begun['id']}", token=token)[1]["items"]
    assert (entry["operation"], entry["address"]) == ("scenario.create", "127.0.0.1")
    for component in ("beat", "worker", "web"):
        running[component].send_signal(signal.SIGTERM)
        assert running[component].wait(DEADLINE_S) == 0, component
