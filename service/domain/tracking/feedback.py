"""Outcomes of a team's finished runs, and the factors that later estimates take from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
    overhead: Mapping[str, float]
    overhead_runs: int
