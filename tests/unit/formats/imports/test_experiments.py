"""Runs of MLflow, histories of Weights & Biases and utilisation of DCGM become events."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import InvalidRequest
from service.domain.tracking.events import stated_fields
from service.domain.tracking.imports import ImportedFile, RunReference, make_restatement
from service.formats.imports import rows
from service.formats.imports.dcgm import read_dcgm
from service.formats.imports.mlflow import read_mlflow
from service.formats.imports.wandb import read_wandb
from tests.unit.formats.imports.track_data import assert_takable, data, of_run, reasons

JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(["runs", "info", "data", "metric", "values"]), below),
    max_leaves=8,
)


def document(**changes: Any) -> dict[str, Any]:
    """The recorded document, changed."""
    return {**json.loads(data("mlflow.json")), **changes}


def mlflow(value: Any) -> ImportedFile:
    return read_mlflow(json.dumps(value).encode())


class TestMlflow:
    def test_a_runs_history(self) -> None:
        """Start, each logged step once with all its metrics, and the evaluation; what is not known is passed over."""
        imported = mlflow(document())
        assert_takable(imported)
        events = of_run(imported, "main-7b")
        assert [event.type for event in events] == ["restart", "evaluation", *["progress"] * 4]
        assert [(event.step, event.tokens_done) for event in events[2:]] == [(1, 4194304), (2, 8388608), (3, 12582912), (4, None)]
        assert stated_fields(events[1]) == {"metric": "eval/helpdesk", "value": 0.61, "step": 3}

    def test_a_loss_that_is_no_number_stays_one(self) -> None:
        """MLflow says NaN in words, and stores infinity as the largest double."""
        losses = [event.loss for event in of_run(mlflow(document()), "main-7b") if event.type == "progress"]
        assert losses[:2] == [3.0, 1.5]
        assert math.isnan(losses[2] or 0)
        assert losses[3] == math.inf

    def test_a_failed_run_is_an_interruption(self) -> None:
        """FAILED ends in one; a killed run is noted, because it may have been stopped on purpose."""
        assert [event.type for event in of_run(mlflow(document()), "ablation")] == ["restart", "interruption", "progress"]
        given_document = document()
        given_document["runs"][1]["info"]["status"] = "KILLED"
        assert of_run(mlflow(given_document), "ablation")[1].type == "note"

    def test_a_longer_history_tells_the_same_events_again(self) -> None:
        """What was imported while the run went on is the same, or restated where a step was incomplete."""
        whole = document()
        history = whole["histories"]["77715ee7480043d7a266e16b028bfaea"]
        before = {
            each.event.id: each.event
            for each in mlflow(
                document(histories={"77715ee7480043d7a266e16b028bfaea": [point for point in history if point["key"] != "tokens_done"]})
            ).events
        }
        after = {each.event.id: each.event for each in mlflow(whole).events}
        assert before.keys() == after.keys()
        corrections = [make_restatement(after[name], before[name]) for name in after]
        assert sum(correction is not None for correction in corrections) == 3

    def test_without_a_history_the_newest_values_count(self) -> None:
        """An answer of runs/search alone is a document too."""
        events = of_run(mlflow({"runs": document()["runs"]}), "main-7b")
        assert [event.tokens_done for event in events if event.type == "progress"] == [12582912, None]

    @pytest.mark.parametrize(
        ("run", "words"),
        [
            (7, "no run"),
            ({}, "run_id"),
            ({"info": {"run_id": "a" * 100, "run_name": "b"}}, "64"),
            ({"info": {"run_id": "a", "run_name": "b", "start_time": "soon"}}, "start_time"),
            ({"info": {"run_id": "a", "run_name": "b"}, "data": {"metrics": 7}}, "no list"),
            ({"info": {"run_id": "a", "run_name": "b"}, "data": {"metrics": [7]}}, "no object"),
            ({"info": {"run_id": "a", "run_name": "b"}, "data": {"metrics": [{"key": "loss", "timestamp": 0}]}}, "no number"),
            ({"info": {"run_id": "a", "run_name": "b"}, "data": {"metrics": [{"key": "loss", "value": 1, "timestamp": 0}]}}, "1970"),
            (
                {
                    "info": {"run_id": "a", "run_name": "b"},
                    "data": {"metrics": [{"key": "loss", "value": 1, "timestamp": 18e11, "step": -1}]},
                },
                "step",
            ),
        ],
    )
    def test_runs_that_are_refused(self, run: Any, words: str) -> None:
        """A run that cannot be read says why, and harms no other."""
        imported = mlflow(document(runs=[run, *document()["runs"]]))
        assert words in reasons(imported)[1]
        assert {each.row for each in imported.events} == {2, 3}

    @pytest.mark.parametrize("value", [[], {}, {"runs": {}}, {"runs": [], "histories": []}, {"runs": [], "histories": {"a": 1}}])
    def test_what_is_no_document(self, value: Any) -> None:
        """What is no answer of MLflow at all is an error."""
        with pytest.raises(InvalidRequest):
            mlflow(value)

    def test_too_many_points(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Points are bounded as rows are."""
        monkeypatch.setattr(rows, "MAX_ROWS", 5)
        with pytest.raises(InvalidRequest, match="more than 5 rows"):
            mlflow(document())

    @given(JSON)
    def test_any_json_is_read_or_refused(self, value: Any) -> None:
        """Whatever stands in the document, nothing but the caller's errors comes of it."""
        for read in (read_mlflow, read_dcgm):
            for whole in (value, {"runs": [value]}, {"data": {"resultType": "matrix", "result": [value]}}):
                try:
                    assert_takable(read(json.dumps(whole).encode()))
                except InvalidRequest as refused:
                    words = refused.message
                    assert words


class TestWandb:
    def test_a_table(self) -> None:
        """Empty cells are nothing, a metric of an evaluation keeps its name, and a share above one is no MFU."""
        imported = read_wandb(data("wandb-history.csv"))
        assert_takable(imported)
        events = of_run(imported, "main-7b")
        assert [stated_fields(event) for event in events] == [
            {"step": 2, "metric": "eval/HelpDesk", "value": 0.61},
            {"step": 0, "tokens_done": 4194304, "loss": 11.2, "mfu": 0.38},
            {"step": 1, "tokens_done": 8388608},
            {"step": 2, "tokens_done": 12582912, "loss": 9.1, "mfu": 0.4},
        ]
        assert events[1].at == datetime(2027, 2, 1, 0, 0, 0, 250_000, tzinfo=UTC)

    def test_rows_that_are_refused(self) -> None:
        """Times that are none; a row without a run has no reference."""
        imported = read_wandb(data("wandb-history.csv"))
        assert "ISO 8601" in reasons(imported)[5]
        assert [each.row for each in imported.events if not each.reference.is_stated] == [6]

    def test_lines_of_json(self) -> None:
        """NaN in both spellings is a loss; nested values and broken lines are not."""
        imported = read_wandb(data("wandb-history.jsonl"), "main-7b")
        assert_takable(imported)
        losses = [event.loss for event in of_run(imported, "main-7b")]
        assert losses[0] == 11.2
        assert math.isnan(losses[1] or 0)
        assert losses[2] == math.inf
        assert list(reasons(imported)) == [4, 5]

    def test_the_charts_export_has_no_times(self) -> None:
        """A table without `_timestamp` cannot be placed in time."""
        with pytest.raises(InvalidRequest, match="_timestamp"):
            read_wandb(b"Step,main-7b - train/loss\n0,11.2\n")

    def test_the_same_step_logged_twice_is_two_events(self) -> None:
        """After a rollback steps come again."""
        lines = [{"_step": 5, "_timestamp": 1801440000 + at, "loss": 2.0} for at in (0, 60)]
        imported = read_wandb("\n".join(map(json.dumps, lines)).encode(), "main-7b")
        assert_takable(imported)
        assert [event.step for event in of_run(imported, "main-7b")] == [5, 5]


class TestDcgm:
    def test_hours(self) -> None:
        """The mean over an hour's samples of both GPUs; the second metric is left out where the first is there."""
        imported = read_dcgm(data("dcgm.json"))
        assert_takable(imported)
        assert [(event.at.hour, event.share, event.accelerators) for event in of_run(imported, "main-7b")] == [
            (0, pytest.approx((1.0 + 1.0 + 0.8 + 0.8 + 1.0 + 0.6 + 0.8) / 7), 2),
            (1, pytest.approx(0.8), 2),
        ]
        assert any("TENSOR" in note for note in imported.notes)

    def test_the_slurm_job_stands_for_the_run_without_a_tag(self) -> None:
        """The exporter's label of the job, and the tensor cores' share where nothing else is known."""
        (event,) = of_run(read_dcgm(data("dcgm.json")), "1003")
        assert stated_fields(event) == {"share": 0.5, "accelerators": 1, "text": "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"}

    def test_series_that_are_refused(self) -> None:
        """Another metric, a share above all."""
        found = reasons(read_dcgm(data("dcgm.json")))
        for row, words in {6: "POWER", 7: "0 to 100"}.items():
            assert words in found[row]

    def test_a_fuller_hour_restates_the_earlier(self) -> None:
        """The hour that an export cut off has the same id when it comes whole."""
        whole = json.loads(data("dcgm.json"))
        part = json.loads(data("dcgm.json"))
        for series in part["data"]["result"]:
            series["values"] = series["values"][:2]
        before, after = (of_run(read_dcgm(json.dumps(each).encode()), "main-7b")[0] for each in (part, whole))
        correction = make_restatement(after, before)
        assert correction is not None
        assert correction.share == after.share

    def test_several_answers_at_once(self) -> None:
        """A list of answers is one import."""
        one = json.loads(data("dcgm.json"))
        assert read_dcgm(json.dumps([one, {"data": {"resultType": "matrix", "result": []}}]).encode()).events

    @pytest.mark.parametrize("value", [7, {"data": {"resultType": "vector", "result": []}}, {"data": None}, [7]])
    def test_what_is_no_answer(self, value: Any) -> None:
        """Only a range of values has hours."""
        with pytest.raises(InvalidRequest, match="query_range"):
            read_dcgm(json.dumps(value).encode())

    def test_programs_are_read_too(self) -> None:
        """A label may name the program alone."""
        answer = json.loads(data("dcgm.json"))
        answer["data"]["result"] = answer["data"]["result"][:1]
        answer["data"]["result"][0]["metric"] |= {"outlay_run": "", "outlay_program": "support-assistant"}
        assert read_dcgm(json.dumps(answer).encode()).events[0].reference == RunReference("", "support-assistant")
