"""What serving a model takes and costs, as it is answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from service.domain.quantities import Range


@dataclass(frozen=True, slots=True)
class ServingConfiguration:
    """One replica. `pipeline` stages, or `data` groups that run attention side by side and share experts over all accelerators.

    `quality_loss_percent`: what the format loses of benchmark scores, None where weights stay as they were trained.
    """

    accelerator: str
    accelerators: int
    parallelism: dict[str, int]
    batch: int
    format: str
    bits: int
    quality_loss_percent: Range | None


@dataclass(frozen=True, slots=True)
class ServingMemory:
    """The fullest accelerator, every sequence in flight at its full length; the parts add up. GB of 1e9 bytes."""

    per_accelerator_gb: float
    capacity_gb: float
    fits: bool
    breakdown_gb: dict[str, float]


@dataclass(frozen=True, slots=True)
class ServingThroughput:
    """A replica kept full with prompts and answers at once; `prefill_tokens_per_s` of one prompt alone, what is in a cache not counted."""

    output_tokens_per_s: Range
    input_tokens_per_s: Range
    requests_per_s: Range
    output_tokens_per_s_per_accelerator: Range
    prefill_tokens_per_s: Range
    bound_by: str


@dataclass(frozen=True, slots=True)
class ServingLatency:
    """A replica kept full, without queues. `request_s`: the whole answer."""

    time_to_first_token_s: Range
    time_per_output_token_ms: Range
    request_s: Range


@dataclass(frozen=True, slots=True)
class ServingFleet:
    """What carries the stated rate: whole replicas in whole instances. `utilisation`: share of their full load, at the median."""

    requests_per_s: float
    replicas: Range
    accelerators: Range
    utilisation: float


@dataclass(frozen=True, slots=True)
class ServingCost:
    """All that is paid, divided among the tokens that are served. `usd_per_month` where the rate is known."""

    usd_per_million_input_tokens: Range
    usd_per_million_output_tokens: Range
    usd_per_million_tokens: Range
    usd_per_month: Range | None
    currency: str = "USD"


@dataclass(frozen=True, slots=True)
class ServingLifetime:
    """The model's life: `total_usd` is with training where that is stated. `months` where the rate is known."""

    tokens: float
    months: float | None
    serving_usd: Range
    training_usd: Range | None
    total_usd: Range


@dataclass(frozen=True, slots=True)
class ServingLever:
    """One way to serve more cheaply, on the best option's offer. None: never paid back; or rate or lifetime not stated.

    `saves_usd_per_million_tokens` below 0: dearer. `lifetime_saves_usd` after its training.
    """

    lever: str
    title: str
    change: dict[str, Any]
    usd_per_million_tokens: float
    saves_usd_per_million_tokens: float
    training_tokens: float
    training_usd: float
    payback_tokens: float | None
    payback_months: float | None
    lifetime_saves_usd: float | None
    quality_loss_percent: Range
    risk: str
    source: str
