"""What an estimate answers: the names are the contract's, one dataclass a block."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from service.domain.quantities import Range


@dataclass(frozen=True, slots=True)
class FlopsBlock:
    """FLOPs of the run; `per_token` is `total` over trained tokens (or samples). Recomputation stands apart, outside `total`."""

    per_token: float
    total: float
    petaflop_s_days: float
    forward: float
    backward: float
    recompute: float
    attention_share: float


@dataclass(frozen=True, slots=True)
class TokensBlock:
    raw: float
    effective: float
    trained: float
    unit: str
    quality: float | None
    robustness: float | None


@dataclass(frozen=True, slots=True)
class Alternative:
    """A layout that was searched and not taken. `slower_by` is the share of the taken layout's rate that it loses, below 0 where it
    is faster and does not fit; `why` says where it loses it.
    """

    parallelism: dict[str, int | str]
    tokens_per_s_per_accelerator: float
    step_time_s: float
    memory_gb: float
    fits: bool
    slower_by: float
    why: str


@dataclass(frozen=True, slots=True)
class ThroughputBlock:
    tokens_per_s: float
    tokens_per_s_per_accelerator: Range
    tflops_per_accelerator: float
    mfu: Range
    hfu: float
    step_time_s: float
    sustained_share: float
    bound_by: str
    parallelism: dict[str, int | str]
    alternatives: tuple[Alternative, ...]
    source: str


@dataclass(frozen=True, slots=True)
class MemoryBlock:
    per_accelerator_gb: float
    capacity_gb: float
    fits: bool
    breakdown_gb: dict[str, float]
    would_fit: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReliabilityBlock:
    mttf_hours: float
    expected_interruptions: float
    checkpoint_interval_minutes: float
    checkpoint_tb: float
    goodput: float


@dataclass(frozen=True, slots=True)
class FinishDates:
    p10: date
    p50: date
    p90: date


@dataclass(frozen=True, slots=True)
class TimeBlock:
    accelerator_hours: Range
    wall_clock_hours: Range
    steps: float
    finish: FinishDates | None
    deadline_probability: float | None


@dataclass(frozen=True, slots=True)
class LineBlock:
    line: str
    usd: Decimal
    basis: str


@dataclass(frozen=True, slots=True)
class CostBlock:
    total_usd: Range
    lines: tuple[LineBlock, ...]
    usd_per_million_tokens: float
    currency: str = "USD"


@dataclass(frozen=True, slots=True)
class EnergyBlock:
    mwh: float
    tco2e: float
    pue: float
    grid_gco2_per_kwh: float
    watts_per_accelerator: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """The engine's answer, before price, assumptions and versions are put beside it."""

    flops: FlopsBlock
    tokens: TokensBlock
    throughput: ThroughputBlock
    memory: MemoryBlock
    reliability: ReliabilityBlock
    time: TimeBlock
    cost: CostBlock
    energy: EnergyBlock
    batch_sequences: int
    warnings: tuple[str, ...]
