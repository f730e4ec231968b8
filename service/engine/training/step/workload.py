"""What every part of a step's work is computed from: the job on its machine, and how often its weights are passed over."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from service.domain.training.hardware import Accelerator
from service.domain.training.model import GenericNetwork, Model
from service.domain.training.run import FROZEN_BASE, RECOMPUTES, Cluster, Helpers, Training
from service.engine.training.dtypes import FULL_WIDTH
from service.engine.training.flops import ForwardFlops, TrainingFlops, auxiliary_networks, forward_flops, recomputed_flops, training_flops
from service.engine.training.layouts import Layouts, layer_count, micro_batches
from service.engine.training.memory import LocalWeights, local_parameters
from service.engine.training.parameters import count_parameters

Floats = NDArray[np.float64]

SIXTEEN_BIT = ("bf16", "fp16")
FULL = RECOMPUTES.index("full")
SELECTIVE = RECOMPUTES.index("selective")


def peak_flops(accelerator: Accelerator, precision: str) -> float:
    """Dense peak in FLOP/s for the precision. KeyError where the accelerator has none (checked before the engine is called)."""
    return accelerator.peak_tflops[precision] * 1e12


def sixteen_bit_peak(accelerator: Accelerator, precision: str) -> float:
    """Dense peak in FLOP/s of work that stays at 16 bit when weights are multiplied in fewer: attention's core and the output head."""
    if precision in (*FULL_WIDTH, *SIXTEEN_BIT):
        return peak_flops(accelerator, precision)
    peaks = accelerator.peak_tflops
    return 1e12 * next((peaks[name] for name in SIXTEEN_BIT if name in peaks), peaks[precision])


@dataclass(frozen=True, slots=True)
class Workload:
    """What every part of a step's work on one network is computed from; helpers beside it are jobs of their own.

    `tokens` (or samples) of one micro-batch on one context rank; `layers` of the fullest pipeline stage. `forward_passes`: how often
    a step's tokens go through the network, recomputation and sampled text apart; `backward_passes`: how often back;
    `again`: forward passes that full recomputation adds. `micro_batches` of a step on each data rank. `local`: weights of the fullest
    stage on one tensor rank, met by every token and of experts. `internode_gbit_per_s`: the cluster's, or a column of those that it
    may have.
    """

    model: Model
    training: Training
    cluster: Cluster
    layouts: Layouts
    total: TrainingFlops
    forward: ForwardFlops
    forward_passes: float
    backward_passes: float
    recompute_passes: Floats
    micro_batches: Floats
    tokens: Floats
    layers: Floats
    local: LocalWeights
    internode_gbit_per_s: Floats | float

    @property
    def network_bytes_per_s(self) -> Floats | float:
        """Of one accelerator in one direction; infinite where nobody publishes it."""
        rate = self.internode_gbit_per_s / 8 * 1e9
        return np.where(rate > 0, rate, np.inf) if isinstance(rate, np.ndarray) else rate or math.inf

    @property
    def bandwidth(self) -> float:
        """Bytes a second of the accelerator's memory."""
        return self.cluster.accelerator.memory_bandwidth_gb_per_s * 1e9

    @property
    def peak(self) -> float:
        return peak_flops(self.cluster.accelerator, self.training.precision)

    @property
    def zeros(self) -> Floats:
        return np.zeros(self.layouts.tensor.shape)

    def stage_flops(self, per_token: Floats | float) -> Floats:
        """FLOPs of one micro-batch on one device of the fullest stage, of the layers' work that costs `per_token`."""
        flops: Floats = per_token * self.tokens * self.layers / (layer_count(self.model) * self.layouts.tensor)
        return flops


def trained_workload(model: Model, training: Training, cluster: Cluster, layouts: Layouts) -> Workload:
    """The trained network's part of a step. RL scores what was sampled, then trains on it `update_epochs` times."""
    alone = training if training.helpers == Helpers() else replace(training, helpers=Helpers())
    updates = training.update_epochs if training.method == "rl" else 1.0
    return Workload(
        model=model,
        training=alone,
        cluster=cluster,
        layouts=layouts,
        total=training_flops(model, alone),
        forward=forward_flops(model, alone),
        forward_passes=1.0 + updates if training.method == "rl" else 1.0,
        backward_passes=updates,
        recompute_passes=np.where(layouts.recompute == FULL, updates, 0.0),
        micro_batches=micro_batches(training, layouts),
        tokens=layouts.micro_batch * training.seq_len / layouts.context,
        layers=_stage_layers(model, layouts),
        local=local_parameters(model, layouts),
        internode_gbit_per_s=cluster.internode_gbit_per_s,
    )


def auxiliary_workloads(model: Model, training: Training, cluster: Cluster, layouts: Layouts) -> list[Workload]:
    """One forward pass of every network run beside: teacher, reward model, reference."""
    helpers = auxiliary_networks(model, training)
    if not helpers:
        return []
    plain = replace(training, method="pretrain", helpers=Helpers())
    kept = replace(layouts, recompute=np.zeros_like(layouts.recompute))
    return [_helper_job(helper, plain, cluster, kept) for helper in helpers]


def _helper_job(helper: Model, plain: Training, cluster: Cluster, layouts: Layouts) -> Workload:
    forward = forward_flops(helper, plain)
    return Workload(
        model=helper,
        training=plain,
        cluster=cluster,
        layouts=layouts,
        total=TrainingFlops(forward=forward.trained + forward.frozen, backward=0.0, attention=forward.attention),
        forward=forward,
        forward_passes=1.0,
        backward_passes=0.0,
        recompute_passes=np.zeros(layouts.tensor.shape),
        micro_batches=micro_batches(plain, layouts),
        tokens=layouts.micro_batch * plain.seq_len / layouts.context,
        layers=_stage_layers(helper, layouts),
        local=local_parameters(helper, layouts),
        internode_gbit_per_s=cluster.internode_gbit_per_s,
    )


def _stage_layers(model: Model, layouts: Layouts) -> Floats:
    """Layers of the fullest stage, in whole chunks of its virtual stages."""
    layers: Floats = np.ceil(layer_count(model) / (layouts.pipeline * layouts.virtual_pipeline)) * layouts.virtual_pipeline
    return layers


def weight_passes(workload: Workload) -> Floats:
    """Passes over the layers' weights: each backward pass is two of them, one where the weights are frozen."""
    return _kept_passes(workload) + workload.recompute_passes


def _kept_passes(workload: Workload) -> float:
    """Passes over the weights, recomputation apart."""
    return workload.forward_passes + workload.backward_passes * (1 if workload.training.method in FROZEN_BASE else 2)


def collective_passes(workload: Workload) -> Floats:
    """Passes, recomputation included, in which a layer's exchanges run, as many forward as backward."""
    return workload.forward_passes + workload.recompute_passes + workload.backward_passes


def layer_passes(workload: Workload) -> Floats:
    """How often a layer's kernels run, in units of one forward and one backward pass, the backward being two thirds."""
    return (workload.forward_passes + workload.recompute_passes + 2 * workload.backward_passes) / 3


def head_flops(workload: Workload) -> float:
    """FLOPs a token of the output head in a step: it is behind the last checkpoint and never runs again."""
    if isinstance(workload.model, GenericNetwork):
        return 0.0
    ratio = workload.training.decoder_seq_len / workload.training.seq_len if workload.model.decoder_layers else 1.0
    return 2 * ratio * count_parameters(workload.model).head_multiplied * _kept_passes(workload)


def executed_flops(workload: Workload) -> Floats:
    """FLOPs a token as the machine executes them, recomputation included, sampled text apart."""
    again = np.array(recomputed_flops(workload.model, workload.training))[workload.layouts.recompute]
    executed: Floats = workload.total.total - workload.total.generation + again
    return executed


def recomputed_attention_flops(workload: Workload, forward: ForwardFlops) -> Floats:
    """FLOPs a token of attention's core that is recomputed, a forward pass being `forward`; with flash attention selective repeats none."""
    core = workload.backward_passes * forward.attention
    return np.array([0.0, 0.0 if workload.training.flash_attention else core, core])[workload.layouts.recompute]
