"""Ways to have a model do a task, and what each costs: the names are the API's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from service.domain.quantities import Range

APPROACHES = ("prompting", "lora", "full_finetune", "continued_pretrain", "distillation", "pretraining")


@dataclass(frozen=True, slots=True)
class Approach:
    """A way, in words: what it needs, what it gives, what it risks, with the source. `method` is an estimate's, "" without training."""

    name: str
    title: str
    method: str
    people_hours: float
    data: str
    accelerators: str
    people: str
    gives: str
    risk: str
    source: str


@dataclass(frozen=True, slots=True)
class ApproachNeeds:
    """What an approach needs, in words, and in figures: tokens trained on, accelerators and the memory of one, hours of people."""

    data: str
    accelerators: str
    people: str
    trained_tokens: float
    accelerator_count: int
    memory_gb: float | None
    people_hours: float


@dataclass(frozen=True, slots=True)
class ApproachTraining:
    """The run of an approach. `request` is the estimate's, to be sent to POST /v1/estimate; its bill holds the people's hours, too."""

    usd: Range
    accelerator_hours: Range
    wall_clock_hours: Range
    request: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ApproachServing:
    """The lifetime's tokens. `prompt_tokens` of a request with demonstrations; `hosted`: at the caller's price of an interface."""

    usd: Range
    usd_per_request: Range
    prompt_tokens: float
    params: float | None
    hosted: bool


@dataclass(frozen=True, slots=True)
class CostedApproach:
    """An approach with what it costs. `total_usd` is training with people, and serving; None where it cannot be done, `reasons` say why.

    `pays_back_at_tokens`: tokens served from which on it is cheaper than prompting, None where it never is.
    """

    rank: int
    approach: str
    title: str
    feasible: bool
    reasons: tuple[str, ...]
    total_usd: Range | None
    training: ApproachTraining | None
    people_usd: float
    serving: ApproachServing | None
    pays_back_at_tokens: float | None
    needs: ApproachNeeds
    gives: str
    risk: str
    source: str
