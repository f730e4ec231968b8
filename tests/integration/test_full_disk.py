"""A served installation whose disk, a real ext4, is full: it answers, says so, and goes on once there is space."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from service.config import Settings
from tests.integration.load import Outcome, figure, outcome, percentile_s
from tests.integration.test_noisy_team import ESTIMATE_P99_S, HEALTH_P99_S
from tests.integration.test_serve import spaced_in, starting, status
from tests.support.servers import DEADLINE_S, wait_for

DISK_BYTES = 48 * 1024 * 1024
ROUNDS = 100
ESTIMATE = {
    "model": {"params": "7B"},
    "data": {"tokens": "1T"},
    "hardware": {"accelerator": "H100", "count": 64},
    "price": {"usd_per_accelerator_hour": 2.0},
}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A mounted ext4 of 48 MB; a named skip where this user may not make one."""
    image, place = tmp_path / "image", tmp_path / "disk"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(DISK_BYTES)
    for command in (["mkfs.ext4", "-q", str(image)], ["mount", "-o", "loop", str(image), str(place)]):
        try:
            done = subprocess.run(command, capture_output=True, check=False)
        except FileNotFoundError:
            pytest.skip(f"needs the program {command[0]}")
        if done.returncode:
            pytest.skip(f"needs to mount an ext4: {done.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def send(settings: Settings, method: str, path: str, body: object = None) -> tuple[int, Any]:
    """Status and body of an answer."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{settings.port}{path}", data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def fill(place: Path) -> Path:
    """Write to the disk until nothing fits any more."""
    filler = place / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    return filler


@pytest.mark.soak
def test_a_full_disk_takes_tracking_and_nothing_else(small_disk: Path, tmp_path: Path) -> None:
    """Health, metrics, prices and estimates are answered 200 throughout; events get a 503 until there is space, then are taken."""
    settings = spaced_in(small_disk)
    with starting(tmp_path) as start:
        start(settings)
        wait_for(lambda: status(settings, "/readyz") == 200, "/readyz to answer 200")
        program = json.loads(send(settings, "POST", "/v1/track/programs", {"name": "p", "budget_usd": 1e6})[1])["id"]
        run = json.loads(send(settings, "POST", f"/v1/track/programs/{program}/runs", {"name": "r"})[1])["id"]
        filler = fill(small_disk)

        def note(number: int) -> int:
            event = {"id": f"note-{number}", "type": "note", "at": "2026-02-01T00:00:00Z", "text": "x" * 2000}
            return send(settings, "POST", f"/v1/track/runs/{run}/events", {"events": [event]})[0]

        answers = [note(number) for number in range(600)]  # the first fit into the log, which has its space from before
        assert set(answers) <= {200, 503}
        assert answers[-1] == 503
        paths = ("/healthz", "/metrics", "/v1/accelerators", f"/v1/track/programs/{program}/status", "/v1/estimate")
        found: dict[str, list[Outcome]] = {path: [] for path in paths}
        for _ in range(ROUNDS):
            for path in paths:
                asked = ("POST", path, "", ESTIMATE) if path == "/v1/estimate" else ("GET", path)
                found[path].append(outcome(settings.port, *asked))
        for path, outcomes in found.items():
            figure(f"full_disk_p99.{path.rpartition('/')[2]}", percentile_s(outcomes, 99), "s")
            assert {each.status for each in outcomes} == {200}
        assert percentile_s(found["/healthz"], 99) < HEALTH_P99_S
        assert percentile_s(found["/v1/estimate"], 99) < ESTIMATE_P99_S
        filler.unlink()
        wait_for(lambda: note(1000) == 200, "events to be taken again")
