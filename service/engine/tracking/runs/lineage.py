"""Position of a run in its plan, and the surviving line: the trained tokens that lead to the present position.

The position is that of the newest event. Wherever it falls, or a rollback or branch sets it, a new segment begins; it continues the newest
earlier segment that contains its first position. Tokens that those segments trained beyond that are lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.engine.tracking.runs.hourly_rollup import BRANCH, ROLLBACK

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FIRST_LINE = "main"
"""Name of the initial branch."""


@dataclass(frozen=True, slots=True)
class RunSamples:
    """Samples of a run in order: elapsed hours, kinds, steps and positions [tokens], NaN where not reported, and its branches."""

    at_hours: Floats
    kinds: Floats
    steps: Floats
    tokens: Floats
    branches: Sequence[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class Lineage:
    """Positions [tokens] at elapsed hours. `trained` includes lost tokens, `earned` does not; neither ever falls.

    `surviving_share` is the share of the tokens trained since the element before that still count, `surviving` whether the position is on
    the surviving line.
    """

    at_hours: Floats
    tokens: Floats
    trained: Floats
    earned: Floats
    surviving_share: Floats
    surviving: NDArray[np.bool_]
    warnings: tuple[str, ...] = ()

    @property
    def position(self) -> float:
        """Present position [tokens], 0 where none was reported."""
        return float(self.tokens[-1]) if self.tokens.size else 0.0

    @property
    def lost_tokens(self) -> float:
        """Trained tokens that no longer count."""
        return float(self.trained[-1] - self.earned[-1]) if self.tokens.size else 0.0

    def index(self, hours: Floats) -> Ints:
        """Index of the element in effect at elapsed hours; -1 before the first."""
        return np.searchsorted(self.at_hours, hours, side="right") - 1


def trace_lineage(samples: RunSamples) -> Lineage:
    """The lineage of a run from its samples.

    Parameters
    ----------
    samples : RunSamples
        Samples in order of time.

    Returns
    -------
    Lineage
        One element for each sample with a position.
    """
    tokens, warnings = _with_branches(samples)
    rows = np.flatnonzero(~np.isnan(tokens))
    at, position, kinds = samples.at_hours[rows], tokens[rows], samples.kinds[rows]
    if not rows.size:
        return Lineage(at, position, position, position, position, position > 0, warnings)
    steps = np.diff(position, prepend=position[0])
    highest = np.maximum.accumulate(position)
    begins = (((kinds == ROLLBACK) | (kinds == BRANCH)) & (position <= np.append(-np.inf, highest[:-1]))) | (steps < 0)
    begins[0] = True
    gain = np.where(begins, 0.0, steps)
    piece = np.cumsum(begins) - 1
    ends = np.append(np.flatnonzero(begins)[1:], len(rows)) - 1
    limit = _limits(position[begins], position[ends], _names(begins, samples, tokens))[piece]
    kept = np.clip(np.minimum(position, limit) - (position - gain), 0.0, gain)
    share = np.divide(kept, gain, out=np.zeros_like(gain), where=gain > 0)
    earned = position[-1] - kept.sum() + np.cumsum(kept)
    return Lineage(at, position, earned[0] + np.cumsum(gain), earned, share, position <= limit, warnings)


def _with_branches(samples: RunSamples) -> tuple[Floats, tuple[str, ...]]:
    """Positions, with those of branches interpolated from the step they start from where the branch event has none."""
    tokens, steps = samples.tokens.copy(), samples.steps.copy()
    rows = np.flatnonzero(samples.kinds == BRANCH)
    warnings = []
    for row, (from_step, name) in zip(rows, samples.branches, strict=True):
        steps[row] = from_step
        if np.isnan(tokens[row]):
            tokens[row] = _position(steps[:row], tokens[:row], from_step)
        if np.isnan(tokens[row]):
            warnings.append(f"branch {name!r} starts from step {from_step}, whose position was never reported: its tokens_done is unknown")
    return tokens, tuple(warnings)


def _position(steps: Floats, tokens: Floats, step: int) -> float:
    """Position at a step, interpolated on the newest stretch that contains it; NaN where none does."""
    both = ~np.isnan(steps) & ~np.isnan(tokens)
    known, position = np.append(0.0, steps[both]), np.append(0.0, tokens[both])
    if known[-1] == step:
        return float(position[-1])
    passing = np.flatnonzero((known[:-1] <= step) & (step <= known[1:]))
    if not passing.size:
        return np.nan
    at = passing[-1]
    return float(np.interp(step, known[at : at + 2], position[at : at + 2]))


def _names(begins: NDArray[np.bool_], samples: RunSamples, tokens: Floats) -> list[str]:
    """Branch name of each segment: a branch event begins a branch, or returns to one."""
    placed = ~np.isnan(tokens)
    branch = samples.kinds == BRANCH
    branches = iter([name for (_, name), known in zip(samples.branches, placed[branch], strict=True) if known])
    names, now = [], FIRST_LINE
    branched = branch[placed]
    for row in np.flatnonzero(begins | branched):
        now = next(branches) if branched[row] else now
        if begins[row]:
            names.append(now)
    return names


def _limits(first: Floats, last: Floats, names: Sequence[str]) -> Floats:
    """Position until which each segment counts: -inf where the last segment does not build on it.

    Segments are given by the positions of their first and last elements [tokens] and their branches' names.
    """
    limits = np.full(len(first), -np.inf)
    piece, limit = len(limits) - 1, np.inf
    while piece >= 0:
        limits[piece] = limit
        limit = min(limit, float(first[piece]))
        piece = _stands_on(first, last, names, piece)
    return limits


def _stands_on(first: Floats, last: Floats, names: Sequence[str], piece: int) -> int:
    """The newest earlier segment of the same branch, else of any, that contains the first position of a segment; -1 where none does."""
    begin, name, before = first[piece], names[piece], piece - 1
    if before >= 0 and names[before] == name and first[before] <= begin <= last[before]:
        return before
    found = np.flatnonzero((first[:piece] <= begin) & (begin <= last[:piece]))
    same = [int(each) for each in found if names[int(each)] == name]
    return same[-1] if same else int(found[-1]) if found.size else -1
