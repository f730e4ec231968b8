"""Every part of a serving step, of a replica's memory and of its speed, against arithmetic by hand on a model of round numbers."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from service.domain.quantities import Range
from service.domain.serving.requirements import EngineLimits, MeanRequest, Replicas, ServingMachine, ServingRates, WeightFormat
from service.domain.training.model import Experts, StateSpace
from service.engine.training.inference.model import (
    CacheShape,
    ServedModel,
    ServedWeights,
    ServingSetup,
    TokenFlops,
    activation_memory,
    describe_served_model,
    largest_batch,
    memory_by_part,
    sequence_bytes,
    weight_memory,
)
from service.engine.training.inference.roofline import (
    decode_roofline_s,
    expert_exchange_s,
    prefill_s,
    replica_speed,
    tensor_exchange_s,
    time_step,
)
from tests.unit.engine.builders import DEEPSEEK_V3, LLAMA_3_8B, MIXTRAL, accelerator

EXACTLY = Range.exactly(1.0)
# Half of 1 TB/s, half of 200 and 100 TFLOP/s, half of 400 GB/s one way and of 50 GB/s beyond the node.
PART = accelerator(
    memory_bandwidth_gb_per_s=1000,
    usable_memory_bytes=80e9,
    peak_tflops=MappingProxyType({"bf16": 100.0, "fp8": 200.0}),
    link_gb_per_s=800,
    internode_gbit_per_s=400,
)
MEMORY, MULTIPLY, SIXTEEN_BIT, LINK, NETWORK = 5e11, 1e14, 5e13, 2e11, 2.5e10
RATES = ServingRates(
    "any", bandwidth_share=0.5, compute_share=0.5, routed_share=0.8, link_share=0.5, layer_s=1e-4, hop_s=1e-5, host_s=1e-3,
    spread=EXACTLY, routed_spread=EXACTLY, many_experts_spread=EXACTLY, source="",
)  # fmt: skip
LIMITS = EngineLimits(cache_share=0.9, reserve_bytes=2e9, max_batch=100, chunk_tokens=300, max_accelerators=64)
# One byte a cache element, two a matrix weight, four a table's.
STORED = WeightFormat("fp8", 8, 2.0, 1.0, 4.0, ("fp8",), "")
# 1,000 prompt tokens, a fifth of them cached, and 500 output tokens: one of these attends to 1,250 on average.
ASKED = MeanRequest(prompt_tokens=1000.0, output_tokens=500.0, cached_share=0.2)
DENSE = ServedModel(
    params=1.5e9, layers=10, hidden_size=1e6, inner_size=3e6, vocab_size=1000,
    weights=ServedWeights(dense=1.2e9, routed=0.0, embedding=1e8, head=2e8),
    flops=TokenFlops(matrices=2.4e9, routed=0.0, head=4e8, prefill=1e8, decode=1e6),
    cache=CacheShape(elements=4e5, parts=8, window=np.inf, global_share=1.0),
    experts=0.0, experts_per_token=0.0, expert_layers=0.0,
)  # fmt: skip
MIXTURE = ServedModel(
    params=3.3e9, layers=10, hidden_size=1e6, inner_size=3e6, vocab_size=1000,
    weights=ServedWeights(dense=1.2e8, routed=3.2e9, embedding=1e7, head=2e7),
    flops=TokenFlops(matrices=2.4e9, routed=1.6e9, head=4e7, prefill=1e7, decode=1e5),
    cache=CacheShape(elements=4e4, parts=8, window=np.inf, global_share=1.0),
    experts=256.0, experts_per_token=2.0, expert_layers=5.0,
)  # fmt: skip
# Two stages of two tensor ranks with six sequences each; sixteen groups of two ranks in four nodes with six sequences each.
STAGES = Replicas(np.array([4.0]), np.array([2.0]), np.array([12.0]))
GROUPS = Replicas(np.array([32.0]), np.array([2.0]), np.array([96.0]))
# Beside them four prompt tokens.
PROMPT = np.array([4.0])
MET = 1 - (1 - 2 / 256) ** (10 * 16)


def served(model: ServedModel = DENSE, **changes: Any) -> ServingSetup:
    return ServingSetup(model, STORED, ServingMachine(PART, RATES, LIMITS), replace(ASKED, **changes))


def multiplying(model: ServedModel, **flops: float) -> ServedModel:
    return replace(model, flops=replace(model.flops, **flops))


# The step of a dense model


def test_matrices_and_head_of_a_dense_step_are_read() -> None:
    """2 bytes of 1.2e9 weights and 4 of 2e8 of the head, both on four accelerators."""
    step = time_step(served(), STAGES, PROMPT)
    assert step.matrices == pytest.approx(2 * 1.2e9 / 4 / MEMORY + 4 * 2e8 / 4 / MEMORY)
    assert step.memory_bound[0]


def test_matrices_and_head_of_many_flops_are_multiplied() -> None:
    """Ten tokens pass the layers, of which only the six that come out pass the head, and that in 16 bits."""
    busy = multiplying(DENSE, matrices=2.4e12, head=4e11)
    step = time_step(served(busy), STAGES, PROMPT)
    assert step.matrices == pytest.approx(10 * 2.4e12 / 4 / MULTIPLY + 6 * 4e11 / 4 / SIXTEEN_BIT)
    assert not step.memory_bound[0]


def test_a_prompt_alone_reads_no_head() -> None:
    """Without sequences that decode, no token comes out of the step: the layers' weights are all there is."""
    alone = replace(STAGES, batch=np.array([0.0]))
    assert time_step(served(), alone, PROMPT).matrices == pytest.approx(2 * 1.2e9 / 4 / MEMORY)


def test_attention_of_a_dense_step() -> None:
    """Six sequences read 1,250 tokens each, on two ranks of two stages; four prompt tokens multiply with 600: half of 1,000 and 200."""
    read_s = 6 * 4e5 * 1250 / 4 / MEMORY
    prompt_s = 4 * 1e8 * 600 / 4 / SIXTEEN_BIT
    assert time_step(served(), STAGES, PROMPT).attention == pytest.approx(read_s + prompt_s)
    multiply_s = 6 * 1e10 * 1250 / 4 / SIXTEEN_BIT
    assert time_step(served(multiplying(DENSE, decode=1e10)), STAGES, PROMPT).attention == pytest.approx(multiply_s + prompt_s)


def test_exchange_and_fixed_times_of_a_dense_step() -> None:
    """Two all-reduces in each of a stage's five layers, half of 2 bytes x 10 tokens x 1e6 twice; a stage's layers and the host."""
    step = time_step(served(), STAGES, PROMPT)
    all_reduce_s = 1e-5 + 2 * 10 * 1e6 * 2 / 2 / LINK
    assert step.exchange == pytest.approx(2 * 5 * all_reduce_s)
    assert tensor_exchange_s(served(), STAGES, np.array([10.0])) == pytest.approx(2 * 5 * all_reduce_s)
    assert step.fixed == pytest.approx(1e-3 + 5 * 1e-4)


def test_the_prompts_part_of_a_dense_step() -> None:
    """Four of ten tokens' share of matrices and exchange, without the head; the prompt's own attention; no fixed times."""
    step = time_step(served(), STAGES, PROMPT)
    layers_s = 2 * 1.2e9 / 4 / MEMORY
    prompt_attention_s = 4 * 1e8 * 600 / 4 / SIXTEEN_BIT
    assert step.prompt == pytest.approx(0.4 * (layers_s + np.asarray(step.exchange)) + prompt_attention_s)
    assert step.seconds == pytest.approx(sum(map(np.asarray, (step.matrices, step.attention, step.exchange, step.fixed))))


# The step of a mixture of experts


def test_matrices_of_a_mixture() -> None:
    """Each accelerator reads half of the dense weights and its 32nd of the experts that any group's tokens meet, at 0.8 of the rate."""
    step = time_step(served(MIXTURE), GROUPS, PROMPT)
    dense_s, experts_s = 2 * 1.2e8 / 2 / MEMORY, 2 * MET * 3.2e9 / 32 / MEMORY
    assert step.matrices == pytest.approx(dense_s + experts_s / 0.8 + 4 * 2e7 / 2 / MEMORY)
    busy = multiplying(MIXTURE, matrices=24e12, routed=16e12)
    multiplied = time_step(served(busy), GROUPS, PROMPT)
    assert multiplied.matrices == pytest.approx(10 * 8e12 / 2 / MULTIPLY + 10 * 16e12 / 2 / MULTIPLY / 0.8 + 4 * 2e7 / 2 / MEMORY)


@pytest.mark.parametrize(("dense_s", "routed_s", "bound"), [(3e-4, 2e-4, True), (3e-4, 3e-4, False), (2e-4, 3.5e-4, False)])
def test_a_mixture_is_bound_by_memory_where_all_reading_takes_longer(dense_s: float, routed_s: float, bound: bool) -> None:
    """Reading takes 0.24 ms for the dense weights and 0.286 ms for the experts, together 0.526 ms."""
    a_second = 2 * MULTIPLY / 10
    model = multiplying(MIXTURE, matrices=(dense_s + routed_s) * a_second, routed=routed_s * a_second)
    assert time_step(served(model), GROUPS, PROMPT).memory_bound[0] == bound


def test_experts_exchange_beyond_the_node_while_the_rest_computes() -> None:
    """Of four nodes a token visits 3 (1 - (3/4)^2) others, once each; 3 bytes of 10 tokens on two ranks. The rest of the step hides it."""
    setup = served(MIXTURE)
    sent = 3 * 10 / 2 * 1e6
    exchange_s = 5 * (sent * 2 / LINK + sent * 3 * (1 - (3 / 4) ** 2) / NETWORK)
    assert expert_exchange_s(setup, GROUPS, np.array([10.0])) == pytest.approx(exchange_s)
    step = time_step(setup, GROUPS, PROMPT)
    tensor_s = 2 * 10 * (1e-5 + 2 * 10 * 1e6 * 2 / 2 / LINK)
    hidden_s = float(step.matrices[0]) + float(step.attention[0])
    assert 0 < hidden_s < exchange_s
    assert step.exchange == pytest.approx(tensor_s + exchange_s - hidden_s)
    long = time_step(served(multiplying(MIXTURE, matrices=24e13)), GROUPS, PROMPT)
    assert long.exchange == pytest.approx(tensor_s)


def test_experts_exchange_within_the_node_in_full_view() -> None:
    """Eight accelerators in a node: four groups exchange over its link, and nothing hides it; a lone group exchanges nothing."""
    near = Replicas(np.array([8.0]), np.array([2.0]), np.array([24.0]))
    link_s = 5 * (3 * 10 / 2 * 1e6) * 2 / LINK
    tensor_s = 2 * 10 * (1e-5 + 2 * 10 * 1e6 * 2 / 2 / LINK)
    assert time_step(served(MIXTURE), near, PROMPT).exchange == pytest.approx(tensor_s + link_s)
    lone = Replicas(np.array([2.0]), np.array([2.0]), np.array([6.0]))
    assert time_step(served(MIXTURE), lone, PROMPT).exchange == pytest.approx(tensor_s)


def test_a_rack_of_one_link_is_a_single_node_to_experts() -> None:
    """Where one link joins 32 accelerators, experts exchange over it alone."""
    setup = served(MIXTURE)
    rack = replace(setup, machine=replace(setup.machine, accelerator=replace(PART, link_domain=32)))
    assert expert_exchange_s(rack, GROUPS, np.array([10.0])) == pytest.approx(5 * (3 * 10 / 2 * 1e6) * 2 / LINK)


# Speed


@pytest.mark.parametrize(("model", "replicas", "stages"), [(DENSE, STAGES, 2), (MIXTURE, GROUPS, 1)])
def test_speed_follows_from_the_step(model: ServedModel, replicas: Replicas, stages: int) -> None:
    """Six sequences bring 800 computed prompt tokens for each 500 of output: 9.6 a step; a token takes a step of each stage.

    The first token waits half a step and for three chunks to pass all stages.
    """
    setup = served(model)
    step = time_step(setup, replicas, np.array([6 * 800 / 500]))
    speed = replica_speed(setup, replicas)
    rate = replicas.batch / (stages * step.seconds)
    assert speed.tpot_s == pytest.approx(stages * step.seconds)
    assert speed.output_tokens_per_s == pytest.approx(rate)
    assert speed.input_tokens_per_s == pytest.approx(rate * 2)
    assert speed.requests_per_s == pytest.approx(rate / 500)
    assert speed.prompt_share == pytest.approx(step.prompt / step.seconds)
    chunk = time_step(setup, replicas, np.array([800 / 3]))
    assert speed.ttft_s == pytest.approx(step.seconds / 2 + (3 + stages - 1) * chunk.seconds)
    assert speed.memory_bound == step.memory_bound


def test_a_prompt_that_has_the_replica_to_itself() -> None:
    """Three chunks of 800 / 3 tokens pass both stages with no sequence that decodes."""
    alone = time_step(served(), replace(STAGES, batch=np.array([0.0])), np.array([800 / 3]))
    assert prefill_s(served(), STAGES) == pytest.approx((3 + 2 - 1) * alone.seconds)


def test_the_roofline_of_decoding() -> None:
    """All bytes over the whole bandwidth, or all FLOPs over the whole peak, in each of two stages."""
    read = 2 * 1.2e9 / 4 + 4 * 2e8 / 4 + 6 * 4e5 * 1250 / 4
    assert decode_roofline_s(served(), STAGES) == pytest.approx(2 * read / 1e12)
    busy = multiplying(DENSE, matrices=2.4e12)
    assert decode_roofline_s(served(busy), STAGES) == pytest.approx(2 * 6 * 2.4e12 / 4 / 2e14)


def test_the_roofline_of_decoding_a_mixture() -> None:
    """Its groups share one copy of the experts that their 96 sequences meet."""
    met = 1 - (1 - 2 / 256) ** 96
    read = 2 * 1.2e8 / 2 + 2 * met * 3.2e9 / 32 + 4 * 2e7 / 2 + 6 * 4e4 * 1250 / 2
    assert decode_roofline_s(served(MIXTURE), GROUPS) == pytest.approx(read / 1e12)


# Memory


def test_weights_of_stages_and_of_groups() -> None:
    """Stages divide the layers and hold the larger of two tables; one stage holds both, and a tied table once."""
    assert weight_memory(served(), STAGES) == pytest.approx(2 * 1.2e9 / 4 + 4 * 2e8 / 2)
    wide_input = replace(DENSE, weights=replace(DENSE.weights, embedding=3e8))
    assert weight_memory(served(wide_input), STAGES) == pytest.approx(2 * 1.2e9 / 4 + 4 * 3e8 / 2)
    assert weight_memory(served(MIXTURE), GROUPS) == pytest.approx(2 * 1.2e8 / 2 + 2 * 3.2e9 / 32 + 4 * 3e7 / 2)
    tied = replace(MIXTURE, weights=replace(MIXTURE.weights, head=0.0))
    assert weight_memory(served(tied), GROUPS) == pytest.approx(2 * 1.2e8 / 2 + 2 * 3.2e9 / 32 + 4 * 1e7 / 2)


def test_a_tied_table_is_the_output_matrix() -> None:
    """Without a head of its own, the embedding is multiplied with."""
    assert ServedWeights(1.0, 0.0, embedding=3.0, head=0.0).output == 3.0
    assert ServedWeights(1.0, 0.0, embedding=3.0, head=2.0).output == 2.0


def test_a_sequence_at_its_full_length() -> None:
    """1,500 tokens of 4e5 bytes on two ranks; a replica's sequences spread over both groups."""
    assert sequence_bytes(served(), STAGES) == pytest.approx(1500 * 4e5 / 2 / 2)


def test_recurrent_states_of_a_sequence() -> None:
    """As long as they are, whatever the sequence: 2 bytes of 1e8 elements on four ranks, read and written for each token."""
    hybrid = replace(DENSE, cache=replace(DENSE.cache, state_elements=1e8))
    held = sequence_bytes(served(hybrid), STAGES) - sequence_bytes(served(), STAGES)
    assert held == pytest.approx(2 * 1e8 / STAGES.accelerators)
    longer = decode_roofline_s(served(hybrid), STAGES) - decode_roofline_s(served(), STAGES)
    assert longer == pytest.approx(STAGES.batch / 2 * 2 * held * 2 / (2 * MEMORY))


def test_states_of_a_hybrid() -> None:
    """128 heads of 64 values by 128 in 24 layers, and three tokens of the convolution; a model without attention holds nothing else."""
    mixer = StateSpace(layers=24, heads=128, head_dim=64, state_size=128, groups=8)
    found = describe_served_model(replace(LLAMA_3_8B, layers=24, state_space=mixer)).cache
    assert found.elements == 0
    assert found.state_elements == 24 * (128 * 64 * 128 + 3 * (128 * 64 + 2 * 8 * 128))


def test_activations_of_chunks_and_logits_of_a_full_batch() -> None:
    """300 tokens of 2 bytes: 4e6 elements of the residual stream, twice 3e6 on two ranks; 100 rows of 1,000 fp32 logits on two ranks."""
    chunk, logits = 300 * 2 * (4e6 + 2 * 3e6 / 2), 4 * 100 * 1000 / 2
    assert activation_memory(served(), STAGES) == pytest.approx(chunk + logits, rel=1e-12)
    assert activation_memory(served(replace(DENSE, vocab_size=1e9)), STAGES) == pytest.approx(chunk + 4 * 100 * 1e9 / 2)


def test_parts_of_memory() -> None:
    """Twelve sequences' caches; the engine's reserve as it is."""
    parts = memory_by_part(served(), STAGES)
    assert list(parts) == ["weights", "kv_cache", "activations", "reserve"]
    assert parts["kv_cache"] == pytest.approx(12 * 1500 * 4e5 / 4)
    assert parts["reserve"] == pytest.approx(2e9)
    assert parts["weights"] == weight_memory(served(), STAGES)
    assert parts["activations"] == activation_memory(served(), STAGES)


def test_the_largest_batch_by_hand() -> None:
    """0.9 of what weights (1 GB), activations (4.2 GB) and the reserve (2 GB) leave of 80 GB, 0.15 GB a sequence; at most 100 a group."""
    used = 2 * 1.2e9 / 4 + 4 * 2e8 / 2 + 300 * 2 * 7e6 + 4 * 100 * 1000 / 2 + 2e9
    sequences = 0.9 * (80e9 - used) / 1.5e8
    assert sequences > 200
    assert largest_batch(served(), STAGES) == 200
    longer = served(prompt_tokens=4500.0)
    assert largest_batch(longer, STAGES) == np.floor(0.9 * (80e9 - used) / (5000 * 4e5 / 4))


# What a model is described by


def test_quantities_of_a_dense_model() -> None:
    """Llama 3 8B: two tables of 128,256 x 4,096, and 32 layers of grouped-query attention and a gated feed-forward of 14,336."""
    tables = 128_256 * 4096
    layer = 2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14_336
    model = describe_served_model(LLAMA_3_8B)
    assert (model.weights.embedding, model.weights.head, model.weights.routed) == (tables, tables, 0)
    assert model.weights.dense == pytest.approx(32 * layer, rel=1e-4)
    assert model.params == pytest.approx(32 * layer + 2 * tables, rel=1e-4)
    assert model.flops.matrices == pytest.approx(2 * 32 * layer)
    assert model.flops.head == 2 * tables
    assert model.flops.routed == 0
    assert (model.inner_size, model.experts, model.expert_layers) == (14_336, 0, 0)


def test_quantities_of_a_mixture() -> None:
    """Mixtral keeps 8 experts of 3 x 4,096 x 14,336 in each of 32 layers and multiplies with two; attention and router are dense."""
    expert = 3 * 4096 * 14_336
    attention = 2 * 4096**2 + 2 * 4096 * 1024 + 8 * 4096
    model = describe_served_model(MIXTRAL)
    assert model.weights.routed == 32 * 8 * expert
    assert model.weights.dense == pytest.approx(32 * attention, rel=1e-3)
    assert model.flops.routed == pytest.approx(2 * 32 * 2 * expert)
    assert model.flops.matrices == pytest.approx(2 * 32 * (attention + 2 * expert))
    assert (model.experts, model.experts_per_token, model.expert_layers) == (8, 2, 32)


@pytest.mark.parametrize(
    ("experts", "inner"),
    [
        (Experts(8, 2, 14_336), 2 * 14_336),
        (Experts(8, 2, 500), 14_336),
        (Experts(64, 8, 2000, shared_experts=2), 8 * 2000 + 2 * 2000),
        (Experts(64, 8, 2000, shared_experts=2, shared_ffn_hidden_size=3000), 8 * 2000 + 2 * 3000),
    ],
)
def test_the_feed_forward_that_a_token_meets(experts: Experts, inner: float) -> None:
    """Its experts and the shared ones side by side, or a dense layer where that is wider."""
    assert describe_served_model(replace(MIXTRAL, experts=experts)).inner_size == inner


def test_windows_that_no_layer_breaks_hold_all_layers() -> None:
    """One global layer in four of 32; none of them where none is named; all of them without a window."""
    windowed = replace(LLAMA_3_8B, sliding_window=1024)
    shares = [
        describe_served_model(model).cache.global_share
        for model in (
            replace(windowed, global_attention_every=4),
            windowed,
            LLAMA_3_8B,
            replace(windowed, layers=30, global_attention_every=4),
        )
    ]
    assert shares == pytest.approx([0.25, 0.0, 1.0, 7 / 30])


def test_a_latent_cache_is_one_part() -> None:
    """DeepSeek-V3 leaves 576 elements a layer that no tensor rank divides; grouped heads divide into as many parts."""
    latent, grouped = describe_served_model(DEEPSEEK_V3).cache, describe_served_model(LLAMA_3_8B).cache
    assert (latent.elements, latent.parts) == (61 * 576, 1)
    assert (grouped.elements, grouped.parts) == (32 * 2 * 8 * 128, 8)
