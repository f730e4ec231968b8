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
from service.engine.training.step.collectives import (
    ExchangeTime,
    context_exchange,
    exchange_calls,
    expert_exchange,
    gradient_exchange,
    stage_exchange,
    tensor_exchange,
)
from service.engine.training.step.matmul import attention_seconds, head_seconds, held_experts, matmul_seconds, product_costs, routed_layers
from service.engine.training.step.memory_traffic import (
    activation_seconds,
    dequantisation_seconds,
    generation_seconds,
    logit_seconds,
    optimizer_seconds,
    score_seconds,
)
from service.engine.training.step.workload import Floats, Workload, auxiliary_workloads, layer_passes, trained_workload


@dataclass(frozen=True, slots=True)
class StepWork:
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
    tensor: ExchangeTime
    context: ExchangeTime
    expert: ExchangeTime
    stage: ExchangeTime
    gradient: ExchangeTime
    optimizer: Floats
    generation: Floats
    chunk_stages: Floats
    micro_batches: Floats
    hidden_batches: Floats
    doublings: Floats
    input: Floats
    batch: Floats


def step_work(model: Model, training: Training, cluster: Cluster, layouts: Layouts, networks_gbit_per_s: Floats | None = None) -> StepWork:
    """What a step asks of the fullest device on every layout.

    Where a column of networks is given in place of the cluster's, exchanges have a row for each of them.
    """
    jobs = [trained_workload(model, training, cluster, layouts), *auxiliary_workloads(model, training, cluster, layouts)]
    if networks_gbit_per_s is not None:
        jobs = [replace(workload, internode_gbit_per_s=networks_gbit_per_s) for workload in jobs]
    return functools.reduce(_together, map(_own, jobs))


def _own(workload: Workload) -> StepWork:
    """One network's work, without the networks run beside it."""
    model, training, cluster, layouts = workload.model, workload.training, workload.cluster, workload.layouts
    count = workload.micro_batches
    batch = count * layouts.data * layouts.micro_batch
    nothing = workload.zeros
    none = ExchangeTime(nothing, nothing, nothing)
    other, flash = isinstance(model, GenericNetwork), training.flash_attention
    matmul, routed = matmul_seconds(workload)
    attention = nothing if other else attention_seconds(workload)
    costs = product_costs(workload)
    # Embedding, loss and hand-over launch about as many kernels as one layer more.
    layers = (workload.layers + 1) * layer_passes(workload)
    # A pipeline with fewer micro-batches than stages waits for them all the same: each passes every layer in turn.
    chunk_stages = np.maximum((layouts.pipeline - 1) / layouts.virtual_pipeline, layouts.pipeline - count)
    return StepWork(
        matmul=matmul if flash else matmul + attention,
        routed=routed,
        operands=costs.operands,
        reductions=costs.reductions,
        head=nothing if other else head_seconds(workload),
        head_traffic=nothing if other else logit_seconds(workload),
        attention=attention if flash else nothing,
        traffic=nothing if other else activation_seconds(workload),
        scores=dequantisation_seconds(workload) if other else score_seconds(workload) + dequantisation_seconds(workload),
        layers=layers,
        routed_layers=layers * routed_layers(model),
        held_experts=layers * routed_layers(model) * held_experts(workload),
        calls=nothing if other else exchange_calls(workload),
        tensor=none if other else tensor_exchange(workload),
        context=none if other else context_exchange(workload),
        expert=none if other else expert_exchange(workload),
        stage=none if other else stage_exchange(workload),
        gradient=gradient_exchange(workload),
        optimizer=optimizer_seconds(workload),
        generation=generation_seconds(workload),
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


def _together(asked: StepWork, helper: StepWork) -> StepWork:
    """The trained network's work with a helper's passes beside: nothing of those is exchanged or updated at the step's end."""
    return replace(asked, **{name: getattr(asked, name) + getattr(helper, name) for name in OF_EVERY_NETWORK})


def _input_seconds(training: Training, cluster: Cluster, batch: Floats) -> Floats:
    if training.input_tokens_per_s_per_node is None:
        return np.zeros(batch.shape)
    return batch * training.seq_len / (training.input_tokens_per_s_per_node * cluster.nodes)
