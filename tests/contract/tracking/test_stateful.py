"""Whatever a run's senders do in whatever order, its log is that of a model, and its figures follow from the log's set of events alone."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from flask.testing import FlaskClient
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from service import create_app
from service.config import load_settings
from service.context import AppContext
from service.domain.teams import DEFAULT_TEAM
from service.usecases.tracking.projection import project_all, rebuild
from tests.contract.tracking.tracked_program import MAIN, PROGRAM, made

Body = dict[str, Any]
BEGUN = datetime(2025, 8, 1, tzinfo=UTC)
AS_OF = "2025-09-01T00:00:00Z"
HOURS = st.integers(0, 30 * 24 * 4).map(lambda quarters: (BEGUN + timedelta(minutes=15 * quarters)).isoformat())
TOKENS = st.integers(0, 10**12)
TOTALS = st.fixed_dictionaries(
    {"tokens_done": TOKENS},
    optional={
        "step": st.integers(0, 10**6),
        "accelerator_hours": st.integers(0, 10**6).map(lambda count: count / 8),
        "cost_usd": st.integers(0, 10**7).map(lambda count: count / 4),
        "loss": st.sampled_from([1.5, 2.25, 9.0, "nan"]),
        "accelerators": st.integers(0, 1024),
        "mfu": st.sampled_from([0.0, 0.4, 1.0]),
    },
)
CONTENTS = st.one_of(
    TOTALS.map(lambda totals: {"type": "progress", **totals}),
    TOTALS.map(lambda totals: {"type": "rollback", "cause": "loss", **totals}),
    st.builds(lambda totals, step: {"type": "branch", "name": "b", "from_step": step, **totals}, TOTALS, st.integers(0, 10**6)),
    st.sampled_from(
        [
            {"type": "interruption", "cause": "hardware"},
            {"type": "restart"},
            {"type": "checkpoint", "bytes": 10**12, "step": 7},
            {"type": "evaluation", "metric": "mmlu", "value": 0.5},
            {"type": "cost", "usd": 12.5, "line": "storage"},
            {"type": "cost", "usd": -3.25, "line": "compute"},
            {"type": "utilisation", "share": 0.5},
            {"type": "note", "text": "two\nlines"},
        ]
    ),
)
EVENTS = st.lists(st.builds(lambda content, at: {**content, "at": at}, CONTENTS, HOURS), min_size=1, max_size=8)
JOBS = "JobID|JobName|State|Start|End|ElapsedRaw|AllocTRES\n"
JOB = (
    "{id}|main|{state}|2025-08-{day:02}T00:00:00|2025-08-{day:02}T06:00:00|21600|billing=512,cpu=512,gres/gpu=64,gres/gpu:h100=64,node=8\n"
)


class TrackedRun(RuleBasedStateMachine):
    """A run over HTTP, and the events that it must hold."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        app = create_app(load_settings({"OUTLAY_DATA_DIR": self.folder.name, "OUTLAY_OFFLINE": "1", "OUTLAY_LOG_LEVEL": "error"}))
        self.context: AppContext = app.extensions["context"]
        self.context.store.migrate()
        self.client: FlaskClient = app.test_client()
        self.program, self.run_id = self._new_run()
        self.model: dict[str, Body] = {}

    def teardown(self) -> None:
        """The figures of the log are those of a new run that gets the same events in another order."""
        with self.folder, closing(self.context.store):
            self._project()
            shown = self._status(self.program, self.run_id)
            runs = self.context.store.team_runs(DEFAULT_TEAM)
            assert rebuild(self.context, runs) == 0
            assert self._status(self.program, self.run_id) == shown
            for seed in (1, 2):
                assert self._replayed(seed) == shown

    @initialize(events=EVENTS)
    def begin(self, events: Sequence[Body]) -> None:
        """A run begins with some events."""
        self.append(events)

    @rule(events=EVENTS)
    def append(self, events: Sequence[Body]) -> None:
        """New events, in any order of time."""
        sent = [{"id": f"event-{len(self.model) + number}", **event} for number, event in enumerate(events)]
        assert self._send(sent) == (len(sent), 0, [])
        self.model |= {event["id"]: event for event in sent}

    @precondition(lambda self: self.model)
    @rule(seed=st.integers(0, 99), events=EVENTS)
    def repeat(self, seed: int, events: Sequence[Body]) -> None:
        """Known events among new ones, some of them twice."""
        known = Random(seed).choices(sorted(self.model), k=3)
        new = [{"id": f"event-{len(self.model) + number}", **event} for number, event in enumerate(events)]
        sent = [*(self.model[name] for name in known), *new, *new]
        assert self._send(sent) == (len(new), len(known) + len(new), [])
        self.model |= {event["id"]: event for event in new}

    @precondition(lambda self: self.model)
    @rule(seed=st.integers(0, 99))
    def contradict(self, seed: int) -> None:
        """A known id with another content is refused, and changes nothing."""
        name = Random(seed).choice(sorted(self.model))
        assert self._send([{"id": name, "type": "note", "text": "another content", "at": AS_OF}]) == (0, 0, [name])

    @precondition(lambda self: self.model)
    @rule(seed=st.integers(0, 99), at=HOURS, change=st.sampled_from([{}, {"tokens_done": 5}, {"loss": 2.0, "cost_usd": 1.0}]))
    def correct(self, seed: int, at: str, change: Body) -> None:
        """Retract an event, or change one that has such fields; a correction may be corrected."""
        taking = ("progress", "rollback", "branch", "interruption", "restart", "checkpoint")
        may = [name for name, event in sorted(self.model.items()) if not change or event["type"] in taking]
        if may:
            superseded = Random(seed).choice(may)
            self.append([{"type": "correction", "supersedes": superseded, "at": at, **change}])

    @rule(day=st.integers(1, 28), state=st.sampled_from(["COMPLETED", "NODE_FAIL"]))
    def import_jobs(self, day: int, state: str) -> None:
        """An import adds events once."""
        for _ in range(2):
            body = JOBS + JOB.format(id=1000 + day, state=state, day=day)
            url = f"/v1/track/imports?kind=sacct&run={self.run_id}"
            answer = self.client.post(url, data=body, content_type="text/plain")
            assert answer.status_code == 200, answer.text
            found = {event["id"]: event for event in self._log(self.run_id)}
            assert len(found) == len(self.model) or len(found.keys() - self.model.keys()) == len(found) - len(self.model)
            grown, self.model = found.keys() - self.model.keys(), {name: self.model.get(name, event) for name, event in found.items()}
        assert not grown

    @rule()
    def project(self) -> None:
        """The background worker comes by."""
        self._project()

    @invariant()
    def the_log_holds_each_event_once(self) -> None:
        """As it was first sent."""
        log = self._log(self.run_id)
        assert sorted(event["id"] for event in log) == sorted(self.model)
        assert {event["id"]: _plain(event) for event in log} == {name: _plain(event) for name, event in self.model.items()}

    def _new_run(self) -> tuple[str, str]:
        program = made(self.client, "/v1/track/programs", PROGRAM)["id"]
        return program, made(self.client, f"/v1/track/programs/{program}/runs", MAIN)["id"]

    def _send(self, events: Sequence[Body]) -> tuple[int, int, list[str]]:
        answer = made(self.client, f"/v1/track/runs/{self.run_id}/events", {"events": list(events)})
        return answer["accepted"], answer["duplicates"], [each["id"] for each in answer["rejected"]]

    def _log(self, run: str) -> list[Body]:
        answer = self.client.get(f"/v1/track/runs/{run}/events?limit=1000").get_json()
        events: list[Body] = answer["items"]
        assert [event.pop("position") for event in events] == list(range(1, len(events) + 1))
        return [{name: value for name, value in event.items() if name != "received_at"} for event in events]

    def _project(self) -> None:
        project_all(self.context)

    def _status(self, program: str, run: str) -> str:
        answer = self.client.get(f"/v1/track/programs/{program}/status?as_of={AS_OF}")
        assert answer.status_code == 200, answer.text
        return answer.text.replace(program, "PROGRAM").replace(run, "RUN")

    def _replayed(self, seed: int) -> str:
        """The status of a new run with the same events, shuffled and cut into batches, projected in between."""
        events, rng = self._log(self.run_id), Random(seed)
        program, run = self._new_run()
        rng.shuffle(events)
        while events:
            size = rng.randint(1, 20)
            answer = made(self.client, f"/v1/track/runs/{run}/events", {"events": events[:size]})
            assert answer["rejected"] == []
            events = events[size:]
            if rng.random() < 0.3:
                self._project()
        return self._status(program, run)


def _plain(event: Mapping[str, Any]) -> Body:
    """An event as the log shows it: numbers that count are whole, times have one form."""
    return {**event, "at": datetime.fromisoformat(event["at"]).astimezone(UTC)}


TrackedRun.TestCase.settings = hypothesis_settings(stateful_step_count=8)
test_any_order_of_events_corrections_and_imports_has_the_figures_of_its_log = TrackedRun.TestCase
