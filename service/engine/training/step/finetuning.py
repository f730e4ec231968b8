"""What fine-tuning's software adds to a step: adapters, dequantisation, operations that are not fused, and the trainer's own time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from service.domain.training.model import GenericNetwork
from service.domain.training.run import FROZEN_BASE, KernelFusion
from service.engine.training.adapters import adapter_parameters, adapters_of_a_layer
from service.engine.training.dtypes import element_bytes
from service.engine.training.layouts import layer_count
from service.engine.training.memory.finetuning import updates_in_pytorch
from service.engine.training.step.memory_traffic import dequantisation_seconds
from service.engine.training.step.workload import Floats, Workload, layer_passes

# Where it is not known whether kernels are fused, halfway.
FUSED_SHARE: Mapping[KernelFusion | None, float] = {None: 0.5, "none": 0.0, "fused": 1.0, "fused_linear_cross_entropy": 1.0}


@dataclass(frozen=True)
class FineTuningWork:
    """Work of one micro-batch on one device that fine-tuning adds. Every field: (layouts,) float array.

    Parameters
    ----------
    adapters
        Inputs and outputs of adapters over the memory bus, each read and written once [s].
    adapters_of_a_layer
        Adapters that a token meets in a layer [1].
    dequantised
        4-bit weights over the memory bus [s].
    fused
        1 where kernels are fused, 0 where they are not, between where that is not known.
    in_pytorch
        1 where PyTorch's own optimizer updates, else 0.
    """

    adapters: Floats
    adapters_of_a_layer: Floats
    dequantised: Floats
    fused: Floats
    in_pytorch: Floats


def finetuning_work(workload: Workload) -> FineTuningWork:
    """What fine-tuning adds to a micro-batch.

    Returns
    -------
    FineTuningWork
        (layouts,) columns.
    """
    model, training = workload.model, workload.training
    nothing = workload.zeros
    fused = nothing + FUSED_SHARE[training.kernel_fusion]
    in_pytorch = nothing + updates_in_pytorch(workload.layouts)
    if isinstance(model, GenericNetwork) or training.method not in FROZEN_BASE:
        return FineTuningWork(nothing, nothing, nothing, fused, in_pytorch)
    # An adapter has `rank` weights for each of its inputs and outputs.
    ends = adapter_parameters(model, training, visited=True) / max(training.lora_rank, 1)
    share = workload.layers / (layer_count(model) * workload.layouts.tensor)
    moved = 2 * element_bytes(training) * ends * workload.tokens * 3 * layer_passes(workload)
    return FineTuningWork(
        adapters=moved * share / workload.bandwidth,
        adapters_of_a_layer=nothing + adapters_of_a_layer(model, training),
        dequantised=dequantisation_seconds(workload),
        fused=fused,
        in_pytorch=in_pytorch,
    )
