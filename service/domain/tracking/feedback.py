"""What a team's finished runs teach its later estimates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """A finished run, against what was modelled of it.

    `throughput_ratio`: its MFU while it ran over the modelled one, None where no plan had one. `accelerator_hours` are those it ran,
    `interruptions` those in them. `overhead`: what evaluation, debugging and re-runs cost over its compute, of those that were told.
    """

    run: str
    accelerator: str
    throughput_ratio: float | None
    accelerator_hours: float
    interruptions: int
    overhead: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FeedbackRules:
    """How much finished runs say: the modelled figures count as `prior_runs` runs; shorter ones than `min_hours` teach nothing."""

    prior_runs: float
    min_hours: float
    source: str


@dataclass(frozen=True, slots=True)
class FeedbackFactors:
    """What the lessons come to for an accelerator; None where none tells. The counts are of the runs that each rests on."""

    throughput_ratio: float | None
    throughput_runs: int
    mttf_hours_per_accelerator: float | None
    failure_runs: int
    overhead: Mapping[str, float]
    overhead_runs: int
