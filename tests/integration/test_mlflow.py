"""A real MLflow server, where OUTLAY_TEST_MLFLOW names its `mlflow` program: what was logged to it arrives as events."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from service.cli.tracking.pull import pull_mlflow
from service.formats.imports.mlflow import read_mlflow
from tests.support.servers import DEADLINE_S, find_free_port, running, wait_for
from tests.unit.formats.imports.track_data import assert_takable, of_run, reasons

LOG = """
import sys, math, mlflow
mlflow.set_tracking_uri(sys.argv[1])
mlflow.set_experiment("pretrain-7b")
with mlflow.start_run(run_name="main", tags={"outlay_run": "main-7b"}):
    for step in range(1, 6):
        loss = math.nan if step == 4 else 3.0 / step
        mlflow.log_metrics({"train/loss": loss, "tokens_done": step * 4194304.0, "lr": 1e-4}, step=step)
    mlflow.log_metric("eval/helpdesk", 0.61, step=5)
try:
    with mlflow.start_run(run_name="ablation"):
        mlflow.log_metric("loss", 2.0, step=1)
        raise RuntimeError
except RuntimeError:
    pass
"""


@pytest.fixture
def mlflow(tmp_path: Path) -> Iterator[str]:
    """The address of a real server that two runs were logged to."""
    program = os.environ.get("OUTLAY_TEST_MLFLOW")
    if not program:
        pytest.skip("needs an MLflow server: OUTLAY_TEST_MLFLOW names its `mlflow` program")
    url = f"http://127.0.0.1:{(port := find_free_port())}"
    store = ["--backend-store-uri", f"sqlite:///{tmp_path}/mlflow.db", "--artifacts-destination", str(tmp_path / "artifacts")]
    command = [program, "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1", *store]
    with running(command, tmp_path / "log"):
        wait_for(lambda: _is_up(url), "MLflow to answer")
        python = Path(program).with_name("python")
        subprocess.run([python, "-c", LOG, url], check=True, capture_output=True)
        yield url


def test_what_was_logged_arrives(mlflow: str) -> None:
    """Pulled from the server and read: steps, tokens, a loss that is no number, the evaluation and the failed run."""
    document = pull_mlflow(mlflow, ["pretrain-7b"], {})
    imported = read_mlflow(json.dumps(document).encode())
    assert_takable(imported)
    assert not reasons(imported)
    main = of_run(imported, "main-7b")
    assert [event.type for event in main] == ["restart", "evaluation", *["progress"] * 5]
    assert [event.tokens_done for event in main[2:]] == [step * 4194304 for step in range(1, 6)]
    assert [event.loss for event in main[2:5]] == [3.0, 1.5, 1.0]
    assert main[5].loss != main[5].loss
    assert [event.type for event in of_run(imported, "ablation")] == ["restart", "interruption", "progress"]


def _is_up(url: str) -> bool:
    try:
        with closing(urllib.request.urlopen(f"{url}/health", timeout=DEADLINE_S)) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
