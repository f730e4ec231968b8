"""Work of one optimizer step on the fullest device, vectorised over layouts, at the data sheets' rates.

Arithmetic on shapes and data sheets: seconds that work takes if devices and links give all that their data sheets state, and counts of what
costs a fixed time. What is achieved of it is measured, and applied in `step_time`. Left out: congestion, odd shapes' kernels, load
imbalance of experts.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import numpy as np

from service.domain.training.finetuning import FineTuningRates
from service.domain.training.model import GenericNetwork, Model
from service.domain.training.run import Cluster, Training
from service.engine.training.layouts import Layouts, layer_count
from service.engine.training.step.collectives import (
    ExchangeTime,
    context_exchange,
    exchange_calls,
    expert_exchange,
    gradient_exchange,
    stage_exchange,
    tensor_exchange,
)
from service.engine.training.step.finetuning import FineTuningWork, finetuning_work
from service.engine.training.step.matmul import attention_seconds, head_seconds, held_experts, matmul_seconds, product_costs, routed_layers
from service.engine.training.step.memory_traffic import (
    activation_seconds,
    dequantisation_seconds,
    generation_seconds,
    logit_seconds,
    optimizer_seconds,
    routed_traffic_seconds,
    score_seconds,
)
from service.engine.training.step.workload import Floats, Workload, auxiliary_workloads, has_fused_experts, layer_passes, trained_workload

_Rate = TypeVar("_Rate", float, Floats)


@dataclass(frozen=True)
class DeviceWork:
    """Work of one micro-batch on one device of the fullest pipeline stage. Every field: (layouts,) float array.

    Parameters
    ----------
    matmul, routed
        Matrix work of every token, and that of its experts, at the dense peak [s].
    operands
        Operands of the products over the memory bus [s].
    reductions
        Summed depth of the products' reductions, weighed by the precision's rate over the 16-bit rate [elements].
    head
        The output head on the last stage, at the 16-bit peak [s].
    head_traffic
        Logits and loss over the memory bus [s].
    attention
        Scores and values in flash attention's kernels at the 16-bit peak [s]; 0 without them: they are in `matmul` then.
    traffic
        Norms, activations and residuals over the memory bus [s].
    routed_traffic
        The same of tokens on their way to experts and back, and of the experts' activation functions [s].
    scores
        Unfused attention's scores, and dequantised weights, over the memory bus [s].
    """

    matmul: Floats
    routed: Floats
    operands: Floats
    reductions: Floats
    head: Floats
    head_traffic: Floats
    attention: Floats
    traffic: Floats
    routed_traffic: Floats
    scores: Floats


@dataclass(frozen=True)
class HostWork:
    """What the host launches for one micro-batch on one device. Every field: (layouts,) float array.

    Parameters
    ----------
    layers, routed_layers
        Layers, and those of them with experts [1]; recomputed layers count again.
    held_experts
        Layers with experts, times the experts of each that the device holds [1].
    calls
        Exchanges [1].
    """

    layers: Floats
    routed_layers: Floats
    held_experts: Floats
    calls: Floats


@dataclass(frozen=True)
class MicroBatchWork(DeviceWork, HostWork):
    """Work of one micro-batch, with its exchanges over the tensor, context and expert ranks and to the next pipeline stage.

    The experts' exchange is `overlapped` where software runs it beside the arithmetic of another micro-batch.
    """

    tensor: ExchangeTime
    context: ExchangeTime
    expert: ExchangeTime
    overlapped: ExchangeTime
    stage: ExchangeTime


@dataclass(frozen=True)
class StepWork(MicroBatchWork):
    """Work of one optimizer step. Every field but `gradient`: (layouts,) float array.

    Parameters
    ----------
    gradient : ExchangeTime
        Exchange of the data ranks.
    optimizer, generation, input
        Optimizer, sampling of text (RL), and input pipeline [s].
    bubble_stages
        Pipeline bubble in stage times, of `pipeline_bubble` [1].
    micro_batches, hidden_batches
        Micro-batches of each data rank, and those that the gradient exchange runs beside [1].
    spared
        Share of the fullest stage's layers that the last stage, which computes the head, does without [1].
    doublings
        log2 of the nodes [1].
    immaturity
        How new the accelerator is to its software: 1 in the year of its release, half of that every year after [1].
    batch
        Sequences (or samples) of the step [1].
    """

    gradient: ExchangeTime
    optimizer: Floats
    generation: Floats
    bubble_stages: Floats
    micro_batches: Floats
    hidden_batches: Floats
    spared: Floats
    doublings: Floats
    immaturity: Floats
    input: Floats
    batch: Floats


PER_MICRO_BATCH = tuple(field.name for field in fields(MicroBatchWork))


def step_work(model: Model, training: Training, cluster: Cluster, layouts: Layouts, networks_gbit_per_s: Floats | None = None) -> StepWork:
    """Work of a step on the fullest device on every layout.

    Parameters
    ----------
    model : Model
        Network.
    training : Training
        Method, batch.
    cluster : Cluster
        Accelerators and links.
    layouts : Layouts
        Columns of length (layouts,).
    networks_gbit_per_s : (networks, 1) float array, optional
        Networks of one accelerator, one direction, in place of the cluster's [Gbit/s]; exchanges have one row for each.

    Returns
    -------
    StepWork
        (layouts,) columns.
    """
    jobs = [trained_workload(model, training, cluster, layouts), *auxiliary_workloads(model, training, cluster, layouts)]
    if networks_gbit_per_s is not None:
        jobs = [replace(workload, internode_gbit_per_s=networks_gbit_per_s) for workload in jobs]
    return functools.reduce(_add_auxiliary, map(_own, jobs))


def pipeline_bubble(layouts: Layouts, micro_batches: Floats) -> Floats:
    """Idle time of the pipeline, in times of one stage for one micro-batch.

    Parameters
    ----------
    layouts : Layouts
        Columns of length (layouts,).
    micro_batches : (layouts,) float array
        Micro-batches of a data rank [1].

    Returns
    -------
    (layouts,) float array
        (p - 1) / v, or p - m where there are fewer micro-batches m than stages p: each passes every stage in turn [1].

    References
    ----------
    Narayanan et al. 2021 (arXiv 2104.04473), section 2.2: the bubble of the interleaved schedule.
    """
    bubble: Floats = np.maximum((layouts.pipeline - 1) / layouts.virtual_pipeline, layouts.pipeline - micro_batches)
    return bubble


def spared_layers(workload: Workload) -> Floats:
    """Layers that the last pipeline stage has fewer than the fullest one: one, where the layers do not fill every stage.

    Returns
    -------
    (layouts,) float array
        [1].

    References
    ----------
    Llama 3 (arXiv 2407.21783), section 3.3.2: 126 layers in 16 stages of 8, less one each on the first and the last, which has the head.
    """
    places = workload.layers * workload.layouts.pipeline
    spared: Floats = np.where(places > layer_count(workload.model), 1.0, 0.0)
    return spared


def _own(workload: Workload) -> StepWork:
    """Work of one network, without auxiliary ones."""
    model, training, cluster, layouts = workload.model, workload.training, workload.cluster, workload.layouts
    count = workload.micro_batches
    batch = count * layouts.data * layouts.micro_batch
    nothing = workload.zeros
    none = ExchangeTime(nothing, nothing, nothing)
    other, flash = isinstance(model, GenericNetwork), training.flash_attention
    matmul, routed = matmul_seconds(workload)
    attention = nothing if other else attention_seconds(workload)
    costs = product_costs(workload)
    # A captured graph is launched at once.
    captured = has_fused_experts(workload)
    hidden = (layouts.virtual_pipeline > 1).astype(float)
    # Embedding, loss and transfers launch about as many kernels as one more layer.
    layers = (workload.layers + 1) * layer_passes(workload) * (not captured)
    work = StepWork(
        matmul=matmul if flash else matmul + attention,
        routed=routed,
        operands=costs.operands,
        reductions=costs.reductions,
        head=nothing if other else head_seconds(workload),
        head_traffic=nothing if other else logit_seconds(workload),
        attention=attention if flash else nothing,
        traffic=nothing if other else activation_seconds(workload),
        routed_traffic=routed_traffic_seconds(workload),
        scores=dequantisation_seconds(workload) if other else score_seconds(workload) + dequantisation_seconds(workload),
        layers=layers,
        routed_layers=layers * routed_layers(model),
        held_experts=layers * routed_layers(model) * held_experts(workload),
        calls=nothing if other or captured else exchange_calls(workload),
        tensor=none if other else tensor_exchange(workload),
        context=none if other else context_exchange(workload),
        expert=none if other or captured else expert_exchange(workload),
        overlapped=(expert_exchange(workload) if captured else none) + (none if other else stage_exchange(workload).times(hidden)),
        stage=none if other else stage_exchange(workload).times(1 - hidden),
        gradient=gradient_exchange(workload),
        optimizer=optimizer_seconds(workload),
        generation=generation_seconds(workload),
        bubble_stages=pipeline_bubble(layouts, count),
        micro_batches=count,
        hidden_batches=np.choose(layouts.zero_stage, [0.0, 1.0, (count + 1) / 2, count]),
        spared=spared_layers(workload) / workload.layers,
        doublings=nothing + np.log2(cluster.nodes),
        immaturity=nothing + 0.5 ** max(0, training.software_year - cluster.accelerator.release_year),
        input=_input_seconds(training, cluster, batch),
        batch=batch,
    )
    return work if training.finetuning is None else with_finetuning(work, finetuning_work(workload), training.finetuning)


def _add_auxiliary(trained: StepWork, auxiliary: StepWork) -> StepWork:
    """The trained network's work with that of an auxiliary network's micro-batches, which end without exchange or update."""
    return replace(trained, **{name: getattr(trained, name) + getattr(auxiliary, name) for name in PER_MICRO_BATCH})


def _input_seconds(training: Training, cluster: Cluster, batch: Floats) -> Floats:
    if training.input_tokens_per_s_per_node is None:
        return np.zeros(batch.shape)
    return batch * training.seq_len / (training.input_tokens_per_s_per_node * cluster.nodes)


def with_finetuning(work: StepWork, added: FineTuningWork, rates: FineTuningRates[_Rate]) -> StepWork:
    """The step's work with what fine-tuning adds.

    Parameters
    ----------
    work : StepWork
        As pre-training's software does it.
    added : FineTuningWork
        What fine-tuning adds to a micro-batch.
    rates : FineTuningRates
        What of it is measured.

    Returns
    -------
    StepWork
        (layouts,) columns.
    """
    fused, alone = added.fused, 1 - added.fused
    adapter_passes = rates.adapter_passes**alone * rates.fused_adapter_passes**fused
    passes = rates.unfused_passes**alone * rates.fused_passes**fused
    return replace(
        work,
        traffic=work.traffic * passes,
        routed_traffic=work.routed_traffic * passes,
        scores=work.scores + alone * (rates.dequantisation_passes - 1) * added.dequantised + adapter_passes * added.adapters,
        layers=work.layers * (1 + alone * rates.adapter_launches * added.adapters_of_a_layer),
        optimizer=work.optimizer * rates.update_passes**added.in_pytorch + rates.step_overhead_s,
    )
