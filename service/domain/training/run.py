"""One training run, resolved: every default chosen, every name looked up. The input of the engine."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType
from typing import Literal

from service.domain.quantities import Range
from service.domain.training.finetuning import FineTuningRates
from service.domain.training.footprint import Footprint
from service.domain.training.hardware import Accelerator, Precision
from service.domain.training.model import Model
from service.domain.training.reinforcement import Reinforcement

Method = Literal["pretrain", "continued_pretrain", "full_finetune", "lora", "qlora", "distill", "dpo", "rl"]
METHODS: tuple[Method, ...] = ("pretrain", "continued_pretrain", "full_finetune", "lora", "qlora", "distill", "dpo", "rl")
METHOD_SYNONYMS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("grpo", "ppo", "rlhf", "rlvr", "dapo", "rloo", "gspo", "reinforce", "reinforcement"), "rl")
    | dict.fromkeys(("sft", "full", "finetune", "fine-tune", "finetuning", "fine-tuning", "full-finetune", "instruct"), "full_finetune")
    | dict.fromkeys(("cpt", "midtrain", "mid-training", "midtraining", "continued-pretrain"), "continued_pretrain")
    | dict.fromkeys(("pretraining", "pre-train", "pre-training", "scratch"), "pretrain")
    | dict.fromkeys(("peft", "adapter", "adapters", "dora"), "lora")
    | dict.fromkeys(("kd", "distillation"), "distill")
    | dict.fromkeys(("ipo", "kto", "orpo", "simpo"), "dpo")
)
"""Methods by the names that they, or what costs about the same, have in other tools."""
Optimizer = Literal["adamw", "adamw_8bit", "adamw_paged_8bit", "adafactor", "muon", "sgd"]
OPTIMIZERS: tuple[Optimizer, ...] = ("adamw", "adamw_8bit", "adamw_paged_8bit", "adafactor", "muon", "sgd")
Recompute = Literal["none", "selective", "full"]
RECOMPUTES: tuple[Recompute, ...] = ("none", "selective", "full")
# Link of accelerators that are rented in slices of a pod.
TORUS = "torus"
FROZEN_BASE: tuple[Method, ...] = ("lora", "qlora")
# Methods that train a finished model on, mostly in PyTorch's own operations.
TUNED: tuple[Method, ...] = ("full_finetune", *FROZEN_BASE)
StatesDtype = Literal["fp32", "bf16"]
STATES_DTYPES: tuple[StatesDtype, ...] = ("fp32", "bf16")
KernelFusion = Literal["none", "fused", "fused_linear_cross_entropy"]
KERNEL_FUSIONS: tuple[KernelFusion, ...] = ("none", "fused", "fused_linear_cross_entropy")
# attention: its projections; all_linear: dense feed-forwards and shared experts too; experts: each routed expert too.
ADAPTER_TARGETS = ("attention", "all_linear", "experts")
# A ratio that is certain.
AS_STATED = Range(1.0, 1.0, 1.0)
# Later than every year that is measured: the newest software.
TODAYS_SOFTWARE = 9999


@dataclass(frozen=True, slots=True)
class Data:
    """Data of the run. For networks counted by samples the unit is a sample."""

    raw_tokens: float
    effective_tokens: float
    epochs: float
    quality_share: float | None = None
    robustness_share: float | None = None

    @property
    def trained_tokens(self) -> float:
        """Tokens (or samples) trained on, every epoch counted."""
        return self.effective_tokens * self.epochs


@dataclass(frozen=True, slots=True)
class Axes:
    """Axes of the layout that the caller fixes; None is searched. tensor x pipeline x data x context = count."""

    tensor: int | None = None
    pipeline: int | None = None
    data: int | None = None
    context: int | None = None
    expert: int | None = None
    expert_tensor: int | None = None
    virtual_pipeline: int | None = None
    micro_batch: int | None = None
    zero_stage: int | None = None
    recompute: Recompute | None = None

    @property
    def mesh_stated(self) -> bool:
        """Whether the caller fixes any axis of the mesh: such a layout is answered even where it does not fit."""
        mesh = (self.tensor, self.pipeline, self.data, self.context, self.expert, self.expert_tensor, self.virtual_pipeline)
        return any(size is not None for size in mesh)

    def mesh_known(self, count: int) -> bool:
        """Whether the fixed axes determine the mesh of `count` accelerators."""
        stated = [size for size in (self.tensor, self.pipeline, self.data, self.context) if size is not None]
        return (self.tensor is not None and self.pipeline is not None) or (bool(stated) and math.prod(stated) == count)


@dataclass(frozen=True, slots=True)
class AuxiliaryModels:
    """Networks run forward during training: a teacher, a reward model, a frozen reference policy."""

    teacher: Model | None = None
    reward_model: Model | None = None
    reference: bool = False


@dataclass(frozen=True, slots=True)
class Pretraining:
    """How a network is trained, by any method.

    Attributes
    ----------
    global_batch : int
        Sequences (or samples) of a step.
    seq_len, decoder_seq_len : int
        Tokens of a sequence; 1 where samples are counted. The decoder's of an encoder-decoder, else 0.
    flash_attention : bool
        Attention in kernels that never store the scores.
    sequence_parallel : bool
        Tensor ranks divide norms and residuals too.
    count_full_attention : bool
        FLOPs count the full square of causal attention, of which kernels execute half.
    input_tokens_per_s_per_node : float, optional
        Rate of the input pipeline [tokens per s]; None: never the bottleneck.
    software_year : int
        Year of the software that trains.
    states_dtype : "fp32" or "bf16"
        What the optimizer updates: fp32 weights and states, or all in bf16, without a master copy.
    fused_experts : bool
        Kernels fuse the experts' activation functions and quantisation into their products, and the step is one captured graph.
    """

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
    software_year: int = TODAYS_SOFTWARE
    states_dtype: StatesDtype = "fp32"
    fused_experts: bool = False


@dataclass(frozen=True, slots=True)
class Training(Pretraining):
    """How a network is trained, with what fine-tuning, distillation and reinforcement learning add.

    Attributes
    ----------
    lora_rank : int
        Rank of the adapters; 0 without LoRA.
    adapter_targets : tuple of str
        Layers that adapters are on: a group of `ADAPTER_TARGETS`, or layers by name.
    kernel_fusion : "none", "fused" or "fused_linear_cross_entropy", optional
        Kernels of fine-tuning: one for each operation; fused norms, activations and losses; and a loss that never holds the logits. None:
        memory of one for each operation, or of the last where nothing else fits, and a speed between.
    finetuning : FineTuningRates, optional
        What fine-tuning's software takes beyond pre-training's; None: nothing.
    update_epochs : float
        Passes of training over each sampled answer (RL).
    response_tokens : int
        Tokens of each sampled answer (RL of encoder-decoders).
    rl : Reinforcement, optional
        What a step samples and on what (RL of decoders). `seq_len` is then the mean of prompt and answer, `global_batch` the answers of a
        step.
    """

    lora_rank: int = 0
    adapter_targets: tuple[str, ...] = ("all_linear",)
    kernel_fusion: KernelFusion | None = None
    finetuning: FineTuningRates[float] | None = None
    auxiliary_models: AuxiliaryModels = AuxiliaryModels()
    update_epochs: float = 1.0
    response_tokens: int = 0
    rl: Reinforcement | None = None


@dataclass(frozen=True, slots=True)
class Cluster:
    """`count` accelerators in nodes; `internode_gbit_per_s` is the network of one accelerator in one direction [Gbit/s].

    `power_share` is the power limit of an accelerator over its TDP [1].
    """

    accelerator: Accelerator
    count: int
    accelerators_per_node: int
    internode_gbit_per_s: float
    power_share: float = 1.0

    @property
    def nodes(self) -> int:
        """Nodes, the last of them partly used."""
        return -(-self.count // self.accelerators_per_node)

    @property
    def off_node_fraction(self) -> float:
        """Share of a job that is not on an accelerator's own node: 0 on one node, 1 - 1 / nodes on full ones."""
        return 1 - min(1.0, self.accelerators_per_node / self.count)

    @property
    def link_domain(self) -> int:
        """Accelerators that the fast link joins: those of a node, or of the rack or pod that it reaches."""
        return max(self.accelerators_per_node, self.accelerator.link_domain)

    @property
    def rental_unit(self) -> int:
        """Accelerators that are rented with their fast link: those of a node or, of a torus that is rented in slices, of a whole pod."""
        return self.link_domain if TORUS in self.accelerator.link else self.accelerators_per_node

    @property
    def linked_accelerators(self) -> int:
        """Accelerators of the job on one fast link."""
        return min(self.rental_unit, self.count)


@dataclass(frozen=True, slots=True)
class MeasuredOn:
    """Where a step was measured; what is None is as in the plan.

    Attributes
    ----------
    count : int
        Accelerators, of the plan's kind.
    axes : Axes
        Micro-batch, ZeRO stage and recomputation, each None where it is as in the plan, and the mesh where it is not the plan's.
    own_mesh : bool
        Whether the mesh is that of `axes`; else it is the plan's, with the data ranks that make up the count.
    global_batch_tokens, seq_len : int, optional
        Tokens of a step (samples, for networks counted by samples) and of a sequence.
    """

    count: int
    axes: Axes = Axes()
    own_mesh: bool = False
    global_batch_tokens: int | None = None
    seq_len: int | None = None


@dataclass(frozen=True, slots=True)
class Efficiency:
    """Efficiency that the caller measured; at most one figure is set. `measured_on`: of single steps there, not of this run."""

    mfu: float | None = None
    tokens_per_s_per_accelerator: float | None = None
    tflops_per_accelerator: float | None = None
    measured_on: MeasuredOn | None = None

    @property
    def stated(self) -> bool:
        """Whether the caller states the efficiency of this very run."""
        return self.measured_on is None and any(
            value is not None for value in (self.mfu, self.tokens_per_s_per_accelerator, self.tflops_per_accelerator)
        )


@dataclass(frozen=True, slots=True)
class Failures:
    """How the machine fails and recovers.

    Attributes
    ----------
    mttf_hours_per_accelerator : Range
        Mean time to failure of one accelerator: that of the job times its count [h].
    detection_minutes, restart_minutes, checkpoint_write_minutes : float
        Duration of each [min].
    checkpoint_interval_minutes : float, optional
        Time between checkpoints [min]; None: by Daly's rule.
    checkpoint_blocking_share : float
        Part of a checkpoint write that training waits for [1]; 1: synchronous, near 0: asynchronous.
    preemptions_per_node_hour : float
        Rate of preemptions of one node [1/h].
    preemption_spread : Range
        That rate over its median [1].
    spare_share : float
        Spare accelerators over those at work [1].
    capacity_share : float
        Share of the time in which all of the job's capacity can be had [1]; the rest is waited for and not paid.
    """

    mttf_hours_per_accelerator: Range
    detection_minutes: float
    restart_minutes: float
    checkpoint_write_minutes: float
    checkpoint_interval_minutes: float | None
    checkpoint_blocking_share: float
    preemptions_per_node_hour: float
    spare_share: float
    preemption_spread: Range = AS_STATED
    capacity_share: float = 1.0


@dataclass(frozen=True, slots=True)
class Storage:
    """What is stored: data set and logs [TB], checkpoints, for how long after the run [months], at what price."""

    dataset_tb: float
    checkpoints_kept: int
    retention_months: float
    logs_tb: float
    usd_per_tb_month: float


@dataclass(frozen=True, slots=True)
class Network:
    """Traffic out of the cloud [TB] and its price."""

    egress_tb: float
    usd_per_tb: float


@dataclass(frozen=True, slots=True)
class Personnel:
    """Working hours around the run [h] and their price."""

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
    """First day and deadline, waiting time before the start [h] and planned downtime [h per week]."""

    start: date | None
    deadline: date | None
    queue_hours: float
    maintenance_hours_per_week: float


@dataclass(frozen=True, slots=True)
class Billing:
    """What accelerators cost, and the units in which they are paid for.

    Attributes
    ----------
    usd_per_accelerator_hour : float or None
        Price [USD per accelerator-hour]; None: not known, and with it no cost.
    instance_size : int
        Accelerators of an instance, which is paid for whole.
    term_hours : float
        Length of a reservation's term, which is paid for whole [h]; 0: none.
    """

    usd_per_accelerator_hour: float | None
    instance_size: int = 1
    term_hours: float = 0.0

    @property
    def counted_usd_per_hour(self) -> float:
        """Price that sums are made with [USD per accelerator-hour]: 0 where none is known, so that what needs one adds nothing."""
        return self.usd_per_accelerator_hour or 0.0


@dataclass(frozen=True, slots=True)
class Run:
    """One training run, as the engine takes it."""

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
    billing: Billing
