"""What is asked of an MLflow server, page by page, becomes the document that an import takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import click
import pytest

from service.cli.tracking.pull import API, pull_mlflow
from service.formats.imports.mlflow import read_mlflow
from tests.unit.formats.imports.track_data import data, of_run
from tests.unit.providers.misbehaving_server import Handler, Server, listening

DOCUMENT: dict[str, Any] = json.loads(data("mlflow.json"))


@pytest.fixture
def server() -> Iterator[Server]:
    """An MLflow that gives one run, and two points of a history, a page."""
    with listening(Server()) as mlflow:
        mlflow.on(experiments, f"{API}/experiments/search")
        mlflow.on(runs, f"{API}/runs/search")
        mlflow.on(history, f"{API}/metrics/get-history")
        yield mlflow


def pulled(server: Server, *experiments: str, **environment: str) -> dict[str, Any]:
    return pull_mlflow(f"http://{server.host}/", experiments, environment)


class TestPull:
    def test_all_pages_are_read(self, server: Server) -> None:
        """Two runs on two pages and a history on four are one document, without the metrics that nobody knows."""
        document = pulled(server)
        assert document["runs"] == DOCUMENT["runs"]
        assert document["histories"]["77715ee7480043d7a266e16b028bfaea"] == DOCUMENT["histories"]["77715ee7480043d7a266e16b028bfaea"]
        assert not any("metric_key=lr" in path for _, path, _, _ in server.seen)

    def test_the_document_can_be_imported(self, server: Server) -> None:
        """What is pulled is what an import takes, a loss that is no number included."""
        events = of_run(read_mlflow(json.dumps(pulled(server)).encode()), "main-7b")
        assert repr(events) == repr(of_run(read_mlflow(data("mlflow.json")), "main-7b"))

    def test_only_the_named_experiments(self, server: Server) -> None:
        """Runs are asked of the experiments of these names."""
        pulled(server, "pretrain-7b")
        asked = [json.loads(body) for _, path, _, body in server.seen if path.startswith(f"{API}/runs")]
        assert {tuple(body["experiment_ids"]) for body in asked} == {("1",)}

    def test_an_unknown_experiment_is_named(self, server: Server) -> None:
        """With those that are there."""
        with pytest.raises(click.ClickException, match="no experiment pretrain-8b; it has Default, pretrain-7b"):
            pulled(server, "pretrain-8b")

    def test_the_token_is_sent(self, server: Server) -> None:
        """MLflow's own variable holds it."""
        pulled(server, "pretrain-7b", MLFLOW_TRACKING_TOKEN="secret")
        assert {headers.get("Authorization") for _, _, headers, _ in server.seen} == {"Bearer secret"}

    @pytest.mark.parametrize(
        ("body", "status", "words"),
        [(b"no", 401, "401"), (b"[]", 200, "does not answer"), (b'{"experiments": [{}]}', 200, "does not answer")],
    )
    def test_troubles_are_named(self, server: Server, body: bytes, status: int, words: str) -> None:
        """A refusal and an answer that is not MLflow's end the command with what happened."""
        server.on(lambda handler: handler.answer(body, status), f"{API}/experiments/search")
        with pytest.raises(click.ClickException, match=words):
            pulled(server)


def experiments(handler: Handler) -> None:
    found = [{"experiment_id": "1", "name": "pretrain-7b"}, {"experiment_id": "0", "name": "Default"}]
    handler.answer(json.dumps({"experiments": found}).encode())


def runs(handler: Handler) -> None:
    asked = json.loads(handler.server.seen[-1][3])
    first = int(asked.get("page_token") or 0)
    found = DOCUMENT["runs"][first : first + 1] if asked["experiment_ids"] == ["1"] else []
    more = {"next_page_token": str(first + 1)} if found and first == 0 else {}
    handler.answer(json.dumps({"runs": found, **more}).encode())


def history(handler: Handler) -> None:
    asked = {name: values[0] for name, values in parse_qs(urlsplit(handler.path).query).items()}
    points = [point for point in DOCUMENT["histories"].get(asked["run_id"], ()) if point["key"] == asked["metric_key"]]
    first = int(asked.get("page_token") or 0)
    more = {"next_page_token": str(first + 2)} if first + 2 < len(points) else {}
    handler.answer(json.dumps({"metrics": points[first : first + 2], **more}).encode())
