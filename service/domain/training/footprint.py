"""Memory of training for each parameter, element and device: the figures that are conventions, not arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Footprint:
    """Memory of each parameter and element, and of the device itself. Mappings are by precision or by optimizer.

    Attributes
    ----------
    moment_bytes : mapping of str to float
        Optimizer state of a trained parameter, weights and gradients apart [B].
    master_bytes : float
        fp32 copy of a narrower weight [B].
    gradient_bytes : mapping of str to float
        A gradient as micro-batches are summed in it [B].
    quantised_bytes : mapping of str to float
        An element of an 8- or 4-bit copy with its share of the scales [B]; precisions without such a copy are absent.
    nf4_bytes : float
        A weight of QLoRA's frozen base [B].
    logit_bytes : float
        What the loss stores for one entry of the vocabulary and one token [B].
    reserve_bytes : float
        What a device holds before the first tensor [B].
    fragmentation_share : float
        Memory that the allocator holds and does not use, over the rest [1].
    """

    moment_bytes: Mapping[str, float] = field(hash=False)
    master_bytes: float
    gradient_bytes: Mapping[str, float] = field(hash=False)
    quantised_bytes: Mapping[str, float] = field(hash=False)
    nf4_bytes: float
    logit_bytes: float
    reserve_bytes: float
    fragmentation_share: float
