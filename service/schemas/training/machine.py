"""What a run trains on: machine, layout, price, and speed measured there; and phases of a run, which may have their own."""

from __future__ import annotations

from typing import Any

from providers.offer import PRICINGS
from service.domain.training.hardware import PRECISIONS
from service.domain.training.run import RECOMPUTES
from service.schemas.compound_fields import OrWord, Part
from service.schemas.fields import Choice, Count, Number, Schema, Text

MAX_LAYERS = 10_000
MAX_SIZE = 10**7
MAX_SEQ_LEN = 10**8
MAX_ACCELERATORS = 10**7
MAX_HOURS = 10**7
LEAST = 1e-6  # what must be above zero and is below this is a slip of the pen, and makes figures that no sum holds


def size(maximum: int = MAX_SIZE, minimum: int = 1, description: str = "") -> Count:
    return Count(minimum=minimum, maximum=maximum, suffixes=False, description=description)


def above_zero(maximum: float, **options: Any) -> Number:
    return Number(minimum=LEAST, maximum=maximum, **options)


class ParallelismSchema(Schema):
    """Fixed axes of the layout; tensor x pipeline x data x context = count. Axes not given are searched."""

    tensor = size(MAX_ACCELERATORS, description="Tensor-parallel ranks")
    pipeline = size(MAX_ACCELERATORS, description="Pipeline stages")
    data = size(MAX_ACCELERATORS, description="Data-parallel ranks")
    context = size(MAX_ACCELERATORS, description="Context-parallel ranks")
    expert = size(MAX_ACCELERATORS, description="Expert-parallel ranks")
    expert_tensor = size(MAX_ACCELERATORS, description="Tensor-parallel ranks of each expert; left out: 1 or as many as tensor")
    virtual_pipeline = size(MAX_LAYERS, description="Chunks of layers on each stage (interleaving); above 1 only with a pipeline above 1")


class HardwareSchema(Schema):
    """The machine."""

    accelerator = Text(required=True, description="A name of GET /v1/accelerators, or any usual alias, case-blind")
    count = Count(required=True, maximum=MAX_ACCELERATORS, description="Accelerators")
    accelerators_per_node = size(100_000, description="Accelerators of one node; left out: as usual for the accelerator")
    inter_node_gbps = above_zero(1e7, description="Network of one node, all its cards together, one direction, Gbit/s")
    power_limit_w = above_zero(1e5, description="Power limit of one accelerator; left out: its TDP [W]")


class EfficiencySchema(Schema):
    """What the caller measured: one of the three. Model FLOPs, recomputation not counted.

    Of a whole run, its evaluation and stalls included: nothing is taken off it but interruptions (`failures`).
    """

    mfu = above_zero(1.0, description="Share of the dense peak for the precision")
    tokens_per_s_per_accelerator = above_zero(1e12, description="Measured speed of one accelerator [tokens/s per accelerator]")
    tflops_per_accelerator = above_zero(1e6, description="Measured model arithmetic of one accelerator [TFLOP/s]")


class MeasuredOnSchema(Schema):
    """Where a step was measured; what is left out is as in the plan. The accelerator is the plan's."""

    count = Count(required=True, maximum=MAX_ACCELERATORS, description="Accelerators it was measured on")
    parallelism = OrWord(
        Part(ParallelismSchema),
        "auto",
        description='Layout there, "auto" where it is not known; left out: as planned, with the data ranks that make up the count',
    )
    micro_batch = size(10**6, description="Sequences of one micro-batch there")
    global_batch_tokens = Count(maximum=10**12, description="Tokens of a step there, as in `training`")
    seq_len = size(MAX_SEQ_LEN, description="Tokens of a sequence there")
    activation_recompute = Choice((*RECOMPUTES, "auto"), description="Which activations were computed again there")
    zero_stage = size(3, minimum=0, description="ZeRO stage there")


class CarriedEfficiencySchema(EfficiencySchema):
    """What the caller measured: one of the three figures. Model FLOPs, recomputation not counted.

    Of a whole run, its evaluation and stalls included: nothing is taken off it but interruptions (`failures`). With `measured_on` of
    single steps, there: the plan is as much faster or slower than modelled, and loses what whole runs lose beyond their steps.
    """

    measured_on = Part(MeasuredOnSchema, description="Where steps of this model were measured, to carry their speed over to the plan")


class PriceFilterSchema(Schema):
    """A stated price, or which offers may be taken."""

    usd_per_accelerator_hour = above_zero(
        100_000, description="Stated price of one accelerator, in place of an offer [USD per accelerator-hour]"
    )
    provider = Text(description="Name of the provider")
    region = Text(description="Region as the provider names it")
    pricing = Choice(PRICINGS, description="Kind of pricing")
    snapshot = Text(description="The price_snapshot of an earlier answer, to repeat it against")


class PhaseSchema(Schema):
    """A phase of a run: what it states stands in place of what the run states."""

    name = Text(required=True, max_length=100, description="Name of the phase: base, context extension, annealing, …")
    tokens = Count(required=True, description="Tokens of the phase, each epoch; those of all phases add up to data.tokens")
    seq_len = size(MAX_SEQ_LEN, description="Tokens of a sequence")
    global_batch_tokens = Count(maximum=10**12, description="Tokens of a step")
    precision = Choice(PRECISIONS, description="Number format of matrix products")
    activation_recompute = Choice((*RECOMPUTES, "auto"), description="Which activations are computed again in the backward pass")
    micro_batch = size(10**6, description="Sequences of one micro-batch on one data rank")
    zero_stage = size(3, minimum=0, description="ZeRO stage")
    parallelism = OrWord(Part(ParallelismSchema), "auto", description='Axes to fix, or "auto": all are searched')
    hardware = Part(HardwareSchema, description="Its own machine")
    price = Part(PriceFilterSchema, description="Price of its own; left out: the run's filter, and its stated price on its accelerator")
    efficiency = Part(EfficiencySchema, description="Speed measured in this phase")
