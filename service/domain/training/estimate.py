"""Answer of an estimate: one dataclass for each block of the contract."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal

from service.domain.answer_fields import HIDDEN, Doc, share
from service.domain.quantities import Range
from service.domain.training.reinforcement import PHASES


@dataclass(frozen=True, slots=True)
class FlopsBlock:
    """FLOPs of the run; `per_token` is `total` over trained tokens (or samples). `total` is without recomputation."""

    per_token: Annotated[float, Doc("Arithmetic of one trained token (or sample), recomputation apart", "FLOP per token")]
    total: Annotated[float, Doc("Arithmetic of the whole run, recomputation apart", "FLOP", maximum=1e40)]
    petaflop_s_days: Annotated[float, Doc("The total in petaFLOP/s-days, of 8.64e19 FLOP each", "petaFLOP/s-days", maximum=1e40)]
    forward: Annotated[float, Doc("Forward passes of the run", "FLOP", maximum=1e40)]
    backward: Annotated[float, Doc("Backward passes of the run", "FLOP", maximum=1e40)]
    recompute: Annotated[float, Doc("Activations computed again in the backward pass, not part of the total", "FLOP", maximum=1e40)]
    attention_share: Annotated[float, share("Part of the total in attention scores and their use")]


@dataclass(frozen=True, slots=True)
class TokensBlock:
    """Data of the run."""

    raw: Annotated[float, Doc("Data before filtering, deduplication and sampling", "tokens, or samples by `unit`", maximum=1e40)]
    effective: Annotated[float, Doc("Data that is left to train on, counted once", "tokens, or samples by `unit`", maximum=1e40)]
    trained: Annotated[float, Doc("Data trained on, with every epoch", "tokens, or samples by `unit`", maximum=1e40)]
    unit: Annotated[str, Doc("What is counted: tokens or samples")]
    quality: Annotated[
        float | None, Doc("Data of the stated quality share; null where none is stated", "tokens, or samples by `unit`", maximum=1e40)
    ]
    robustness: Annotated[
        float | None, Doc("Data of the stated robustness share; null where none is stated", "tokens, or samples by `unit`", maximum=1e40)
    ]


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another layout of the search than the chosen one."""

    parallelism: Annotated[dict[str, int | str], Doc("Layout: sizes of the axes, micro-batch, ZeRO stage, recomputation")]
    tokens_per_s_per_accelerator: Annotated[
        float,
        Doc(
            "Training speed of one accelerator, median: where `best_tokens_per_s_per_accelerator` is given, at the same share of what this"
            " layout could reach as the one taken",
            "tokens/s per accelerator",
        ),
    ]
    step_time_s: Annotated[float, Doc("Time of one optimizer step, median", "s")]
    memory_gb: Annotated[float, Doc("Memory needed on the fullest accelerator, in 1e9 bytes", "GB")]
    fits: Annotated[bool, Doc("Whether it fits in the memory")]
    slower_by: Annotated[float, Doc("Part of the taken layout's speed that it loses; below 0 it is faster", "1", maximum=1)]
    why: Annotated[str, Doc("Where it loses its time, or why it is not taken")]


@dataclass(frozen=True, slots=True)
class PhaseBlock:
    """One phase of a step of reinforcement learning."""

    phase: Annotated[str, Doc("What is done", choices=PHASES)]
    seconds: Annotated[
        float, Doc("Time of a step; phases of a sampler and a trainer that work at once overlap, and add up to more than the step", "s")
    ]
    tokens: Annotated[float, Doc("Tokens of a step that pass through it: sampled, read or trained on; 0 where none do", "tokens")]


STEP_PARTS = (
    *("arithmetic", "kernels", "recompute", "memory", "launch"),
    *("tensor", "context", "expert", "stage", "gradient"),
    *("pipeline", "input", "layout"),
)
RUN_PARTS = ("whole_run", "checkpoints", "failures", "maintenance", "capacity")


@dataclass(frozen=True, slots=True)
class TimePart:
    """A part of the time on the clock: of every step, or beside the steps."""

    part: Annotated[
        str,
        Doc(
            "arithmetic: the model's own at the dense peak, whose share of a step is the MFU; kernels: what it takes longer; recompute;"
            " memory: traffic; launch: waiting for the host; tensor, context, expert (with handovers beside it), stage, gradient: exchanges"
            " that nothing hides; pipeline: its bubble; input: waiting for data; layout: against the fastest layout; whole_run: evaluation,"
            " logging, slow nodes; checkpoints; failures: lost work and restarts; maintenance; capacity: waiting for it",
            choices=(*STEP_PARTS, *RUN_PARTS),
        ),
    ]
    step_s: Annotated[float | None, Doc("Time of one optimizer step, median; null for what is not part of the steps", "s")]
    share: Annotated[float, share("Part of the time on the clock; all parts add up to 1")]


@dataclass(frozen=True, slots=True)
class ThroughputBlock:
    """Speed of training, of a step and of the whole run."""

    tokens_per_s: Annotated[float, Doc("Training speed of the whole cluster, median", "tokens/s")]
    tokens_per_s_per_accelerator: Annotated[Range, Doc("Training speed of one accelerator", "tokens/s per accelerator")]
    tflops_per_accelerator: Annotated[float, Doc("Model arithmetic of one accelerator, recomputation apart, median", "TFLOP/s")]
    mfu: Annotated[Range, Doc("Model FLOPs utilisation: model arithmetic over the dense peak", "1")]
    hfu: Annotated[float, Doc("Hardware FLOPs utilisation: as MFU, with recomputation, median", "1")]
    step_time_s: Annotated[float, Doc("Time of one optimizer step, median", "s")]
    effective_tokens_per_s: Annotated[
        float,
        Doc(
            "Speed of the whole run: trained tokens over wall-clock time, losses between nodes and interruptions included, median",
            "tokens/s",
        ),
    ]
    effective_mfu: Annotated[float, Doc("MFU of the whole run: model arithmetic over the dense peak and wall-clock time, median", "1")]
    bound_by: Annotated[
        str, Doc("What takes most of a step's time", choices=("compute", "memory", "network", "pipeline", "input", "launch"))
    ]
    parallelism: Annotated[dict[str, int | str], Doc("Layout taken: sizes of the axes, micro-batch, ZeRO stage, recomputation")]
    alternatives: Annotated[tuple[Alternative, ...], Doc("Best layouts of other kinds, the fastest first", max_items=5)]
    source: Annotated[
        str,
        Doc(
            "Whether the speed is modelled, stated by the caller, or carried from a step they measured",
            choices=("modelled", "caller", "carried"),
        ),
    ]
    best_tokens_per_s_per_accelerator: Annotated[
        float | None,
        Doc(
            "Training speed of one accelerator in the fastest layout that the search finds, median: those that teams run on several nodes"
            " reach `tokens_per_s_per_accelerator`; null where that is no slower, on one node or in a stated layout",
            "tokens/s per accelerator",
        ),
    ] = None
    phases: Annotated[
        tuple[PhaseBlock, ...] | None,
        Doc("Where a step goes, by reinforcement learning, median; left out for other methods", max_items=len(PHASES), optional=True),
    ] = None
    split: Annotated[
        tuple[TimePart, ...] | None,
        Doc(
            "Where the time on the clock goes, as modelled; null where the caller states the speed, of several phases, and of reinforcement"
            " learning",
            max_items=len(STEP_PARTS) + len(RUN_PARTS),
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class MemoryBlock:
    """Memory of the fullest accelerator."""

    per_accelerator_gb: Annotated[float, Doc("Memory needed on the fullest accelerator, in 1e9 bytes", "GB")]
    capacity_gb: Annotated[float, Doc("What a program may allocate; a data sheet's 80 GB are mostly 80 x 2^30 bytes, 85.9 here", "GB")]
    fits: Annotated[bool, Doc("Whether it fits in the memory")]
    breakdown_gb: Annotated[dict[str, float], Doc("What the needed memory holds, by name, in 1e9 bytes", "GB")]
    would_fit: Annotated[tuple[str, ...], Doc("Changes with which it would fit, where it does not", max_items=10, max_length=1000)]


@dataclass(frozen=True, slots=True)
class ReliabilityBlock:
    """Failures, checkpoints and goodput."""

    mttf_hours: Annotated[float, Doc("Mean time to failure of the whole job", "h")]
    expected_interruptions: Annotated[float, Doc("Interruptions over the median run time, mean", "count")]
    checkpoint_interval_minutes: Annotated[float, Doc("Time between checkpoints", "min")]
    checkpoint_tb: Annotated[float, Doc("Size of one checkpoint, in 1e12 bytes", "TB")]
    goodput: Annotated[float, share("Useful time over wall-clock time")]


@dataclass(frozen=True, slots=True)
class FinishDates:
    """Day of the end, by percentile."""

    p10: Annotated[date, Doc("Day of the 10th percentile")]
    p50: Annotated[date, Doc("Day of the median")]
    p90: Annotated[date, Doc("Day of the 90th percentile")]


@dataclass(frozen=True, slots=True)
class TimeBlock:
    """Duration of the run; its end with the work around it."""

    accelerator_hours: Annotated[Range, Doc("Accelerators times the hours they are held", "accelerator-hours")]
    wall_clock_hours: Annotated[Range, Doc("Time on the clock, interruptions and the wait for spot capacity included", "h")]
    steps: Annotated[float, Doc("Optimizer steps of the run", "count", maximum=1e40)]
    finish: Annotated[FinishDates | None, Doc("Day on which the run and the overhead around it end; null without a start")]
    deadline_probability: Annotated[
        float | None, share("Probability that both end by the end of the deadline's day; null without a deadline")
    ]


MAX_PHASES = 20
"""Most phases of one run."""
COMPUTE_LINE = "compute"
"""The line of a run's cost that is accelerator-hours times their price."""


@dataclass(frozen=True, slots=True)
class LineBlock:
    """One line of the cost."""

    line: Annotated[str, Doc("Name of the line")]
    usd: Annotated[Decimal, Doc("Cost of the line, in whole cents", "USD")]
    basis: Annotated[str, Doc("How it is computed", max_length=1000)]


@dataclass(frozen=True, slots=True)
class CostBlock:
    """Cost of the run."""

    total_usd: Annotated[Range | None, Doc("Cost of the run with everything around it; null without a price", "USD")]
    lines: Annotated[
        tuple[LineBlock, ...],
        Doc("Lines of the bill, which add up to the p50 of total_usd; without a price those that need none", max_items=100),
    ]
    usd_per_million_tokens: Annotated[float | None, Doc("Median total over trained tokens; null without a price", "USD per million tokens")]
    currency: Annotated[str, Doc("Currency of all amounts", choices=("USD",))] = "USD"


@dataclass(frozen=True, slots=True)
class EnergyBlock:
    """Energy and emissions of the run."""

    mwh: Annotated[float, Doc("Energy at the meter, at the median hours", "MWh")]
    tco2e: Annotated[float, Doc("Emissions, in tonnes of CO2 equivalent", "t CO2e")]
    pue: Annotated[float, Doc("Power usage effectiveness of the site: its energy over that of the machines", "1")]
    grid_gco2_per_kwh: Annotated[float, Doc("Carbon intensity of the grid", "g CO2e per kWh")]
    watts_per_accelerator: Annotated[float, Doc("Mean power of one accelerator with its share of the node, before PUE", "W")]


@dataclass(frozen=True, slots=True)
class TrainingPhase:
    """One phase of a run: context extension, annealing, a step of a curriculum."""

    name: Annotated[str, Doc("Name of the phase")]
    tokens: Annotated[float, Doc("Tokens trained on in it, with every epoch", "tokens", maximum=1e40)]
    seq_len: Annotated[int, Doc("Tokens of a sequence", "tokens")]
    global_batch_tokens: Annotated[float, Doc("Tokens of a step, of whole sequences on every data rank", "tokens", maximum=1e40)]
    precision: Annotated[str, Doc("Number format of matrix products")]
    accelerator: Annotated[str, Doc("Accelerator it is trained on")]
    accelerators: Annotated[int, Doc("Number of them")]
    usd_per_accelerator_hour: Annotated[float | None, Doc("Their price; null where none is known", "USD per accelerator-hour")]
    throughput: Annotated[ThroughputBlock, Doc("Speed of training")]
    memory: Annotated[MemoryBlock, Doc("Memory of the fullest accelerator")]
    reliability: Annotated[ReliabilityBlock, Doc("Failures, checkpoints and goodput")]
    time: Annotated[TimeBlock, Doc("How long it takes; dates are those of the whole run")]
    cost: Annotated[
        CostBlock,
        Doc(
            "What it costs; people, network traffic and retention of the run are in its last phase, the unused rest of a reservation's"
            " term is in the run alone"
        ),
    ]


SpreadCause = Literal["speed", "planning", "failures"]


@dataclass(frozen=True, slots=True)
class CauseOfSpread:
    """Hours and cost as one cause alone spreads them.

    Attributes
    ----------
    cause : str
        The speed model's error, what whole runs lose beyond their steps, or failures.
    wall_clock_hours : Range
        [h].
    total_usd : Range, optional
        [USD]; None without a price.
    """

    cause: SpreadCause
    wall_clock_hours: Range
    total_usd: Range | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """Answer of the engine, without price, assumptions and versions."""

    flops: Annotated[FlopsBlock, Doc("Arithmetic of the run")]
    tokens: Annotated[TokensBlock, Doc("Data of the run")]
    throughput: Annotated[ThroughputBlock, Doc("Speed of training")]
    memory: Annotated[MemoryBlock, Doc("Memory of the fullest accelerator")]
    reliability: Annotated[ReliabilityBlock, Doc("Failures, checkpoints and goodput")]
    time: Annotated[TimeBlock, Doc("How long the run takes")]
    cost: Annotated[CostBlock, Doc("What the run costs")]
    energy: Annotated[EnergyBlock, Doc("Energy and emissions")]
    batch_sequences: Annotated[int, HIDDEN]
    spread_causes: Annotated[tuple[CauseOfSpread, ...], HIDDEN]
    warnings: Annotated[tuple[str, ...], HIDDEN]
    phases: Annotated[
        tuple[TrainingPhase, ...] | None,
        Doc("Phases of the run in their order; left out where none are stated", max_items=MAX_PHASES, optional=True),
    ] = None


@dataclass(frozen=True, slots=True)
class EstimateLever:
    """One change: fields of the request by path (None: left out), what it saves at the median (below 0: costs more), what it risks."""

    lever: Annotated[str, Doc("Kind of change")]
    title: Annotated[str, Doc("The change in words", max_length=1000)]
    change: Annotated[dict[str, Any], Doc("Fields of the request by their path; null: leave the field out")]
    saves_usd: Annotated[float, Doc("Median cost saved; below 0 it costs more", "USD")]
    saves_days: Annotated[float, Doc("Median wall-clock time saved; below 0 it takes longer", "days")]
    saves_tco2e: Annotated[float, Doc("Emissions saved; below 0 it emits more", "t CO2e")]
    total_usd: Annotated[float, Doc("Median cost of the changed run", "USD")]
    wall_clock_days: Annotated[float, Doc("Median wall-clock time of the changed run", "days")]
    risk: Annotated[str, Doc("What may go wrong", max_length=1000)]
    source: Annotated[str, Doc("Where this comes from", max_length=1000)]
