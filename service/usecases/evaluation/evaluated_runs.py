"""What an evaluation knows of the runs that it judges: a program's, tier by tier, or a single one of no tier."""

from __future__ import annotations

from dataclasses import dataclass

from service.domain.programs.runs import RunRepetition
from service.domain.programs.tiers import TierName
from service.domain.training.estimate import Estimate
from service.domain.training.run import Run


@dataclass(frozen=True, slots=True)
class EvaluatedRun:
    """A run with its estimate and its repeats. `occupied`: accelerators that it holds at once, repeats side by side included."""

    name: str
    trained: Run
    found: Estimate
    repetition: RunRepetition
    occupied: int


@dataclass(frozen=True, slots=True)
class EvaluatedTier:
    """Runs of a tier; `tier` None: a run of no program. `has_sign_off_days`: its gate has days for whoever signs off."""

    tier: TierName | None
    runs: tuple[EvaluatedRun, ...]
    has_sign_off_days: bool = False
