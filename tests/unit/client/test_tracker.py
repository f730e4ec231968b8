"""What a tracker tells, and that telling never disturbs the training."""

from __future__ import annotations

import inspect
import json
import math
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from outlay_client import Tracker
from outlay_client.encode import CONVERSIONS
from outlay_client.tracker import MAX_QUEUED
from service.domain.tracking.events import Event
from service.schemas.tracking.events import EventSchema
from tests.unit.client.conftest import PATIENCE_S, Open
from tests.unit.client.service import RUN, Service

AT = datetime(2027, 2, 1, tzinfo=UTC)


class Broken:
    """A value that fails when it is looked at, as a tensor of a lost device does."""

    def __float__(self) -> float:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")


def told(service: Service, tracker: Tracker) -> list[dict[str, Any]]:
    """Everything that arrived, without ids."""
    assert tracker.flush(PATIENCE_S)
    return [{name: value for name, value in event.items() if name != "id"} for event in service.events.values()]


class TestEvents:
    def test_every_kind_is_one_the_service_takes(self, service: Service, tracker: Open) -> None:
        """Every method's event passes the service's own schema."""
        run = tracker(accelerators=8)
        run.restart("after maintenance", step=100)
        run.progress(1000, tokens_done=4_194_304_000, loss=2.91, mfu=0.41, cost_usd=1280.0)
        run.interruption("hardware", step=1001)
        run.checkpoint(14_000_000_000, step=1000)
        run.rollback(4_000_000_000, to_step=950, cause="loss spike")
        run.branch("lower learning rate", 950, tokens_done=4_000_000_000)
        run.evaluation("helpdesk-eval", 0.66, step=1000, standard_error=0.01, samples=1000)
        run.cost(120.5, "storage", billed_until=AT, text="February")
        run.utilisation(0.93, accelerators=8)
        run.decision("midpoint", "continue", "0.66 is enough")
        run.note("two\nlines", risk="loss spike", state="occurred", usd=1200, days=0.5)
        assert run.flush(PATIENCE_S)
        events = [EventSchema().load(event) for event in service.events.values()]
        assert [event.type for event in events] == [
            *("restart", "progress", "interruption", "checkpoint", "rollback", "branch"),
            *("evaluation", "cost", "utilisation", "decision", "note"),
        ]
        assert all(isinstance(event, Event) for event in events)

    @pytest.mark.parametrize("kind", ["progress", "restart", "checkpoint", "rollback", "branch", "evaluation", "cost", "decision", "note"])
    def test_every_argument_can_be_written(self, kind: str) -> None:
        """A field without a conversion would end the thread that writes events."""
        names = set(inspect.signature(getattr(Tracker, kind)).parameters) - {"self", "from_step", "size_bytes"}
        assert names <= set(CONVERSIONS)

    def test_the_time_is_now_or_what_was_said(self, service: Service, tracker: Open) -> None:
        """An event happens when it is told, unless its time is given."""
        run = tracker()
        before = datetime.now(UTC)
        run.note("now")
        run.note("then", at=AT)
        times = [datetime.fromisoformat(event["at"]) for event in told(service, run)]
        assert before <= times[0] <= datetime.now(UTC)
        assert times[1] == AT

    def test_accelerator_hours_count_from_the_launch(self, service: Service, tracker: Open, monkeypatch: pytest.MonkeyPatch) -> None:
        """Half an hour of 8 accelerators is 4 accelerator-hours, and a launch begins at none."""
        clock = iter([0.0, 100.0, 1900.0])
        monkeypatch.setattr("outlay_client.tracker.time", SimpleNamespace(monotonic=lambda: next(clock), time=time.time))
        run = tracker(accelerators=8, launch=True)
        run.progress(10)
        monkeypatch.undo()
        assert [event["accelerator_hours"] for event in told(service, run)] == [0.0, 4.0]

    def test_a_loss_that_is_no_number_is_told_in_words(self, service: Service, tracker: Open) -> None:
        """Divergence reaches the service although JSON has no NaN."""
        run = tracker()
        run.progress(1, loss=math.nan)
        run.progress(2, loss=-math.inf)
        assert [event["loss"] for event in told(service, run)] == ["nan", "-inf"]

    def test_a_checkpoint_is_measured_where_it_lies(self, service: Service, tracker: Open, tmp_path: Path) -> None:
        """The size of a folder is that of all files below."""
        (tmp_path / "step-10" / "shards").mkdir(parents=True)
        (tmp_path / "step-10" / "model").write_bytes(b"m" * 1000)
        (tmp_path / "step-10" / "shards" / "0").write_bytes(b"s" * 24)
        run = tracker()
        run.checkpoint(tmp_path / "step-10")
        run.checkpoint(str(tmp_path / "step-10"))
        assert [event["bytes"] for event in told(service, run)] == [1024, 1024]

    def test_a_checkpoint_that_is_not_there_has_no_size(self, service: Service, tracker: Open, tmp_path: Path) -> None:
        """It is told without one, which is not the same as 0 bytes."""
        run = tracker()
        run.checkpoint(tmp_path / "gone", step=7)
        (found,) = told(service, run)
        assert (found["type"], found["step"], "bytes" in found) == ("checkpoint", 7, False)

    def test_ids_are_never_told_twice(self, service: Service, tracker: Open) -> None:
        """The same step told twice is two events: a rollback repeats steps."""
        run = tracker()
        for _ in range(2):
            run.progress(7)
        assert [event["step"] for event in told(service, run)] == [7, 7]

    def test_the_key_is_sent(self, service: Service, tracker: Open) -> None:
        """The key goes as a bearer token."""
        run = tracker(key="secret")
        run.note("hello")
        assert run.flush(PATIENCE_S)
        assert service.seen[0][2]["Authorization"] == "Bearer secret"


class TestContext:
    def test_an_exception_is_told_and_goes_on(self, service: Service, tracker: Open) -> None:
        """A block that fails tells why and still fails."""
        with pytest.raises(ValueError, match="bad batch"), tracker():
            raise ValueError("bad batch")
        assert [event["cause"] for event in service.of("interruption")] == ["ValueError: bad batch"]

    def test_a_block_that_ends_well_tells_nothing(self, service: Service, tracker: Open) -> None:
        """Leaving by sys.exit() is no interruption."""
        with pytest.raises(SystemExit), tracker():
            sys.exit()
        assert not service.events


class TestNothingDisturbsTraining:
    @pytest.mark.parametrize("value", ["many", Broken(), [1], 10**400, math.nan], ids=["text", "device", "list", "huge", "nan"])
    def test_a_value_that_is_none_is_left_out(self, service: Service, tracker: Open, value: Any) -> None:
        """An odd value costs its field, not the event, and not the training."""
        run = tracker()
        run.progress(5, tokens_done=value, loss=2.0)
        assert [(event["step"], event["loss"], event.get("tokens_done")) for event in told(service, run)] == [(5, 2.0, None)]

    def test_an_odd_time_is_now(self, service: Service, tracker: Open) -> None:
        """A time that is none does not stop the event."""
        run = tracker()
        run.note("hello", at=1e300)
        assert told(service, run)[0]["at"].startswith(f"{datetime.now(UTC).year}")

    def test_a_disk_that_hangs_holds_nobody_up(self, service: Service, tracker: Open) -> None:
        """While the writer stands still calls return, progress beyond the bound is dropped, and failures and costs are not."""
        run = tracker()
        assert run.flush(PATIENCE_S)
        with run._sender._changed:  # what the writer needs to write
            for step in range(MAX_QUEUED + 3000):
                run.progress(step)
            run.interruption("hardware")
            run.cost(1.0, "storage")
            assert not run.flush(0.01)
        assert run.flush(PATIENCE_S)
        assert run._sender.dropped >= 1000
        assert len(service.of("progress")) + run._sender.dropped == MAX_QUEUED + 3000
        assert (len(service.of("interruption")), len(service.of("cost"))) == (1, 1)

    def test_a_signals_handler_may_tell(self, service: Service, tracker: Open) -> None:
        """A preemption's handler tells of it while the training tells of progress."""
        run = tracker()
        before = signal.signal(signal.SIGUSR1, lambda *_: run.interruption("preemption"))
        try:
            for step in range(1000):
                run.progress(step)
                if step % 10 == 0:
                    signal.raise_signal(signal.SIGUSR1)
        finally:
            signal.signal(signal.SIGUSR1, before)
        assert run.flush(PATIENCE_S)
        assert (len(service.of("progress")), len(service.of("interruption"))) == (1000, 100)

    def test_no_thread_to_be_had_is_no_error(self, service: Service, tracker: Open, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where the system gives no more threads the training goes on untold."""
        monkeypatch.setattr("threading.Thread.start", _no_thread)
        run = tracker()
        run.progress(1)
        assert not run.flush(0.0)
        monkeypatch.undo()

    def test_after_the_end_nothing_is_told(self, service: Service, tracker: Open) -> None:
        """Calls after close do nothing, close again included."""
        run = tracker()
        run.close(PATIENCE_S)
        run.progress(1)
        run.close()
        assert not service.events

    @pytest.mark.parametrize("url", ["outlay.example.com", "ftp://outlay.example.com", "https://"])
    def test_an_address_that_is_none_is_told_at_once(self, url: str, tmp_path: Path) -> None:
        """A mistyped address is an error before training begins."""
        with pytest.raises(ValueError, match="address"):
            Tracker(url, RUN, buffer_dir=tmp_path)

    def test_an_empty_run_is_told_at_once(self, tmp_path: Path) -> None:
        """So is a run without an id."""
        with pytest.raises(ValueError, match="run's id"):
            Tracker("http://127.0.0.1", "", buffer_dir=tmp_path)


class TestRanks:
    @pytest.mark.parametrize(
        ("environment", "told"),
        [
            ({"RANK": "0"}, True),
            ({"RANK": "1"}, False),
            ({"RANK": "0", "SLURM_PROCID": "3"}, True),
            ({"SLURM_PROCID": "3"}, False),
            ({"NODE_RANK": "0", "LOCAL_RANK": "1"}, False),
            ({"SLURM_PROCID": "0", "LOCAL_RANK": "0"}, True),
            ({}, True),
        ],
    )
    def test_only_the_first_process_tells(
        self, service: Service, tracker: Open, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], told: bool
    ) -> None:
        """One process of a job tells, whoever launched it."""
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        run = tracker()
        run.note("here")
        assert run.flush(PATIENCE_S)
        assert bool(service.events) is told


class TestForks:
    def test_a_forked_process_tells_its_own(self, service: Service, tmp_path: Path) -> None:
        """What the parent told arrives once, and so does what the child tells."""
        script = f"""
import os, sys
from outlay_client import Tracker, sender
sender.BATCH_S = 0.5
run = Tracker({service.url!r}, {RUN!r}, buffer_dir={str(tmp_path)!r}, launch=False)
for step in range(100):
    run.progress(step)
child = os.fork()
run.note("child" if child == 0 else "parent")
whole = run.flush({PATIENCE_S})
if child == 0:
    run.close()
    os._exit(not whole)
sys.exit(os.waitpid(child, 0)[1] or not whole)
"""
        subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(__file__).parents[3])
        assert set(service.taken.values()) == {1}
        assert sorted(event["text"] for event in service.of("note")) == ["child", "parent"]
        assert len(service.of("progress")) == 100

    def test_what_is_told_last_arrives(self, service: Service, tmp_path: Path) -> None:
        """A script that ends without closing has told everything."""
        script = (
            "from outlay_client import Tracker, sender\n"
            f"Tracker.close.__defaults__, sender.CLOSING_S = ({PATIENCE_S},), {PATIENCE_S}\n"
            f"run = Tracker({service.url!r}, {RUN!r}, buffer_dir={str(tmp_path)!r}, launch=False)\n"
            "run.evaluation('helpdesk-eval', 0.7)\n"
        )
        subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(__file__).parents[3])
        assert [event["value"] for event in service.of("evaluation")] == [0.7]
        assert json.dumps([path.name for path in (tmp_path / RUN).iterdir()]) == "[]"


def _no_thread(_: object) -> None:
    raise RuntimeError("can't start new thread")
