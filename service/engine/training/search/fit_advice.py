"""Changes that make a model fit where no layout that is searched does."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

import numpy as np

from service.domain.errors import DoesNotFit, InvalidRequest
from service.domain.training.model import Model
from service.domain.training.run import Axes, Cluster, Method, Training
from service.engine.training.layouts import base_layouts, memory_option_grid
from service.engine.training.memory.memory_use import memory_use
from service.engine.training.rl.phases import sampler_fits, training_pool, update_training
from service.engine.training.search.fitting_layouts import leanest_fusion
from service.engine.training.search.layout_search import LayoutChoice

LARGEST_MACHINE = 2**17
# As lora_rank's default.
ADVISED_RANK = 16
NO_MACHINE = (
    f"no machine that was tried, up to {LARGEST_MACHINE:,} of these accelerators, holds it at this sequence length: take accelerators"
    " with more memory"
)


def what_would_fit(model: Model, training: Training, cluster: Cluster) -> tuple[str, ...]:
    """Changes that make the model fit, as sentences; each is found by the search itself, so that a request with it fits."""
    if not sampler_fits(model, training, cluster):
        return _holding_sampler(model, training, cluster)
    training, sampling = update_training(training), cluster.count - training_pool(training, cluster).count
    cluster = training_pool(training, cluster)
    capacity = cluster.accelerator.usable_memory_bytes
    left_open = " with the layout left open" if training.axes != Axes() else ""
    leaner = _leanest_bytes(model, training, cluster)
    if leaner <= capacity:
        advice = ["on this machine a layout that is searched for: leave parallelism, micro_batch, zero_stage and activation_recompute open"]
    else:
        larger = _larger_machine(model, training, cluster, sampling)
        advice = [
            f"{larger}{left_open}" if larger else NO_MACHINE,
            f"{_accelerators(cluster.count)} with at least {math.ceil(leaner / 1e9)} GB each{left_open}",
        ]
        advice += [
            f"{change} on this machine{left_open}"
            for change, leaner_training in _leaner_trainings(training)
            if _leanest_bytes(model, leaner_training, cluster) <= capacity
        ]
    return tuple(advice)


def _holding_sampler(model: Model, training: Training, cluster: Cluster) -> tuple[str, ...]:
    """What would hold the model that a step of reinforcement learning samples."""
    counts = (
        cluster.count << doublings for doublings in range(1, LARGEST_MACHINE.bit_length()) if cluster.count << doublings <= LARGEST_MACHINE
    )
    assert training.rl is not None
    searched = replace(
        training, rl=replace(training.rl, generation=replace(training.rl.generation, tensor=None, pipeline=None, expert=None))
    )
    enough = next((count for count in counts if sampler_fits(model, searched, replace(cluster, count=count))), None)
    more = [f"{enough} of these accelerators, as far as sampling goes"] if enough else [NO_MACHINE]
    return (*more, "a wider training.rl.generation.tensor, or fewer bits in training.rl.generation.precision")


def _leaner_trainings(training: Training) -> Iterator[tuple[str, Training]]:
    """Changes of optimizer, states, kernels, adapters and method that take less memory, each by itself."""
    if training.optimizer == "adamw":
        yield 'optimizer "adamw_8bit"', replace(training, optimizer="adamw_8bit")
    if training.method == "full_finetune" and training.states_dtype == "fp32":
        yield 'states_dtype "bf16"', replace(training, states_dtype="bf16")
    # Left open, the leanest kernels are among what was tried.
    if training.kernel_fusion is not None and (leaner := leanest_fusion(replace(training, kernel_fusion=None))) != training:
        yield f'kernel_fusion "{leaner.kernel_fusion}"', leaner
    if training.lora_rank > ADVISED_RANK:
        yield f"lora_rank {ADVISED_RANK}", replace(training, lora_rank=ADVISED_RANK)
    methods: dict[Method, tuple[Method, ...]] = {"full_finetune": ("lora", "qlora"), "lora": ("qlora",)}
    for method in methods.get(training.method, ()):
        yield f'method "{method}"', replace(training, method=method, lora_rank=training.lora_rank or ADVISED_RANK)


def _accelerators(count: int) -> str:
    return "1 accelerator" if count == 1 else f"{count} accelerators"


def _larger_machine(model: Model, training: Training, cluster: Cluster, sampling: int) -> str | None:
    """The smallest larger machine that holds the model, with a larger batch where its ranks need one, beside those that only sample."""

    @cache
    def batch_held(count: int) -> int | None:
        """Smallest batch with which `count` accelerators hold the model: the requested one, or one sequence for each; None: neither."""
        grown = replace(cluster, count=count)
        for batch in sorted({training.global_batch, max(training.global_batch, count)}):
            if _leanest_bytes(model, replace(training, global_batch=batch), grown) <= cluster.accelerator.usable_memory_bytes:
                return batch
        return None

    count = _smallest_count(lambda count: batch_held(count) is not None, cluster)
    if count is None:
        return None
    batch = batch_held(count)
    larger_batch = f" with a batch of {batch} sequences" if batch != training.global_batch else ""
    return f"{count + sampling} of these accelerators hold it{larger_batch}"


def _smallest_count(holds: Callable[[int], bool], cluster: Cluster) -> int | None:
    """Smallest machine above the cluster's that holds: a power of two within one node, full nodes beyond, found by bisection."""
    # Not every number divides into a layout: the result holds, and one node less does not.
    node = cluster.accelerators_per_node
    for part in (1 << power for power in range(node.bit_length())):
        if cluster.count < part < node and holds(part):
            return part
    too_few = cluster.count // node
    enough = too_few + 1
    while not holds(enough * node):
        too_few, enough = enough, 2 * enough
        if enough * node > LARGEST_MACHINE:
            return None
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        too_few, enough = (too_few, middle) if holds(middle * node) else (middle, enough)
    return enough * node


def _leanest_bytes(model: Model, training: Training, cluster: Cluster) -> float:
    """Memory of the leanest layout of the search: all recomputed, sharded as far as possible, one sequence at a time, full stages [B]."""
    training = leanest_fusion(training)
    bare = replace(training, axes=Axes(micro_batch=1, virtual_pipeline=1, recompute="full"))
    try:
        layouts = base_layouts(model, bare, cluster.count)
    except InvalidRequest:
        return float("inf")
    return float(np.min(memory_use(model, training, memory_option_grid(bare, layouts)).total))


def does_not_fit(model: Model, training: Training, cluster: Cluster, choice: LayoutChoice) -> DoesNotFit:
    """The error of a search in which nothing fits."""
    needed, held = choice.total_bytes / 1e9, cluster.accelerator.usable_memory_bytes / 1e9
    advice = "; ".join(what_would_fit(model, training, cluster))
    if not sampler_fits(model, training, cluster):
        what = f"no replica of {cluster.count} x {cluster.accelerator.name} holds the sampled model's weights and one sequence"
        return DoesNotFit(f"{what}. What would fit: {advice}", "/training/rl/generation")
    return DoesNotFit(
        f"no layout fits {cluster.count} x {cluster.accelerator.name}: the leanest needs {needed:,.1f} GB on an accelerator of "
        f"{held:,.1f} GB usable. What would fit: {advice}",
        "/hardware",
    )
