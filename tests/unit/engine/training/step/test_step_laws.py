"""Laws of a step's time, on networks, methods, machines and shares that hypothesis chooses, over all layouts of the search at once."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from service.domain.training.model import GenericNetwork, Model, Transformer
from service.domain.training.run import FROZEN_BASE, METHODS, RECOMPUTES, AuxiliaryModels, Cluster, Method, Training
from service.domain.training.utilisation import Utilisation
from service.engine.training.flops import training_flops
from service.engine.training.layouts import Layouts, layer_count
from service.engine.training.pipeline_stages import expert_ranks
from service.engine.training.step.collectives import ExchangeTime
from service.engine.training.step.matmul import FLASH_BACKWARD
from service.engine.training.step.step_time import PARTS, StepTime, step_time, time_step
from service.engine.training.step.step_work import StepWork, step_work
from service.engine.training.step.workload import peak_flops
from tests.unit.engine.builders import (
    A100,
    DEEPSEEK_V3,
    GPT_3,
    H100,
    LLAMA_2_70B,
    LLAMA_7B,
    MISTRAL_7B,
    MIXTRAL,
    PALM,
    RESNET_50,
    T5_11B,
    TINY,
    VIT_L_16,
    accelerator,
    cluster,
    gpt,
    training,
    utilisation,
)

Floats = NDArray[np.float64]

NETWORKS: tuple[Model, ...] = (
    LLAMA_7B,
    LLAMA_2_70B,
    MISTRAL_7B,
    MIXTRAL,
    DEEPSEEK_V3,
    PALM,
    GPT_3,
    T5_11B,
    VIT_L_16,
    gpt(24, 1024, 16),
    TINY,
    RESNET_50,
)
POD = accelerator(
    name="Google-TPU-v4",
    family="tpu-v4",
    peak_tflops=MappingProxyType({"bf16": 275.0, "int8": 275.0}),
    memory_bandwidth_gb_per_s=1228,
    link_gb_per_s=300,
    internode_gbit_per_s=25,
    accelerators_per_node=4,
    link_domain=4096,
)
RACK = accelerator(
    name="NVIDIA-GB200",
    family="blackwell",
    peak_tflops=MappingProxyType({"tf32": 1250.0, "bf16": 2500.0, "fp8": 5000.0, "nvfp4": 10_000.0}),
    memory_bandwidth_gb_per_s=8000,
    link_gb_per_s=1800,
    internode_gbit_per_s=400,
    accelerators_per_node=4,
    link_domain=72,
)
UNLINKED = accelerator(name="NVIDIA-A10", peak_tflops=MappingProxyType({"bf16": 125.0}), link_gb_per_s=None, internode_gbit_per_s=25)
MACHINES = (A100, H100, POD, RACK, UNLINKED)
COUNTS = (1, 2, 4, 6, 8, 16, 24, 32, 64, 96, 128)
# Layouts an example tries.
LAYOUTS = 100
# Sums of the same terms in another order differ by rounding.
EXACT = 1e-9
HELPERS = {
    "distill": AuxiliaryModels(teacher=LLAMA_2_70B),
    "dpo": AuxiliaryModels(reference=True),
    "rl": AuxiliaryModels(reward_model=LLAMA_7B, reference=True),
}

shares = st.floats(0.05, 1.0)
utilisations = st.builds(
    utilisation,
    matmul_share=shares,
    attention_share=shares,
    routed_share=shares,
    operand_share=st.floats(0.0, 1.0),
    tile_s=st.floats(0.0, 2e-8),
    activation_passes=st.floats(1.0, 3.0),
    routed_passes=st.floats(1.0, 3.0),
    immature_share=st.floats(0.0, 0.5),
    link_share=shares,
    network_share=shares,
    hop_s=st.floats(0.0, 5e-5),
    overlap_share=st.floats(0.0, 1.0),
    tensor_overlap=st.floats(0.0, 1.0),
    layer_overhead_s=st.floats(0.0, 1e-2),
    routing_overhead_s=st.floats(0.0, 1e-2),
    expert_overhead_s=st.floats(0.0, 1e-3),
    call_overhead_s=st.floats(0.0, 1e-3),
    straggler_share=st.floats(0.0, 0.05),
    launch_power=st.floats(1.0, 10.0),
)


@dataclass(frozen=True)
class Job:
    """A question to the step model."""

    model: Model
    training: Training
    cluster: Cluster
    achieved: Utilisation
    layouts: Layouts

    def step(self, **changes: Any) -> StepTime:
        asked = replace(self, **changes)
        return step_time(asked.model, asked.training, asked.cluster, asked.achieved, asked.layouts)

    def work(self, **changes: Any) -> StepWork:
        asked = replace(self, **changes)
        return step_work(asked.model, asked.training, asked.cluster, asked.layouts)

    def with_part(self, **changes: Any) -> Cluster:
        return replace(self.cluster, accelerator=replace(self.cluster.accelerator, **changes))

    @property
    def domain(self) -> int:
        """Accelerators that the fast link joins."""
        return max(self.cluster.accelerators_per_node, self.cluster.accelerator.link_domain)


@lru_cache
def meshes(count: int) -> NDArray[np.int64]:
    """Every way to write a machine as tensor x pipeline x data x context, one a row."""
    sizes = [size for size in range(1, count + 1) if count % size == 0]
    return np.array([mesh for mesh in itertools.product(sizes, repeat=4) if math.prod(mesh) == count])


def any_layouts(model: Model, seq_len: int, count: int, seed: int) -> Layouts:
    """Layouts of the whole machine that the model can be cut into, with any stage, recomputation and micro-batch."""
    heads, experts = (model.attention_heads, model.experts.experts if model.experts else 1) if isinstance(model, Transformer) else (1, 1)
    random, depth = np.random.default_rng(seed), layer_count(model)
    found = meshes(count)
    cuts = (heads % found[:, 0] == 0) & (found[:, 1] <= depth) & (seq_len % found[:, 3] == 0)
    tensor, pipeline, data, context = random.choice(found[cuts], LAYOUTS).T
    virtual = np.where(pipeline > 1, random.choice([1, 2, 4], LAYOUTS), 1)
    expert = np.gcd(np.gcd(experts, count // pipeline), random.choice([1, 2, 8, 32, 64], LAYOUTS))
    sliced = (experts > 1) & (count // pipeline % (expert * tensor) == 0) & random.choice([True, False], LAYOUTS)
    return Layouts(
        tensor,
        pipeline,
        data,
        context,
        expert,
        np.where(sliced, tensor, 1),
        np.where(virtual * pipeline <= depth, virtual, 1),
        random.choice([1, 2, 4, 16], LAYOUTS),
        random.integers(0, 4, LAYOUTS),
        random.integers(0, len(RECOMPUTES), LAYOUTS),
    )


@st.composite
def jobs(draw: st.DrawFn, methods: tuple[Method, ...] = METHODS) -> Job:
    """A network, how it is trained, a machine, what is achieved there, and layouts."""
    model, part, count = draw(st.sampled_from(NETWORKS)), draw(st.sampled_from(MACHINES)), draw(st.sampled_from(COUNTS))
    transformer = isinstance(model, Transformer)
    method = draw(st.sampled_from(methods)) if isinstance(model, Transformer) and model.kind == "transformer" else "pretrain"
    seq_len = draw(st.sampled_from((512, 1024, 4096, 6000, 32_768))) if transformer else 1
    asked = training(
        method=method,
        precision=draw(st.sampled_from(sorted(part.peak_tflops))),
        seq_len=seq_len,
        decoder_seq_len=seq_len // 2 if isinstance(model, Transformer) and model.decoder_layers else 0,
        global_batch=draw(st.integers(1, 64 * count)),
        flash_attention=draw(st.booleans()),
        sequence_parallel=draw(st.booleans()),
        count_full_attention=draw(st.booleans()),
        lora_rank=16 if method in FROZEN_BASE else 0,
        auxiliary_models=HELPERS.get(method, AuxiliaryModels()),
        update_epochs=2.0 if method == "rl" else 1.0,
        response_tokens=seq_len // 2 if method == "rl" else 0,
        input_tokens_per_s_per_node=draw(st.sampled_from((None, 1e5))),
    )
    layouts = any_layouts(model, seq_len, count, draw(st.integers(0, 2**32 - 1)))
    return Job(model, asked, cluster(count, part), draw(utilisations), layouts)


def never_longer(job: Job, shorter: StepTime, longer: StepTime) -> None:
    """Fails naming the first layout on which the step that should be longer is shorter."""
    below = longer.total < shorter.total * (1 - EXACT)
    assert not below.any(), f"{job.layouts.row(int(np.argmax(below)))}: {longer.total[below][0]} s < {shorter.total[below][0]} s"


# What is in a step


@given(jobs())
def test_the_parts_of_a_step_are_times_and_add_up_to_it(job: Job) -> None:
    """Every part is finite and not negative; together they are the step, or the input pipeline is longer."""
    found = job.step()
    parts = np.array([getattr(found, name) for name in PARTS])
    assert np.isfinite(parts).all()
    assert (parts >= 0).all(), {name: float(part.min()) for name, part in zip(PARTS, parts, strict=True)}
    assert found.total == pytest.approx(np.maximum(parts.sum(axis=0), found.input), rel=EXACT)
    assert (found.total > 0).all()


@given(jobs())
def test_all_work_is_finite_and_not_negative(job: Job) -> None:
    """Nothing that a step asks for is less than nothing."""
    asked = job.work()
    for field in fields(StepWork):
        value = getattr(asked, field.name)
        columns = [value.intra_s, value.inter_s, value.hops] if isinstance(value, ExchangeTime) else [value]
        for column in columns:
            assert column.shape == (len(job.layouts),), field.name
            assert np.isfinite(column).all(), field.name
            assert (column >= 0).all(), field.name


@given(jobs())
def test_mfu_is_below_what_kernels_achieve(job: Job) -> None:
    """Model FLOPs over time and peak are at most the best share any of them is executed at.

    With weights' FLOPs W at the share m of the peak and attention's A, executed as r A at the share a of a peak no higher, a step takes
    at least W / m + r A / a over the peak, so that (W + A) / (W / m + r A / a) <= max(m, a / r): a mean lies between what it is made of.
    Flash attention computes the scores once more in the backward pass: r = 3.5 / 3 in pre-training, at least 1 anywhere. Without it
    attention is matrix work. The fullest stage has no fewer layers than the mean one, and every other part of a step only adds.
    """
    flash = job.training.flash_attention
    counted = replace(job.training, count_full_attention=not flash)
    flops = training_flops(job.model, counted)
    found = job.step()
    tokens = found.batch * job.training.seq_len
    mfu = (
        (flops.total - flops.generation)
        * tokens
        / (found.total * job.cluster.count * peak_flops(job.cluster.accelerator, job.training.precision))
    )
    again = (1 + FLASH_BACKWARD) / 3 if job.training.method in ("pretrain", "continued_pretrain", "full_finetune") else 1.0
    core = job.achieved.attention_share / again if flash and isinstance(job.model, Transformer) else 0.0
    assert (mfu <= max(job.achieved.matmul_share, core) * (1 + EXACT)).all(), float(mfu.max())


def test_mfu_reaches_the_matmul_share_where_nothing_else_costs() -> None:
    """The bound is tight: with memory, links and host for free and attention at the same share, a lone device's MFU is that share."""
    free = utilisation(
        attention_share=0.7 * (1 + FLASH_BACKWARD) / 3, operand_share=0.0, tile_s=0.0, layer_overhead_s=0.0, straggler_share=0.0
    )
    part = replace(A100, memory_bandwidth_gb_per_s=1e15)
    asked = training(count_full_attention=False)
    found = step_time(LLAMA_7B, asked, cluster(1, part), free, Layouts.single())
    mfu = training_flops(LLAMA_7B, asked).total * 64 * 2048 / (found.total * 312e12)
    assert mfu == pytest.approx(0.7, rel=1e-6)


# What makes a step longer


@given(jobs(), st.floats(0.05, 1.0), st.sampled_from(("link_gb_per_s", "memory_bandwidth_gb_per_s")))
def test_slower_links_and_memory_make_no_step_shorter(job: Job, part: float, name: str) -> None:
    """Less bandwidth in a node or to the memory only adds."""
    rate = getattr(job.cluster.accelerator, name)
    assume(rate)
    never_longer(job, job.step(), job.step(cluster=job.with_part(**{name: rate * part})))


@given(jobs(), st.floats(0.05, 1.0))
def test_a_slower_network_makes_no_step_shorter(job: Job, part: float) -> None:
    """Less bandwidth between nodes only adds."""
    slower = replace(job.cluster, internode_gbit_per_s=job.cluster.internode_gbit_per_s * part)
    never_longer(job, job.step(), job.step(cluster=slower))


@given(jobs(), st.floats(0.05, 1.0))
def test_a_lower_peak_makes_no_step_shorter(job: Job, part: float) -> None:
    """A machine that is slower in every precision is never faster."""
    peaks = MappingProxyType({name: peak * part for name, peak in job.cluster.accelerator.peak_tflops.items()})
    never_longer(job, job.step(), job.step(cluster=job.with_part(peak_tflops=peaks)))


@given(jobs(), st.floats(0.05, 1.0), st.data())
def test_a_lower_peak_of_one_precision_makes_no_step_shorter(job: Job, part: float, data: st.DataObject) -> None:
    """Nor is one that is slower in one of them, whether it is the recipe's own or that of what stays at 16 bit."""
    peaks = dict(job.cluster.accelerator.peak_tflops)
    name = data.draw(st.sampled_from(sorted(peaks)))
    slower = MappingProxyType(peaks | {name: peaks[name] * part})
    never_longer(job, job.step(), job.step(cluster=job.with_part(peak_tflops=slower)))


@given(
    jobs(),
    st.floats(0.05, 1.0),
    st.sampled_from(
        (
            "matmul_share",
            "attention_share",
            "routed_share",
            "link_share",
            "network_share",
            "overlap_share",
            "tensor_overlap",
            "launch_power",
        )
    ),
)
def test_achieving_less_makes_no_step_shorter(job: Job, part: float, name: str) -> None:
    """Of two machines the one that achieves less of its data sheet, or hides less of its exchanges, is not the faster one."""
    less = replace(job.achieved, **{name: getattr(job.achieved, name) * part})
    never_longer(job, job.step(), job.step(achieved=less))


@given(
    jobs(),
    st.floats(1.0, 20.0),
    st.sampled_from(
        (
            "operand_share",
            "tile_s",
            "activation_passes",
            "routed_passes",
            "immature_share",
            "hop_s",
            "layer_overhead_s",
            "routing_overhead_s",
            "expert_overhead_s",
            "call_overhead_s",
            "straggler_share",
        )
    ),
)
def test_larger_overheads_make_no_step_shorter(job: Job, times: float, name: str) -> None:
    """Every cost that is not arithmetic only adds."""
    more = replace(job.achieved, **{name: getattr(job.achieved, name) * times})
    never_longer(job, job.step(), job.step(achieved=more))


@given(jobs())
def test_recomputing_more_never_saves_time(job: Job) -> None:
    """Of the same layout none is at most selective and selective at most full, with and without flash attention, by every method."""
    levels = [job.step(layouts=replace(job.layouts, recompute=np.full(len(job.layouts), level))) for level in range(len(RECOMPUTES))]
    for less, more in itertools.pairwise(levels):
        never_longer(job, less, more)


@given(jobs())
def test_dividing_more_by_zero_never_saves_time(job: Job) -> None:
    """Of the same layout a higher ZeRO stage is never faster, but for stage 1, which is never slower than none: it saves optimizer work."""
    none, first, second, third = (job.step(layouts=replace(job.layouts, zero_stage=np.full(len(job.layouts), stage))) for stage in range(4))
    never_longer(job, first, none)
    never_longer(job, first, second)
    never_longer(job, second, third)


@given(jobs())
def test_twice_the_replicas_train_no_fewer_tokens_a_second(job: Job) -> None:
    """Data ranks that exchange over the same kind of link as before bring at least the same throughput, on a batch that grows with them.

    Left out: from one replica (of the model, or of its experts) to two, and out of a node, where an exchange begins or slows down: of the
    replicas, or of pipeline stages, which lie over the whole machine.
    """
    layouts = job.layouts
    span = layouts.data * layouts.context * layouts.tensor
    replicas = span / expert_ranks(layouts)
    staged = np.where(layouts.pipeline > 1, job.cluster.count, span)
    same = (layouts.data * layouts.context > 1) & (replicas > 1)
    for reach in (span, staged):
        same &= (2 * reach <= job.domain) | (reach > job.domain)
    assume(same.any())
    few, many = layouts.take(same), replace(layouts.take(same), data=2 * layouts.data[same])
    larger = replace(job.training, global_batch=2 * job.training.global_batch)
    before = job.step(layouts=few)
    after = job.step(layouts=many, training=larger, cluster=replace(job.cluster, count=2 * job.cluster.count))
    assert after.batch == pytest.approx(2 * before.batch)
    assert (after.batch / after.total >= before.batch / before.total * (1 - EXACT)).all()


@given(jobs())
def test_more_experts_make_no_step_shorter(job: Job) -> None:
    """Twice the experts of the same size, of which a token visits as many, on the same ranks: more weights, and fewer rows for each.

    Left out: the last tiles of weights' gradients, whose sums are over the rows of one expert, and end sooner where it has fewer.
    """
    if not isinstance(job.model, Transformer) or job.model.experts is None:
        return
    more = replace(job.model, experts=replace(job.model.experts, experts=2 * job.model.experts.experts))
    achieved = job.achieved if job.training.method in FROZEN_BASE else replace(job.achieved, tile_s=0.0)
    never_longer(job, job.step(achieved=achieved), job.step(model=more, achieved=achieved))


@given(jobs())
def test_fused_experts_make_no_step_longer(job: Job) -> None:
    """Software that fuses and hides more never takes longer."""
    never_longer(job, job.step(training=replace(job.training, fused_experts=True)), job.step())


# What a step is made of


def without_what_comes_once(asked: StepWork) -> StepWork:
    """The work without what a step does once, whatever its micro-batches: exchange of gradients, optimizer, sampling."""
    nothing = np.zeros(len(asked.matmul))
    return replace(asked, gradient=ExchangeTime(nothing, nothing, nothing), optimizer=nothing, generation=nothing)


@given(jobs())
def test_twice_the_micro_batches_take_twice_the_time(job: Job) -> None:
    """Apart from the bubble, which stays as it is, and from what is done once a step."""
    once = without_what_comes_once(job.work())
    one, two = time_step(once, job.achieved), time_step(replace(once, micro_batches=2 * once.micro_batches), job.achieved)
    for name in ("compute", "memory", "launch", "network"):
        assert getattr(two, name) == pytest.approx(2 * getattr(one, name), rel=EXACT)
    assert two.pipeline == pytest.approx(one.pipeline, rel=EXACT)


@given(jobs())
def test_a_bubble_is_its_share_of_the_ideal_time(job: Job) -> None:
    """(p - 1) / (v m) of the time without it (Narayanan et al. 2021, section 2.2), head and what comes once a step apart.

    Never less than what it takes one micro-batch to pass all stages: p of them, of which m are at work with m < p micro-batches.
    """
    nothing = np.zeros(len(job.layouts))
    asked = replace(without_what_comes_once(job.work()), head=nothing, head_traffic=nothing, input=nothing)
    found = time_step(asked, job.achieved)
    idle = np.maximum((job.layouts.pipeline - 1) / job.layouts.virtual_pipeline, job.layouts.pipeline - asked.micro_batches)
    share = idle / asked.micro_batches
    assert found.pipeline == pytest.approx(share * (found.total - found.pipeline), rel=EXACT)
    assert (found.pipeline[job.layouts.pipeline == 1] == 0).all()


@given(st.sampled_from((LLAMA_7B, MIXTRAL, GPT_3)), st.sampled_from((2, 4, 8)), st.sampled_from((2, 4)), utilisations)
def test_interleaving_divides_the_bubble_by_its_chunks(model: Transformer, pipeline: int, chunks: int, achieved: Utilisation) -> None:
    """Where chunks are whole layers and handing over costs nothing, v chunks a stage leave one v-th of the bubble."""
    assume(model.layers % (pipeline * chunks) == 0)
    part = accelerator(link_gb_per_s=None, internode_gbit_per_s=None)
    free = replace(achieved, hop_s=0.0, call_overhead_s=0.0)
    whole, cut = (
        step_time(model, training(), cluster(pipeline, part), free, Layouts.single(pipeline=pipeline, virtual_pipeline=each))
        for each in (1, chunks)
    )
    assert cut.pipeline == pytest.approx(whole.pipeline / chunks, rel=EXACT)
    assert cut.total - cut.pipeline == pytest.approx(whole.total - whole.pipeline, rel=EXACT)


@given(jobs())
def test_a_device_alone_exchanges_nothing(job: Job) -> None:
    """On one accelerator nothing goes over links, and nothing waits for a pipeline."""
    alone = job.step(layouts=Layouts.single(micro_batch=2), cluster=replace(job.cluster, count=1))
    assert alone.network == 0
    assert alone.pipeline == 0


@given(jobs())
def test_a_compiled_step_is_launched_for_nothing(job: Job) -> None:
    """Where the host launches a whole step as one program, no time goes there."""
    compiled = replace(job.achieved, layer_overhead_s=0.0, routing_overhead_s=0.0, expert_overhead_s=0.0, call_overhead_s=0.0)
    found = job.step(achieved=compiled)
    assert (found.launch == 0).all()


@given(jobs(methods=("pretrain",)), st.integers(1, 64))
def test_zero_moves_what_its_paper_says(job: Job, count: int) -> None:
    """Of the exchange without ZeRO, stage 1 moves as much, stage 2 (m + 1) / 2 with m micro-batches, stage 3 three halves of it in each
    (Rajbhandari et al. 2020, arXiv 1910.02054, section 7): with one micro-batch twice the weights, twice, twice and thrice.
    """
    asked = replace(job.training, global_batch=count)
    layouts = replace(job.layouts, data=np.full(len(job.layouts), 2), micro_batch=np.ones_like(job.layouts.data))
    batches = max(1.0, np.round(count / 2))
    none, *stages = (
        job.work(layouts=replace(layouts, zero_stage=np.full(len(layouts), stage)), training=asked).gradient for stage in range(4)
    )
    for moved, times in zip(stages, (1.0, (batches + 1) / 2, 1.5 * batches), strict=True):
        assert moved.intra_s == pytest.approx(times * none.intra_s, rel=EXACT)
        assert moved.inter_s == pytest.approx(times * none.inter_s, rel=EXACT)


@given(jobs())
def test_the_work_of_all_stages_is_at_least_the_models(job: Job) -> None:
    """Layers of the fullest stage times the stages are no fewer than the model's, and as many where they divide, helpers' too."""
    assume(not isinstance(job.model, GenericNetwork))
    helpers = (job.training.auxiliary_models.teacher, job.training.auxiliary_models.reward_model)
    asked, depths = job.work(), np.array([layer_count(each) for each in (job.model, *helpers) if each is not None])
    one = job.work(
        layouts=replace(
            job.layouts,
            pipeline=np.ones(len(job.layouts), dtype=np.int64),
            virtual_pipeline=np.ones(len(job.layouts), dtype=np.int64),
        )
    )
    whole = asked.matmul * job.layouts.pipeline
    assert (whole >= one.matmul * (1 - EXACT)).all()
    even = (depths[:, None] % (job.layouts.pipeline * job.layouts.virtual_pipeline) == 0).all(axis=0)
    assert whole[even] == pytest.approx(one.matmul[even], rel=EXACT)
