"""Training processes that are killed at random moments while the service comes and goes: what had reached the disk arrives."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
from collections import defaultdict
from pathlib import Path

import pytest

from outlay_client import Tracker
from tests.unit.client.service import PATH, RUN, Service, problem, take, take_and_vanish
from tests.unit.providers.misbehaving_server import Handler, listening, reset

REPOSITORY = Path(__file__).parents[2]
KILLS = 30
PATIENCE_S = 120.0
CHANCE = random.Random(1)
TRAINING = """
import logging, sys, time
from outlay_client import Tracker, sender, spool
logging.disable()
sender.BATCH_S, sender.FIRST_PAUSE_S, sender.MAX_PAUSE_S = 0.01, 0.01, 0.05
append, on_disk = spool.Spool.append, [0]
def counted(self, lines):
    append(self, lines)
    on_disk[0] += len(lines)
spool.Spool.append = counted
url, run_id, folder, launch = sys.argv[1:]
run = Tracker(url, run_id, buffer_dir=folder, launch=False, max_buffered_bytes=2**30)
step = 0
while True:
    for _ in range(37):
        run.progress(step, tokens_done=int(launch))
        step += 1
    while on_disk[0] < step:
        time.sleep(0.001)
    print(step, flush=True)
"""


def flapping(handler: Handler) -> None:
    """Well three times of six; else away, or well and its answer lost, or cut off."""
    CHANCE.choice((take, take, take, problem(503), take_and_vanish, reset))(handler)


def killed_training(url: str, folder: Path, launch: int, after_s: float) -> int:
    """How many events a training had on disk when it was killed after so many seconds."""
    command = [sys.executable, "-c", TRAINING, url, RUN, str(folder), str(launch)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY) as training:
        timer = threading.Timer(after_s, training.send_signal, [signal.SIGKILL])
        timer.start()
        assert training.stdout is not None
        told = training.stdout.read().split()
        timer.join()
    return int(told[-1]) if told else 0


@pytest.mark.soak
def test_no_event_on_disk_is_lost(tmp_path: Path) -> None:
    """Thirty launches, each killed: every event that was on disk is there, once by its id."""
    moments = random.Random(2)
    with listening(Service()) as service:
        assert isinstance(service, Service)
        service.scripts[PATH] = flapping
        kept = [killed_training(service.url, tmp_path, launch, 0.5 + moments.random()) for launch in range(KILLS)]
        service.scripts[PATH] = take
        last = Tracker(service.url, RUN, buffer_dir=tmp_path, launch=False, max_buffered_bytes=2**30)
        assert last.flush(PATIENCE_S)
        last.close()
    arrived: dict[int, set[int]] = defaultdict(set)
    for event in service.of("progress"):
        arrived[event["tokens_done"]].add(event["step"])
    lost = sum(len(set(range(count)) - arrived[launch]) for launch, count in enumerate(kept))
    for name, value in (("client_kills.kept", sum(kept)), ("client_kills.lost", lost)):
        print(json.dumps({"name": name, "value": value, "unit": "events"}))  # noqa: T201 - what the soak is run for
    assert sum(kept) > KILLS
    assert lost == 0
