"""The interface of a kind of scenario: preparation, chunks, stopping rule and result.

A scenario is divided into chunks. A chunk's tally depends only on the request and the chunk's index, not on the process, the time or the
number of attempts: so the same request has the same result on any number of workers and after any crash. To add a kind, write a module with
a `KIND` and add its line to `KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any, Literal

from service.context import AppContext
from service.domain.tracking.feedback import Lessons

Body = Mapping[str, Any]
Shape = Literal["estimate", "program"]
Step = Callable[[], None]
"""Called within a chunk at least four times a second; it raises to stop the work. The caller does not catch what it raises."""
Read = Callable[[Body], Body]
"""Reads a base request from JSON into the form the use cases take. Raises DomainErrors, their pointers below `/base`."""

MOST_CHUNKS = 2048
"""A larger scenario has larger chunks, so that the storage and the merging of tallies stay bounded."""


@dataclass(frozen=True, slots=True)
class ScenarioRequest:
    """A scenario's request.

    `base_json` is the base request as JSON and `base` the same as the use cases take it (dates, decimals and ranges read), of shape
    `shape`. `options` is everything except `kind` and `base`, read by the schema. `read` reads a base that differs from `base_json`.
    """

    kind: str
    shape: Shape
    base_json: Body
    base: Body
    options: Body
    read: Read


@dataclass(frozen=True, slots=True)
class PreparedScenario:
    """Everything that workers need of a scenario.

    `units`: most trials, cells or evaluations; `units_per_chunk`: of each chunk, the last may have fewer; `chunks`: at most MOST_CHUNKS.
    `checkpoints`: numbers of chunks, ascending, after which `is_sufficient` is called. `request`: JSON values, dates, times, decimals and
    ranges, which are stored without loss, but tuples become lists. `snapshot`: name of the price book. `lessons`: the team's when
    it was submitted, all that its evaluations use. `key`: the scenario's id, empty
    before it is stored; costly models are cached by it.
    """

    kind: str
    chunks: int
    units_per_chunk: int
    units: int
    checkpoints: tuple[int, ...]
    request: Body
    snapshot: str
    lessons: Lessons | None = None
    key: str = ""

    @property
    def lessons_reference(self) -> dict[str, Any] | None:
        """The lessons as results name them."""
        return None if self.lessons is None else asdict(self.lessons.reference)

    def units_after(self, chunks: int) -> int:
        """Number of units in the first chunks."""
        return min(chunks * self.units_per_chunk, self.units)


@dataclass(frozen=True, slots=True)
class ScenarioKind:
    """One kind of scenario.

    `prepare` checks the request and its limits and raises DomainErrors with pointers into the scenario's request. It evaluates no more of
    the base than `base_check`, a few runs: some 5 ms of CPU each, 150 ms where a layout was not searched in this process before.
    `run_chunk(context, prepared, index, step)` returns a tally, JSON of the chunk's results (integers of any length are exact).
    `is_sufficient(prepared, tallies)`: whether the tallies of the first chunks, in order, are enough; called at the checkpoints only.
    `finish(context, prepared, tallies)` returns the result as JSON. Tallies are iterated once, in order, so that thousands need no memory.
    A DomainError of `run_chunk`, `is_sufficient` or `finish` fails the scenario at once; any other exception is retried.
    """

    prepare: Callable[[AppContext, ScenarioRequest], PreparedScenario]
    run_chunk: Callable[[AppContext, PreparedScenario, int, Step], dict[str, Any]]
    finish: Callable[[AppContext, PreparedScenario, Iterable[Body]], dict[str, Any]]
    is_sufficient: Callable[[PreparedScenario, Iterable[Body]], bool] = lambda _prepared, _tallies: False


KINDS: Mapping[str, str] = {
    "monte_carlo": "service.usecases.scenarios.monte_carlo",
    "sensitivity": "service.usecases.scenarios.changes.sensitivity",
    "sweep": "service.usecases.scenarios.changes.sweep",
    "optimize": "service.usecases.scenarios.optimisation.optimise",
}
"""Module with the `KIND` of each kind, loaded on first use."""


def load_kind(name: str) -> ScenarioKind:
    """The kind of this name. Raises LookupError for an unknown one."""
    if name not in KINDS:
        raise LookupError(f"no scenario of kind {name!r} is known here; known: {', '.join(KINDS)}")
    kind: ScenarioKind = import_module(KINDS[name]).KIND
    return kind
