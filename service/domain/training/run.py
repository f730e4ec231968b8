"""One training run, resolved: every default chosen, every name looked up. This is what the engine takes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date
from typing import Literal

from service.domain.quantities import Range
from service.domain.training.footprint import Footprint
from service.domain.training.hardware import Accelerator, Precision
from service.domain.training.model import Model

Method = Literal["pretrain", "continued_pretrain", "full_finetune", "lora", "qlora", "distill", "dpo", "rl"]
METHODS: tuple[Method, ...] = ("pretrain", "continued_pretrain", "full_finetune", "lora", "qlora", "distill", "dpo", "rl")
Optimizer = Literal["adamw", "adamw_8bit", "adafactor", "muon", "sgd"]
OPTIMIZERS: tuple[Optimizer, ...] = ("adamw", "adamw_8bit", "adafactor", "muon", "sgd")
Recompute = Literal["none", "selective", "full"]
RECOMPUTES: tuple[Recompute, ...] = ("none", "selective", "full")
FROZEN_BASE: tuple[Method, ...] = ("lora", "qlora")


@dataclass(frozen=True, slots=True)
class Data:
    """What is trained on. `trained_tokens` counts epochs; for networks counted by samples the unit is a sample."""

    raw_tokens: float
    effective_tokens: float
    epochs: float
    quality_share: float | None = None
    robustness_share: float | None = None

    @property
    def trained_tokens(self) -> float:
        return self.effective_tokens * self.epochs


@dataclass(frozen=True, slots=True)
class Axes:
    """What the caller fixed of the layout; None is searched. tensor x pipeline x data x context = count."""

    tensor: int | None = None
    pipeline: int | None = None
    data: int | None = None
    context: int | None = None
    expert: int | None = None
    virtual_pipeline: int | None = None
    micro_batch: int | None = None
    zero_stage: int | None = None
    recompute: Recompute | None = None

    @property
    def mesh_stated(self) -> bool:
        """Whether the caller chose any axis of the machine's division: a layout of theirs that does not fit is answered as it is."""
        mesh = (self.tensor, self.pipeline, self.data, self.context, self.expert, self.virtual_pipeline)
        return any(size is not None for size in mesh)

    def mesh_known(self, count: int) -> bool:
        """Whether the caller's axes say how `count` accelerators are divided, so that the layout is theirs and not the search's."""
        stated = [size for size in (self.tensor, self.pipeline, self.data, self.context) if size is not None]
        return (self.tensor is not None and self.pipeline is not None) or (bool(stated) and math.prod(stated) == count)


@dataclass(frozen=True, slots=True)
class Helpers:
    """Networks that are run beside the trained one and not trained: a teacher, a reward model, a reference policy."""

    teacher: Model | None = None
    reward_model: Model | None = None
    reference: bool = False


@dataclass(frozen=True, slots=True)
class Training:
    """How it is trained. `global_batch` counts sequences (or samples) a step; `seq_len` tokens a sequence (1 where samples count)."""

    method: Method
    precision: Precision
    optimizer: Optimizer
    seq_len: int
    global_batch: int
    footprint: Footprint
    axes: Axes = Axes()
    decoder_seq_len: int = 0
    flash_attention: bool = True
    sequence_parallel: bool = True
    count_full_attention: bool = True
    input_tokens_per_s_per_node: float | None = None
    lora_rank: int = 0
    helpers: Helpers = Helpers()
    update_epochs: float = 1.0
    response_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Cluster:
    """The machine: `count` accelerators in nodes; the links as the caller or the data sheet states them."""

    accelerator: Accelerator
    count: int
    accelerators_per_node: int
    internode_gbit_per_s: float

    @property
    def nodes(self) -> int:
        return -(-self.count // self.accelerators_per_node)

    @property
    def link_domain(self) -> int:
        """Accelerators the fast link joins: a node's, or those of the rack or pod that the accelerator's own link reaches."""
        return max(self.accelerators_per_node, self.accelerator.link_domain)


@dataclass(frozen=True, slots=True)
class Efficiency:
    """What the caller measured; exactly one is set, or none."""

    mfu: float | None = None
    tokens_per_s_per_accelerator: float | None = None
    tflops_per_accelerator: float | None = None

    @property
    def stated(self) -> bool:
        return any(value is not None for value in (self.mfu, self.tokens_per_s_per_accelerator, self.tflops_per_accelerator))


@dataclass(frozen=True, slots=True)
class Failures:
    """How the machine fails. `mttf_hours_per_accelerator` is the job's MTTF times its count.

    `checkpoint_interval_minutes` None is chosen by Daly's rule. `checkpoint_blocking_share` is the part of the write
    that training waits for (1: synchronous, near 0: asynchronous).
    """

    mttf_hours_per_accelerator: Range
    detection_minutes: float
    restart_minutes: float
    checkpoint_write_minutes: float
    checkpoint_interval_minutes: float | None
    checkpoint_blocking_share: float
    preemptions_per_node_hour: float
    spare_share: float


@dataclass(frozen=True, slots=True)
class Storage:
    dataset_tb: float
    checkpoints_kept: int
    retention_months: float
    logs_tb: float
    usd_per_tb_month: float


@dataclass(frozen=True, slots=True)
class Network:
    egress_tb: float
    usd_per_tb: float


@dataclass(frozen=True, slots=True)
class Personnel:
    evaluation_hours: float
    analysis_hours: float
    oncall_hours: float
    usd_per_hour: float


@dataclass(frozen=True, slots=True)
class Overhead:
    """Shares of the compute line, for work around the run."""

    evaluation: float
    debugging: float
    reruns: float


@dataclass(frozen=True, slots=True)
class Energy:
    """`watts_per_accelerator` is the average draw of one accelerator with its share of the node, before PUE.

    `usd_per_kwh` is set only where the caller pays for power (owned hardware): cloud prices contain it.
    """

    region: str
    grid_gco2_per_kwh: float
    pue: float
    watts_per_accelerator: float
    embodied_gco2e_per_accelerator_hour: float
    usd_per_kwh: float | None


@dataclass(frozen=True, slots=True)
class Schedule:
    start: date | None
    deadline: date | None
    queue_hours: float
    maintenance_hours_per_week: float


@dataclass(frozen=True, slots=True)
class Run:
    """Everything the engine needs to know of one training run.

    Accelerators are paid for in units of `billed_in` (an instance) and, where they are reserved, in whole terms of `term_hours`.
    """

    model: Model
    data: Data
    training: Training
    cluster: Cluster
    efficiency: Efficiency
    failures: Failures
    storage: Storage
    network: Network
    personnel: Personnel
    overhead: Overhead
    energy: Energy
    schedule: Schedule
    usd_per_accelerator_hour: float
    billed_in: int = 1
    term_hours: float = 0.0
