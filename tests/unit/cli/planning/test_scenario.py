"""`outlay scenario`: run here where no worker is, watched, cancelled; the same as over HTTP."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from service import create_app
from service.api.resources.scenarios import EXAMPLE
from service.config import Settings
from service.container import utc_now
from service.domain.teams import DEFAULT_TEAM
from service.domain.tracking.feedback import RunOutcome
from service.store import Store
from service.usecases import jobs
from service.usecases.jobs import WORKER_TIMEOUT
from tests.unit.cli.invoke import output_of, run

SMALL: dict[str, Any] = {**EXAMPLE, "trials": 2000}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A small scenario's request."""
    made = tmp_path / "scenario.json"
    made.write_text(json.dumps(SMALL))
    return made


def test_it_is_evaluated_without_a_worker(settings: Settings, file: Path) -> None:
    """On a machine where nothing was ever started; who watches it later sees the same."""
    found = json.loads(output_of(settings, "scenario", "run", str(file), "--json"))
    assert (found["state"], found["progress"], found["request"]) == ("succeeded", {"done": 2000, "total": 2000}, SMALL)
    assert json.loads(output_of(settings, "scenario", "watch", found["id"], "--json")) == found


def test_its_result_is_that_of_the_service(settings: Settings, file: Path) -> None:
    """The same base and seed, taken over HTTP and worked on by whoever watches it."""
    mine = json.loads(output_of(settings, "scenario", "run", str(file), "--json"))
    taken = create_app(settings).test_client().post("/v1/scenarios", json=SMALL).get_json()
    theirs = json.loads(output_of(settings, "scenario", "watch", taken["id"], "--json"))
    assert theirs["result"] == mine["result"]


def test_it_has_the_lessons_that_an_estimate_has(settings: Settings, tmp_path: Path, file: Path) -> None:
    """Those of the team without keys, in both commands."""
    estimate = tmp_path / "estimate.json"
    estimate.write_text(json.dumps(SMALL["base"]))
    with closing(Store(settings.database_url)) as store:
        store.migrate()
        store.save_run_outcome(DEFAULT_TEAM, RunOutcome("run-1", "NVIDIA-A100-80GB-SXM", 0.8, 50_000.0, 5), utc_now())
    alone = json.loads(output_of(settings, "estimate", str(estimate), "--json"))
    found = json.loads(output_of(settings, "scenario", "run", str(file), "--json"))
    assert found["result"]["lessons"] == alone["lessons"]
    assert alone["lessons"]["runs"] == 1


def test_one_command_follows_another(settings: Settings, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that renews its leases does not count as a worker afterwards: the next command evaluates its own scenario."""
    monkeypatch.setattr(jobs, "RENEW_S", 0.001)
    for _ in range(2):
        assert json.loads(output_of(settings, "scenario", "run", str(file), "--json"))["state"] == "succeeded"
        with closing(Store(settings.database_url)) as store:
            assert store.last_beat() is None


def test_a_worker_that_died_is_not_waited_for(settings: Settings, file: Path) -> None:
    """A worker that counts as alive when the command begins, and no longer a moment later: the command takes its place."""
    output_of(settings, "scenario", "run", str(file))
    with closing(Store(settings.database_url)) as store:
        store.beat("dead", utc_now() - WORKER_TIMEOUT + timedelta(seconds=1))
    assert json.loads(output_of(settings, "scenario", "run", str(file), "--json"))["state"] == "succeeded"


def test_it_is_readable(settings: Settings, file: Path) -> None:
    """Percentiles in a table, and where all of it is; progress and id are no part of the output."""
    shown = run(settings, "scenario", "run", str(file), "--set", "trials=1000")
    assert shown.exit_code == 0, shown.output
    assert "cost_usd" in shown.stdout
    assert "trials_done: 1,000" in shown.stdout
    assert shown.stderr.splitlines()[1:] == ["monte_carlo"]  # the bar itself is for terminals


def test_its_statements_are_sentences(settings: Settings, file: Path) -> None:
    """Each on a line of its own, beside the causes."""
    shown = output_of(settings, "scenario", "run", str(file), "--set", "trials=20000", "--set", "budget_usd=400000")
    assert any(line.startswith("if the budget is passed, in ") and line.endswith("largest cause") for line in shown.splitlines())


def shown_lines(settings: Settings, file: Path, request: dict[str, Any]) -> list[str]:
    """What the command prints of a scenario below its sentence, by line."""
    file.write_text(json.dumps(request))
    sentence, *lines = output_of(settings, "scenario", "run", str(file)).splitlines()
    assert "$" in sentence
    return lines


def test_a_sensitivity_is_shown_as_a_tornado(settings: Settings, file: Path) -> None:
    """A row for each input with the cost at its ends, the widest first, and the shares of the variance."""
    inputs = {"price.usd_per_accelerator_hour": {"uniform": [1.5, 2.5]}, "data.tokens": {"uniform": [1.9e12, 2e12]}}
    lines = shown_lines(settings, file, {"kind": "sensitivity", "base": EXAMPLE["base"], "inputs": inputs, "points": 16})
    assert lines[0].split() == ["input", "low:", "cost", "high:", "cost", "swing"]
    assert lines[1].startswith("price.usd_per_accelerator_hour  1.6")
    assert lines[2].startswith("data.tokens ")
    assert lines[1].count(" USD") == 3
    assert any(line.startswith("variance of the cost by") for line in lines)


def test_a_sweep_is_shown_row_by_row(settings: Settings, file: Path) -> None:
    """The values that were set with what each costs; one without an answer says why."""
    axes = {"hardware.count": [1, 512, 1024]}
    lines = shown_lines(settings, file, {"kind": "sweep", "base": EXAMPLE["base"], "axes": axes})
    assert lines[0].split() == ["hardware.count", "cost", "hours", "finish"]
    assert [line.split()[0] for line in lines[1:4]] == ["1", "512", "1,024"]
    assert "no layout fits" in lines[1]
    assert all(" USD" in line for line in lines[2:4])
    assert "infeasible: 1" in lines


def test_an_optimisation_is_shown_with_its_best_option(settings: Settings, file: Path) -> None:
    """First of the table, before the Pareto front: how many of what, from whom, at what cost."""
    base = {**EXAMPLE["base"], "price": {}}
    candidates = {"accelerators": ["A100-80GB"], "counts": [512, 1024]}
    lines = shown_lines(settings, file, {"kind": "optimize", "base": base, "candidates": candidates})
    assert lines[0].split() == ["accelerators", "from", "pricing", "model", "start", "cost", "hours"]
    assert lines[1].startswith("best ")
    assert " x NVIDIA-A100-80GB" in lines[1]
    assert " USD" in lines[1]


def test_one_that_was_cancelled_says_so(settings: Settings, file: Path) -> None:
    """To whoever watches it, with a status that a script sees."""
    output_of(settings, "scenario", "run", str(file))
    taken = create_app(settings).test_client().post("/v1/scenarios", json=SMALL).get_json()
    assert output_of(settings, "scenario", "cancel", taken["id"]) == f"scenario {taken['id']} is cancelled\n"
    watched = run(settings, "scenario", "watch", taken["id"])
    assert (watched.exit_code, f"scenario {taken['id']} is cancelled" in watched.stderr) == (1, True)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("trials=1e12", "--set trials: must lie between 1 and 1e+10"),
        ("kind=tea", "--set kind: must be one of"),
        ("base.modle=1", "--set base.modle"),
    ],
)
def test_what_cannot_be_is_told_in_a_line(settings: Settings, file: Path, change: str, told: str) -> None:
    """With its pointer, before anything is made."""
    refused = run(settings, "scenario", "run", str(file), "--set", change)
    assert (refused.exit_code, told in refused.stderr) == (1, True), refused.output


def test_a_name_nobody_knows_is_told_with_its_place(settings: Settings, file: Path) -> None:
    """And the names like it; nothing is begun."""
    refused = run(settings, "scenario", "run", str(file), "--set", "base.hardware.accelerator=H1000")
    assert (refused.exit_code, "Error: --set base.hardware.accelerator: " in refused.stderr) == (1, True), refused.output


@pytest.mark.parametrize("command", ["watch", "cancel"])
def test_what_is_no_part_of_the_request_has_no_place(settings: Settings, file: Path, command: str) -> None:
    """An unknown id: no pointer before the words."""
    output_of(settings, "scenario", "run", str(file))
    assert run(settings, "scenario", command, "nobodys").stderr == "Error: there is no scenario of this id\n"


@pytest.mark.parametrize("command", ["watch", "cancel"])
def test_without_a_database_there_are_none(settings: Settings, command: str) -> None:
    """And none is made."""
    assert "no scenarios here yet" in run(settings, "scenario", command, "x").stderr
    assert not settings.data_dir.exists()
