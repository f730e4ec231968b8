"""What one kind of scenario is: what it checks when it is asked for, what a worker does of it at a time, and what comes of all of that.

A scenario is cut into chunks. What a chunk gives depends on the request and its index alone, never on who makes it, when, or how often: so
the same request has the same result on any number of workers and after any deaths. Adding a kind: a module with a `KIND` and its line in
`KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from service.context import AppContext

Body = Mapping[str, Any]
Shape = Literal["estimate", "program"]
Step = Callable[[], None]
"""Called often within a chunk, at least four times a second: raises where the work is not to go on. Whoever calls it lets that pass."""
Read = Callable[[Body], Body]
"""A base request as JSON in, as the use cases take it out. Raises DomainErrors, their pointers below `/base`."""

MOST_CHUNKS = 2048
"""A larger scenario has larger chunks: what is kept of it, and what merging takes, stay bounded."""


@dataclass(frozen=True, slots=True)
class ScenarioRequest:
    """A request as it came in.

    `written` is the base request as JSON and `base` the same as the use cases take it (dates, decimals and ranges read), of the shape
    that `shape` says. `options` is everything beside `kind` and `base`, read by the kind's own schema. `read` reads another base that
    differs from `written` somewhere: what the schema refuses is a Problem.
    """

    kind: str
    shape: Shape
    written: Body
    base: Body
    options: Body
    read: Read


@dataclass(frozen=True, slots=True)
class PreparedScenario:
    """What the workers need to know, and all they are told.

    `units` is what there is to do at most (trials, cells, evaluations), `units_per_chunk` how much of it a chunk does (the last one may do
    less), `chunks` how many there are, at most MOST_CHUNKS. `checkpoints` are the numbers of chunks, ascending, after which `enough` is
    asked. `request` takes what JSON takes and dates, times, decimals and ranges; they come back as they were, tuples as lists. `snapshot`
    names the price book. `key` is the scenario's id, to remember a costly model by; empty until there is one.
    """

    kind: str
    chunks: int
    units_per_chunk: int
    units: int
    checkpoints: tuple[int, ...]
    request: Body
    snapshot: str
    key: str = ""

    def units_after(self, chunks: int) -> int:
        """Units done when so many chunks are."""
        return min(chunks * self.units_per_chunk, self.units)


@dataclass(frozen=True, slots=True)
class ScenarioKind:
    """One kind of scenario.

    `prepare` checks the request and the limits and raises DomainErrors with pointers into the scenario's request. Of the base it
    evaluates no more than `scenario_base` does, a few runs: some 5 ms of CPU each, 150 where a layout was never searched in this process.
    `run_chunk(context, prepared, index, step)` gives a tally as JSON has it (integers of any length are exact).
    `enough(prepared, tallies)` says whether the first chunks' tallies, in order, are enough; asked at the checkpoints only, in order.
    `finish(context, prepared, tallies)` returns the result as JSON. Aggregates come one at a time and once, so that thousands need no
    memory: fold them. A DomainError that `run_chunk`, `enough` or `finish` raises is the scenario's error at once; any other exception is
    retried.
    """

    prepare: Callable[[AppContext, ScenarioRequest], PreparedScenario]
    run_chunk: Callable[[AppContext, PreparedScenario, int, Step], dict[str, Any]]
    is_sufficient: Callable[[PreparedScenario, Iterable[Body]], bool]
    finish: Callable[[AppContext, PreparedScenario, Iterable[Body]], dict[str, Any]]


KINDS: Mapping[str, str] = {
    "monte_carlo": "service.usecases.scenarios.monte_carlo",
    "sensitivity": "service.usecases.scenarios.changes.sensitivity",
    "sweep": "service.usecases.scenarios.changes.sweep",
    "optimize": "service.usecases.scenarios.optimisation.optimise",
}
"""Every kind, one line each: the module whose `KIND` it is, loaded on first use."""


def load_kind(name: str) -> ScenarioKind:
    """The kind of that name. Raises LookupError for one that is not known."""
    if name not in KINDS:
        raise LookupError(f"no scenario of kind {name!r} is known here; known: {', '.join(KINDS)}")
    found: ScenarioKind = import_module(KINDS[name]).KIND
    return found


def never_sufficient(prepared: PreparedScenario, tallies: Iterable[Body]) -> bool:
    """For kinds that always do the whole of it."""
    del prepared, tallies
    return False
