"""How-to guides, in what needs more than commands on one machine: other services, receivers of messages, training frameworks."""

from __future__ import annotations

import csv
import json
import re
import shlex
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench.readme import answer_of
from bench.session import session
from service.cli.tracking.pull import API
from service.config import load_settings
from service.container import build_context
from service.usecases.delivery.deliver import deliver_due
from tests.support.servers import DEADLINE_S, find_free_port
from tests.unit.client.test_callbacks import frameworks
from tests.unit.providers.misbehaving_server import Handler, Server, listening

__all__ = ["frameworks"]

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "how-to"
LONGEST_LINES = 160
"""About three screens of a page."""
MLFLOW, RECEIVER = "http://127.0.0.1:5000", "9000"
"""The address of an MLflow on pages, and the port of a receiver."""


def blocks(page: str, language: str) -> list[str]:
    """What a guide shows in a language, without its last line's end."""
    return re.findall(rf"^```{language}\n(.*?)\n```$", (FOLDER / f"{page}.md").read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", sorted(FOLDER.glob("*.md")), ids=lambda page: page.stem)
def test_a_guide_is_short(page: Path) -> None:
    """Facts in full are in the reference."""
    assert len(page.read_text(encoding="utf-8").splitlines()) < LONGEST_LINES


def test_runs_of_an_mlflow_server_are_pulled() -> None:
    """By the command of the guide, from a server with the run of its example."""
    example = json.loads((ROOT / "examples" / "how-to" / "mlflow.json").read_text(encoding="utf-8"))
    (run,), (history,) = example["runs"], example["histories"].values()
    metrics = {"metrics": history[:1]}
    answers = {
        "experiments/search": {"experiments": [{"experiment_id": "1", "name": "pretrain-1b"}]},
        "runs/search": {"runs": [run | {"data": run["data"] | metrics}]},
        "metrics/get-history": metrics,
    }
    (command,) = [block for block in blocks("connect-mlflow", "sh") if MLFLOW in block]
    with listening(Server()) as server, session() as reader:
        for path, answer in answers.items():
            server.on(partial(Handler.answer, body=json.dumps(answer).encode()), f"{API}/{path}")
        for line in blocks("connect-mlflow", "console")[0].splitlines():
            reader.run(line.removeprefix("$ ") + "\n")
        assert reader.run(command.replace(MLFLOW, f"http://{server.host}") + "\n") == ("events: 2 accepted, 0 duplicates, 0 corrected\n", 0)


def test_a_webhook_is_received_as_the_guide_says() -> None:
    """Its receiver prints what the page shows, of a message that the service has signed."""
    _, begin, start = blocks("jobs-and-webhooks", "sh")
    (shown,) = re.findall(r"^scenario\.ended .*$", (FOLDER / "jobs-and-webhooks.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    secret, program = (shlex.split(line) for line in begin.splitlines())
    port = find_free_port()
    with session(None) as reader:
        reader.environment["OUTLAY_ALLOW_PRIVATE_WEBHOOKS"] = "1"
        reader.environment["OUTLAY_SERVER"] = reader.address
        receiver = subprocess.Popen(
            [sys.executable, *program[1:-1], str(port)],
            env=reader.environment | dict([secret[1].split("=", 1)]),
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert receiver.stdout is not None
            assert receiver.stdout.readline() == f"listening on port {port}\n"
            assert reader.run(start.replace(RECEIVER, str(port)) + "\n")[1] == 0
            context = build_context(load_settings(reader.environment))
            with closing(context.store):
                deliver_due(context)
            assert receiver.communicate(timeout=DEADLINE_S)[0] == f"{shown}\n"
        finally:
            receiver.kill()
            receiver.wait()


@pytest.mark.usefixtures("frameworks")
def test_the_callbacks_of_the_guide_to_trainers_are_made_as_it_says() -> None:
    """On stand-ins for the frameworks: each block of code as it stands."""
    given: list[Any] = []
    trainer = SimpleNamespace(Trainer=lambda *_, callbacks: given.extend(callbacks))
    names = {
        "run_id": "r",
        "key": "k",
        "transformers": trainer,
        "lightning": SimpleNamespace(pytorch=trainer),
        "model": None,
        "arguments": None,
    }
    for block in blocks("trainers", "python"):
        if "Callback" in block:
            exec(block, dict(names))
    assert [type(each).__name__ for each in given] == ["HuggingFaceCallback", "LightningCallback"]


def test_the_usual_mfu_is_that_of_the_measurements() -> None:
    """Of dense models in 16 bits on 64 or more accelerators: figures of the guide to a low MFU."""
    peaks = {"NVIDIA-A100": 312e12, "NVIDIA-H100": 989.5e12, "NVIDIA-H200": 989.5e12}
    with (ROOT / "tools" / "calibration" / "data" / "throughput.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if not row["excluded"] and row["precision"] in ("bf16", "fp16")]
    found = sorted(
        (6 * float(row["params"]) + 6 * float(row["layers"]) * float(row["hidden"]) * float(row["seq"])) * float(row["per_s"]) / peak
        for row in rows
        for name, peak in peaks.items()
        if row["accelerator"].startswith(name) and int(row["count"]) >= 64 and row["experts"] in ("", "0", "1") and row["hidden"]
    )
    low, middle, high = (round(100 * found[int(len(found) * share)]) for share in (0.1, 0.5, 0.9))
    page = " ".join((FOLDER / "low-mfu.md").read_text(encoding="utf-8").split())
    assert f"in {len(found)} published measurements" in page
    assert f"the MFU was {middle} % in the median and {low} to {high} % in four of five" in page


def test_the_phases_of_the_example_take_what_the_guide_says() -> None:
    """Thousands of accelerator-hours of the two phases that extend the context, and of their tokens at the first one's speed."""
    (request, *_) = blocks("phases", "json")
    first, *extension = answer_of(json.loads(request))["phases"]
    low, middle, high = (sum(phase["time"]["accelerator_hours"][point] for phase in extension) / 1000 for point in ("p10", "p50", "p90"))
    tokens = sum(int(phase["tokens"]) for phase in json.loads(request)["training"]["phases"][1:])
    as_first = tokens / first["throughput"]["tokens_per_s_per_accelerator"]["p50"] / 3600 / 1000
    page = " ".join((FOLDER / "phases.md").read_text(encoding="utf-8").split())
    assert f"The median of the phases is {middle:.0f},000, from {low:.0f},000 to {high:.0f},000." in page
    assert f"At the speed of the first phase, these tokens would take {as_first:.0f},000." in page
