"""Outcomes of a team's finished runs, and the factors that later estimates take from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from service.domain.answer_fields import Doc


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """A finished run against its plan.

    `throughput_ratio`: its MFU while up over the modelled one, None without a plan. `accelerator_hours` [hours] and `interruptions` are
    totals. `overhead`: reported cost of evaluation, debugging and re-runs as shares of its compute cost [1].
    """

    run: str
    accelerator: str
    throughput_ratio: float | None
    accelerator_hours: float
    interruptions: int
    overhead: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Lessons:
    """Outcomes of a team's finished runs, at least one, and their version: equal for equal outcomes."""

    version: str
    outcomes: tuple[RunOutcome, ...]

    @property
    def reference(self) -> LessonsReference:
        """The lessons as answers name them."""
        return LessonsReference(self.version, len(self.outcomes))


@dataclass(frozen=True, slots=True)
class LessonsReference:
    """The lessons that an answer is made with."""

    version: Annotated[str, Doc("Version of the lessons: another one after any run was finished or opened again", max_length=100)]
    runs: Annotated[int, Doc("Finished runs of the team that they are from", minimum=1)]


@dataclass(frozen=True, slots=True)
class FeedbackRules:
    """Weight of the model, as `prior_runs` runs; shorter runs than `min_hours` are ignored."""

    prior_runs: float
    min_hours: float
    source: str


@dataclass(frozen=True, slots=True)
class FeedbackFactors:
    """Factors for an accelerator; None where no run is informative. The counts are of the runs behind each factor."""

    throughput_ratio: float | None
    throughput_runs: int
    mttf_hours_per_accelerator: float | None
    failure_runs: int
