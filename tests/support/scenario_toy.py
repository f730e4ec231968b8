"""A kind of scenario that counts, and that waits, fails, dies or eats memory at the chunks it is told to.

What it is told stands in the options: `chunks`, `seed`, a `folder` that both sides know, and lists of chunks by what befalls them. In the
folder `made` gets a line for every chunk that is begun, `at-3` appears where chunk 3 waits, and `go` ends all waiting.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from service.context import AppContext
from service.domain.errors import InvalidRequest
from service.domain.scenarios import ScenarioRecord
from service.domain.teams import DEFAULT_TEAM, SCOPES, Principal
from service.usecases.scenarios.registry import Body, PreparedScenario, ScenarioKind, ScenarioRequest, Step
from service.usecases.scenarios.scenarios import submit

NAME = "toy"
MODULE = "tests.support.scenario_toy"
EVERYBODY = Principal(DEFAULT_TEAM, None, SCOPES)
UNITS_A_CHUNK = 1000
MERGE = "merge"
ROOM_BYTES = 64 * 1024 * 1024
PATIENCE_S = 120.0


def prepare(context: AppContext, given: ScenarioRequest) -> PreparedScenario:
    """The options as they are. Raises InvalidRequest for more chunks than it takes."""
    told = dict(given.options.get("distributions", given.options))
    chunks = int(told.get("chunks", 1))
    if chunks > 100:
        raise InvalidRequest(f"{chunks} chunks are more than the 100 of a toy", "/chunks")
    checkpoints = tuple(told.get("checkpoints", ()))
    return PreparedScenario(NAME, chunks, UNITS_A_CHUNK, chunks * UNITS_A_CHUNK, checkpoints, told, context.catalog.current.name)


def run_chunk(context: AppContext, prepared: PreparedScenario, index: int, step: Step) -> dict[str, Any]:
    """A sum of random numbers, after whatever befalls this chunk."""
    del context
    told = prepared.request
    _note(told, index)
    for what, happen in HAPPENINGS.items():
        if index in told.get(what, ()):
            happen(told, index, step)
    step()
    drawn = np.random.Generator(np.random.Philox(key=told.get("seed", 1), counter=index)).integers(0, 2**40, UNITS_A_CHUNK)
    return {"sum": int(drawn.sum()) * 10**20, "mean": float(drawn.mean())}


def enough(prepared: PreparedScenario, tallies: Iterable[Body]) -> bool:
    """As soon as there are as many as asked for."""
    return sum(1 for _ in tallies) >= prepared.request.get("enough", prepared.chunks)


def finish(context: AppContext, prepared: PreparedScenario, tallies: Iterable[Body]) -> dict[str, Any]:
    """The exact sum, and a digest that any other order or bit would change."""
    del context
    found = list(tallies)
    _note(prepared.request, MERGE)
    for what, happen in HAPPENINGS.items():
        if MERGE in prepared.request.get(what, ()):
            happen(prepared.request, MERGE, lambda: None)
    digest = hashlib.sha256(json.dumps(found).encode()).hexdigest()
    return {"sum": sum(tally["sum"] for tally in found), "trials_done": prepared.units_after(len(found)), "digest": digest}


def _note(told: Body, what: object) -> None:
    if "folder" in told:
        with (Path(told["folder"]) / "made").open("a") as out:
            out.write(f"{what}\n")


def _wait(told: Body, what: object, step: Step) -> None:
    folder, ends = Path(told["folder"]), time.monotonic() + PATIENCE_S
    (folder / f"at-{what}").touch()
    while not (folder / "go").exists() and time.monotonic() < ends:
        step()
        time.sleep(0.02)


def _fail(told: Body, what: object, step: Step) -> None:
    raise ValueError(f"chunk {what} is rubbish")


def _refuse(told: Body, what: object, step: Step) -> None:
    raise InvalidRequest(f"chunk {what} cannot be", "/base")


def _die(told: Body, what: object, step: Step) -> None:
    os._exit(9)


def _eat(told: Body, what: object, step: Step) -> None:
    """All the memory there is, of a process that may have little more than it has."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    has = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (has + ROOM_BYTES, hard))
    try:
        np.ones(4 * ROOM_BYTES)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _die_once(told: Body, what: object, step: Step) -> None:
    """The first process that comes here."""
    mark = Path(told["folder"]) / f"died-{what}"
    if not mark.exists():
        mark.touch()
        os._exit(9)


HAPPENINGS: dict[str, Callable[[Body, object, Step], None]] = {
    "wait": _wait,
    "fail": _fail,
    "refuse": _refuse,
    "die": _die,
    "die_once": _die_once,
    "eat": _eat,
}
KIND = ScenarioKind(prepare, run_chunk, finish, enough)


def given(**told: Any) -> ScenarioRequest:
    """A request for a toy."""
    return ScenarioRequest(NAME, "estimate", {}, {}, told, lambda body: body)


def start(context: AppContext, who: Principal = EVERYBODY, **told: Any) -> ScenarioRecord:
    """A toy that is submitted."""
    return submit(context, who, given(**told), {"kind": NAME, **told})
