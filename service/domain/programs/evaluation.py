"""How a program or a run evaluates: suites with their cost and time, checks, sign-offs, and what each suite can detect."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Literal

from service.domain.answer_fields import HIDDEN, Doc, share
from service.domain.programs.tiers import TierName
from service.domain.quantities import Range

Cadence = Literal["gates", "checkpoints"]
CADENCES: tuple[Cadence, ...] = ("gates", "checkpoints")
"""Once when a run is over, before the tier's gate; or at each checkpoint that is kept."""
CheckKind = Literal["holdout", "contamination"]
CHECK_KINDS: tuple[CheckKind, ...] = ("holdout", "contamination")


@dataclass(frozen=True, slots=True)
class SuiteCost:
    """A suite in one tier. Where it is `blocking` the tier's machine waits: all of it is paid for, and `hours` move the calendar.

    `index`: the suite's place in the request.
    """

    suite: Annotated[str, Doc("Name of the suite")]
    tier: Annotated[TierName | None, Doc("Tier whose runs it evaluates; null: a run of no program")]
    generated: Annotated[bool, Doc("Whether answers are generated; else given ones are scored in one pass")]
    blocking: Annotated[bool, Doc("Whether the tier's machine waits for it")]
    evaluations: Annotated[float, Doc("Checkpoints evaluated, over all runs of the tier", "count", maximum=1e40)]
    samples: Annotated[int, Doc("Samples of one evaluation", minimum=1)]
    tokens: Annotated[float, Doc("Tokens of all evaluations, prompts and answers", "tokens", maximum=1e40)]
    flops: Annotated[float, Doc("Arithmetic of all evaluations", "FLOP", maximum=1e40)]
    accelerator_hours: Annotated[Range, Doc("Accelerators that are paid for, all evaluations", "accelerator-hours")]
    hours: Annotated[Range, Doc("Calendar time of all evaluations; 0 if the suite runs in parallel with the runs", "h")]
    usd: Annotated[Decimal | None, Doc("Cost at the runs' own price; null where it is not known", "USD")]
    index: Annotated[int, HIDDEN]


@dataclass(frozen=True, slots=True)
class CheckCost:
    """Work of an evaluation that is no suite: a holdout, or a search for test data in the training data."""

    name: Annotated[str, Doc("Name of the check")]
    kind: Annotated[CheckKind, Doc("What it is")]
    tier: Annotated[TierName | None, Doc("Tier it is spent with; null: the whole program or run")]
    usd: Annotated[Decimal, Doc("Stated amount, and the hours of people", "USD")]
    basis: Annotated[str, Doc("How it is computed", max_length=500)]


@dataclass(frozen=True, slots=True)
class SignOff:
    """A person's approval of a tier's evaluation, after it and before the gate. Several people work side by side."""

    tier: Annotated[TierName | None, Doc("Tier whose evaluation is approved; null: a run of no program")]
    name: Annotated[str, Doc("Who signs off")]
    days: Annotated[float, Doc("Working days", "days", maximum=1e40)]
    usd: Annotated[Decimal, Doc("Cost of these days", "USD")]


@dataclass(frozen=True, slots=True)
class Detection:
    """Whether a suite can tell the target from the baseline, both measured on as many samples and with as many training seeds.

    `samples_needed` and `seeds_needed`: with the other as it is; None where no number is enough.
    """

    suite: Annotated[str, Doc("Name of the suite")]
    metric: Annotated[str, Doc("What it measures")]
    difference: Annotated[float, Doc("Difference to be seen", "unit of the metric", maximum=1e40)]
    samples: Annotated[int, Doc("Samples of one evaluation", minimum=1)]
    seeds: Annotated[int, Doc("Training seeds of the runs it judges, the fewest of any", minimum=1)]
    power: Annotated[float, share("Probability that a difference as large is found significant")]
    smallest_difference: Annotated[
        float | None, Doc("Smallest difference found with the power asked for; null: none that the metric can have", "unit of the metric")
    ]
    enough: Annotated[bool, Doc("Whether the power asked for is reached")]
    samples_needed: Annotated[int | None, Doc("Fewest samples that reach it with these seeds; null: no number does", minimum=1)]
    seeds_needed: Annotated[int | None, Doc("Fewest seeds that reach it with these samples; null: no number does", minimum=1)]


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """All evaluation that the program or the run states. `usd`: suites, checks, sign-offs and storage, as the lines of the budget."""

    suites: Annotated[tuple[SuiteCost, ...], Doc("Suites, tier by tier", max_items=300)]
    checks: Annotated[tuple[CheckCost, ...], Doc("Holdouts and contamination checks", max_items=100)]
    sign_offs: Annotated[tuple[SignOff, ...], Doc("Who signs off what", max_items=300)]
    detection: Annotated[tuple[Detection, ...], Doc("What the suites can detect", max_items=100)]
    checkpoint_tb: Annotated[float, Doc("Weights kept for evaluation beyond the checkpoints that are stored anyway", "TB", maximum=1e40)]
    checkpoints_usd: Annotated[Decimal, Doc("Storage of these weights", "USD")]
    accelerator_hours: Annotated[float, Doc("Of all suites, median", "accelerator-hours", maximum=1e40)]
    usd: Annotated[Decimal | None, Doc("Cost of all of it; null where a run's price is not known", "USD")]
    power: Annotated[float, share("Power asked for")]
    significance: Annotated[float, share("Probability to find a difference where there is none, two-sided")]
