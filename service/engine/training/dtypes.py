"""Bytes of a weight, a gradient, an optimizer state and an activation, by precision and optimizer. The figures are the `Footprint`'s."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from service.domain.training.run import Training
from service.engine.training.layouts import Layouts

Floats = NDArray[np.float64]
FULL_WIDTH = ("fp32", "tf32")


def element_bytes(training: Training) -> float:
    """Size of one element of an activation.

    Returns
    -------
    float
        [B].
    """
    return 4.0 if training.precision in FULL_WIDTH else 2.0


def matmul_input_bytes(training: Training) -> float:
    """Size of one element that a matrix product keeps for its weight's gradient.

    8- and 4-bit recipes keep it quantised.

    Returns
    -------
    float
        [B].

    References
    ----------
    DeepSeek-V3 (arXiv 2412.19437), section 3.3.3; Transformer Engine does the same.
    """
    return training.footprint.quantised_bytes.get(training.precision, element_bytes(training))


def weight_bytes(training: Training) -> float:
    """Size of one weight as the arithmetic reads it; 8- and 4-bit recipes keep a 16-bit copy beside the quantised one.

    Returns
    -------
    float
        [B].
    """
    return element_bytes(training) + training.footprint.quantised_bytes.get(training.precision, 0.0)


def frozen_bytes(training: Training) -> float:
    """Size of one frozen weight: at the width of the arithmetic, which in 8 and 4 bits reads it by rows forward and by columns backward.

    Returns
    -------
    float
        [B].

    References
    ----------
    NVIDIA, Transformer Engine: 8-bit weights are kept with their transpose, and without a 16-bit copy where nothing updates them: MLPerf's
    Llama 2 70B LoRA runs on single accelerators of 180 GB.
    """
    quantised = training.footprint.quantised_bytes.get(training.precision)
    return 2 * quantised if quantised else element_bytes(training)


def gradient_bytes(training: Training, layouts: Layouts) -> Floats:
    """Size of one gradient.

    Megatron's mixed precision sums bf16 gradients in fp32: 18 bytes a parameter with weights and Adam's states. Fully sharded they are 16:
    16-bit weights and gradients and 12 of states in DeepSpeed, or 4 each of weights and gradients and 8 of states in FSDP. Fine-tuning is
    run in these two. Pure bf16 states come with gradients of their own width.

    Returns
    -------
    (layouts,) float array
        [B].

    References
    ----------
    ZeRO (arXiv 1910.02054), section 3.1; Zhao et al. 2023 (arXiv 2304.11277), section 4.4.
    """
    summed = training.footprint.gradient_bytes[training.precision]
    if training.method == "full_finetune" or training.states_dtype == "bf16":
        summed = element_bytes(training)
    by_stage: Floats = np.array([summed, summed, summed, element_bytes(training)])[layouts.zero_stage]
    return by_stage


def logit_entry_bytes(training: Training, layouts: Layouts) -> Floats:
    """What the loss holds for one entry of the vocabulary and one token, by its software: of the year, and sharded (FSDP) or not.

    Returns
    -------
    (layouts,) float array
        [B].
    """
    kept = training.footprint
    return np.where(layouts.zero_stage == 3, kept.sharded_logit_bytes, kept.logit_bytes)


def optimizer_bytes(training: Training) -> float:
    """Optimizer state of one trained parameter: moments, and the fp32 master copy of narrower weights; bf16 states have none.

    Returns
    -------
    float
        [B].
    """
    without_master = training.precision in FULL_WIDTH or _has_narrow_states(training)
    return moment_bytes(training) + (0.0 if without_master else training.footprint.master_bytes)


def moment_bytes(training: Training) -> float:
    """Moments of one trained parameter.

    Returns
    -------
    float
        [B].
    """
    kept = training.footprint.narrow_moment_bytes if _has_narrow_states(training) else training.footprint.moment_bytes
    return kept[training.optimizer]


def _has_narrow_states(training: Training) -> bool:
    """Whether the optimizer updates 16-bit weights and states."""
    return training.states_dtype == "bf16" and training.precision not in FULL_WIDTH
