"""What training keeps in memory for every parameter, element and device: the figures that are conventions, not arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes a parameter or an element, and what a device holds beside them. Mappings go by precision or by optimizer.

    `moment_bytes`: optimizer state a trained parameter, beside weights and gradients; `master_bytes`: the fp32 copy of narrower weights.
    `gradient_bytes`: a gradient as micro-batches are summed up in it.
    `quantised_bytes`: an element of an 8- or 4-bit copy with its share of the scales; precisions without one are not in it.
    `nf4_bytes`: a weight of QLoRA's frozen base. `logit_bytes`: all that the loss keeps for one entry of the vocabulary and one token.
    `reserve_bytes`: what a device holds before the first tensor. `fragmentation_share`: held by the allocator and not used, over the rest.
    """

    moment_bytes: Mapping[str, float] = field(hash=False)
    master_bytes: float
    gradient_bytes: Mapping[str, float] = field(hash=False)
    quantised_bytes: Mapping[str, float] = field(hash=False)
    nf4_bytes: float
    logit_bytes: float
    reserve_bytes: float
    fragmentation_share: float
