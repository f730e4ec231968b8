"""Memory of fine-tuning at the moments of a step that may be its fullest.

One micro-batch is under way at a time, so logits, the layer that is recomputed and the optimizer's temporaries are never there together:

1. the end of the forward pass: every stored activation, and the logits;
2. the start of the backward pass: checkpoints, and all activations of the layer that is computed again;
3. its end: all gradients, and one layer's activations;
4. the update: gradients and the optimizer's temporaries.

Gradients are there in 1 and 2 where several micro-batches add up to a step. Parts that a moment does not have are 0. Left out: dropout
masks, and what a data loader or an evaluation holds.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from service.domain.training.model import Transformer
from service.domain.training.run import FROZEN_BASE, RECOMPUTES, KernelFusion, Training
from service.engine.training.adapters import has_adapter
from service.engine.training.dtypes import FULL_WIDTH, element_bytes, frozen_bytes, moment_bytes, optimizer_bytes
from service.engine.training.flops import predicted_tokens
from service.engine.training.layouts import Layouts, layer_count, micro_batches
from service.engine.training.memory.activations import (
    SCORE_BYTES,
    attention_output_width,
    feed_forward_elements,
    mixer_elements,
)
from service.engine.training.memory.model_states import BytesPerUnit, model_state_bytes
from service.engine.training.parameters import ParameterCounts, expert_layer_count
from service.engine.training.pipeline_stages import expert_ranks
from service.engine.training.sharding import data_ranks, zero_shares

Floats = NDArray[np.float64]
NONE = RECOMPUTES.index("none")
ATTENTION_INPUTS = ("attention", "q_proj", "k_proj", "v_proj", "q_a_proj", "kv_a_proj_with_mqa")
FEED_FORWARD_INPUTS = ("gate_proj", "up_proj")
NOTHING: BytesPerUnit = {"once": np.zeros(())}


def finetuning_phases(
    model: Transformer, counts: ParameterCounts, training: Training, layouts: Layouts
) -> tuple[Mapping[str, BytesPerUnit], ...]:
    """Parts at the end of the forward pass, at the start and the end of the backward pass, and while the optimizer updates.

    Returns
    -------
    tuple of mapping of str to BytesPerUnit
        By part [B].
    """
    states = model_state_bytes(model, counts, training, layouts)
    states["optimizer"] = {name: resident_share(training) * size for name, size in states["optimizer"].items()}
    adding_up = (micro_batches(training, layouts) > 1).astype(float)
    forward = states | {"gradients": {name: adding_up * size for name, size in states["gradients"].items()}}
    layer, kept = layer_bytes(model, training, layouts)
    stored = {"in_flight_layers": kept}
    one, two = (gathered_bytes(model, counts, training, layouts, layers) for layers in (1, 2))
    stored_to_the_loss = stored | {"head": _last_norm_bytes(model, training, layouts)}
    update = states | {"optimizer": _updated(model, training, layouts, states["optimizer"])}
    return (
        {**forward, "activations": stored_to_the_loss, "logits": _logits(model, training, layouts), "buffers": one},
        {**forward, "activations": stored | {"once": layer}, "logits": NOTHING, "buffers": two},
        {**states, "activations": {"once": layer}, "logits": NOTHING, "buffers": two},
        {**update, "activations": NOTHING, "logits": NOTHING, "buffers": NOTHING},
    )


def stated_fusion(training: Training) -> KernelFusion:
    """Fusion of kernels, none where the search has not chosen it."""
    return training.kernel_fusion or "none"


def resident_share(training: Training) -> float:
    """Share of an optimizer's states that has to be on the device: paged moments go to the host where there is no room.

    Returns
    -------
    float
        From 0 to 1 [1].

    References
    ----------
    Dettmers et al. 2023 (QLoRA, arXiv 2305.14314), section 3.
    """
    if training.optimizer not in training.footprint.finetuning.paged:
        return 1.0
    return 1 - moment_bytes(training) / optimizer_bytes(training)


def updates_in_pytorch(layouts: Layouts) -> NDArray[np.bool_]:
    """Whether PyTorch's own optimizer updates; DeepSpeed's and Megatron's, which shard states or split layers, do it in place."""
    alone = (data_ranks(layouts) == 1) & (layouts.tensor * layouts.pipeline == 1)
    found: NDArray[np.bool_] = (layouts.zero_stage == 3) | alone
    return found


def _updated(model: Transformer, training: Training, layouts: Layouts, states: BytesPerUnit) -> BytesPerUnit:
    """Optimizer states with the temporaries of an update, of which a frozen base's adapters have none worth counting."""
    if training.method in FROZEN_BASE:
        return states
    width = 2.0 if training.states_dtype == "bf16" and training.precision not in FULL_WIDTH else 4.0
    copied = np.where(updates_in_pytorch(layouts), width * training.footprint.finetuning.update_copies[training.optimizer], 0.0)
    dense, experts = zero_shares(model, layouts)[1]
    shares = {"dense": dense, "routed": experts}
    return {name: size + copied * shares[name] for name, size in states.items()}


def layer_bytes(model: Transformer, training: Training, layouts: Layouts) -> tuple[Floats, Floats]:
    """Activations of one layer and micro-batch: all of them, and those that are kept for the backward pass.

    Returns
    -------
    tuple of 2 (layouts,) float arrays
        [B].
    """
    tokens = layouts.micro_batch * training.seq_len / layouts.context
    split = tokens / layouts.tensor
    whole = split if training.sequence_parallel else tokens
    replicated, sharded = layer_activations(model, training)
    # FSDP hands each layer a copy of its input in its own precision, and most stay where adapters alone are trained.
    copies = training.footprint.finetuning.sharded_input_copies if training.method in FROZEN_BASE else 0.0
    copied = (layouts.zero_stage == 3) * (copies * element_bytes(training) * model.hidden_size)
    kept = whole * (replicated[layouts.recompute] + copied) + split * sharded[layouts.recompute]
    return whole * replicated[NONE] + split * sharded[NONE], kept


def layer_activations(model: Transformer, training: Training) -> tuple[Floats, Floats]:
    """Activations of one layer for one token as PyTorch's operations keep them, by recomputation in the order of `RECOMPUTES`.

    A product with a frozen weight keeps no input; one with an adapter, a trained or a 4-bit weight does. Selective keeps the inputs of
    norms, of attention's core and of the activation function, full the layer's own input.

    Parameters
    ----------
    model : Transformer
        Shape.
    training : Training
        Method, adapters, fusion.

    Returns
    -------
    tuple of 2 (3,) float arrays
        Held by every tensor rank unless sequence parallelism divides them, and divided over the tensor ranks [B per token].
    """
    element, hidden, kept = element_bytes(training), model.hidden_size, training.footprint.finetuning
    fusion = stated_fusion(training) if model.gated_ffn else "fused"
    inner, sent = feed_forward_elements(model)[1:]
    trained = training.method not in FROZEN_BASE
    quantised = kept.quantised_input_bytes if training.method == "qlora" else 0.0
    inputs = ATTENTION_INPUTS, FEED_FORWARD_INPUTS, ("down_proj",)
    to_attention, to_feed_forward, to_hidden = (max(element * (trained or has_adapter(training, names)), quantised) for names in inputs)
    norms = element / 2 * kept.norm_bytes[fusion] + element * (trained and fusion == "none")
    replicated = hidden * (2 * norms + to_attention + to_feed_forward)
    projected = mixer_elements(model)
    gates = kept.gated_tensors[fusion] if model.gated_ffn else 1.0
    split = element * projected + quantised * attention_output_width(model) + inner * (element * gates + to_hidden) + sent * to_feed_forward
    if not training.flash_attention:
        split += SCORE_BYTES / 2 * element * model.attention_heads * training.seq_len
    selective = element * (projected + inner * (2 if model.gated_ffn else 1))
    return np.array([replicated, element * 2 * hidden, element * hidden]), np.array([split, selective, 0.0])


def _last_norm_bytes(model: Transformer, training: Training, layouts: Layouts) -> Floats:
    """The last norm's input, kept in fp32 unless it is fused, and output."""
    tokens = layouts.micro_batch * training.seq_len / (layouts.context * (layouts.tensor if training.sequence_parallel else 1))
    return (3 if stated_fusion(training) == "none" else 2) * element_bytes(training) * model.hidden_size * tokens


def _logits(model: Transformer, training: Training, layouts: Layouts) -> BytesPerUnit:
    """What the loss keeps, which goes with the head."""
    kept = training.footprint.finetuning
    rows = predicted_tokens(model, training)
    fusion = stated_fusion(training)
    whole = kept.logit_bytes[fusion]
    entry = np.where(layouts.zero_stage == 3, min(whole, kept.sharded_logit_bytes), whole)
    chunk = kept.chunk_bytes * model.hidden_size if fusion == "fused_linear_cross_entropy" else 0.0
    return {"head": (entry * model.vocab_size + chunk) * rows * layouts.micro_batch / (layouts.tensor * layouts.context)}


def gathered_bytes(model: Transformer, counts: ParameterCounts, training: Training, layouts: Layouts, layers: int) -> BytesPerUnit:
    """Weights that ZeRO 3 has gathered, as wide as they are sent, and a 4-bit layer's largest matrix in 16 bit.

    FSDP gathers the unit of embedding and head, and a layer; two where the next is fetched while one is computed.

    Parameters
    ----------
    model : Transformer
        Shape.
    counts : ParameterCounts
        Its weights.
    training : Training
        Method and precision.
    layouts : Layouts
        Ranks and ZeRO stage.
    layers : int
        Layers at a time; with a second one the gradients of a layer wait to be reduced.

    Returns
    -------
    BytesPerUnit
        [B].

    References
    ----------
    Zhao et al. 2023 (arXiv 2304.11277), section 3.4; Dettmers et al. 2023 (QLoRA, arXiv 2305.14314), equation 5.
    """
    dense = (counts.total - counts.embedding - counts.head - counts.expert_stored) / layer_count(model) / layouts.tensor
    routed = counts.expert_stored / max(expert_layer_count(model), 1) / expert_ranks(layouts) if model.experts else 0.0
    element = element_bytes(training)
    width = training.footprint.nf4_bytes if training.method == "qlora" else frozen_bytes(training) if training.method == "lora" else element
    reduced = 0.0 if training.method in FROZEN_BASE or layers == 1 else element
    held = np.array([0.0, 0.0, reduced, layers * width + reduced])[layouts.zero_stage] * (dense + routed)
    if training.method == "qlora":
        held = held + element * model.hidden_size * _widest(model) / layouts.tensor
    return {"once": held, "tables": np.array([0.0, 0.0, 0.0, element])[layouts.zero_stage] / layouts.tensor}


def _widest(model: Transformer) -> float:
    """Outputs of a layer's largest matrix."""
    inner = model.experts.ffn_hidden_size if model.experts else model.ffn_hidden_size
    return float(max(inner, model.attention_heads * model.head_dim))
