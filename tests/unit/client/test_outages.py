"""A service that is away, slow, wrong or picky: every event arrives once by its id, or is kept where it can be found."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from outlay_client import Tracker, sending
from tests.support.servers import find_free_port, wait_for
from tests.unit.client.conftest import PATIENCE_S, Open
from tests.unit.client.service import (
    RUN,
    Service,
    conflicting,
    hang,
    picky,
    problem,
    take,
    take_and_vanish,
    web_page,
)
from tests.unit.providers.misbehaving_server import Script, listening, redirect, reset

REPOSITORY = Path(__file__).parents[3]
TROUBLES: dict[str, list[Script]] = {
    "error of the server": [problem(500), problem(503), problem(502)],
    "too many requests": [problem(429, Retry_After="0"), problem(429, Retry_After="Wed, 21 Oct 2015 07:28:00 GMT"), problem(429)],
    "hung": [hang],
    "reset": [reset, reset],
    "web page": [web_page],
    "redirect": [redirect("http://198.51.100.7/steal", 307)],
    "answers lost": [take_and_vanish, take_and_vanish],
    "unknown run": [problem(404)],
    "expired key": [problem(401), problem(403)],
}


def tell(run: Tracker, count: int = 25) -> None:
    """So many events, a checkpoint among ten."""
    for step in range(count):
        run.progress(step, loss=2.0)
        if step % 10 == 0:
            run.checkpoint(1000, step=step)


class TestTroubles:
    @pytest.mark.parametrize("trouble", TROUBLES)
    def test_everything_arrives_when_it_is_over(
        self, service: Service, tracker: Open, trouble: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whatever the service does meanwhile, each event is there once when it is well again."""
        monkeypatch.setattr(sending, "TIMEOUT_S", 0.2 if trouble == "hung" else 60.0)
        service.plays(*TROUBLES[trouble], take)
        run = tracker()
        tell(run)
        assert run.flush(PATIENCE_S)
        assert [event["step"] for event in service.of("progress")] == list(range(25))
        assert [event["step"] for event in service.of("checkpoint")] == [0, 10, 20]

    def test_a_service_that_is_not_there_yet(self, tracker: Open, caplog: pytest.LogCaptureFixture) -> None:
        """A refused connection is said once and tried again until somebody listens."""
        port = find_free_port()
        run = tracker(f"http://127.0.0.1:{port}")
        tell(run)
        with caplog.at_level(logging.WARNING, "outlay_client"):
            wait_for(lambda: caplog.records, "word of the first try")
        with listening(Service(port)) as there:
            assert run.flush(PATIENCE_S)
            assert isinstance(there, Service)
            assert len(there.of("progress")) == 25
        assert sum("does not accept" in record.getMessage() for record in caplog.records) == 1

    def test_a_wait_that_is_asked_for_is_kept(self, service: Service, tracker: Open) -> None:
        """After Retry-After: 300 nobody asks again, until somebody is in a hurry."""
        service.plays(problem(429, Retry_After="300"), take)
        run = tracker()
        run.note("hello")
        wait_for(lambda: service.seen, "the first try")
        assert run.flush(PATIENCE_S)
        assert len(service.seen) == 2


class TestRefusals:
    def test_one_bad_event_does_not_hold_up_the_others(self, service: Service, tracker: Open, tmp_path: Path) -> None:
        """A batch that is refused is halved until the bad one stands alone; it is kept beside, with the reason."""
        service.plays(picky)
        run = tracker()
        with run._sender._changed:  # so that all are of one batch
            for step in range(40):
                run.progress(step, loss=float(step))
        assert run.flush(PATIENCE_S)
        assert len(service.events) == 39
        kept = [json.loads(line) for line in (tmp_path / "buffer" / RUN / "rejected.jsonl").read_text().splitlines()]
        assert [(each["event"]["step"], "unlucky" in each["reason"]) for each in kept] == [(13, True)]

    def test_events_that_a_good_batch_held(self, service: Service, tracker: Open, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        """What a 2xx names as rejected is kept beside too, and said once."""
        service.plays(conflicting)
        run = tracker()
        with caplog.at_level(logging.WARNING, "outlay_client"):
            for _ in range(3):
                run.note("again")
                assert run.flush(PATIENCE_S)
        assert len((tmp_path / "buffer" / RUN / "rejected.jsonl").read_text().splitlines()) == 3
        assert ["a conflict" in record.getMessage() for record in caplog.records] == [True]

    def test_a_key_is_carried_nowhere_else(self, service: Service, tracker: Open) -> None:
        """A redirect is not followed, not even on the same host."""
        service.plays(redirect("/elsewhere", 302), take)
        run = tracker(key="secret")
        run.note("hello")
        assert run.flush(PATIENCE_S)
        assert service.asked["/elsewhere"] == 0


class TestDisks:
    def test_what_a_killed_process_told_is_sent_by_the_next(self, service: Service, tracker: Open, tmp_path: Path) -> None:
        """Events of a process that was killed while the service was away arrive with the run's next process."""
        script = f"""
import os, pathlib, signal, time
from outlay_client import Tracker
run = Tracker("http://127.0.0.1:{find_free_port()}", {RUN!r}, buffer_dir={str(tmp_path / "buffer")!r}, launch=False)
for step in range(2500):
    run.progress(step)
folder = pathlib.Path({str(tmp_path / "buffer" / RUN)!r})
while sum(len(path.read_bytes().splitlines()) for path in folder.glob("*-*.jsonl")) < 2500:
    time.sleep(0.01)
os.kill(os.getpid(), signal.SIGKILL)
"""
        ended = subprocess.run([sys.executable, "-c", script], check=False, cwd=REPOSITORY)
        assert ended.returncode == -9
        run = tracker()
        assert run.flush(PATIENCE_S)
        assert [event["step"] for event in service.of("progress")] == list(range(2500))
        run.close(PATIENCE_S)
        assert not list((tmp_path / "buffer" / RUN).iterdir())

    def test_a_folder_that_cannot_be_made(self, service: Service, tracker: Open, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        """Without a folder events wait in memory, which is said."""
        (tmp_path / "file").write_text("")
        with caplog.at_level(logging.WARNING, "outlay_client"):
            run = tracker(buffer_dir=tmp_path / "file" / "buffer")
            tell(run)
            assert run.flush(PATIENCE_S)
        assert len(service.of("progress")) == 25
        assert ["stay in memory" in record.getMessage() for record in caplog.records] == [True]

    def test_a_disk_that_is_full(self, service: Service, tmp_path: Path) -> None:
        """Where a write fails half-way, no event is lost or told in halves. Played by the largest size a file may have."""
        script = f"""
import resource, sys
from outlay_client import Tracker, sender
sender.BATCH_S = sender.FIRST_PAUSE_S = 0.01
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
run = Tracker({service.url!r}, {RUN!r}, buffer_dir={str(tmp_path)!r}, launch=False)
for step in range(500):
    run.progress(step, loss=2.0)
    if step % 7 == 0:
        run.note("x" * 100)
sys.exit(not run.flush({PATIENCE_S}))
"""
        subprocess.run([sys.executable, "-c", script], check=True, cwd=REPOSITORY)
        assert [event["step"] for event in service.of("progress")] == list(range(500))
        assert len(service.of("note")) == 72

    def test_a_buffer_that_somebody_removed(self, service: Service, tracker: Open, tmp_path: Path) -> None:
        """A folder that vanishes costs what was in it and nothing that comes after."""
        service.plays(problem(500), take)
        run = tracker()
        with run._sender._changed:
            run.note("before")
        wait_for(lambda: service.seen, "the first try")
        for path in (tmp_path / "buffer" / RUN).glob("*.jsonl"):
            path.unlink()
        run.note("after")
        assert run.flush(PATIENCE_S)
        assert "after" in [event["text"] for event in service.of("note")]
