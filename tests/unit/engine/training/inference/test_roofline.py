"""Serving: what a step takes, what fits, what it costs, and the laws that hold whatever the figures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import InvalidRequest
from service.domain.quantities import Range
from service.domain.serving.requirements import (
    CompressionMethod,
    EngineLimits,
    MeanRequest,
    Replicas,
    ServingMachine,
    ServingRates,
    WeightFormat,
)
from service.domain.training.model import Experts, LatentAttention, Transformer
from service.engine.serving.configurations import (
    cheapest_usd_per_request,
    lever_flops,
    list_configurations,
    meets_latency,
    payback_tokens,
    token_costs,
)
from service.engine.training.inference.model import (
    ServingSetup,
    attended_tokens,
    cached_tokens,
    describe_served_model,
    largest_batch,
    memory_by_part,
    sequence_bytes,
    token_cache_bytes,
    weight_memory,
)
from service.engine.training.inference.roofline import (
    ReplicaSpeed,
    decode_roofline_s,
    expert_exchange_s,
    prefill_s,
    replica_speed,
    tensor_exchange_s,
    throughput_spread,
    visited_experts,
)
from service.engine.training.shape import infer_shape
from tests.unit.engine.builders import H100, accelerator, gpt

BF16 = WeightFormat("bf16", 16, 2.0, 2.0, 2.0, ("bf16",), "")
FP8 = WeightFormat("fp8", 8, 1.0, 1.0, 2.0, ("fp8", "bf16"), "")
INT4 = WeightFormat("int4", 4, 0.52, 2.0, 2.0, ("bf16",), "")
EXACTLY = Range(1.0, 1.0, 1.0)
PERFECT = ServingRates("any", 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, EXACTLY, EXACTLY, EXACTLY, "")
USUAL = ServingRates("hopper", 0.8, 0.5, 0.7, 0.6, 1e-5, 1e-5, 1e-3, EXACTLY, Range(0.5, 0.9, 1.1), Range(0.4, 0.6, 0.8), "")
LIMITS = EngineLimits(0.9, 2e9, 2048, 8192, 64)
LLAMA_8B = Transformer(32, 4096, 32, 8, 128, 14_336, 128_256)
LLAMA_70B = Transformer(80, 8192, 64, 8, 128, 28_672, 128_256)
MIXTRAL = Transformer(32, 4096, 32, 8, 128, 14_336, 32_000, experts=Experts(8, 2, 14_336))
DEEPSEEK = Transformer(
    61,
    7168,
    128,
    128,
    192,
    18_432,
    129_280,
    experts=Experts(256, 8, 2048, shared_experts=1, dense_layers=3),
    latent=LatentAttention(512, 128, 64, 128, q_lora_rank=1536),
)


def service(model: Transformer = LLAMA_8B, stored: WeightFormat = BF16, achieved: ServingRates = USUAL, **changes: Any) -> ServingSetup:
    """Requests of 1,000 prompt and 500 output tokens on an H100, but for `changes` of the requests."""
    asked = MeanRequest(**{"prompt_tokens": 1000.0, "output_tokens": 500.0, **changes})
    return ServingSetup(describe_served_model(model), stored, ServingMachine(H100, achieved, LIMITS), asked)


def replicas(accelerators: float = 1, tensor: float = 1, batch: float = 8) -> Replicas:
    return Replicas(np.array([accelerators], float), np.array([tensor], float), np.array([batch], float))


def on(part: Any, one: ServingSetup) -> ServingSetup:
    return replace(one, machine=replace(one.machine, accelerator=part))


def tokens_per_s(one: ServingSetup, at: Replicas) -> float:
    return float(np.ravel(replica_speed(one, at).output_tokens_per_s)[0])


def step_s(one: ServingSetup, at: Replicas) -> float:
    return float(np.ravel(replica_speed(one, at).tpot_s)[0])


# What is read and stored


def test_a_lone_token_takes_the_weights_over_the_bandwidth() -> None:
    """Batch 1, an empty prompt's worth of cache, shares of 1 and no fixed times: bytes over bandwidth and nothing else."""
    alone = service(achieved=PERFECT, prompt_tokens=0.0, output_tokens=1.0)
    weights = 8.03e9 - 128_256 * 4096  # the embedding is looked up
    cache = 2 * 32 * 2 * 8 * 128 * 0.5
    assert step_s(alone, replicas(batch=1)) == pytest.approx((2 * weights + cache) / 3352e9, rel=1e-3)


def test_cache_of_grouped_heads() -> None:
    """Llama 3 8B keeps 128 KiB a token in 16 bits: 32 layers, keys and values, 8 heads of 128 (Llama 3, arXiv 2407.21783, table 3)."""
    assert token_cache_bytes(service()) == 131_072
    assert token_cache_bytes(service(stored=FP8)) == 65_536


def test_cache_of_latent_attention() -> None:
    """DeepSeek-V3 keeps 70,272 bytes a token in 16 bits: 61 layers of 512 + 64, whole on each tensor rank (arXiv 2505.09343, table 1)."""
    latent = service(DEEPSEEK)
    assert token_cache_bytes(latent) == 70_272
    assert sequence_bytes(latent, replicas(8, 8)) == sequence_bytes(latent, replicas(1, 1))


def test_decoding_with_latent_attention_multiplies_the_latent_twice() -> None:
    """Each of 128 heads scores a token by its latent (512) and rotary key (64) and adds up its latent (512), in 61 layers.

    DeepSeek-V2, arXiv 2405.04434, section 2.1.2: the projections to keys and values are absorbed. A multiplication and an addition each.
    """
    model = describe_served_model(DEEPSEEK)
    assert model.flops.decode == 2 * 61 * 128 * (512 + 64 + 512)
    assert model.flops.prefill == 2 * 61 * 128 * (192 + 128)  # a prompt attends by heads: 192 of a key, 128 of a value


def test_cache_of_sliding_windows() -> None:
    """A layer with a window keeps its own tokens; one global layer in four keeps all."""
    windowed = describe_served_model(replace(LLAMA_8B, sliding_window=1024, global_attention_every=4))
    assert cached_tokens(windowed, 512.0) == 512
    assert cached_tokens(windowed, 8192.0) == pytest.approx(0.25 * 8192 + 0.75 * 1024)
    assert attended_tokens(service()) == pytest.approx(1250)


def test_heads_divide_over_tensor_ranks_as_far_as_there_are_any() -> None:
    """Eight key-value heads on 16 ranks are kept twice each."""
    wide = replicas(16, 16)
    assert sequence_bytes(service(), wide) == pytest.approx(token_cache_bytes(service()) * 1500 / 8)


def test_weights_in_their_formats() -> None:
    """8.03 billion weights take 16.06 GB in 16 bits; in 8 bits embedding and head keep their width."""
    tables = 2 * 128_256 * 4096
    assert weight_memory(service(), replicas())[0] == pytest.approx(2 * 8.03e9, rel=1e-3)
    assert weight_memory(service(stored=FP8), replicas())[0] == pytest.approx(8.03e9 + tables, rel=1e-3)


def test_experts_are_divided_over_all_accelerators() -> None:
    """Groups keep attention's weights each, and together one copy of the experts."""
    spread, one = (float(weight_memory(service(MIXTRAL), replicas(count, 1))[0]) for count in (8, 1))
    experts = 2 * 32 * 8 * 3 * 4096 * 14_336
    assert one - spread == pytest.approx(experts * 7 / 8)


def test_memory_adds_up_and_the_largest_batch_fills_it() -> None:
    """Parts at the largest batch stay below the memory, by no more than a sequence and the share kept free."""
    one = service(stored=FP8)
    most = largest_batch(one, replicas())
    taken = sum(float(np.ravel(part)[0]) for part in memory_by_part(one, replace(replicas(), batch=most)).values())
    parts = memory_by_part(one, replicas())
    free = H100.usable_memory_bytes - float(np.ravel(parts["weights"] + parts["activations"] + parts["reserve"])[0])
    assert taken <= H100.usable_memory_bytes
    assert taken > H100.usable_memory_bytes - 0.1 * free - float(sequence_bytes(one, replicas())[0])


def test_nothing_fits_where_the_weights_do_not() -> None:
    """70 billion weights of 16 bits are more than 80 GB."""
    assert largest_batch(service(LLAMA_70B), replicas())[0] == 0
    assert largest_batch(service(LLAMA_70B), replicas(4, 4))[0] > 0


def test_other_networks_are_refused() -> None:
    """An encoder-decoder has no one cache of keys and values."""
    with pytest.raises(InvalidRequest, match="decoder-only"):
        describe_served_model(replace(LLAMA_8B, kind="encoder_decoder", decoder_layers=12))


# Speed


def test_large_batches_are_bound_by_arithmetic() -> None:
    """With shares of 1 and short requests, throughput nears the peak over the FLOPs of a token."""
    one = service(stored=BF16, achieved=PERFECT, prompt_tokens=0.0, output_tokens=1.0)
    found = replica_speed(one, replicas(batch=100_000))
    assert not found.memory_bound[0]
    assert tokens_per_s(one, replicas(batch=100_000)) == pytest.approx(989.4e12 / (2 * 7.5e9), rel=0.05)


def test_prompt_and_answer_share_the_machine() -> None:
    """Longer prompts slow output tokens down; prompts found in a cache hardly do."""
    short, long, cached = service(), service(prompt_tokens=4000.0), service(prompt_tokens=4000.0, cached_share=0.99)
    assert tokens_per_s(long, replicas(batch=64)) < tokens_per_s(cached, replicas(batch=64)) < tokens_per_s(short, replicas(batch=64))


def test_a_prompt_alone_is_bound_by_arithmetic() -> None:
    """8,192 tokens of 15 GFLOPs, and the causal half of the square, at half of the peak."""
    one = service(prompt_tokens=8192.0)
    flops = 8192 * (2 * 6.98e9 + 2 * 32 * 8192 * 4096)
    found = float(prefill_s(one, replicas())[0])
    assert found == pytest.approx(flops / (0.5 * 989.4e12) + 32e-5 + 1e-3, rel=0.02)


def test_long_prompts_come_in_chunks() -> None:
    """Twice the limit takes a little more than twice as long: each chunk has its fixed times, and attention grows."""
    one, two = (float(prefill_s(service(prompt_tokens=tokens), replicas())[0]) for tokens in (8192.0, 16384.0))
    assert 2 * one < two < 2.5 * one


def test_experts_met_by_a_batch() -> None:
    """One token meets 2 of 8; 8 tokens 1 - 0.75^8 of them; a draw agrees."""
    assert visited_experts(8.0, 2.0, np.array([1.0, 8.0])) == pytest.approx([0.25, 1 - 0.75**8])
    generator = np.random.default_rng(7)
    drawn = np.mean([len(set(np.concatenate([generator.choice(64, 6, replace=False) for _ in range(10)]))) for _ in range(2000)])
    assert float(visited_experts(64.0, 6.0, 10.0)) * 64 == pytest.approx(drawn, rel=0.01)


def test_all_reduces_of_tensor_ranks() -> None:
    """Two a layer: latency for each doubling, and 2 (T - 1) / T of the activations over one way of the link; none for one rank."""
    link = 0.6 * 450e9
    expected = 2 * 32 * (3 * 1e-5 + 2 * 64 * 4096 * 2 * 7 / 8 / link)
    assert tensor_exchange_s(service(), replicas(8, 8), 64.0)[0] == pytest.approx(expected)
    assert tensor_exchange_s(service(), replicas(1, 1), 64.0)[0] == 0


def test_experts_beyond_the_node_cross_the_network() -> None:
    """Dispatch costs nothing in one group, little in a node, more over several."""
    alone, node, several = (float(np.ravel(expert_exchange_s(service(DEEPSEEK), replicas(count, 1), 64.0))[0]) for count in (1, 8, 32))
    assert alone == 0
    assert 0 < node < several


def test_stages_add_latency_and_keep_throughput() -> None:
    """Four stages take a token as long as one accelerator with the weights would, and serve four such batches meanwhile."""
    piped = service(achieved=replace(USUAL, host_s=0.0))
    assert step_s(piped, replicas(4, 1, 32)) == pytest.approx(step_s(piped, replicas(1, 1, 8)), rel=0.01)
    assert tokens_per_s(piped, replicas(4, 1, 32)) == pytest.approx(4 * tokens_per_s(piped, replicas(1, 1, 8)), rel=0.01)


def test_mixtures_have_their_own_range() -> None:
    """How well mixtures are predicted is measured on mixtures, those of many experts apart."""
    assert throughput_spread(service(MIXTRAL)) == USUAL.routed_spread
    assert throughput_spread(service(DEEPSEEK)) == USUAL.many_experts_spread
    assert throughput_spread(service()) == USUAL.spread


@given(
    batch=st.integers(1, 4096),
    prompt=st.integers(0, 20_000),
    output=st.integers(1, 4000),
    ranks=st.sampled_from([1, 2, 4, 8]),
    model=st.sampled_from([LLAMA_8B, LLAMA_70B, MIXTRAL, DEEPSEEK]),
    stored=st.sampled_from([BF16, FP8, INT4]),
)
def test_no_step_is_faster_than_the_roofline(
    batch: int, prompt: int, output: int, ranks: int, model: Transformer, stored: WeightFormat
) -> None:
    """Whatever is served: neither the data sheet's bandwidth nor its peak is ever exceeded."""
    one = service(model, stored, prompt_tokens=float(prompt), output_tokens=float(output))
    at = replicas(8, ranks, batch)
    assert np.all(replica_speed(one, at).tpot_s >= decode_roofline_s(one, at) * (1 - 1e-12))
    assert np.all(
        replica_speed(replace(one, machine=replace(one.machine, achieved=PERFECT)), at).tpot_s >= decode_roofline_s(one, at) * (1 - 1e-12)
    )


@given(batch=st.integers(1, 2048), prompt=st.integers(1, 20_000), bandwidth=st.floats(1.0, 4.0), model=st.sampled_from([LLAMA_8B, MIXTRAL]))
def test_more_bandwidth_never_hurts(batch: int, prompt: int, bandwidth: float, model: Transformer) -> None:
    """A faster memory leaves no configuration slower."""
    one = service(model, prompt_tokens=float(prompt))
    faster = on(replace(H100, memory_bandwidth_gb_per_s=3352 * bandwidth), one)
    assert step_s(faster, replicas(batch=batch)) <= step_s(one, replicas(batch=batch))


@given(batch=st.integers(1, 2048), prompt=st.integers(1, 8000), model=st.sampled_from([LLAMA_8B, MIXTRAL, DEEPSEEK]))
def test_fewer_bits_are_never_slower(batch: int, prompt: int, model: Transformer) -> None:
    """8 bits against 16 with their own arithmetic, 4 against 16 with the same: bytes fall and the peak does not."""
    at, asked = replicas(8, 1, batch), {"prompt_tokens": float(prompt)}
    wide = step_s(service(model, BF16, **asked), at)
    assert step_s(service(model, FP8, **asked), at) <= wide
    assert step_s(service(model, INT4, **asked), at) <= wide


@given(batch=st.integers(1, 512), prompt=st.integers(1, 20_000), more=st.integers(1, 20_000))
def test_longer_contexts_are_never_faster(batch: int, prompt: int, more: int) -> None:
    """Every token of context is read again for each output token."""
    short, long = (step_s(service(prompt_tokens=float(tokens)), replicas(batch=batch)) for tokens in (prompt, prompt + more))
    assert short <= long


@given(batch=st.integers(1, 2000), more=st.integers(1, 2000))
def test_larger_batches_serve_more_and_wait_longer(batch: int, more: int) -> None:
    """Throughput and time for each token both rise with the batch."""
    small, large = (replica_speed(service(), replicas(batch=size)) for size in (batch, batch + more))
    assert small.output_tokens_per_s[0] <= large.output_tokens_per_s[0] * (1 + 1e-9)
    assert small.tpot_s[0] <= large.tpot_s[0]


# Cost and choice


USD, LOAD = 2.5, 0.6


def test_tokens_cost_what_their_request_does() -> None:
    """Input and output prices of a request's tokens add up to it: paid hours over requests at the load."""
    one = service()
    found = replica_speed(one, replicas(batch=64))
    priced = token_costs(one, replicas(batch=64), found, USD, LOAD)
    request = priced.usd_per_million_input * 1000 / 1e6 + priced.usd_per_million_output * 500 / 1e6
    assert request[0] == pytest.approx(priced.usd_per_request[0])
    assert priced.usd_per_request[0] == pytest.approx(USD / 3600 / (LOAD * found.requests_per_s[0]))


@pytest.mark.parametrize("limits", [{}, {"tpot_s": 0.02, "ttft_s": 0.2}])
@pytest.mark.parametrize("stored", [BF16, FP8])
def test_the_cheapest_is_the_least_of_all_that_fit_in_time(stored: WeightFormat, limits: dict[str, float]) -> None:
    """No configuration that fits and keeps the latencies is cheaper, and one costs as much."""
    one = service(LLAMA_70B, stored, **limits)
    tried = list_configurations(one)
    fits = np.greater(tried.batch, 0)
    kept = Replicas(*(np.asarray(getattr(tried, name))[fits] for name in ("accelerators", "tensor", "batch")))
    found = replica_speed(one, kept)
    usd = np.asarray(token_costs(one, kept, found, USD, LOAD).usd_per_request)[meets_latency(one.request, found)]
    assert cheapest_usd_per_request(one, USD, LOAD) == pytest.approx(float(usd.min()), rel=1e-12)


def test_latency_is_kept_and_costs() -> None:
    """Tighter limits are never cheaper, and every configuration within them keeps them."""
    tight = service(LLAMA_70B, FP8, tpot_s=0.02, ttft_s=0.2)
    tried = list_configurations(tight)
    found = replica_speed(tight, replace(tried, batch=np.maximum(tried.batch, tried.accelerators)))
    in_time = meets_latency(tight.request, found)
    assert 0 < in_time.sum() < in_time.size
    assert (np.asarray(found.tpot_s)[in_time] <= 0.02).all()
    assert (np.asarray(found.ttft_s)[in_time] <= 0.2).all()
    assert cheapest_usd_per_request(tight, USD, LOAD) > cheapest_usd_per_request(service(LLAMA_70B, FP8), USD, LOAD)


def test_fewer_bits_are_cheaper_to_serve() -> None:
    """8 bits need fewer accelerators and read fewer bytes."""
    assert cheapest_usd_per_request(service(LLAMA_70B, FP8), USD, LOAD) < cheapest_usd_per_request(service(LLAMA_70B, BF16), USD, LOAD)


def test_what_cannot_be_served_costs_infinitely_much() -> None:
    """A model that does not fit, and a latency that nothing keeps."""
    small = on(accelerator(memory_gb=16, usable_memory_bytes=16e9, accelerators_per_node=1), service(gpt(96, 12_288, 96)))
    lone = replace(small, machine=replace(small.machine, limits=replace(LIMITS, max_accelerators=1)))
    assert cheapest_usd_per_request(lone, USD, LOAD) == np.inf
    assert cheapest_usd_per_request(service(LLAMA_70B, tpot_s=1e-4), USD, LOAD) == np.inf


def test_larger_models_cost_more() -> None:
    """Eight times the parameters cost more; what does not fit is infinite."""
    models = [infer_shape({"params": size, "kv_heads": 8}).model for size in (1e9, 8e9, 64e9, 1e15)]
    usd = [cheapest_usd_per_request(service(model, FP8), USD, LOAD) for model in models]
    assert np.all(np.diff(usd[:3]) > 0)
    assert usd[3] == np.inf


def test_levers_cost_their_passes() -> None:
    """Calibrating is a forward pass; training three; a teacher adds its own forward."""
    calibrated = CompressionMethod("ptq", "", ("fp8",), 1e6, trains=False, teacher=False, quality_loss=EXACTLY, risk="", source="")
    distilled = replace(calibrated, trains=True, teacher=True)
    assert lever_flops(calibrated, 2e9, 9e9, 1e6) == 2e15
    assert lever_flops(distilled, 2e9, 9e9, 1e6) == (3 * 2e9 + 9e9) * 1e6


def test_a_lever_pays_back_with_what_it_saves() -> None:
    """100 USD at a ten-thousandth saved a token are a million tokens; what saves nothing never pays."""
    found = payback_tokens(100.0, np.array([3e-4, 1e-4]), np.array([2e-4, 1e-4]))
    assert found == pytest.approx([1e6, np.inf])


def test_speed_has_a_figure_for_every_configuration() -> None:
    """A search's row of configurations comes back as rows."""
    tried = list_configurations(service())
    found: ReplicaSpeed = replica_speed(service(), replace(tried, batch=np.maximum(tried.batch, tried.accelerators)))
    assert np.shape(found.ttft_s) == np.shape(tried.batch)
    assert np.all(np.asarray(found.prompt_share) > 0)
    assert np.all(np.asarray(found.prompt_share) < 1)


@pytest.mark.parametrize(
    ("most", "counts"),
    [(64, {1, 2, 4, 8, 16, 32, 64}), (16, {1, 2, 4, 8, 16}), (4, {1, 2, 4, 8}), (24, {1, 2, 4, 8, 16})],
)
def test_replicas_are_powers_of_two_within_a_node_and_of_nodes(most: int, counts: set[int]) -> None:
    """Up to the largest replica that is tried, at least one node; tensor ranks divide them and stay within a node."""
    setup = service()
    tried = list_configurations(replace(setup, machine=replace(setup.machine, limits=replace(LIMITS, max_accelerators=most))))
    assert set(np.asarray(tried.accelerators)) == counts
    assert set(np.asarray(tried.tensor)) == {1, 2, 4, 8}
    assert not np.any(np.asarray(tried.accelerators) % np.asarray(tried.tensor))


def test_batches_fall_from_the_largest_by_the_root_of_two() -> None:
    """Down to a sequence a group; where the largest does not fill the groups, nothing fits."""
    setup = service()
    tried = list_configurations(setup)
    column = (tried.accelerators == 2) & (tried.tensor == 1)
    most = float(largest_batch(setup, replicas(2, 1))[0])
    assert np.asarray(tried.batch)[column] == pytest.approx([max(np.floor(most * 2 ** (-step / 2)), 2) for step in range(24)])
    long = service(prompt_tokens=400_000.0)  # 52 GB of cache a sequence
    tried = list_configurations(long)
    batch = {count: float(np.asarray(tried.batch)[(tried.accelerators == count) & (tried.tensor == 1)].max()) for count in (1, 2)}
    assert largest_batch(long, replicas(2, 1))[0] >= 2
    assert batch == {1: float(largest_batch(long, replicas(1, 1))[0]), 2: float(largest_batch(long, replicas(2, 1))[0])}
    longer = service(prompt_tokens=600_000.0)  # 79 GB: two accelerators hold one, and two stages of a pipeline want two
    assert largest_batch(longer, replicas(2, 1))[0] == 1
    tried = list_configurations(longer)
    assert not np.any(np.asarray(tried.batch)[(tried.accelerators == 2) & (tried.tensor == 1)])
