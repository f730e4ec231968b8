"""POST /v1/track/imports: what other tools know becomes events, once, corrected when it is restated, and nothing of another team's."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

DATA = Path(__file__).parents[2] / "data" / "tracking"
Body = dict[str, Any]
BILL = (
    "BillingCurrency,ChargePeriodStart,ChargePeriodEnd,EffectiveCost,BilledCost,ChargeCategory,ServiceCategory,ResourceId,Tags\n"
    "USD,2026-02-01T00:00:00Z,2026-02-02T00:00:00Z,{cost},150.0,Usage,Compute,i-1,{tag}\n"
    "USD,2026-02-01T00:00:00Z,2026-02-02T00:00:00Z,7.5,7.5,Usage,Storage,b-1,{{}}\n"
)


@pytest.fixture
def client(tracking_app: Flask, monkeypatch: pytest.MonkeyPatch) -> FlaskClient:
    """A client of the service on each database, in the spring in which the files were written."""
    context = replace(tracking_app.extensions["context"], clock=lambda: datetime(2027, 5, 1, tzinfo=UTC))
    monkeypatch.setitem(tracking_app.extensions, "context", context)
    return tracking_app.test_client()


@pytest.fixture
def runs(client: FlaskClient, request: pytest.FixtureRequest) -> list[Body]:
    """Two runs of a program named after the test."""
    program = client.post("/v1/track/programs", json={"name": request.node.name[:100]}).get_json()
    url = f"/v1/track/programs/{program['id']}/runs"
    return [client.post(url, json={"name": name}).get_json() for name in ("main", "second")]


def bill(run: Body, cost: float = 100.0) -> bytes:
    """A bill of two rows, the first tagged with a run's id."""
    return BILL.format(cost=cost, tag='"{""outlay_run"": ""' + run["id"] + '""}"').encode()


def sent(client: FlaskClient, content: bytes, **query: str) -> Body:
    """What came of an import."""
    answer = client.post("/v1/track/imports", query_string={"kind": "focus", **query}, data=content, content_type="text/csv")
    assert answer.status_code == 200, answer.get_data(as_text=True)
    found: Body = answer.get_json()
    return found


def costs(client: FlaskClient, run: Body) -> float | None:
    """What the program's status says that the run has cost."""
    status = client.get(f"/v1/track/programs/{run['program']}/status").get_json()
    found = next(one for one in status["runs"] if one["id"] == run["id"])["spend"]["usd"]
    return None if found is None else float(found)


class TestBills:
    """FOCUS rows as costs of the runs that their tags name."""

    def test_a_tagged_row_is_a_cost_of_its_run_and_the_others_are_told(self, client: FlaskClient, runs: list[Body]) -> None:
        """With the row's number and why it matches nothing."""
        taken = sent(client, bill(runs[0]))
        assert (taken["accepted"], taken["unmatched_count"], taken["unmatched"][0]["row"]) == (1, 1, 3)
        assert taken["runs"] == {runs[0]["id"]: 1}
        assert costs(client, runs[0]) == 100.0

    def test_the_same_bill_counts_once(self, client: FlaskClient, runs: list[Body]) -> None:
        """However often it is read."""
        sent(client, bill(runs[0]))
        again = sent(client, bill(runs[0]))
        assert (again["accepted"], again["duplicates"], again["corrected"]) == (0, 1, 0)
        assert costs(client, runs[0]) == 100.0

    def test_a_restated_row_corrects_what_was_kept(self, client: FlaskClient, runs: list[Body]) -> None:
        """There and back again: each restatement is told once."""
        for cost in (100.0, 80.0, 100.0):
            sent(client, bill(runs[0], cost))
        taken = sent(client, bill(runs[0], 100.0))
        assert (taken["corrected"], taken["duplicates"]) == (0, 1)
        assert costs(client, runs[0]) == 100.0

    def test_a_row_tagged_with_another_run_since_moves_there(self, client: FlaskClient, runs: list[Body]) -> None:
        """It is taken back from where it stood, and back again."""
        sent(client, bill(runs[0]))
        moved = sent(client, bill(runs[1]))
        assert (moved["accepted"], moved["corrected"]) == (1, 1)
        assert (costs(client, runs[0]), costs(client, runs[1])) == (0.0, 100.0)
        sent(client, bill(runs[0]))
        assert (costs(client, runs[0]), costs(client, runs[1])) == (100.0, 0.0)

    def test_everything_goes_to_the_run_that_the_request_names(self, client: FlaskClient, runs: list[Body]) -> None:
        """Whatever the rows say."""
        assert sent(client, bill(runs[0]), run=runs[1]["id"])["accepted"] == 2

    def test_the_billed_cost_counts_where_it_is_asked_for(self, client: FlaskClient, runs: list[Body]) -> None:
        """BilledCost in place of EffectiveCost."""
        sent(client, bill(runs[0]), basis="billed")
        assert costs(client, runs[0]) == 150.0


class TestOtherTools:
    """Each kind's fixture becomes events of the run that the request names."""

    @pytest.mark.parametrize(
        ("kind", "file"), [("sacct", "sacct.txt"), ("mlflow", "mlflow.json"), ("wandb", "wandb-history.csv"), ("dcgm", "dcgm.json")]
    )
    def test_events_are_kept_once(self, client: FlaskClient, runs: list[Body], kind: str, file: str) -> None:
        """The second time all are duplicates."""
        content = (DATA / file).read_bytes()
        first, again = (sent(client, content, kind=kind, run=runs[0]["id"]) for _ in range(2))
        assert first["accepted"] > 0
        assert not first["rejected"]
        assert (again["accepted"], again["corrected"]) == (0, 0)
        assert again["duplicates"] == first["accepted"]


class TestOtherType:
    """A source that says that another kind of thing happened: the kept event's type stays, and takes what it has fields for."""

    JOB = (
        "JobID|JobName|State|Start|End|ElapsedRaw|AllocTRES\n"
        "1|main|{state}|2027-02-01T00:00:00Z|2027-02-01T10:00:00Z|36000|gres/gpu={gpus}\n"
    )

    @pytest.mark.parametrize(("first", "then", "words"), [("COMPLETED", "NODE_FAIL", 1), ("NODE_FAIL", "COMPLETED", 0)])
    def test_a_jobs_hours_are_restated(self, client: FlaskClient, runs: list[Body], first: str, then: str, words: int) -> None:
        """Once: the same again is a duplicate, and what is left out is said."""
        query = {"kind": "sacct", "program": runs[0]["program"]}
        sent(client, self.JOB.format(state=first, gpus=64).encode(), **query)
        assert self.hours(client, runs[0]) == 640
        again = self.JOB.format(state=then, gpus=128).encode()
        for corrected, duplicates in ((2, 0), (0, 2)):
            answer = sent(client, again, **query)
            assert (answer["accepted"], answer["corrected"], answer["duplicates"]) == (0, corrected, duplicates)
            assert answer["rejected"] == []
            said = [note for note in answer["notes"] if note.startswith("left out")]
            assert said == ["left out: cause of an event stored as progress, which has no such field (1)"] * words
        assert self.hours(client, runs[0]) == 1280

    def test_what_has_no_field_of_the_kept_type_takes_nothing_back(self, client: FlaskClient, runs: list[Body]) -> None:
        """An MLflow run that was killed and is called failed since: the note stays."""
        query = {"kind": "mlflow", "run": runs[0]["id"]}
        info = {"run_id": "a" * 32, "run_name": "main", "start_time": 1_769_904_000_000, "end_time": 1_769_907_600_000}
        for status, counts in (("KILLED", (2, 0, 0)), ("FAILED", (0, 0, 2)), ("FAILED", (0, 0, 2))):
            answer = sent(client, json.dumps({"runs": [{"info": info | {"status": status}, "data": {}}]}).encode(), **query)
            assert (answer["accepted"], answer["corrected"], answer["duplicates"], answer["rejected"]) == (*counts, [])

    @staticmethod
    def hours(client: FlaskClient, run: Body) -> float:
        """The run's accelerator-hours."""
        status = client.get(f"/v1/track/programs/{run['program']}/status").get_json()
        return float(next(one for one in status["runs"] if one["id"] == run["id"])["spend"]["accelerator_hours"])


class TestRefusals:
    """What is no import."""

    @pytest.mark.parametrize(
        ("query", "content", "status"),
        [
            ({"kind": "focus"}, b"", 400),
            ({"kind": "focus"}, b"\x00\xff not a bill", 422),
            ({"kind": "sacct"}, b"one|two\n1|2\n", 422),
            ({"kind": "mlflow"}, b"[]", 422),
            ({"kind": "party"}, b"x", 422),
            ({}, b"x", 422),
            ({"kind": "focus", "run": "none"}, b"x", 404),
            ({"kind": "focus", "program": "none"}, b"x", 404),
        ],
    )
    def test_it_is_refused_with_the_reason(self, client: FlaskClient, query: Body, content: bytes, status: int) -> None:
        """A problem, never a 500."""
        answer = client.post("/v1/track/imports", query_string=query, data=content, content_type="text/csv")
        assert answer.status_code == status, answer.get_data(as_text=True)
        assert answer.get_json()["detail"]
