"""`outlay reprice`: what moved since an earlier answer, from files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from service.cli import main
from service.config import load_settings
from tests.unit.usecases.market import open_context

RUN: dict[str, Any] = {
    "model": {"preset": "llama-2-7b"},
    "data": {"tokens": "2T"},
    "hardware": {"accelerator": "H100", "count": 256},
    "price": {"usd_per_accelerator_hour": 2.0},
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The file of the run as it is planned now."""
    return written(tmp_path / "run.json", RUN)


@pytest.fixture
def answer(tmp_path: Path, run: Path) -> Path:
    """The file of its earlier answer."""
    return written(tmp_path / "answer.json", json.loads(outlay(tmp_path, "estimate", str(run), "--json").stdout))


def written(file: Path, content: object) -> Path:
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


def outlay(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, env={"OUTLAY_DATA_DIR": str(folder), "OUTLAY_OFFLINE": "1"})


def test_an_earlier_answer_brings_its_snapshot_and_total(tmp_path: Path, run: Path, answer: Path) -> None:
    """So all three causes are told; nothing has moved."""
    found = json.loads(outlay(tmp_path, "reprice", str(run), "--answer", str(answer), "--json").stdout)
    assert [(cause["cause"], cause["usd"]) for cause in found["moved"]["causes"]] == [("engine", 0), ("price", 0), ("workload", 0)]


def test_the_table_has_both_totals_and_every_cause(tmp_path: Path, run: Path, answer: Path) -> None:
    """With its dollars and its reason."""
    now = written(tmp_path / "now.json", RUN | {"data": {"tokens": "3T"}, "price": {"usd_per_accelerator_hour": 2.5}})
    arguments = ("reprice", str(now), "--before", str(run), "--answer", str(answer))
    moved = json.loads(outlay(tmp_path, *arguments, "--json").stdout)["moved"]
    shown = outlay(tmp_path, *arguments).stdout
    assert f"{moved['from_usd']:,.2f} USD" in shown
    assert f"{moved['to_usd']:,.2f} USD" in shown
    for cause in moved["causes"]:
        assert f"  {cause['cause']} " in shown
        assert f"{cause['usd']:+,.2f} USD" in shown
        assert f"{cause['cause']}: {cause['detail']}" in shown
    assert "data.tokens from 2,000,000,000,000 to 3,000,000,000,000" in shown
    assert "now 2.5000 USD an accelerator-hour" in shown


def test_a_snapshot_alone_is_enough(tmp_path: Path, run: Path, answer: Path) -> None:
    """Then nothing is said of the engine."""
    snapshot = json.loads(answer.read_text(encoding="utf-8"))["price_snapshot"]
    shown = outlay(tmp_path, "reprice", str(run), "--since", snapshot).stdout
    assert "price: your own price" in shown
    assert "engine" not in shown


def test_since_when_has_to_be_said(tmp_path: Path, run: Path) -> None:
    """By a snapshot or by an answer."""
    result = outlay(tmp_path, "reprice", str(run))
    assert result.exit_code == 2
    assert "Give --since SNAPSHOT or --answer FILE" in result.stderr


@pytest.mark.parametrize("content", [{}, {"price_snapshot": "x"}, {"price_snapshot": "x", "cost": {"total_usd": 5}}])
def test_a_file_that_is_no_answer_is_refused(tmp_path: Path, run: Path, content: dict[str, Any]) -> None:
    """With its name."""
    result = outlay(tmp_path, "reprice", str(run), "--answer", str(written(tmp_path / "other.json", content)))
    assert result.exit_code == 1
    assert "other.json: no answer of an estimate" in result.stderr


@pytest.mark.parametrize(
    ("request_", "since", "words"),
    [
        (RUN, "nope", "--since: no price snapshot is called 'nope'"),
        (RUN | {"data": {}, "modle": {}}, "nope", "bad.json, request.modle: unknown field; did you mean 'model'?"),
    ],
)
def test_mistakes_are_told_with_their_pointer(tmp_path: Path, answer: Path, request_: dict[str, Any], since: str, words: str) -> None:
    """As over HTTP."""
    assert answer.exists()
    open_context(load_settings({"OUTLAY_DATA_DIR": str(tmp_path)})).store.close()
    result = outlay(tmp_path, "reprice", str(written(tmp_path / "bad.json", request_)), "--since", since)
    assert result.exit_code == 1
    assert words in result.stderr
