"""What mixtures, latent attention, quantised recipes and sampled text ask of a device in a step, against arithmetic by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from service.domain.training.model import Experts, Model, Transformer
from service.domain.training.run import AuxiliaryModels, Cluster
from service.engine.training.layouts import Layouts
from service.engine.training.step.step_work import StepWork, step_work
from tests.unit.engine.builders import DEEPSEEK_V3, FOOTPRINT, H100, LLAMA_7B, MIXTRAL, RESNET_50, T5_11B, cluster, gpt, training

GPT = gpt(24, 1024, 16, biases=False, max_positions=0)
# Of 32 layers eight are dense; beside two of eight experts of 512 a token meets two shared ones of 384.
SHARED = replace(MIXTRAL, experts=Experts(8, 2, 512, shared_experts=2, shared_ffn_hidden_size=384, dense_layers=8))
SEQ = 1024
TOKENS = 4 * SEQ
PEAK, BANDWIDTH = 312e12, 2039e9
H100_BANDWIDTH = 3352e9
# Mixtral: 32 query heads and 8 of keys and values, of 128 elements, in layers of 4,096.
HIDDEN, PROJECTED, FFN = 4096, 128 * (32 + 2 * 8), 14_336


def asked(model: Model, *, machine: Cluster | None = None, columns: dict[str, int] | None = None, **how: Any) -> StepWork:
    """The work of a micro-batch of four sequences of 1,024 tokens on A100s, but for what is given."""
    layouts = Layouts.single(**{"micro_batch": 4, **(columns or {})})
    return step_work(model, training(**{"seq_len": SEQ, **how}), machine or cluster(1), layouts)


def moved(*products: tuple[float, float, float, float]) -> float:
    """Elements of products of (rows, inputs, outputs, weight matrices side by side): inputs, results and weights."""
    return sum(rows * (inputs + outputs) + copies * inputs * outputs for rows, inputs, outputs, copies in products)


# Operands and reductions


def test_operands_of_a_mixtures_layer() -> None:
    """Attention's two products, and two visits of each token to eight experts as one grouped product of gate and up, and of down."""
    elements = moved(
        (TOKENS, HIDDEN, PROJECTED, 1), (TOKENS, HIDDEN, HIDDEN, 1), (2 * TOKENS, HIDDEN, 2 * FFN, 8), (2 * TOKENS, FFN, HIDDEN, 8)
    )
    assert asked(MIXTRAL).operands[0] == pytest.approx(3 * 2 * elements * 32 / BANDWIDTH)


def test_reductions_of_a_mixtures_layer() -> None:
    """Inputs forward, outputs for the activations' gradients, and for the weights' each expert's eighth of the rows."""
    inputs = HIDDEN + HIDDEN + HIDDEN + FFN
    outputs = PROJECTED + HIDDEN + 2 * FFN + HIDDEN
    rows = TOKENS + TOKENS + 2 * (2 * TOKENS / 8)
    assert asked(MIXTRAL).reductions[0] == pytest.approx((inputs + outputs + rows) * 32)
    assert asked(MIXTRAL, columns={"recompute": 2}).reductions[0] == pytest.approx((2 * inputs + outputs + rows) * 32)


def test_experts_divided_over_ranks_of_both_kinds() -> None:
    """In two parts of two slices on four tensor ranks: four experts of half their width on each, which rows of two ranks come to."""
    found = asked(MIXTRAL, columns={"tensor": 4, "expert": 2, "expert_tensor": 2})
    elements = moved(
        (TOKENS, HIDDEN, PROJECTED / 4, 1), (TOKENS, HIDDEN / 4, HIDDEN, 1), (TOKENS, HIDDEN, FFN, 4), (TOKENS, FFN / 2, HIDDEN, 4)
    )
    assert found.operands[0] == pytest.approx(3 * 2 * elements * 32 / BANDWIDTH)
    rows = TOKENS + TOKENS + 2 * (TOKENS / 4)
    assert found.reductions[0] == pytest.approx(
        (HIDDEN + HIDDEN / 4 + HIDDEN + FFN / 2 + PROJECTED / 4 + HIDDEN + FFN + HIDDEN + rows) * 32
    )


def test_more_expert_ranks_than_tensor_ranks_divide_the_experts_whole() -> None:
    """In eight parts on two tensor and four data ranks: one whole expert each, with the visits of four data ranks' halves."""
    found = asked(MIXTRAL, machine=cluster(8), columns={"tensor": 2, "data": 4, "expert": 8})
    elements = moved(
        (TOKENS, HIDDEN, PROJECTED / 2, 1), (TOKENS, HIDDEN / 2, HIDDEN, 1), (TOKENS, HIDDEN, 2 * FFN, 1), (TOKENS, FFN, HIDDEN, 1)
    )
    assert found.operands[0] == pytest.approx(3 * 2 * elements * 32 / BANDWIDTH)


def test_operands_of_dense_layers_and_shared_experts() -> None:
    """A quarter of the layers has a feed-forward of 14,336; the others eight experts of 512 and shared ones of 768 together."""
    for tensor in (1, 2):
        attention = moved((TOKENS, HIDDEN, PROJECTED / tensor, 1), (TOKENS, HIDDEN / tensor, HIDDEN, 1))
        dense = moved((TOKENS, HIDDEN, 2 * FFN / tensor, 1), (TOKENS, FFN / tensor, HIDDEN, 1))
        routed = moved((2 * TOKENS, HIDDEN, 2 * 512 / tensor, 8), (2 * TOKENS, 512 / tensor, HIDDEN, 8))
        shared = moved((TOKENS, HIDDEN, 2 * 768 / tensor, 1), (TOKENS, 768 / tensor, HIDDEN, 1))
        elements = attention + 0.25 * dense + 0.75 * (routed + shared)
        assert asked(SHARED, columns={"tensor": tensor, "expert_tensor": tensor}).operands[0] == pytest.approx(
            3 * 2 * elements * 32 / BANDWIDTH
        )
    wide = replace(SHARED, experts=Experts(8, 2, 512, shared_experts=2, dense_layers=8))
    widened = asked(wide).operands[0] - asked(SHARED).operands[0]
    more = moved((TOKENS, HIDDEN, 2 * 1024, 1), (TOKENS, 1024, HIDDEN, 1)) - moved((TOKENS, HIDDEN, 2 * 768, 1), (TOKENS, 768, HIDDEN, 1))
    assert widened == pytest.approx(3 * 2 * 0.75 * more * 32 / BANDWIDTH)


@pytest.mark.parametrize("rank", [1536, 0])
def test_operands_of_latent_attention(rank: int) -> None:
    """DeepSeek-V3's 128 heads: queries of 192 from a latent of 1,536 or none, keys and values of 128 each from one of 512."""
    assert DEEPSEEK_V3.latent is not None
    dense = replace(DEEPSEEK_V3, experts=None, ffn_hidden_size=1000, latent=replace(DEEPSEEK_V3.latent, q_lora_rank=rank))
    queries = [(TOKENS, 7168.0, 1536.0, 1), (TOKENS, 1536.0, 128 * 192.0, 1)] if rank else [(TOKENS, 7168.0, 128 * 192.0, 1)]
    elements = moved(
        *queries,
        (TOKENS, 7168, 512 + 64, 1),
        (TOKENS, 512, 128 * (128 + 128), 1),
        (TOKENS, 128 * 128, 7168, 1),
        (TOKENS, 7168, 2000, 1),
        (TOKENS, 1000, 7168, 1),
    )
    assert asked(dense).operands[0] == pytest.approx(3 * 2 * elements * 61 / BANDWIDTH)


def test_reductions_of_quantised_products_count_half() -> None:
    """At twice the rate a depth takes half as long."""
    wide, narrow = (asked(GPT, machine=cluster(1, H100), precision=precision).reductions[0] for precision in ("bf16", "fp8"))
    assert narrow == pytest.approx(wide / 2)


# The memory bus


@pytest.mark.parametrize(("recompute", "passes"), [(0, 3), (2, 4)])
def test_activations_of_a_mixtures_layer(recompute: int, passes: int) -> None:
    """Norms and residuals 10 h, queries and keys twice 128 x 40; of each of two visits three times its width, and a row of 4 h sent."""
    found = asked(MIXTRAL, columns={"recompute": recompute})
    assert found.traffic[0] == pytest.approx(passes * 2 * (10 * HIDDEN + 2 * 128 * 40) * TOKENS * 32 / BANDWIDTH)
    assert found.routed_traffic[0] == pytest.approx(passes * 2 * 2 * (3 * FFN + 4 * HIDDEN) * TOKENS * 32 / BANDWIDTH)


def test_rows_come_to_every_slice_of_an_expert() -> None:
    """Two slices of each expert on two tensor ranks: half of the inner elements on each, and all of the rows."""
    found = asked(MIXTRAL, columns={"tensor": 2, "expert_tensor": 2})
    assert found.routed_traffic[0] == pytest.approx(3 * 2 * 2 * (3 * FFN / 2 + 4 * HIDDEN) * TOKENS * 32 / BANDWIDTH)


def test_quantised_experts_copy_their_inputs() -> None:
    """Of each of two visits rows and inner elements in two passes, and gradients of gate and up and of rows in one: 4 bytes each."""
    found = asked(MIXTRAL, machine=cluster(1, H100), precision="fp8")
    copies = 4 * (2 * (HIDDEN + FFN) + HIDDEN + 2 * FFN)
    assert found.routed_traffic[0] == pytest.approx(2 * (3 * 2 * (3 * FFN + 4 * HIDDEN) + copies) * TOKENS * 32 / H100_BANDWIDTH)


def test_fused_kernels_leave_the_rows_on_their_way() -> None:
    """Activation and quantisation go into the products, the graph is launched at once, and the exchange runs beside other work."""
    columns, machine = {"data": 8, "expert": 8}, cluster(8, H100)
    plain, fused = (asked(MIXTRAL, machine=machine, precision="fp8", columns=columns, fused_experts=new) for new in (False, True))
    assert fused.routed_traffic[0] == pytest.approx(3 * 2 * 2 * 4 * HIDDEN * TOKENS * 32 / H100_BANDWIDTH)
    assert (fused.layers[0], fused.routed_layers[0], fused.held_experts[0], fused.calls[0]) == (0, 0, 0, 0)
    assert (fused.expert.intra_s[0], fused.overlapped.intra_s[0]) == (0, plain.expert.intra_s[0])
    dense = replace(MIXTRAL, experts=None)
    assert asked(dense, fused_experts=True) == asked(dense)


def test_experts_with_biases_have_no_fused_kernels() -> None:
    """28 reads and writes of an inner element run eagerly; software that fuses others' products fuses these three, and hides nothing."""
    biased = replace(MIXTRAL, biases=True)
    for new, eager in ((False, 28), (True, 0)):
        found = asked(biased, fused_experts=new)
        assert found.routed_traffic[0] == pytest.approx(3 * 2 * 2 * ((3 + eager) * FFN + 4 * HIDDEN) * TOKENS * 32 / BANDWIDTH)
        assert found.layers[0] > 0
    assert asked(replace(MIXTRAL, gated_ffn=False), fused_experts=True).layers[0] > 0


def test_activations_of_dense_layers_and_shared_experts() -> None:
    """Rows are sent in the three quarters that route; the feed-forward that all tokens meet is the mean of 14,336 and of 768."""
    elements = 10 * HIDDEN + 2 * 128 * 40 + 3 * (0.25 * FFN + 0.75 * 768)
    found = asked(SHARED)
    assert found.traffic[0] == pytest.approx(3 * 2 * elements * TOKENS * 32 / BANDWIDTH)
    assert found.routed_traffic[0] == pytest.approx(3 * 2 * 0.75 * 2 * (3 * 512 + 4 * HIDDEN) * TOKENS * 32 / BANDWIDTH)


@pytest.mark.parametrize(("recompute", "forward"), [(0, 1), (2, 2)])
@pytest.mark.parametrize("gated", [False, True])
def test_quantised_products_copy_their_inputs(recompute: int, forward: int, gated: bool) -> None:
    """Read 2 bytes, write 1 and read 1 again: inputs h, h, h and 4 h in every pass; gradients of 3 h, h, h and 4 h or 8 h once."""
    model = replace(GPT, gated_ffn=gated)
    h = 1024
    elements = (10 + 4 + (3 if gated else 2) * 4) * h
    inputs, outputs = 7 * h, (3 + 2 + (8 if gated else 4)) * h
    byte_count = 2 * elements * (2 + forward) + 4 * (inputs * (forward + 1) + outputs)
    found = asked(model, machine=cluster(1, H100), precision="fp8", columns={"recompute": recompute})
    assert found.traffic[0] == pytest.approx(byte_count * TOKENS * 24 / H100_BANDWIDTH)


def test_grouped_heads_have_narrower_outputs_to_copy() -> None:
    """Queries of 4,096 and keys and values of 1,024 each: 6,144 gradients beside two of h and gate and up of 14,336."""
    dense = replace(MIXTRAL, experts=None)
    elements = 10 * HIDDEN + 2 * 128 * 40 + 3 * FFN
    inputs, outputs = 3 * HIDDEN + FFN, PROJECTED + 2 * HIDDEN + 2 * FFN
    found = asked(dense, machine=cluster(1, H100), precision="fp8")
    assert found.traffic[0] == pytest.approx((3 * 2 * elements + 4 * (2 * inputs + outputs)) * TOKENS * 32 / H100_BANDWIDTH)


def test_selective_recomputation_repeats_the_norms_under_flash_attention() -> None:
    """One forward pass more over norms and activation functions: four for three."""
    plain, selective = (asked(GPT, columns={"recompute": level}).traffic[0] for level in (0, 1))
    assert selective == pytest.approx(plain * 4 / 3)
    unfused = [asked(GPT, flash_attention=False, columns={"recompute": level}).traffic[0] for level in (0, 1)]
    assert unfused[0] == pytest.approx(unfused[1])


def test_logits_of_a_decoder_are_its_own_tokens() -> None:
    """20 bytes of 32,128 logits for a quarter of the tokens, divided over the tensor ranks; an auxiliary network has no backward pass."""
    found = asked(T5_11B, seq_len=512, decoder_seq_len=128, columns={"tensor": 2})
    assert found.head_traffic[0] == pytest.approx(20 * 0.25 * 32_128 * 4 * 512 / 2 / BANDWIDTH)
    alone, taught = (
        asked(LLAMA_7B, method=method, auxiliary_models=AuxiliaryModels(teacher=teacher)).head_traffic[0]
        for method, teacher in (("pretrain", None), ("distill", LLAMA_7B))
    )
    assert alone == pytest.approx(20 * 32_000 * TOKENS / BANDWIDTH)
    assert taught == pytest.approx(alone * 4 / 3)


def test_qlora_unfolds_experts_too() -> None:
    """Every expert that is held: Mixtral's 46.7 billion weights, at half a byte, two and two, twice."""
    found = asked(MIXTRAL, method="qlora", lora_rank=16).scores[0]
    assert found == pytest.approx(2 * (FOOTPRINT.nf4_bytes + 4) * 46.7e9 / BANDWIDTH, rel=1e-3)


# Sampling


def sampled(model: Transformer, columns: dict[str, int], **how: Any) -> float:
    """Seconds that 100 tokens of eight sequences take."""
    machine = cluster(8)
    found = asked(model, machine=machine, method="rl", response_tokens=100, global_batch=8, columns={"micro_batch": 1, **columns}, **how)
    return float(found.generation[0])


def test_ranks_of_a_replica_read_their_weights_side_by_side() -> None:
    """Llama 7B's 6.74 billion weights of 2 bytes and the keys and values of its sequences' first halves."""
    weights, key_values = 2 * 6.738e9, 2 * 2 * 4096 * 32 * SEQ / 2
    assert sampled(LLAMA_7B, {}) == pytest.approx(100 * (weights + 8 * key_values) / BANDWIDTH, rel=1e-3)
    assert sampled(LLAMA_7B, {"tensor": 4}) == pytest.approx(100 * (weights + 8 * key_values) / 4 / BANDWIDTH, rel=1e-3)
    assert sampled(LLAMA_7B, {"tensor": 2, "context": 4}) == pytest.approx(100 * (weights + 8 * key_values) / 8 / BANDWIDTH, rel=1e-3)
    assert sampled(LLAMA_7B, {"data": 4}) == pytest.approx(100 * (weights + 2 * key_values) / BANDWIDTH, rel=1e-3)


def test_stages_of_a_replica_wait_for_each_other() -> None:
    """A token passes four stages one after the other: as long as one device with all the weights, but for the tables of the fullest."""
    layers = 32 * (4 * 4096**2 + 3 * 4096 * 11_008)
    tables = 4 * 32_000 * 4096
    key_values = 2 * 2 * 4096 * 32 * SEQ / 2
    expected = 100 * (2 * (layers + tables) + 8 * key_values) / BANDWIDTH
    assert sampled(LLAMA_7B, {"pipeline": 4}) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("columns", [{"expert_tensor": 8}, {"expert": 8}, {"expert": 2, "expert_tensor": 4}])
def test_a_mixture_reads_all_its_experts(columns: dict[str, int]) -> None:
    """Mixtral's 46.7 billion weights, however its experts are divided over the tensor ranks."""
    key_values = 2 * 2 * 1024 * 32 * SEQ / 2
    assert sampled(MIXTRAL, {"tensor": 8, **columns}) == pytest.approx(100 * (2 * 46.7e9 + 8 * key_values) / 8 / BANDWIDTH, rel=1e-3)


def test_weights_are_read_in_their_own_width_of_at_most_sixteen_bits() -> None:
    """fp32 weights are sampled from in 16 bits."""
    assert sampled(LLAMA_7B, {}, precision="fp32") == pytest.approx(sampled(LLAMA_7B, {}))


def test_only_reinforcement_learning_samples() -> None:
    """A stated answer length means nothing to other methods, and to networks that have no tokens."""
    assert asked(GPT, response_tokens=100).generation[0] == 0
    assert asked(RESNET_50, seq_len=1, method="rl", response_tokens=100).generation[0] == 0


def test_sampled_text_is_trained_on_and_scored() -> None:
    """Two epochs: three forward and two backward passes, of 2 and 4 FLOPs a weight; recomputation adds one forward pass an epoch."""
    layers = 24 * 12 * 1024**2
    plain = asked(GPT, method="rl", response_tokens=512, update_epochs=2.0)
    assert plain.matmul[0] == pytest.approx((3 * 2 + 2 * 4) * layers * TOKENS / PEAK)
    again = asked(GPT, method="rl", response_tokens=512, update_epochs=2.0, columns={"recompute": 2})
    assert again.matmul[0] == pytest.approx((5 * 2 + 2 * 4) * layers * TOKENS / PEAK)
