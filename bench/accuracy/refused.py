"""Measured jobs asked for as a user would, with their layout where it is published: each did run, so each has an answer and fits."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from bench.accuracy.asked import Request, request_of
from bench.accuracy.report import table
from bench.harness import offline_client
from tools.calibration.cases import throughput_cases
from tools.calibration.finetuning.cases import finetuning_cases
from tools.calibration.other_accelerators.cases import other_cases
from tools.calibration.rl.cases import rl_cases
from tools.calibration.whole_runs.runs import published_runs

if TYPE_CHECKING:
    from flask.testing import FlaskClient

Summary = dict[str, object]
ROUTE = "/v1/estimate"
Outcome = Literal["answered", "refused", "too large"]


@dataclass(frozen=True)
class AskedRow:
    """A measured job and what the service says to it: an answer in which it fits, one in which it does not, or an error."""

    id: str
    list: str
    outcome: Outcome
    why: str


@functools.cache
def rows() -> tuple[AskedRow, ...]:
    """Every row of every list that is not excluded and ran."""
    with offline_client() as client:
        return tuple(_asked(client, name, row, request) for name, row, request in _requests())


def _requests() -> Iterator[tuple[str, str, Request]]:
    """List, row and request of every job; whole runs have no layout. vTrain's, of one request each layout, are left out."""
    for case in throughput_cases():
        if not case.each:
            yield "pre-training", case.ids[0], request_of(case.model, case.training, case.cluster)
    for other in other_cases():
        question = other.question
        yield "other accelerators", question.ids[0], request_of(question.model, question.training, question.cluster)
    for job in finetuning_cases():
        if job.ran:
            yield "fine-tuning", job.speed.ids[0], request_of(job.speed.model, job.speed.training, job.speed.cluster)
    for step in rl_cases():
        yield "reinforcement learning", step.id, request_of(step.model, step.training, step.cluster)
    for run in published_runs():
        yield "whole runs", run.name, request_of(run.model, run.training, run.cluster)


def _asked(client: FlaskClient, name: str, row: str, request: Request) -> AskedRow:
    answer = client.post(ROUTE, json=request)
    body = answer.get_json()
    if answer.status_code != 200:
        return AskedRow(row, name, "refused", str(body["detail"]))
    memory = body["memory"]
    if memory["fits"]:
        return AskedRow(row, name, "answered", "")
    return AskedRow(row, name, "too large", f"{memory['per_accelerator_gb']:.0f} of {memory['capacity_gb']:.0f} GB")


def summaries() -> list[Summary]:
    """One line: rows, and how many of them get no answer or are said not to fit, with the reasons."""
    return [{"name": "refused-rows", "rows": len(rows()), **_counts(rows()), "why": {row.id: row.why for row in rows() if row.why}}]


def _counts(some: Sequence[AskedRow]) -> dict[str, int]:
    return {"refused": sum(row.outcome == "refused" for row in some), "not_fitting": sum(row.outcome == "too large" for row in some)}


def refused_table() -> str:
    """Counts by list."""
    lists = dict.fromkeys(row.list for row in rows())
    members = {name: [row for row in rows() if row.list == name] for name in lists}
    cells = [[name, f"{len(some):,}", *map(str, _counts(some).values())] for name, some in members.items()]
    return table(["list", "rows asked for", "answered with an error", "said not to fit"], cells)
