"""Weights, gradients and optimizer states of a pipeline stage, by what they go with on it.

After Rajbhandari et al. 2020 (ZeRO, arXiv 1910.02054, section 3); adapters after Hu et al. 2021 (arXiv 2106.09685).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from service.domain.training.model import Transformer
from service.domain.training.run import FROZEN_BASE, Training
from service.engine.training.adapters import expert_adapter_parameters, shared_adapter_parameters
from service.engine.training.dtypes import element_bytes, frozen_bytes, gradient_bytes, optimizer_bytes, weight_bytes
from service.engine.training.layouts import Layouts, layer_count
from service.engine.training.parameters import ParameterCounts
from service.engine.training.sharding import LocalWeights, zero_shares

Floats = NDArray[np.float64]
# Bytes that go with one of each quantity of a stage, by the names of `PipelineStage`'s fields; `once` with the stage itself.
BytesPerUnit = dict[str, Floats]


def model_state_bytes(model: Transformer, counts: ParameterCounts, training: Training, layouts: Layouts) -> dict[str, BytesPerUnit]:
    """Weights, gradients and optimizer states of a stage, sharded by the ZeRO stage over the data and context ranks.

    Returns
    -------
    dict of str to BytesPerUnit
        By part [B].
    """
    shares = zero_shares(model, layouts)
    if training.method in FROZEN_BASE:
        return adapter_states(model, counts, training, shares)
    return {
        "weights": _of_weights(model, weight_bytes(training), shares[3]),
        "gradients": _of_weights(model, gradient_bytes(training, layouts), shares[2]),
        "optimizer": _of_weights(model, optimizer_bytes(training), shares[1]),
    }


def adapter_states(
    model: Transformer, counts: ParameterCounts, training: Training, shares: Mapping[int, LocalWeights]
) -> dict[str, BytesPerUnit]:
    """Frozen weights, and adapters (16 bit, fp32 master) with gradients of their own width and optimizer states.

    Returns
    -------
    dict of str to BytesPerUnit
        By part [B].
    """
    weights = _of_adapters(model, counts, training, element_bytes(training), shares[3])
    base = frozen_weights(training, shares[3])
    return {
        "weights": {**base, "layers": weights["layers"], "routed": base["routed"] + weights["routed"]},
        "gradients": _of_adapters(model, counts, training, element_bytes(training), shares[2]),
        "optimizer": _of_adapters(model, counts, training, optimizer_bytes(training), shares[1]),
    }


def frozen_weights(training: Training, share: LocalWeights) -> BytesPerUnit:
    """Frozen base of LoRA and QLoRA. QLoRA leaves embeddings and head in 16 bit and quantises the layers' matrices alone.

    Returns
    -------
    BytesPerUnit
        [B].
    """
    dense, experts = share
    if training.method == "lora":
        return {"dense": frozen_bytes(training) * dense, "routed": frozen_bytes(training) * experts}
    quantised = training.footprint.nf4_bytes
    return {"dense": quantised * dense, "routed": quantised * experts, "tables": (2.0 - quantised) * dense}


def _of_adapters(
    model: Transformer, counts: ParameterCounts, training: Training, width: Floats | float, share: LocalWeights
) -> BytesPerUnit:
    """Bytes of adapters, which go with the layers and, for experts, with the experts' weights."""
    dense, experts = share
    number = model.experts.experts * expert_adapter_parameters(model, training) if model.experts else 0.0
    a_weight = number / (counts.expert_stored or 1.0)
    a_layer = shared_adapter_parameters(model, training) / layer_count(model)
    return {"layers": a_layer * width * dense, "routed": a_weight * width * experts}


def _of_weights(model: Transformer, width: Floats | float, share: LocalWeights) -> BytesPerUnit:
    dense, experts = share
    return {"dense": width * dense, "routed": width * experts} if model.experts else {"dense": width * dense}
