"""Approaches to a task and their costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from service.domain.answer_fields import Doc
from service.domain.quantities import Range

APPROACHES = ("prompting", "lora", "full_finetune", "continued_pretrain", "distillation", "pretraining")


@dataclass(frozen=True, slots=True)
class Approach:
    """An approach in words: needs, results, risks, with the source. `method` is the estimate's training method, "" without training."""

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
    """What an approach needs, in words and figures."""

    data: Annotated[str, Doc("Data it needs, in words", max_length=1000)]
    accelerators: Annotated[str, Doc("Accelerators it needs, in words", max_length=1000)]
    people: Annotated[str, Doc("People it needs, in words", max_length=1000)]
    trained_tokens: Annotated[float, Doc("Tokens trained on, with every epoch", "tokens", maximum=1e40)]
    accelerator_count: Annotated[int, Doc("Accelerators of the training run")]
    memory_gb: Annotated[float | None, Doc("Memory needed on the fullest accelerator in training; null without training", "GB")]
    people_hours: Annotated[float, Doc("Work of people", "h")]


@dataclass(frozen=True, slots=True)
class ApproachTraining:
    """The training run of an approach, personnel included; `request` can be sent to POST /v1/estimate."""

    usd: Annotated[Range, Doc("Cost of the run, with its people", "USD")]
    accelerator_hours: Annotated[Range, Doc("Accelerators times the hours they are held", "accelerator-hours")]
    wall_clock_hours: Annotated[Range, Doc("Time on the clock, interruptions included", "h")]
    request: Annotated[dict[str, Any], Doc("Request of the run, as POST /v1/estimate takes it")]


@dataclass(frozen=True, slots=True)
class ApproachServing:
    """Serving of the lifetime's requests; engines keep the keys and values of demonstrations."""

    usd: Annotated[Range, Doc("Cost of serving the lifetime's requests", "USD")]
    usd_per_request: Annotated[Range, Doc("Cost of one request", "USD per request")]
    prompt_tokens: Annotated[float, Doc("Tokens of a prompt, with demonstrations", "tokens")]
    params: Annotated[float | None, Doc("Parameters of the served model; null for a hosted one", "parameters")]
    hosted: Annotated[bool, Doc("Whether it is served at the caller's price of a hosted model")]


@dataclass(frozen=True, slots=True)
class CostedApproach:
    """An approach with its costs; null where it is not feasible, with the reasons."""

    rank: Annotated[int, Doc("Place in the order, 1 the cheapest", minimum=1)]
    approach: Annotated[str, Doc("Name of the approach", choices=APPROACHES)]
    title: Annotated[str, Doc("Its name in words")]
    feasible: Annotated[bool, Doc("Whether it can be done")]
    reasons: Annotated[tuple[str, ...], Doc("Why it cannot be done", max_items=10, max_length=5000)]
    total_usd: Annotated[Range | None, Doc("Training with its people, and serving; null where it cannot be done", "USD")]
    training: Annotated[ApproachTraining | None, Doc("Training; null without a run")]
    people_usd: Annotated[float, Doc("Cost of the people", "USD")]
    serving: Annotated[ApproachServing | None, Doc("Serving over the lifetime; null where it cannot be done")]
    pays_back_at_tokens: Annotated[
        float | None,
        Doc("Tokens served from which on it is cheaper than prompting; null: never, or prompting is not compared", "tokens", maximum=1e40),
    ]
    needs: Annotated[ApproachNeeds, Doc("What it needs")]
    gives: Annotated[str, Doc("What it gives, in words", max_length=1000)]
    risk: Annotated[str, Doc("What may go wrong", max_length=1000)]
    source: Annotated[str, Doc("Where this comes from", max_length=1000)]
