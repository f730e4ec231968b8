"""Memory of training for each parameter, element and device: the figures that are conventions, not arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class FineTuningFootprint:
    """What fine-tuning's software keeps beyond the tensors that the arithmetic needs. Mappings are by kernel fusion.

    Attributes
    ----------
    norm_bytes : mapping of str to float
        Kept for the backward pass by a norm, for one of its elements [B].
    gated_tensors : mapping of str to float
        Inner tensors kept by a gated feed-forward: gate, activation, up-projection [1].
    logit_bytes : mapping of str to float
        Kept by the loss for one entry of the vocabulary and one token [B]; 0: the logits are never whole.
    sharded_logit_bytes : float
        The most of these where FSDP computes in its own mixed precision [B].
    chunk_bytes : float
        Kept by a loss that never holds the logits, for one element of the hidden size and one token [B].
    quantised_input_bytes : float
        Kept by a product with a 4-bit weight for one element of its input [B].
    sharded_input_copies : float
        Copies of a layer's input that FSDP keeps beside adapters [1].
    update_copies : mapping of str to float
        Temporary copies of the trained parameters while the optimizer updates them, by optimizer [1].
    paged : frozenset of str
        Optimizers whose moments go to the host's memory where the device has no room.
    reserve_bytes, fragmentation_share, filled_share : float
        As the `Footprint`'s, of today's software [B, 1, 1].
    """

    norm_bytes: Mapping[str, float] = field(hash=False)
    gated_tensors: Mapping[str, float] = field(hash=False)
    logit_bytes: Mapping[str, float] = field(hash=False)
    sharded_logit_bytes: float
    chunk_bytes: float
    quantised_input_bytes: float
    sharded_input_copies: float
    update_copies: Mapping[str, float] = field(hash=False)
    paged: frozenset[str]
    reserve_bytes: float
    fragmentation_share: float
    filled_share: float


@dataclass(frozen=True, slots=True)
class Footprint:
    """Memory of each parameter and element, and of the device itself. Mappings are by precision or by optimizer.

    Attributes
    ----------
    moment_bytes : mapping of str to float
        Optimizer state of a trained parameter, weights and gradients apart [B].
    narrow_moment_bytes : mapping of str to float
        The same where the states are kept in bf16 [B].
    master_bytes : float
        fp32 copy of a narrower weight [B].
    gradient_bytes : mapping of str to float
        A gradient as micro-batches are summed in it [B].
    quantised_bytes : mapping of str to float
        An element of an 8- or 4-bit copy with its share of the scales [B]; precisions without such a copy are absent.
    nf4_bytes : float
        A weight of QLoRA's frozen base [B].
    logit_bytes, sharded_logit_bytes : float
        What the loss stores for one entry of the vocabulary and one token, the second where parameters are sharded (FSDP) [B].
    offloads_checkpoints : bool
        Whether layers' inputs go to the host's memory under full recomputation.
    reserve_bytes : float
        What a device holds before the first tensor [B].
    fragmentation_share : float
        Memory that the allocator holds and does not use, over the rest [1].
    filled_share : float
        Of the usable memory, what jobs fill that can choose [1].
    finetuning : FineTuningFootprint
        What fine-tuning's software keeps besides.
    """

    moment_bytes: Mapping[str, float] = field(hash=False)
    narrow_moment_bytes: Mapping[str, float] = field(hash=False)
    master_bytes: float
    gradient_bytes: Mapping[str, float] = field(hash=False)
    quantised_bytes: Mapping[str, float] = field(hash=False)
    nf4_bytes: float
    logit_bytes: float
    sharded_logit_bytes: float
    offloads_checkpoints: bool
    reserve_bytes: float
    fragmentation_share: float
    filled_share: float
    finetuning: FineTuningFootprint
