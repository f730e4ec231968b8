"""What turns the verdict, one input at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    FloatArray = NDArray[np.float64]
    Evaluate = Callable[[dict[str, FloatArray]], FloatArray]
    """Present values, (options, scenarios), of values by input, each (scenarios,)."""

STEPS, HALVINGS = 24, 24


@dataclass(frozen=True, slots=True)
class Variable:
    """An input that is varied between `low` and `high` from its `value`, in its own unit."""

    path: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class FlipValue:
    """The value of an input nearest to its own at which another side costs least."""

    path: str
    value: float
    flips_at: float


def find_flips(variables: Sequence[Variable], sides: NDArray[np.int64], evaluate: Evaluate) -> tuple[FlipValue, ...]:
    """Flip value of each input that has one, the least relative change first.

    Steps from the value towards both bounds find where the verdict changes first; halving narrows that step.

    Parameters
    ----------
    variables : sequence of Variable
        Inputs, varied one at a time.
    sides : (options,) int array
        Side of each option; the verdict is the side of the cheapest.
    evaluate : callable
        Present values of all options for values by input.

    Returns
    -------
    tuple of FlipValue
        At the flip value itself the verdict has turned.
    """
    if not variables:
        return ()
    verdict = _Verdicts(variables, sides, evaluate)
    value, ends = (
        np.array([each.value for each in variables]),
        [np.array([getattr(each, end) for each in variables]) for end in ("low", "high")],
    )
    base = int(verdict.at(value[:1], np.zeros(1, dtype=np.int64))[0])
    brackets = [_first_change(verdict, value, end, base) for end in ends]
    found = [bracket for side in brackets for bracket in side]
    if not found:
        return ()
    rows = np.array([row for row, _, _ in found])
    same, other = np.array([bracket[1] for bracket in found]), np.array([bracket[2] for bracket in found])
    for _ in range(HALVINGS):
        middle = (same + other) / 2
        unchanged = verdict.at(middle, rows) == base
        same, other = np.where(unchanged, middle, same), np.where(unchanged, other, middle)
    flips = [FlipValue(variables[row].path, variables[row].value, float(at)) for row, at in zip(rows.tolist(), other, strict=True)]
    nearest: dict[str, FlipValue] = {}
    for flip in sorted(flips, key=_relative_change):
        nearest.setdefault(flip.path, flip)
    return tuple(nearest.values())


@dataclass(frozen=True, slots=True)
class _Verdicts:
    """The side that costs least with one input at a time at another value."""

    variables: Sequence[Variable]
    sides: NDArray[np.int64]
    evaluate: Evaluate

    def at(self, values: FloatArray, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The side for each value of the variable in `rows`."""
        columns = {each.path: np.full(len(values), each.value, dtype=np.float64) for each in self.variables}
        for index in np.unique(rows).tolist():
            columns[self.variables[index].path][rows == index] = values[rows == index]
        return np.asarray(self.sides[self.evaluate(columns).argmin(axis=0)])


def _first_change(verdict: _Verdicts, value: FloatArray, end: FloatArray, base: int) -> list[tuple[int, float, float]]:
    """For each variable with a change between its value and the end: its row, the last step before it and the first after it."""
    steps = value[:, np.newaxis] + (end - value)[:, np.newaxis] * np.linspace(0.0, 1.0, STEPS + 1) ** 2
    rows = np.repeat(np.arange(len(value)), STEPS + 1)
    turned = (verdict.at(steps.ravel(), rows) != base).reshape(steps.shape)
    turned[:, 0] = False
    first = turned.argmax(axis=1)
    return [(row, float(steps[row, at - 1]), float(steps[row, at])) for row, at in enumerate(first.tolist()) if at]


def _relative_change(flip: FlipValue) -> float:
    return abs(flip.flips_at - flip.value) / max(abs(flip.value), 1e-9)
