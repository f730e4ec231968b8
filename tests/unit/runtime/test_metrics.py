"""Sums over processes: counters outlive their process, gauges do not."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from service.domain.metrics import RATE_LIMITED, THREADS
from service.runtime import metrics
from tests.support.servers import DEADLINE_S

ROOT = Path(__file__).parents[3]
COUNTS = """
import sys
from service.domain.metrics import RATE_LIMITED, THREADS
from service.runtime import metrics
metrics.set_gauge(THREADS, 4)
metrics.count(RATE_LIMITED)
print("counted", flush=True)
sys.stdin.read()
"""


SERVES = """
import sys
from service.runtime import metrics
metrics.serve("127.0.0.1", int(sys.argv[1]))
print("serving", flush=True)
sys.stdin.read()
"""


class Counting:
    """A process that counted one and is 4 of a gauge, until it is ended."""

    def __init__(self, folder: Path) -> None:
        env = {**os.environ, metrics.DIRECTORY: str(folder), "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen([sys.executable, "-c", COUNTS], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"counted\n"

    def kill(self) -> None:
        """End it without any farewell."""
        self.process.kill()
        self.process.communicate()


def shown(name: str) -> float:
    lines = generate_latest(metrics.registry()).decode().splitlines()
    return float(next(line.rpartition(" ")[2] for line in lines if line.startswith(f"{name} ")))


def test_counters_outlive_their_process_and_gauges_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes, one killed, one that takes over its files."""
    monkeypatch.setenv(metrics.DIRECTORY, str(tmp_path))
    first, second = Counting(tmp_path), Counting(tmp_path)
    assert (shown(RATE_LIMITED.name), shown(THREADS.name)) == (2, 8)
    first.kill()
    assert (shown(RATE_LIMITED.name), shown(THREADS.name)) == (2, 4)
    third = Counting(tmp_path)
    assert (shown(RATE_LIMITED.name), shown(THREADS.name)) == (3, 8)
    second.kill()
    third.kill()
    assert len(list(tmp_path.glob("*.lock"))) == 2


def test_a_worker_of_its_own_serves_what_its_processes_count(tmp_path: Path, free_port: int) -> None:
    """The main process counts nothing itself."""
    counting = Counting(tmp_path)
    env = {**os.environ, metrics.DIRECTORY: str(tmp_path), "PYTHONPATH": str(ROOT)}
    serving = subprocess.Popen([sys.executable, "-c", SERVES, str(free_port)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert serving.stdout is not None
    assert serving.stdout.readline() == b"serving\n"
    with urllib.request.urlopen(f"http://127.0.0.1:{free_port}/metrics", timeout=DEADLINE_S) as answer:
        text = answer.read().decode()
    serving.communicate(b"")
    counting.kill()
    assert f"{RATE_LIMITED.name} 1.0" in text
    assert f"{THREADS.name} 4.0" in text


def test_a_service_that_begins_anew_counts_from_nothing() -> None:
    """What an earlier one in the same process counted is not shown."""
    metrics.count(RATE_LIMITED)
    assert shown(RATE_LIMITED.name) >= 1
    metrics.begin_anew()
    metrics.start()
    assert shown(RATE_LIMITED.name) == 0
    metrics.count(RATE_LIMITED)
    assert shown(RATE_LIMITED.name) == 1


def test_every_kind_of_file_has_its_space_before_it_is_mapped(tmp_path: Path) -> None:
    """A full disk is an error at the start and no end of the process at a request."""
    Counting(tmp_path).kill()
    assert {file.name.rpartition("_")[0]: file.stat().st_size for file in tmp_path.glob("*.db")} == metrics.FILE_BYTES
