"""What each run of a program trains to: its planned tokens, or what the others leave of the program's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from service.domain.tracking.events import ProgramBaseline
from service.engine.tracking.costs.cost import CostedRun
from service.engine.tracking.runs.hourly_rollup import EPOCH

# Share of the planned tokens below which a rest is rounding.
MIN_REST = 0.01


@dataclass(frozen=True, slots=True)
class RunTarget:
    """A run with the position at which it is done [tokens], None where none is planned."""

    run: CostedRun
    tokens: float | None

    @property
    def remaining_tokens(self) -> float:
        """Tokens to the target."""
        return (self.tokens or 0.0) - self.run.history.lineage.position

    @property
    def is_done(self) -> bool:
        """Whether the run has reached its target."""
        return self.tokens is not None and self.run.history.lineage.tokens.size > 0 and self.remaining_tokens <= 0

    @property
    def is_over(self) -> bool:
        """Whether the run is done or was closed."""
        return self.is_done or self.run.baseline.closed

    @property
    def never_started(self) -> bool:
        """Whether the run was closed without any event: it has no end."""
        return self.run.baseline.closed and self.run.history.last_at is None


def find_targets(program: ProgramBaseline, runs: Sequence[CostedRun]) -> tuple[RunTarget, ...]:
    """The target of each run. The newest run without a plan gets the program's tokens beyond those of the others.

    Parameters
    ----------
    program : ProgramBaseline
        Plan of the program.
    runs : sequence of CostedRun
        Its runs.
    """
    known = [run.baseline.tokens or None for run in runs]
    without = [place for place, tokens in enumerate(known) if tokens is None]
    if program.planned_tokens and without:
        newest = max(without, key=lambda place: runs[place].history.last_at or EPOCH)
        for place in without:
            known[place] = runs[place].history.lineage.position
        others = math.fsum(tokens or 0.0 for place, tokens in enumerate(known) if place != newest)
        known[newest] = max(program.planned_tokens - others, known[newest] or 0.0)
    return tuple(map(RunTarget, runs, known))


def untracked_share(program: ProgramBaseline, all_targets: Sequence[RunTarget]) -> float:
    """Share of the program's planned tokens that no run is tracked for [1]; 0 without planned tokens.

    Parameters
    ----------
    program : ProgramBaseline
        Plan of the program.
    all_targets : sequence of RunTarget
        Runs with targets.
    """
    if not program.planned_tokens:
        return 0.0
    rest = 1 - math.fsum(target.tokens or 0.0 for target in all_targets) / program.planned_tokens
    return rest if rest > MIN_REST else 0.0
