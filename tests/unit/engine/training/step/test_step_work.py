"""What one step asks of a device, against arithmetic by hand: a GPT layer's products, attention, traffic and every exchange."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from service.domain.training.model import Experts, Model
from service.domain.training.run import Cluster
from service.engine.training.layouts import Layouts
from service.engine.training.step.collectives import ExchangeTime
from service.engine.training.step.matmul import TILE_ROWS
from service.engine.training.step.memory_traffic import feed_forward_width
from service.engine.training.step.step_work import StepWork, step_work
from service.engine.training.step.workload import peak_flops, sixteen_bit_peak
from tests.unit.engine.builders import (
    A100,
    DEEPSEEK_V3,
    FOOTPRINT,
    H100,
    LLAMA_2_70B,
    LLAMA_7B,
    MIXTRAL,
    RESNET_50,
    accelerator,
    cluster,
    gpt,
    training,
)

# 24 layers of 1024 without biases, so that every product is a round number.
GPT = gpt(24, 1024, 16, biases=False, max_positions=0)
LAYERS, HIDDEN, HEADS, VOCAB, SEQ = 24, 1024, 16, 51_200, 1024
TOKENS = 4 * SEQ
# An A100 by its data sheet: 16-bit peak [FLOP/s], memory, NVLink one way and a network card [byte/s].
PEAK, BANDWIDTH, NVLINK, CARD = 312e12, 2039e9, 300e9, 25e9


def asked(model: Model = GPT, *, machine: Cluster | None = None, columns: dict[str, int] | None = None, **how: Any) -> StepWork:
    """The work of a micro-batch of four sequences of 1,024 tokens on A100s, but for what is given."""
    layouts = Layouts.single(**{"micro_batch": 4, **(columns or {})})
    return step_work(model, training(**{"seq_len": SEQ, **how}), machine or cluster(1), layouts)


def seconds(link: ExchangeTime) -> tuple[float, float]:
    """An exchange's seconds on the fast link and beyond it."""
    return float(link.intra_s[0]), float(link.inter_s[0])


# Arithmetic


def test_a_gpt_layers_products_cost_24_h_squared_a_token() -> None:
    """QKV 6 h^2, output 2 h^2, feed-forward 16 h^2 forward, twice that backward (Narayanan et al. 2021, arXiv 2104.04473, appendix)."""
    by_hand = 3 * 24 * HIDDEN**2 * TOKENS * LAYERS / PEAK
    assert asked().matmul[0] == pytest.approx(by_hand)
    assert asked(columns={"tensor": 8}).matmul[0] == pytest.approx(by_hand / 8)
    assert asked(columns={"pipeline": 4}).matmul[0] == pytest.approx(by_hand / 4)
    # 24 layers in 5 stages: the fullest has 5.
    assert asked(columns={"pipeline": 5}).matmul[0] == pytest.approx(by_hand * 5 / 24)
    # Once more forward: 4 passes for 3.
    assert asked(columns={"recompute": 2}).matmul[0] == pytest.approx(by_hand * 4 / 3)


def test_flash_attention_computes_the_causal_half_and_its_scores_once_more() -> None:
    """2 s h a token and layer forward for the half, two and a half times that backward: 7 s h (Dao 2023, arXiv 2307.08691, 3.1 and 4.1)."""
    assert asked().attention[0] == pytest.approx(7 * SEQ * HIDDEN * TOKENS * LAYERS / PEAK)
    # Full recomputation runs the forward pass again: 2 s h more.
    assert asked(columns={"recompute": 2}).attention[0] == pytest.approx(9 * SEQ * HIDDEN * TOKENS * LAYERS / PEAK)


def test_unfused_attention_is_matrix_work_on_the_whole_square() -> None:
    """4 s h a token and layer forward, three times that with the backward pass, among the products."""
    found = asked(flash_attention=False)
    assert found.attention[0] == 0
    assert found.matmul[0] == pytest.approx((72 * HIDDEN**2 + 12 * SEQ * HIDDEN) * TOKENS * LAYERS / PEAK)


def test_the_head_is_multiplied_once_more_at_no_recomputation() -> None:
    """6 h V a token forward and backward, the same under full recomputation: the head is behind the last checkpoint."""
    by_hand = 6 * HIDDEN * VOCAB * TOKENS / PEAK
    assert asked().head[0] == pytest.approx(by_hand)
    assert asked(columns={"recompute": 2}).head[0] == pytest.approx(by_hand)
    assert asked(columns={"tensor": 4, "pipeline": 2}).head[0] == pytest.approx(by_hand / 4)


def test_eight_bit_recipes_leave_attention_and_head_at_sixteen() -> None:
    """Products of weights go at twice the rate, the head and attention's core at the 16-bit rate as before."""
    wide, narrow = (asked(machine=cluster(1, H100), precision=precision) for precision in ("bf16", "fp8"))
    assert narrow.matmul[0] == pytest.approx(wide.matmul[0] * 989.4 / 1978.9)
    assert narrow.head[0] == wide.head[0]
    assert narrow.attention[0] == wide.attention[0]


@pytest.mark.parametrize(
    ("peaks", "precision", "expected"),
    [
        ({"bf16": 312.0, "tf32": 156.0}, "tf32", 156.0),
        ({"bf16": 989.4, "fp8": 1978.9}, "fp8", 989.4),
        ({"fp16": 125.0, "int8": 250.0}, "int8", 125.0),
        # AMD MI100, Intel Gaudi 3: the two 16-bit formats have their own rates, and a recipe in one of them never leaves it.
        ({"fp16": 184.6, "bf16": 92.3}, "fp16", 184.6),
        ({"fp16": 459.0, "bf16": 1835.0}, "fp16", 459.0),
        ({"fp16": 459.0, "bf16": 1835.0}, "bf16", 1835.0),
    ],
)
def test_what_stays_at_sixteen_bit_goes_at_a_sixteen_bit_rate(peaks: dict[str, float], precision: str, expected: float) -> None:
    """Attention's core and the head run at the recipe's own rate where it has 16 bits or more, else at that of 16 bit."""
    part = accelerator(peak_tflops=MappingProxyType(peaks))
    assert sixteen_bit_peak(part, precision) == pytest.approx(expected * 1e12)
    assert peak_flops(part, precision) == pytest.approx(peaks[precision] * 1e12)


def test_experts_are_counted_apart_with_their_unfilled_tiles() -> None:
    """Mixtral: 2 visited experts of 3 h f weights; a device holding all 8 gets 1,024 rows for each, of which half a tile is wasted."""
    visited = 3 * 2 * 2 * 3 * 4096 * 14_336 * TOKENS * 32 / PEAK
    found = asked(MIXTRAL)
    assert found.routed[0] == pytest.approx(visited * (1 + TILE_ROWS / 2 * 8 / (2 * TOKENS)))
    # Grouped-query attention (8 of 32 heads) and the router are what every token meets.
    always = 3 * 2 * (2 * 4096**2 + 2 * 4096 * 1024 + 4096 * 8) * TOKENS * 32 / PEAK
    assert found.matmul[0] == pytest.approx(always)


def test_a_lora_step_has_no_gradient_of_its_frozen_weights() -> None:
    """Two passes over the base in place of three; with rank 16 adapters on all four matrices three over those."""
    # Rank x (inputs + outputs): query, key, value and output 8 h, feed-forward 10 h.
    adapters = 16 * (8 * HIDDEN + 10 * HIDDEN)
    by_hand = (2 * 24 * HIDDEN**2 + 3 * 2 * adapters) * TOKENS * LAYERS / PEAK
    # The head is frozen too: its passes are the stack's, adapters included.
    assert asked(method="lora", lora_rank=16).matmul[0] == pytest.approx(by_hand, rel=0.02)


def test_other_networks_are_arithmetic_alone() -> None:
    """ResNet-50: three times its forward FLOPs an image, no attention, no head, no activations over the bus."""
    found = asked(RESNET_50, seq_len=1, columns={"micro_batch": 128})
    assert found.matmul[0] == pytest.approx(3 * 8.178e9 * 128 / PEAK)
    assert not any(getattr(found, name)[0] for name in ("attention", "head", "traffic", "scores", "operands", "reductions", "routed"))


# The memory bus, and the host


def test_operands_of_a_gpt_layer() -> None:
    """mk + kn + mn elements a product, three times: rows of h in and 3 h, h, 4 h, h out, h and 4 h in, and 12 h^2 weights."""
    elements = 16 * HIDDEN * TOKENS + 12 * HIDDEN**2
    assert asked().operands[0] == pytest.approx(3 * 2 * elements * LAYERS / BANDWIDTH)


def test_reductions_of_a_gpt_layer() -> None:
    """Over inputs forward (h, h, h, 4 h), outputs for the activations' gradient (3 h, h, 4 h, h), tokens for the weights' (four times)."""
    assert asked().reductions[0] == pytest.approx((7 * HIDDEN + 9 * HIDDEN + 4 * TOKENS) * LAYERS)


def test_eight_bit_operands_are_half_as_wide() -> None:
    """An fp8 product moves one byte an element for two, whatever the machine's peaks."""
    for part in (H100, accelerator(peak_tflops=MappingProxyType({"bf16": 190.0, "fp8": 190.0}))):
        wide, narrow = (asked(machine=cluster(1, part), precision=precision) for precision in ("bf16", "fp8"))
        assert narrow.operands[0] == pytest.approx(wide.operands[0] / 2, rel=1e-3)


def test_activations_of_a_gpt_layer() -> None:
    """16-bit elements of a token: two norms 4 h, two residuals 6 h, queries and keys 4 h, the activation 8 h; thrice with backward."""
    assert asked().traffic[0] == pytest.approx(3 * 2 * 22 * HIDDEN * TOKENS * LAYERS / BANDWIDTH)
    # Without sequence parallelism norms and residuals stay whole on every tensor rank.
    split = asked(columns={"tensor": 4}, sequence_parallel=False).traffic[0]
    assert split == pytest.approx(3 * 2 * (10 + 12 / 4) * HIDDEN * TOKENS * LAYERS / BANDWIDTH)


def test_every_token_meets_dense_layers_and_the_shared_expert() -> None:
    """DeepSeek-V3: 3 layers of 18,432 elements, 58 with a shared expert of 2,048 (arXiv 2412.19437, section 4.2)."""
    assert feed_forward_width(DEEPSEEK_V3) == pytest.approx((3 * 18_432 + 58 * 2048) / 61)


def test_scores_pass_the_bus_where_no_flash_attention_keeps_them() -> None:
    """13 bytes a score forward, 19 backward, a s of them a token and layer; any recomputation writes them again."""
    found = asked(flash_attention=False)
    assert found.scores[0] == pytest.approx(32 * HEADS * SEQ * TOKENS * LAYERS / BANDWIDTH)
    assert asked(flash_attention=False, columns={"recompute": 1}).scores[0] == pytest.approx(found.scores[0] * 45 / 32)
    assert asked(flash_attention=False, columns={"tensor": 4}).scores[0] == pytest.approx(found.scores[0] / 4)
    assert asked().scores[0] == 0


def test_logits_pass_the_bus_in_sixteen_bit_and_twice_in_thirty_two() -> None:
    """2 + 4 + 4 bytes an entry, written and read."""
    assert asked().head_traffic[0] == pytest.approx(20 * VOCAB * TOKENS / BANDWIDTH)


def test_the_optimizer_reads_and_writes_what_a_rank_keeps() -> None:
    """AdamW in bf16: 2 + 2 + 12 bytes a weight both ways; from ZeRO 1 on each of eight ranks its eighth."""
    weights = 12 * HIDDEN**2 * LAYERS + VOCAB * HIDDEN
    by_hand = 2 * 16 * weights / BANDWIDTH
    assert asked().optimizer[0] == pytest.approx(by_hand, rel=1e-3)
    shared = asked(machine=cluster(8), columns={"data": 8, "zero_stage": 1})
    assert shared.optimizer[0] == pytest.approx(by_hand / 8, rel=1e-3)


def test_qlora_unfolds_its_base_in_every_pass() -> None:
    """Half a byte read, two written and two read, twice; three times with full recomputation."""
    weights = LAYERS * 12 * HIDDEN**2 + VOCAB * HIDDEN
    by_hand = (FOOTPRINT.nf4_bytes + 4) * weights / BANDWIDTH
    assert asked(method="qlora", lora_rank=16).scores[0] == pytest.approx(2 * by_hand, rel=1e-3)
    assert asked(method="qlora", lora_rank=16, columns={"recompute": 2}).scores[0] == pytest.approx(3 * by_hand, rel=1e-3)


def test_the_host_launches_a_layer_more_than_there_are() -> None:
    """Embedding, loss and hand-over count as one layer; a third more where the forward pass runs again; of them those with experts."""
    assert asked().layers[0] == pytest.approx(25)
    assert asked(columns={"recompute": 2}).layers[0] == pytest.approx(25 * 4 / 3)
    assert asked().routed_layers[0] == 0
    # DeepSeek-V3: 58 of its 61 layers route.
    assert asked(DEEPSEEK_V3).routed_layers[0] == pytest.approx(62 * 58 / 61)


def test_the_host_launches_every_expert_that_a_device_holds() -> None:
    """Mixtral's eight experts whole, or two of them in four parts; a dense model has none."""
    assert asked(MIXTRAL).held_experts[0] == pytest.approx(33 * 8)
    assert asked(MIXTRAL, machine=cluster(4), columns={"data": 4, "expert": 4}).held_experts[0] == pytest.approx(33 * 2)
    assert asked().held_experts[0] == 0


def test_the_host_launches_the_exchanges_between_kernels() -> None:
    """Four all-reduces a layer, or ten gathers and scatters; a send and a receive at both ends of every chunk; on one device none."""
    assert asked().calls[0] == 0
    assert asked(columns={"tensor": 4}, sequence_parallel=False).calls[0] == pytest.approx(LAYERS * 4)
    assert asked(columns={"tensor": 4}).calls[0] == pytest.approx(LAYERS * 10)
    assert asked(machine=cluster(4), columns={"pipeline": 4, "virtual_pipeline": 2}).calls[0] == pytest.approx(2 * 4)


def test_input_comes_at_the_rate_of_all_nodes() -> None:
    """64 sequences of 1,024 tokens at 1,000 a second from each of two nodes."""
    found = asked(machine=cluster(16), columns={"data": 16, "micro_batch": 1}, input_tokens_per_s_per_node=1000.0)
    assert found.input[0] == pytest.approx(64 * 1024 / 2000)


# Exchanges


def test_tensor_ranks_reduce_four_times_a_layer() -> None:
    """All-reduce of b s h 16-bit elements round a ring of 4 passes 2 x 3/4 of them over each link (Shoeybi et al. 2019, section 3)."""
    payload = 2 * TOKENS * HIDDEN
    found = asked(columns={"tensor": 4}, sequence_parallel=False).tensor
    assert seconds(found) == pytest.approx((LAYERS * 4 * 2 * 3 / 4 * payload / NVLINK, 0))
    # A reduce-scatter and a gather each, of two doublings.
    assert found.hops[0] == LAYERS * 4 * 2 * 2
    again = asked(columns={"tensor": 4, "recompute": 2}, sequence_parallel=False).tensor
    assert seconds(again) == pytest.approx((LAYERS * 6 * 2 * 3 / 4 * payload / NVLINK, 0))


def test_what_sequence_parallelism_splits_is_gathered_once_more_for_the_weights_gradients() -> None:
    """Ten gathers and scatters a layer in place of eight (Korthikanti et al. 2022, section 4.2.2); eight over frozen weights."""
    once = 3 / 4 * 2 * TOKENS * HIDDEN / NVLINK
    assert seconds(asked(columns={"tensor": 4}).tensor) == pytest.approx((LAYERS * 10 * once, 0))
    assert seconds(asked(method="lora", lora_rank=16, columns={"tensor": 4}).tensor) == pytest.approx((LAYERS * 8 * once, 0))


def test_tensor_ranks_of_two_nodes_use_all_their_cards() -> None:
    """16 ranks in nodes of 8: 15/16 of the payload over eight cards of 25 GB/s side by side, 200 GB/s together."""
    found = asked(machine=cluster(16), columns={"tensor": 16}, sequence_parallel=False).tensor
    assert seconds(found) == pytest.approx((0, LAYERS * 4 * 2 * 15 / 16 * 2 * TOKENS * HIDDEN / (8 * CARD)))


def test_context_ranks_pass_keys_and_values_round() -> None:
    """Keys and values of the whole sequence but a rank's own, once forward, twice backward (Liu et al. 2023, arXiv 2310.01889)."""
    found = asked(columns={"context": 4}).context
    assert seconds(found) == pytest.approx((LAYERS * 3 * 3 / 4 * 2 * TOKENS * 2 * HIDDEN / NVLINK, 0))
    # Llama 2 70B has 8 key-value heads of 128: 1,024 elements each, split over the tensor ranks; 4 x 8 ranks leave the node.
    grouped = asked(LLAMA_2_70B, machine=cluster(32), columns={"context": 4, "tensor": 8}).context
    assert seconds(grouped) == pytest.approx((0, 80 * 3 * 3 / 4 * 2 * TOKENS * 2 * 1024 / 8 / CARD))


def test_experts_in_a_node_exchange_over_its_link() -> None:
    """Four all-to-alls a layer of two visits a token, 7/8 of which go to other devices."""
    found = asked(MIXTRAL, machine=cluster(8), columns={"data": 8, "expert": 8}).expert
    assert seconds(found) == pytest.approx((32 * 4 * 7 / 8 * 2 * 2 * TOKENS * 4096 / NVLINK, 0))


def test_a_token_crosses_once_for_every_node_it_visits() -> None:
    """16 experts in two nodes, 2 visited: the other node is among them three times in four (1 - 1/2^2), whatever the number there."""
    model = replace(MIXTRAL, experts=Experts(16, 2, 14_336))
    found = asked(model, machine=cluster(16), columns={"data": 16, "expert": 16}).expert
    row = 2 * TOKENS * 4096
    assert seconds(found) == pytest.approx((32 * 4 * 7 / 8 * 2 * row / NVLINK, 32 * 4 * 3 / 4 * row / CARD))


def test_deepseek_visits_fewer_nodes_than_experts() -> None:
    """8 of 256 experts on 64 devices in 8 nodes: 7 others, each met with probability 1 - (7/8)^8, and not 8 x 7/8 crossings."""
    found = asked(DEEPSEEK_V3, machine=cluster(64), columns={"data": 64, "expert": 64}).expert
    crossings = 7 * (1 - (7 / 8) ** 8)
    assert found.inter_s[0] == pytest.approx(58 * 4 * crossings * 2 * TOKENS * 7168 / CARD)
    assert crossings < 8 * 7 / 8


def test_a_rack_wide_link_keeps_experts_off_the_network() -> None:
    """72 devices joined by one link exchange 8 ranks' and 64 ranks' visits over it."""
    rack = accelerator(link_domain=72, accelerators_per_node=4)
    found = asked(DEEPSEEK_V3, machine=cluster(64, rack), columns={"data": 64, "expert": 64}).expert
    assert seconds(found) == pytest.approx((58 * 4 * 63 / 64 * 8 * 2 * TOKENS * 7168 / NVLINK, 0))


def test_stages_hand_over_activations_and_gradients() -> None:
    """b s h 16-bit elements forward and as many back, for each chunk; a tensor rank hands over its part."""
    payload = 2 * TOKENS * HIDDEN
    assert seconds(asked(columns={"pipeline": 4}).stage) == pytest.approx((2 * payload / NVLINK, 0))
    interleaved = asked(columns={"pipeline": 4, "virtual_pipeline": 3})
    assert seconds(interleaved.overlapped) == pytest.approx((6 * payload / NVLINK, 0))
    assert seconds(interleaved.stage) == (0, 0)
    far = asked(machine=cluster(16), columns={"pipeline": 4, "tensor": 4}).stage
    assert seconds(far) == pytest.approx((0, 2 * payload / 4 / CARD))


def test_data_ranks_scatter_gradients_and_gather_weights() -> None:
    """2 bytes a weight twice, 7/8 of it over each link: Llama 7B's 6.74 billion in a node; over eight nodes on a node's eight cards."""
    weights = 6.738e9
    near = asked(LLAMA_7B, machine=cluster(8), columns={"data": 8}).gradient
    assert seconds(near) == pytest.approx((2 * 2 * weights * 7 / 8 / NVLINK, 0), rel=1e-3)
    far = asked(LLAMA_7B, machine=cluster(64), columns={"data": 64}).gradient
    assert seconds(far) == pytest.approx((0, 2 * 2 * weights * 63 / 64 / (8 * CARD)), rel=1e-3)
    # With tensor ranks in the node, each data group has its one card.
    split = asked(LLAMA_7B, machine=cluster(64), columns={"data": 8, "tensor": 8}).gradient
    assert seconds(split) == pytest.approx((0, 2 * 2 * weights / 8 * 7 / 8 / CARD), rel=1e-3)


def test_only_experts_with_replicas_are_exchanged() -> None:
    """Mixtral's experts over eight data ranks in eight parts have no replicas: 1.6 of its 46.7 billion weights are exchanged."""
    divided = asked(MIXTRAL, machine=cluster(8), columns={"data": 8, "expert": 8}).gradient
    whole = asked(MIXTRAL, machine=cluster(8), columns={"data": 8}).gradient
    experts = 32 * 8 * 3 * 4096 * 14_336
    assert whole.intra_s[0] - divided.intra_s[0] == pytest.approx(2 * 2 * experts * 7 / 8 / NVLINK, rel=1e-3)


def test_experts_are_exchanged_over_their_own_replicas() -> None:
    """In four parts on eight data ranks each expert has two replicas: half of its weights pass each link, not seven eighths."""
    divided = asked(MIXTRAL, machine=cluster(8), columns={"data": 8, "expert": 8}).gradient
    twice = asked(MIXTRAL, machine=cluster(8), columns={"data": 8, "expert": 4}).gradient
    experts = 32 * 8 / 4 * 3 * 4096 * 14_336
    assert twice.intra_s[0] - divided.intra_s[0] == pytest.approx(2 * 2 * experts / 2 / NVLINK, rel=1e-3)


def test_a_link_nobody_publishes_costs_nothing() -> None:
    """Without a figure for a link no time is made up for it; a node without one of its own uses the network's."""
    part = accelerator(link_gb_per_s=None, internode_gbit_per_s=None)
    assert seconds(asked(machine=cluster(8, part), columns={"tensor": 8}).tensor) == (0, 0)
    network = accelerator(link_gb_per_s=None)
    found = asked(machine=cluster(8, network), columns={"tensor": 8}, sequence_parallel=False).tensor
    assert found.intra_s[0] == pytest.approx(LAYERS * 4 * 2 * 7 / 8 * 2 * TOKENS * HIDDEN / CARD)


def test_sampling_is_bound_by_reading_weights_or_by_multiplying() -> None:
    """Few sequences wait for 2 bytes a weight at every token; many for 2 FLOPs a weight and sequence (Pope et al. 2022, section 2)."""
    few = asked(LLAMA_7B, method="rl", response_tokens=100, global_batch=1, columns={"micro_batch": 1})
    weights = 6.738e9
    key_values = 2 * 2 * 4096 * 32 * SEQ / 2
    assert few.generation[0] == pytest.approx(100 * (2 * weights + key_values) / BANDWIDTH, rel=1e-3)
    many = asked(LLAMA_7B, method="rl", response_tokens=100, global_batch=100_000, columns={"micro_batch": 1}, seq_len=16)
    multiplied = weights - 32_000 * 4096
    assert many.generation[0] == pytest.approx(100 * 100_000 * (2 * multiplied + 4 * 16 * 4096 * 32) / PEAK, rel=1e-3)


def test_the_parts_are_an_a100s() -> None:
    """The figures these tests calculate with are the data sheet's of the machine they ask about."""
    assert peak_flops(A100, "bf16") == PEAK
    assert A100.memory_bandwidth_gb_per_s * 1e9 == BANDWIDTH
    assert (A100.link_gb_per_s or 0) / 2 * 1e9 == NVLINK
    assert (A100.internode_gbit_per_s or 0) / 8 * 1e9 == CARD
