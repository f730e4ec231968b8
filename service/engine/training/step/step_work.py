"""What one optimizer step asks of the fullest device, vectorised over layouts: work at the data sheet's rates.

Everything here is arithmetic on shapes and data sheets: seconds that work would take if devices and links gave all their data
sheets promise, and how often something is called that costs a fixed time. What is achieved of it is measured, and is in
`throughput`. Left out: congestion, odd shapes' kernels, load imbalance of experts.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np

from service.domain.training.model import GenericNetwork, Model
from service.domain.training.run import Cluster, Training
from service.engine.training.layouts import Layouts
from service.engine.training.step.collectives import Link, context_link, exchange_calls, expert_link, gradient_link, stage_link, tensor_link
from service.engine.training.step.matmul import attention_seconds, head_seconds, held_experts, matmul_seconds, product_costs, routed_layers
from service.engine.training.step.memory_traffic import (
    activation_seconds,
    dequantisation_seconds,
    generation_seconds,
    logit_seconds,
    optimizer_seconds,
    score_seconds,
)
from service.engine.training.step.workload import Floats, Workload, helper_jobs, job_of, sweeps


@dataclass(frozen=True, slots=True)
class Work:
    """One position a layout. Of one micro-batch on the fullest stage of layers, all but the last group.

    matmul, routed: matrix work at the peak [s] that every token meets, and that of its experts. operands, reductions: the operands'
    way over the memory bus [s], and the summed depth of the products' reductions, weighed by how fast the precision's units go
    [elements]. head, head_traffic: the output head on the last stage [s at the 16-bit peak], logits and loss over the bus [s].
    attention: scores and values in flash attention's kernels at the 16-bit peak [s]; without them it is matrix work like any other.
    traffic: norms, activations and residuals over the memory bus [s]. scores: unfused attention's way over it, and unfolded weights [s].
    layers, routed_layers: all layers whose kernels the host launches, and those of them with experts; launched again counts again.
    held_experts: those with experts, times the experts that the device holds of each. calls: exchanges that the host launches.
    tensor, context, expert, stage: exchanges of one micro-batch. gradient: the data ranks' exchange of a whole step.
    chunk_stages: pipeline stages before the last, over the chunks each is cut in. hidden_batches: micro-batches that the data
    ranks' exchange runs beside.
    """

    matmul: Floats
    routed: Floats
    operands: Floats
    reductions: Floats
    head: Floats
    head_traffic: Floats
    attention: Floats
    traffic: Floats
    scores: Floats
    layers: Floats
    routed_layers: Floats
    held_experts: Floats
    calls: Floats
    tensor: Link
    context: Link
    expert: Link
    stage: Link
    gradient: Link
    optimizer: Floats
    generation: Floats
    chunk_stages: Floats
    micro_batches: Floats
    hidden_batches: Floats
    doublings: Floats
    input: Floats
    batch: Floats


def work(model: Model, training: Training, cluster: Cluster, layouts: Layouts, networks_gbit_per_s: Floats | None = None) -> Work:
    """What a step asks of the fullest device on every layout.

    Where a column of networks is given in place of the cluster's, exchanges have a row for each of them.
    """
    jobs = [job_of(model, training, cluster, layouts), *helper_jobs(model, training, cluster, layouts)]
    if networks_gbit_per_s is not None:
        jobs = [replace(job, internode_gbit_per_s=networks_gbit_per_s) for job in jobs]
    return functools.reduce(_together, map(_own, jobs))


def _own(job: Workload) -> Work:
    """One network's work, without the networks run beside it."""
    model, training, cluster, layouts = job.model, job.training, job.cluster, job.layouts
    count = job.micro_batches
    batch = count * layouts.data * layouts.micro_batch
    nothing = job.nothing
    none = Link(nothing, nothing, nothing)
    other, flash = isinstance(model, GenericNetwork), training.flash_attention
    matmul, routed = matmul_seconds(job)
    attention = nothing if other else attention_seconds(job)
    costs = product_costs(job)
    # Embedding, loss and hand-over launch about as many kernels as one layer more.
    layers = (job.layers + 1) * sweeps(job)
    # A pipeline with fewer micro-batches than stages waits for them all the same: each passes every layer in turn.
    chunk_stages = np.maximum((layouts.pipeline - 1) / layouts.virtual_pipeline, layouts.pipeline - count)
    return Work(
        matmul=matmul if flash else matmul + attention,
        routed=routed,
        operands=costs.operands,
        reductions=costs.reductions,
        head=nothing if other else head_seconds(job),
        head_traffic=nothing if other else logit_seconds(job),
        attention=attention if flash else nothing,
        traffic=nothing if other else activation_seconds(job),
        scores=dequantisation_seconds(job) if other else score_seconds(job) + dequantisation_seconds(job),
        layers=layers,
        routed_layers=layers * routed_layers(model),
        held_experts=layers * routed_layers(model) * held_experts(job),
        calls=nothing if other else exchange_calls(job),
        tensor=none if other else tensor_link(job),
        context=none if other else context_link(job),
        expert=none if other else expert_link(job),
        stage=none if other else stage_link(job),
        gradient=gradient_link(job),
        optimizer=optimizer_seconds(job),
        generation=generation_seconds(job),
        chunk_stages=chunk_stages,
        micro_batches=count,
        hidden_batches=np.choose(layouts.zero_stage, [0.0, 1.0, (count + 1) / 2, count]),
        doublings=nothing + np.log2(cluster.nodes),
        input=_input_seconds(training, cluster, batch),
        batch=batch,
    )


OF_EVERY_NETWORK = (
    "matmul", "routed", "operands", "reductions", "head", "head_traffic", "attention", "traffic", "scores",
    "layers", "routed_layers", "held_experts", "calls", "tensor", "context", "expert", "stage",
)  # fmt: skip


def _together(asked: Work, helper: Work) -> Work:
    """The trained network's work with a helper's passes beside: nothing of those is exchanged or updated at the step's end."""
    return replace(asked, **{name: getattr(asked, name) + getattr(helper, name) for name in OF_EVERY_NETWORK})


def _input_seconds(training: Training, cluster: Cluster, batch: Floats) -> Floats:
    if training.input_tokens_per_s_per_node is None:
        return np.zeros(batch.shape)
    return batch * training.seq_len / (training.input_tokens_per_s_per_node * cluster.nodes)
