"""Matrix work of one micro-batch: the layers' products, attention's core and the output head, at the data sheet's rates."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from service.domain.training.model import Experts, GenericNetwork, LatentAttention, Model, Transformer
from service.domain.training.run import FROZEN_BASE
from service.engine.training.dtypes import element_bytes, matmul_input_bytes
from service.engine.training.flops import forward_flops
from service.engine.training.layouts import layer_count
from service.engine.training.memory.activations import attention_output_width
from service.engine.training.parameters import block_shares, count_parameters, expert_layer_count, feed_forward_parameters
from service.engine.training.step.workload import (
    Floats,
    Workload,
    executed_flops,
    head_flops,
    recomputed_attention_flops,
    sixteen_bit_peak,
    weight_passes,
)

# Share of layers that have it, rows, inputs, outputs, weight matrices side by side.
LayerProduct = tuple[float, Floats, Floats | float, Floats | float, Floats | float]
# Flash attention's backward pass computes the scores once more: five products where the forward pass has two
# (Dao 2023, arXiv 2307.08691, section 3.1).
FLASH_BACKWARD = 2.5
# Rows of an output tile of large products (NVIDIA, Matrix Multiplication Background User's Guide, section 3.1). Each expert's rows
# are rounded up to whole tiles: half a tile more on average.
TILE_ROWS = 128


def matmul_seconds(workload: Workload) -> tuple[Floats, Floats]:
    """Layers' matrix work at the dense peak; attention's core, the head and sampled text apart.

    Returns
    -------
    tuple of 2 (layouts,) float arrays
        Of every token, and of the experts that it visits [s].
    """
    attention = workload.total.attention + recomputed_attention_flops(workload, workload.forward)
    seconds = workload.stage_flops(executed_flops(workload) - attention - head_flops(workload)) / workload.peak
    routed = seconds * _routed_part(workload.model)
    return seconds - routed, routed * _tile_waste(workload)


def _tile_waste(workload: Workload) -> Floats:
    """Factor by which grouped products take longer because each expert's rows fill whole tiles."""
    if isinstance(workload.model, GenericNetwork) or workload.model.experts is None:
        return workload.zeros
    waste: Floats = 1 + TILE_ROWS / 2 * held_experts(workload) / _routed_rows(workload, workload.model.experts)
    return waste


def held_experts(workload: Workload) -> Floats:
    """Experts of a layer that one device holds, whole or a slice of each.

    Returns
    -------
    (layouts,) float array
        [1].
    """
    if isinstance(workload.model, GenericNetwork) or workload.model.experts is None:
        return workload.zeros
    held: Floats = workload.model.experts.experts / workload.layouts.expert
    return held


def _routed_rows(workload: Workload, experts: Experts) -> Floats:
    """Rows that come to the experts of one device: as many visits as its own tokens make, and those of the ranks that share its slices."""
    return workload.tokens * experts.experts_per_token * workload.layouts.expert_tensor / workload.layouts.tensor


def _routed_part(model: Model) -> float:
    """Share of the layers' multiplied weights that is in the experts that a token visits."""
    if isinstance(model, GenericNetwork) or model.experts is None:
        return 0.0
    counts = count_parameters(model)
    one = feed_forward_parameters(model, model.experts.ffn_hidden_size)
    visited = expert_layer_count(model) * model.experts.experts_per_token * one * counts.active_scale
    return visited / (counts.multiplied - counts.head_multiplied)


def routed_layers(model: Model) -> float:
    """Share of the layers that route their tokens to experts.

    Returns
    -------
    float
        [1].
    """
    return 0.0 if isinstance(model, GenericNetwork) else expert_layer_count(model) / layer_count(model)


def head_seconds(workload: Workload) -> Floats:
    """The output head at the 16-bit peak: recipes in fewer bits leave it there.

    Returns
    -------
    (layouts,) float array
        [s].

    References
    ----------
    Micikevicius et al. 2022 (arXiv 2209.05433).
    """
    rate = sixteen_bit_peak(workload.cluster.accelerator, workload.training.precision)
    return head_flops(workload) * workload.tokens / workload.layouts.tensor / rate


@dataclass(frozen=True, slots=True)
class ProductCosts:
    """What narrow products cost beyond their arithmetic.

    Attributes
    ----------
    operands : (layouts,) float array
        Operands over the memory bus [s].
    reductions : (layouts,) float array
        Summed depth of the reductions, weighed by the precision's rate over the 16-bit rate [elements].
    """

    operands: Floats
    reductions: Floats


def product_costs(workload: Workload) -> ProductCosts:
    """Operand traffic and reduction depth of a stage's products, forward, for the activations' gradient and for the weights'.

    A product of an m x k and a k x n matrix moves mk + kn + mn elements. Its last tiles leave part of the device idle for about as long as
    one tile takes, which is proportional to k: narrow products are slow because of both.

    Returns
    -------
    ProductCosts
        Of one micro-batch.
    """
    if isinstance(workload.model, GenericNetwork):
        return ProductCosts(workload.zeros, workload.zeros)
    times, forward, activations = weight_passes(workload), workload.forward_passes + workload.recompute_passes, workload.backward_passes
    weights = 0.0 if workload.training.method in FROZEN_BASE else activations
    element = matmul_input_bytes(workload.training)
    width = element_bytes(workload.training) / element
    products = _layer_products(workload)
    elements = sum(share * (rows * (inputs + outputs) + copies * inputs * outputs) for share, rows, inputs, outputs, copies in products)
    depth = forward * sum(share * inputs for share, _, inputs, _, _ in products)
    depth = depth + activations * sum(share * outputs for share, _, _, outputs, _ in products)
    depth = depth + weights * sum(share * rows / copies for share, rows, _, _, copies in products)
    return ProductCosts(times * elements * workload.layers * element / workload.bandwidth, depth * workload.layers / width)


def _layer_products(workload: Workload) -> list[LayerProduct]:
    """A layer's products on one device."""
    model = workload.model
    assert isinstance(model, Transformer)
    tensor, tokens, hidden = workload.layouts.tensor, workload.tokens, 1.0 * model.hidden_size
    shares = block_shares(model)
    share = shares.attention
    products: list[LayerProduct] = [(share, tokens, hidden * inputs, outputs / tensor, 1.0) for inputs, outputs in _attention_inputs(model)]
    products.append((share, tokens, attention_output_width(model) / tensor, hidden, 1.0))
    if mixer := model.state_space:
        products.append((shares.state_space, tokens, hidden, mixer.projected_size / tensor, 1.0))
        products.append((shares.state_space, tokens, mixer.inner_size / tensor, hidden, 1.0))
    routed = expert_layer_count(model) / model.layers
    gates = 2 if model.gated_ffn else 1
    if np.any(routed < shares.feed_forward):
        products += _feed_forward(shares.feed_forward - routed, tokens, hidden, model.ffn_hidden_size / tensor, gates, 1.0)
    if model.experts:
        products += _routed(routed, workload, model.experts, hidden, gates)
    return products


def _feed_forward(share: float, rows: Floats, hidden: float, inner: Floats, gates: int, copies: Floats | float) -> list[LayerProduct]:
    return [(share, rows, hidden, gates * inner, copies), (share, rows, inner, hidden, copies)]


def _routed(share: float, workload: Workload, experts: Experts, hidden: float, gates: int) -> list[LayerProduct]:
    """Experts on one device as one grouped product of the rows routed to it, and the shared experts."""
    tensor, tokens = workload.layouts.tensor, workload.tokens
    rows, inner = _routed_rows(workload, experts), experts.ffn_hidden_size / workload.layouts.expert_tensor
    products = _feed_forward(share, rows, hidden, inner, gates, held_experts(workload))
    if experts.shared_experts:
        width = experts.shared_experts * (experts.shared_ffn_hidden_size or experts.ffn_hidden_size)
        products += _feed_forward(share, tokens, hidden, width / tensor, gates, 1.0)
    return products


def _attention_inputs(model: Transformer) -> list[tuple[float, float]]:
    """(inputs as a share of the hidden size, outputs) of the projections before attention."""
    if model.latent is None:
        return [(1.0, model.head_dim * (model.attention_heads + 2.0 * model.kv_heads))]
    return _latent_inputs(model, model.latent)


def _latent_inputs(model: Transformer, latent: LatentAttention) -> list[tuple[float, float]]:
    """Down- and up-projections of multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, equations 9 to 19)."""
    heads, hidden = model.attention_heads, model.hidden_size
    query = 1.0 * heads * (latent.qk_nope_head_dim + latent.qk_rope_head_dim)
    key_value = 1.0 * heads * (latent.qk_nope_head_dim + latent.v_head_dim)
    rank = latent.q_lora_rank
    queries = [(1.0, float(rank)), (rank / hidden, query)] if rank else [(1.0, query)]
    return [*queries, (1.0, float(latent.kv_lora_rank + latent.qk_rope_head_dim)), (latent.kv_lora_rank / hidden, key_value)]


def attention_seconds(workload: Workload) -> Floats:
    """Scores and values at the 16-bit peak, as the kernels execute them.

    Flash attention leaves out the masked half of a causal square and repeats the scores in its backward pass.

    Returns
    -------
    (layouts,) float array
        [s].
    """
    training = replace(workload.training, count_full_attention=not workload.training.flash_attention)
    forward = forward_flops(workload.model, training)
    passed = workload.forward_passes + (FLASH_BACKWARD if training.flash_attention else 2.0) * workload.backward_passes
    executed = passed * forward.attention + recomputed_attention_flops(workload, forward)
    return workload.stage_flops(executed) / sixteen_bit_peak(workload.cluster.accelerator, training.precision)
