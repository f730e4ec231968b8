"""Inputs of every part of a step's work: the network on its machine, and the passes over its weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from service.domain.training.hardware import SIXTEEN_BIT, Accelerator
from service.domain.training.model import GenericNetwork, Model
from service.domain.training.run import FROZEN_BASE, RECOMPUTES, AuxiliaryModels, Cluster, Training
from service.engine.training.dtypes import FULL_WIDTH
from service.engine.training.flops import ForwardFlops, TrainingFlops, auxiliary_networks, forward_flops, recomputed_flops, training_flops
from service.engine.training.layouts import Layouts, auxiliary_layouts, by_option, layer_count, micro_batches
from service.engine.training.parameters import count_parameters
from service.engine.training.sharding import LocalWeights, local_parameters

Floats = NDArray[np.float64]

FULL = RECOMPUTES.index("full")
SELECTIVE = RECOMPUTES.index("selective")


def peak_flops(accelerator: Accelerator, precision: str) -> float:
    """Dense peak of an accelerator.

    Parameters
    ----------
    accelerator : Accelerator
        Data sheet.
    precision : str
        One of its precisions; another is a KeyError.

    Returns
    -------
    float
        [FLOP/s].
    """
    return accelerator.peak_tflops[precision] * 1e12


def sixteen_bit_peak(accelerator: Accelerator, precision: str) -> float:
    """Dense peak of work that stays at 16 bit where weights are multiplied in fewer: attention's core and the output head.

    Parameters
    ----------
    accelerator : Accelerator
        Data sheet.
    precision : str
        Precision of the weights.

    Returns
    -------
    float
        [FLOP/s].
    """
    if precision in (*FULL_WIDTH, *SIXTEEN_BIT):
        return peak_flops(accelerator, precision)
    peaks = accelerator.peak_tflops
    return 1e12 * next((peaks[name] for name in SIXTEEN_BIT if name in peaks), peaks[precision])


@dataclass(frozen=True, slots=True)
class Workload:
    """Inputs of a step's work on one network; an auxiliary network has a workload of its own.

    Attributes
    ----------
    model, training, cluster, layouts
        The network, how it is trained, on what, and how it is divided.
    total, forward : TrainingFlops, ForwardFlops
        Arithmetic of one token [FLOP].
    forward_passes, backward_passes : float
        Passes of a step's tokens through the network, recomputation and sampled text apart [1].
    recompute_passes : (layouts,) float array
        Forward passes that full recomputation adds [1].
    micro_batches : (layouts,) float array
        Micro-batches of each data rank in a step [1].
    tokens : (layouts,) float array
        Tokens (or samples) of one micro-batch on one context rank [1].
    layers : (layouts,) float array
        Layers of the fullest pipeline stage [1].
    local : tuple of 2 (layouts,) float arrays
        Weights of that stage on one tensor rank: met by every token, and of experts [1].
    internode_gbit_per_s : float or (networks, 1) float array
        Network of one accelerator, one direction [Gbit/s].
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
        """Network of one accelerator in one direction; infinite where it is not published [B/s]."""
        rate = self.internode_gbit_per_s / 8 * 1e9
        return np.where(rate > 0, rate, np.inf) if isinstance(rate, np.ndarray) else rate or math.inf

    @property
    def bandwidth(self) -> float:
        """Memory bandwidth of the accelerator [B/s]."""
        return self.cluster.accelerator.memory_bandwidth_gb_per_s * 1e9

    @property
    def peak(self) -> float:
        """Dense peak at the training's precision [FLOP/s]."""
        return peak_flops(self.cluster.accelerator, self.training.precision)

    @property
    def zeros(self) -> Floats:
        """0 for each layout."""
        return np.zeros(self.layouts.tensor.shape)

    def stage_flops(self, per_token: Floats | float) -> Floats:
        """FLOPs of one micro-batch on one device of the fullest stage.

        Parameters
        ----------
        per_token : float or (layouts,) float array
            Work of all layers for one token [FLOP].

        Returns
        -------
        (layouts,) float array
            [FLOP].
        """
        flops: Floats = per_token * self.tokens * self.layers / (layer_count(self.model) * self.layouts.tensor)
        return flops


def trained_workload(model: Model, training: Training, cluster: Cluster, layouts: Layouts) -> Workload:
    """The trained network's part of a step. RL scores what is sampled, then trains on it `update_epochs` times."""
    alone = training if training.auxiliary_models == AuxiliaryModels() else replace(training, auxiliary_models=AuxiliaryModels())
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
    """One forward pass of every auxiliary network: teacher, reward model, reference."""
    networks = auxiliary_networks(model, training)
    if not networks:
        return []
    plain = replace(training, method="pretrain", auxiliary_models=AuxiliaryModels())
    kept = replace(auxiliary_layouts(model, layouts), recompute=np.zeros_like(layouts.recompute))
    return [_auxiliary_workload(network, plain, cluster, kept) for network in networks]


def _auxiliary_workload(network: Model, plain: Training, cluster: Cluster, layouts: Layouts) -> Workload:
    workload = trained_workload(network, plain, cluster, layouts)
    forward = workload.forward
    total = TrainingFlops(forward=forward.trained + forward.frozen, backward=0.0, attention=forward.attention)
    return replace(workload, total=total, backward_passes=0.0)


def has_fused_experts(workload: Workload) -> bool:
    """Whether the network's experts run in fused kernels: those there are for gated experts without biases."""
    model = workload.model
    if isinstance(model, GenericNetwork) or model.experts is None:
        return False
    return workload.training.fused_experts and model.gated_ffn and not model.biases


def _stage_layers(model: Model, layouts: Layouts) -> Floats:
    """Layers of the fullest stage, in whole chunks of its virtual stages."""
    layers: Floats = np.ceil(layer_count(model) / (layouts.pipeline * layouts.virtual_pipeline)) * layouts.virtual_pipeline
    return layers


def weight_passes(workload: Workload) -> Floats:
    """Passes over the layers' weights: each backward pass is two of them, one where the weights are frozen.

    Returns
    -------
    (layouts,) float array
        [1].
    """
    return _kept_passes(workload) + workload.recompute_passes


def _kept_passes(workload: Workload) -> float:
    """Passes over the weights, recomputation apart."""
    return workload.forward_passes + workload.backward_passes * (1 if workload.training.method in FROZEN_BASE else 2)


def collective_passes(workload: Workload) -> Floats:
    """Passes, recomputation included, in which a layer's exchanges run, as many forward as backward.

    Returns
    -------
    (layouts,) float array
        [1].
    """
    return workload.forward_passes + workload.recompute_passes + workload.backward_passes


def layer_passes(workload: Workload) -> Floats:
    """Passes of a layer's kernels, in units of one forward and one backward pass, the backward being two thirds.

    Returns
    -------
    (layouts,) float array
        [1].
    """
    return (workload.forward_passes + workload.recompute_passes + 2 * workload.backward_passes) / 3


def head_flops(workload: Workload) -> float:
    """FLOPs of the output head in a step: it is behind the last checkpoint and is not repeated.

    Returns
    -------
    float
        [FLOP per token].
    """
    if isinstance(workload.model, GenericNetwork):
        return 0.0
    ratio = workload.training.decoder_seq_len / workload.training.seq_len if workload.model.decoder_layers else 1.0
    return 2 * ratio * count_parameters(workload.model).head_multiplied * _kept_passes(workload)


def executed_flops(workload: Workload) -> Floats:
    """FLOPs that the machine executes, recomputation included, sampled text apart.

    Returns
    -------
    (layouts,) float array
        [FLOP per token].
    """
    again = by_option(recomputed_flops(workload.model, workload.training), workload.layouts.recompute)
    executed: Floats = workload.total.total - workload.total.generation + again
    return executed


def recomputed_attention_flops(workload: Workload, forward: ForwardFlops) -> Floats:
    """FLOPs of attention's core that recomputation repeats; with flash attention selective recomputation repeats none.

    Parameters
    ----------
    workload : Workload
        Passes and layouts.
    forward : ForwardFlops
        One forward pass [FLOP per token].

    Returns
    -------
    (layouts,) float array
        [FLOP per token].
    """
    core = workload.backward_passes * forward.attention
    return by_option((0.0, 0.0 if workload.training.flash_attention else core, core), workload.layouts.recompute)
