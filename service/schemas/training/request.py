"""What an estimate request may say, and what its answer holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from marshmallow import ValidationError

from service.domain.training.estimate import MAX_PHASES
from service.domain.training.hardware import PRECISIONS
from service.domain.training.run import ADAPTER_TARGETS, KERNEL_FUSIONS, METHOD_SYNONYMS, METHODS, OPTIMIZERS, RECOMPUTES, STATES_DTYPES
from service.schemas.compound_fields import FreeObject, Items, OrNumber, OrWord, Part
from service.schemas.fields import Choice, Count, Day, Flag, NotNegative, Number, Schema, Share, Text
from service.schemas.training.evaluation import RunEvaluationSchema
from service.schemas.training.machine import (
    MAX_ACCELERATORS,
    MAX_HOURS,
    MAX_LAYERS,
    MAX_SEQ_LEN,
    CarriedEfficiencySchema,
    HardwareSchema,
    ParallelismSchema,
    PhaseSchema,
    PriceFilterSchema,
    above_zero,
    size,
)

MAX_PARAMS = 10**15
MAX_BATCH_REQUESTS = 1000


def _words(inner: Items, words: tuple[str, ...], *, description: str) -> OrWord:
    """One of the words, or a list."""
    *others, last = words
    field = OrWord(inner, last)
    for word in reversed(others[1:]):
        field = OrWord(field, word)
    return OrWord(field, others[0], description=description)


class ModelSchema(Schema):
    """A model: by preset, by parameter count and any shape fields, by a Hugging Face config, or by its FLOPs a sample."""

    preset = Text(description="A name of GET /v1/models, or an alias of one")
    params = Count(maximum=MAX_PARAMS, description="All parameters")
    active_params = Count(maximum=MAX_PARAMS, description="Parameters a token meets, of a mixture of experts")
    architecture = Choice(("transformer", "encoder_decoder", "vit"), description="Kind of network")
    layers = size(MAX_LAYERS, description="Layers of the network")
    hidden_size = size(description="Width of the residual stream")
    attention_heads = size(description="Attention heads of a layer")
    kv_heads = size(description="Heads of keys and values of a layer; left out: as many as attention heads")
    head_dim = size(description="Width of an attention head; left out: hidden_size over attention_heads")
    ffn_hidden_size = size(description="Inner width of the feed-forward block")
    gated_ffn = Flag(description="Whether the feed-forward block has a gate (three matrices)")
    vocab_size = size(description="Entries of the vocabulary")
    tied_embeddings = Flag(description="Whether input and output embeddings are one matrix")
    masked_share = Share(description="Encoders (BERT): share of the tokens that is masked and predicted from all others; 0: a decoder")
    sliding_window = size(MAX_SEQ_LEN, description="Tokens a windowed layer attends to")
    global_attention_every = size(MAX_LAYERS, minimum=0, description="Every so many layers attention is global; 0: none")
    experts = size(100_000, description="Routed experts of a layer")
    experts_per_token = size(100_000, description="Routed experts that work on a token")
    shared_experts = size(100_000, minimum=0, description="Experts of a layer that work on every token")
    expert_ffn_hidden_size = size(description="Inner width of one expert")
    dense_layers = size(MAX_LAYERS, minimum=0, description="Leading layers without experts")
    moe_every = size(MAX_LAYERS, description="Every so many of the other layers has experts")
    q_lora_rank = size(minimum=0, description="Latent attention: rank of the queries")
    kv_lora_rank = size(description="Latent attention: rank of keys and values")
    qk_nope_head_dim = size(description="Latent attention: width of a head's part without position")
    qk_rope_head_dim = size(description="Latent attention: width of a head's part with position")
    v_head_dim = size(description="Latent attention: width of a head's values")
    ssm_layers = size(MAX_LAYERS, description="Hybrids: layers with a state-space or linear-attention block in place of attention")
    ssm_heads = size(description="Heads of such a layer (Mamba-2), or heads of its values (linear attention)")
    ssm_head_dim = size(description="Width of such a head's values")
    ssm_state_size = size(description="Width of what writes and reads a head's state: of keys and queries, in linear attention")
    ssm_groups = size(description="Groups of heads with keys and queries of their own; left out: 1")
    ssm_conv_kernel = size(1000, description="Tokens that the convolution before the recurrence mixes; left out: 4")
    ssm_delta_rule = Flag(description="Whether the state is corrected by what it holds already (gated DeltaNet, Kimi Delta Attention)")
    ffn_layers = size(
        MAX_LAYERS,
        description="Hybrids whose layers are one block each (Nemotron-H): layers that are feed-forward blocks, with experts or not",
    )
    decoder_layers = size(MAX_LAYERS, minimum=0, description="Layers of the decoder of an encoder_decoder")
    hf_config = FreeObject(description="The content of a Hugging Face config.json")
    flops_per_sample = Number(
        minimum=1.0, maximum=1e18, description="Forward FLOPs of one sample, 2 a multiply-add; training counts three times that"
    )
    sample_unit = Text(max_length=40, description="What a sample is, with flops_per_sample: image, sequence, …")


class DataSchema(Schema):
    """What is trained on: exactly one of tokens, raw_tokens and samples."""

    tokens = Count(description="Tokens trained on, each epoch; of a vision transformer patches: state samples for images")
    raw_tokens = Count(description="Tokens before filtering and deduplication")
    filter_yield = above_zero(1.0, description="Share that filtering leaves of raw_tokens")
    dedupe_yield = above_zero(1.0, description="Share that deduplication leaves of that")
    epochs = above_zero(10_000, description="Times each token is trained on [1]")
    quality_share = Share(description="Part of the effective tokens that is of high quality")
    robustness_share = Share(description="Part of the effective tokens meant for robustness and hard negatives")
    samples = Count(description="Sequences, images, …: what the model counts")


class ResponseTokensSchema(Schema):
    """Tokens of the sampled answers, as a distribution."""

    p50 = above_zero(MAX_SEQ_LEN, required=True, description="Median length of an answer [tokens]")
    p90 = above_zero(MAX_SEQ_LEN, description="90th percentile of the length [tokens]; left out: from the median")
    max = above_zero(MAX_SEQ_LEN, description="Tokens at which an answer is cut off; left out: what seq_len leaves of the prompt")


class GenerationSchema(Schema):
    """What samples the answers, and how: apart from the trainer's layout and precision."""

    count = Count(maximum=MAX_ACCELERATORS, description="Accelerators that sample; fewer than hardware.count: they do nothing else")
    tensor = size(MAX_ACCELERATORS, description="Tensor-parallel ranks of a replica")
    pipeline = size(MAX_ACCELERATORS, description="Pipeline stages of a replica")
    expert = size(MAX_ACCELERATORS, description="Ranks that a replica's experts are divided over")
    precision = Text(description="Number format of the sampler's weights, as POST /v1/serving names them")


class RlSchema(Schema):
    """A step of reinforcement learning."""

    prompts_per_step = size(10**7, description="Prompts of a step")
    responses_per_prompt = size(10**5, description="Answers sampled to each prompt")
    prompt_tokens = above_zero(MAX_SEQ_LEN, description="Mean tokens of a prompt")
    response_tokens = OrNumber(
        above_zero(MAX_SEQ_LEN),
        Part(ResponseTokensSchema),
        description="Tokens of a sampled answer: the mean, or percentiles and the limit; a step waits for its longest answer",
    )
    mini_batch_responses = size(10**9, description="Answers of one optimizer step; a step has several")
    critic_params = Count(minimum=0, maximum=MAX_PARAMS, description="Parameters of a critic trained beside the policy (PPO); 0: none")
    generation = Part(GenerationSchema, description="What samples the answers")
    asynchronous_steps = size(
        1000, minimum=0, description="Steps by which the sampler's weights may lag; 0: sampler and trainer take turns"
    )
    offload = Flag(description="Sampler and trainer on the same accelerators: whichever waits is kept in the host's memory")
    environment_seconds = NotNegative(maximum=1e7, description="Time of a step in which only rewards or an environment are computed [s]")


class TrainingSchema(Schema):
    """How it is trained."""

    method = Choice(METHODS, synonyms=METHOD_SYNONYMS, description="Kind of training")
    seq_len = size(MAX_SEQ_LEN, description="Tokens a sequence; of the encoder, for an encoder_decoder; patches an image, for a vit")
    decoder_seq_len = size(MAX_SEQ_LEN, description="Tokens of a sequence of the decoder, of encoder-decoders")
    global_batch_tokens = Count(
        maximum=10**12,
        description="Tokens a step; for a vit patches, not images: images a step times seq_len; samples, for networks counted by samples",
    )
    precision = Choice(PRECISIONS, description="Number format of matrix products")
    optimizer = Choice(OPTIMIZERS, description="Optimizer")
    states_dtype = Choice(
        STATES_DTYPES, description="What the optimizer updates: fp32 weights and states (the default), or all in bf16 without a master copy"
    )
    kernel_fusion = Choice(
        KERNEL_FUSIONS,
        description="Kernels of fine-tuning: none, one for each operation; fused, norms, activations and the loss;"
        " fused_linear_cross_entropy, the loss with the output head too, so that logits are never held (Liger Kernel, Unsloth);"
        " left out: memory of none, or of the last where nothing else fits, and a speed between",
    )
    activation_recompute = Choice(
        (*RECOMPUTES, "auto"), description="Which activations are computed again in the backward pass; left out: searched"
    )
    micro_batch = size(10**6, description="Sequences of one micro-batch on one data rank")
    zero_stage = size(3, minimum=0, description="ZeRO stage: 0 plain data parallel; 1 optimizer, 2 gradients, 3 weights sharded too (FSDP)")
    parallelism = OrWord(Part(ParallelismSchema), "auto", description='Axes to fix, or "auto", the default: all are searched')
    input_tokens_per_s_per_node = above_zero(1e12, description="What the data pipeline can feed")
    software_year = size(
        2100, minimum=2000, description="Year of the software: recovery, checkpoints and what whole runs lose; left out: that of the clock"
    )
    flash_attention = Flag(description="Attention's scores stay on the chip; default true but for fp16 and fp32")
    sequence_parallel = Flag(description="Norms and residuals are split over the tensor ranks too; default as flash_attention")
    count_full_attention = Flag(description="Count the whole attention square, as papers report, or its causal half")
    lora_rank = size(10_000, description="Rank of the adapters, of lora and qlora")
    adapter_targets = _words(
        Items(Text(), min_items=1, max_items=20),
        ADAPTER_TARGETS,
        description="Layers with adapters, of lora and qlora: attention; all_linear: dense feed-forwards and shared experts too; experts:"
        " each routed expert too; or a list of layers by name (q_proj, up_proj, …), with experts for the routed ones",
    )
    teacher = Part(ModelSchema, description="Distillation: the model whose logits are learnt")
    cached_logits = Flag(description="Distillation: the teacher's logits are there already")
    reward_model = Part(ModelSchema, description="RL: the network that scores answers; left out: rewards by rule")
    reference_model = Flag(description="DPO and RL: a frozen copy of the policy is run beside it")
    update_epochs = above_zero(1000, description="RL: number of updates on each sampled answer")
    response_tokens = size(MAX_SEQ_LEN, description="RL: mean tokens of a sampled answer; rl.response_tokens has more to say")
    rl = Part(RlSchema, description="RL: what a step samples, and on what")


class PhasedTrainingSchema(TrainingSchema):
    """How it is trained, in phases where there are several."""

    phases = Items(
        Part(PhaseSchema),
        min_items=1,
        max_items=MAX_PHASES,
        description="Phases in their order, such as context extension and annealing: each has its own layout, and may have its own machine",
    )


class FailuresSchema(Schema):
    """How the machine fails and recovers."""

    mttf_hours_per_accelerator = above_zero(1e9, description="Mean time to failure of the job times its accelerators [h]")
    detection_minutes = NotNegative(maximum=100_000, description="Time until a failure is noticed [min]")
    restart_minutes = NotNegative(maximum=100_000, description="Time to restart after a failure [min]")
    checkpoint_write_minutes = above_zero(100_000, description="Time to write a checkpoint [min]")
    checkpoint_interval_minutes = OrWord(above_zero(1e7), "auto", description="Time between checkpoints; left out: the best one [min]")
    checkpoint_blocking_share = above_zero(1.0, description="Part of the write training waits for; near 0: asynchronous")
    preemptions_per_node_hour = NotNegative(maximum=1000, description="Rate at which a node is taken away [per node-hour]")
    capacity_share = above_zero(1.0, description="Share of the time in which all capacity can be had; the rest is waited for [1]")
    spare_share = Share(description="Spare accelerators over those of the job [1]")


class StorageSchema(Schema):
    """What is kept, and for how long."""

    dataset_tb = NotNegative(maximum=1e9, description="Size of the data set [TB]")
    checkpoints_kept = size(100_000, minimum=0, description="Checkpoints that are kept")
    retention_months = NotNegative(maximum=1200, description="Time that all of it is kept [months]")
    logs_tb = NotNegative(maximum=1e9, description="Size of logs [TB]")
    usd_per_tb_month = NotNegative(maximum=1e6, description="Price of storage [USD per TB and month]")


class NetworkSchema(Schema):
    """What leaves the cloud."""

    egress_tb = NotNegative(maximum=1e9, description="Traffic that is paid for [TB]")
    usd_per_tb = NotNegative(maximum=1e6, description="Price of traffic [USD per TB]")


class PersonnelSchema(Schema):
    """People's hours."""

    evaluation_hours = NotNegative(maximum=MAX_HOURS, description="Work on evaluation [h]")
    analysis_hours = NotNegative(maximum=MAX_HOURS, description="Work on analysis [h]")
    oncall_hours = NotNegative(maximum=MAX_HOURS, description="Work on call [h]")
    usd_per_hour = NotNegative(maximum=100_000, description="Cost of an hour of work [USD per hour]")


class EnergySchema(Schema):
    """Where and how the machine is powered; null is the same as left out."""

    region = Text(allow_none=True, description="gcp:us-central1, country:FRA, on_prem, world, …")
    grid_gco2_per_kwh = NotNegative(maximum=5000, allow_none=True, description="Carbon intensity of the grid [g CO2e per kWh]")
    pue = Number(
        minimum=1.0,
        maximum=10.0,
        allow_none=True,
        description="Power usage effectiveness of the site: its energy over that of the machines [1]",
    )
    watts_per_accelerator = above_zero(1e6, allow_none=True, description="Mean power with the share of the node, before PUE")
    usd_per_kwh = NotNegative(maximum=1000, allow_none=True, description="State it for owned hardware: cloud prices contain power")
    embodied_gco2e_per_accelerator_hour = NotNegative(
        maximum=1e6, description="Emissions of making the hardware, by hour of use [g CO2e per accelerator-hour]"
    )


class OverheadSchema(Schema):
    """Work around the run, as shares of its compute."""

    evaluation = NotNegative(maximum=100, description="Evaluation beside the run, over its compute cost [1]")
    debugging = NotNegative(maximum=100, description="Debugging, over the run's compute cost [1]")
    reruns = NotNegative(maximum=100, description="Runs made again, over the run's compute cost [1]")


class ScheduleSchema(Schema):
    """When it runs."""

    start = Day(allow_none=True, description="First day")
    deadline = Day(allow_none=True, description="Day on which it must be done; without a start it counts from today")
    queue_hours = NotNegative(maximum=100_000, description="Time in the queue before the run [h]")
    maintenance_hours_per_week = NotNegative(maximum=167, description="Time a week in which the machine does not work [h]")


class RunSectionsSchema(Schema):
    """All that can be said of a training run: what asks for a run says here which of it is needed, and what else is asked."""

    model = Part(ModelSchema, description="Model that is trained")
    data = Part(DataSchema, description="Data that it is trained on")
    hardware = Part(HardwareSchema, description="Accelerators it is trained on")
    training = Part(TrainingSchema, description="How it is trained")
    efficiency = Part(CarriedEfficiencySchema, description="Speed measured by the caller, in place of the step model or to correct it")
    price = Part(PriceFilterSchema, description="Price that is stated, or which offers may be taken")
    failures = Part(FailuresSchema, description="How the machine fails, and checkpoints")
    storage = Part(StorageSchema, description="Storage around the run")
    network = Part(NetworkSchema, description="Network traffic that is paid for")
    personnel = Part(PersonnelSchema, description="Work of people around the run")
    energy = Part(EnergySchema, description="Site's energy and carbon")
    overhead = Part(OverheadSchema, description="Work around the run, as parts of its compute cost and of its time")
    schedule = Part(ScheduleSchema, description="Dates of the run")
    evaluation = Part(RunEvaluationSchema, description="How the run is evaluated, suite by suite; instead of overhead.evaluation")


class EstimateRequestSchema(RunSectionsSchema):
    """One training run."""

    model = Part(ModelSchema, required=True, description="Model that is trained")
    data = Part(DataSchema, required=True, description="Data that it is trained on")
    hardware = Part(HardwareSchema, required=True, description="Accelerators it is trained on")
    training = Part(PhasedTrainingSchema, description="How it is trained")
    levers = Flag(description="Also look for single changes worth making, some twenty estimates: see `levers` of the answer")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An entry of a batch that its schema refuses, with marshmallow's messages."""

    messages: Any


class Attempt(Part):
    """A part whose mistakes are its own: read where it can be, else kept as `Unreadable` so that its neighbours are answered."""

    def _deserialize(self, value: Any, attr: str | None, data: Mapping[str, Any] | None, partial: Any = None, **kwargs: Any) -> Any:
        try:
            return super()._deserialize(value, attr, data, partial, **kwargs)
        except ValidationError as error:
            return Unreadable(error.messages)


class BatchRequestSchema(Schema):
    """Many requests at once."""

    requests = Items(
        Attempt(EstimateRequestSchema),
        required=True,
        min_items=1,
        max_items=MAX_BATCH_REQUESTS,
        description="Requests as POST /v1/estimate takes them",
    )
