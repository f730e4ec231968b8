"""Activations and logits: published bytes for the shapes they were printed for, and what each recomputation drops."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.training.model import Experts, Model
from service.domain.training.run import RECOMPUTES, AuxiliaryModels, Training
from service.engine.training.layouts import Layouts
from service.engine.training.memory.activations import active_expert_width, cross_attention_bytes, layer_activation_bytes
from service.engine.training.memory.memory_use import memory_use
from tests.unit.engine.builders import DEEPSEEK_V3, LLAMA_3_8B, LLAMA_3_405B, LLAMA_7B, MIXTRAL, T5_11B, VIT_L_16, gpt, training

NONE, SELECTIVE, FULL = range(len(RECOMPUTES))
GPT_22B = gpt(48, 6144, 64)  # Korthikanti et al. 2022, table 3
HEAD = 2048 * 2 * 2 * 6144  # the last norm's input and output


def part(name: str, model: Model, chosen: Training, **columns: int) -> float:
    return float(memory_use(model, chosen, Layouts.single(**columns)).parts[name][0])


def kept(model: Any, policy: int, *, seq_len: int = 2048, flash: bool = True) -> float:
    """Bytes of one layer for one token by recomputation, in 16 bit, on one tensor rank."""
    layer = layer_activation_bytes(model, seq_len, flash=flash)
    return float(layer.replicated[policy] + layer.sharded[policy])


@pytest.mark.parametrize(("layers", "hidden", "heads"), [(48, 6144, 64), (96, 12_288, 96), (105, 20_480, 128), (128, 25_600, 160)])
@pytest.mark.parametrize("flash", [False, True])
def test_a_gpt_layer_keeps_what_korthikanti_count(layers: int, hidden: int, heads: int, flash: bool) -> None:
    """34 s b h bytes a layer, and 5 a s^2 b of scores without flash attention, within 8 %: 2 of the 34 are dropout masks, left out here.

    Korthikanti et al. 2022 (arXiv 2205.05198), equation 1 and table 3's shapes.
    """
    published = 34 * hidden + (0 if flash else 5 * heads * 2048)
    found = kept(gpt(layers, hidden, heads), NONE, flash=flash)
    assert found == pytest.approx(published, rel=0.08)
    assert found == published - 2 * hidden


@pytest.mark.parametrize(("hidden", "heads", "ratio"), [(12_288, 96, 80), (20_480, 128, 64)])
def test_scores_are_5_a_s_over_h(hidden: int, heads: int, ratio: int) -> None:
    """5 a s / h: 80 for GPT-3 and 64 for MT-NLG against 34 of all the rest (Korthikanti et al. 2022, section 5)."""
    model = gpt(1, hidden, heads)
    scores = kept(model, NONE, flash=False) - kept(model, SELECTIVE, flash=False)
    assert scores / hidden == pytest.approx(ratio)


@pytest.mark.parametrize(
    ("sequence_parallel", "recompute", "published"),
    [(False, NONE, "10 + 24/t + 5as/ht"), (True, NONE, "(34 + 5as/h)/t"), (False, SELECTIVE, "10 + 24/t"), (True, SELECTIVE, "34/t")],
)
def test_tensor_ranks_divide_as_in_table_2(sequence_parallel: bool, recompute: int, published: str) -> None:
    """Sequence parallelism divides what tensor parallelism leaves whole (Korthikanti et al. 2022, table 2), but for two masks of a byte."""
    tensor, layers = 8, 48
    scores = 5 * 64 * 2048 / 6144
    expected = {
        "10 + 24/t + 5as/ht": 8 + (24 + scores) / tensor,
        "(34 + 5as/h)/t": (32 + scores) / tensor,
        "10 + 24/t": 8 + 24 / tensor,
        "34/t": 32 / tensor,
    }[published]
    chosen = training(flash_attention=False, sequence_parallel=sequence_parallel)
    found = part("activations", GPT_22B, chosen, tensor=tensor, recompute=recompute)
    head = HEAD / (tensor if sequence_parallel else 1)
    at_work = 0 if recompute == NONE else scores / tensor
    assert found - head == pytest.approx(2048 * 6144 * (layers * expected + at_work))


def test_sequence_parallelism_needs_tensor_ranks() -> None:
    """On one tensor rank it changes nothing."""
    with_it, without = (part("activations", LLAMA_7B, training(sequence_parallel=used)) for used in (True, False))
    assert with_it == without


def test_flash_attention_leaves_cheap_work_to_selective_recomputation() -> None:
    """Without scores to drop, norms' outputs (2 h) and the activation function's (f) go, and matrix products stay."""
    assert kept(LLAMA_3_8B, NONE) - kept(LLAMA_3_8B, SELECTIVE) == 2 * (2 * 4096 + 14_336)


def test_full_recomputation_keeps_layer_inputs_and_one_layer_at_work() -> None:
    """2 s b h a layer (Korthikanti et al. 2022, table 2), and the rest of one layer."""
    one_layer = 2048 * 32 * 6144
    inputs = 2048 * 2 * 6144
    assert part("activations", GPT_22B, training(), recompute=FULL) == 48 * inputs + one_layer - inputs + HEAD


def test_latent_attention_keeps_expanded_keys_unless_they_are_projected_up_again() -> None:
    """Every head's queries, keys and values are kept; selective recomputation keeps the latents (DeepSeek-V3, section 3.2.3)."""
    width = 128 * (192 + 192 + 128 + 128)
    assert kept(DEEPSEEK_V3, NONE) > 2 * width
    assert kept(DEEPSEEK_V3, NONE) - kept(DEEPSEEK_V3, SELECTIVE) > 2 * (width - 128 * 128)


def test_experts_keep_the_tokens_sent_to_them() -> None:
    """A token visits two experts of Mixtral: its copies, and the inner tensors of both."""
    dense = replace(MIXTRAL, experts=None)
    assert kept(MIXTRAL, NONE) - kept(dense, NONE) == 2 * (2 * 4096 + 3 * 14_336)


@pytest.mark.parametrize(("precision", "width"), [("fp8", 1.0), ("nvfp4", 0.5625)])
def test_narrow_recipes_keep_product_inputs_quantised(precision: Any, width: float) -> None:
    """Norms' outputs and the feed-forward's second input shrink; attention's output is kept twice, for flash attention and quantised."""
    narrow, wide = (part("activations", LLAMA_7B, training(precision=chosen)) for chosen in (precision, "bf16"))
    saved = (2 - width) * (2 * 4096 + 11_008) - width * 4096
    assert wide - narrow == pytest.approx(32 * 2048 * saved)


def test_nothing_is_quantised_in_sixteen_bit() -> None:
    """Product inputs as wide as elements leave no second copy."""
    kept_wide = layer_activation_bytes(LLAMA_7B, 2048, flash=True)
    assert kept_wide.replicated[NONE] + kept_wide.sharded[NONE] == 2 * (4 * 4096 + 4 * 4096 + 3 * 11_008)


def test_an_encoder_decoder_keeps_both_stacks() -> None:
    """The decoder's layers keep their own tokens and the keys and values of the encoder's: more than nothing, less than the encoder."""
    encoder = replace(T5_11B, decoder_layers=0)
    alone, short, long = (
        part("activations", model, training(seq_len=512, decoder_seq_len=tokens))
        for model, tokens in ((encoder, 0), (T5_11B, 114), (T5_11B, 512))
    )
    assert alone < short < 2 * alone
    assert long > 2 * alone * 0.99


def test_logits_are_the_vocabularys() -> None:
    """Two bytes a vocabulary entry and token, over tensor ranks; an encoder-decoder's for its decoder's tokens alone, a ViT's one row."""
    assert part("logits", LLAMA_7B, training(), tensor=4) == 2 * 2048 * 32_000 / 4
    assert part("logits", T5_11B, training(seq_len=512, decoder_seq_len=114)) == 2 * 114 * 32_128
    assert part("logits", VIT_L_16, training(seq_len=197)) == 2 * 1000


def test_the_loss_of_sharded_parameters_keeps_a_full_copy() -> None:
    """PyTorch's loss under FSDP has an fp32 copy beside the 16-bit logits: 6 bytes."""
    assert part("logits", LLAMA_7B, training(), data=8, zero_stage=3) == 6 * 2048 * 32_000


def test_values_keep_the_joint_projection() -> None:
    """Beside rotated copies: queries and keys of Llama 3, keys of latent attention; not under FSDP, nor without rotation."""
    for model, beside in ((LLAMA_3_8B, 32 * (4096 + 1024)), (DEEPSEEK_V3, 61 * 128 * 128), (GPT_22B, 0)):
        joint, apart = (part("activations", model, training(), data=8, zero_stage=stage) for stage in (1, 3))
        assert joint - apart == pytest.approx(2 * 2048 * beside)


def test_layers_inputs_go_to_the_hosts_memory_where_the_software_can() -> None:
    """Under XLA full recomputation holds the layer at work and two inputs, whatever the depth."""
    chosen = training(footprint=replace(training().footprint, offloads_checkpoints=True))
    here, there = (part("activations", GPT_22B, how, recompute=FULL) for how in (training(), chosen))
    assert here - there == pytest.approx((48 - 2) * 2048 * 2 * 6144)


@given(st.sampled_from([2, 4, 8]), st.sampled_from([2, 3, 6]))
def test_interleaving_keeps_a_little_more(pipeline: int, virtual: int) -> None:
    """1F1B keeps all layers' activations on the first stage; v chunks a stage keep 1 + (p - 1) / (p v) of that (section 4.2.3)."""
    chosen = training(global_batch=256)
    plain, chunked = (part("activations", GPT_22B, chosen, pipeline=pipeline, virtual_pipeline=chunks) for chunks in (1, virtual))
    assert plain == part("activations", GPT_22B, chosen) - HEAD
    assert chunked / plain == pytest.approx(1 + (pipeline - 1) / (pipeline * virtual))


def test_a_short_batch_leaves_the_pipeline_half_empty() -> None:
    """No more micro-batches are in flight than a step has, interleaved or not: interleaved, on the last stage no less than on the first."""
    for virtual, head in ((1, 0), (3, HEAD)):
        few, many = (part("activations", GPT_22B, training(global_batch=batch), pipeline=8, virtual_pipeline=virtual) for batch in (2, 4))
        assert many - head == 2 * (few - head)


def test_a_large_vocabulary_makes_the_last_stage_the_fullest() -> None:
    """With full recomputation a stage of the middle is small: the logits of the last one decide, and its embedding is elsewhere."""
    chosen = training(seq_len=8192, global_batch=512)
    last = part("logits", LLAMA_3_8B, chosen, pipeline=8, recompute=FULL)
    assert last == 2 * 8192 * 128_256
    assert part("logits", LLAMA_3_405B, chosen, tensor=8, pipeline=16) == 0


def test_a_short_first_stage_leaves_the_second_the_fullest() -> None:
    """126 layers in 16 stages of 8: the second has 15 micro-batches of 8 layers in flight (Llama 3, section 3.3.2)."""
    chosen = training(seq_len=8192, global_batch=4096)
    joint = 2 * (16_384 + 1024)
    per_layer = (kept(LLAMA_3_405B, NONE, seq_len=8192) + joint) / 8
    assert part("activations", LLAMA_3_405B, chosen, tensor=8, pipeline=16) == pytest.approx(8192 * per_layer * 15 * 8)


def test_a_token_visits_its_experts_and_the_shared_ones() -> None:
    """Eight experts of 2,048 elements and two shared ones, as wide as the others unless their own width is stated."""
    assert active_expert_width(Experts(256, 8, 2048, shared_experts=2)) == 10 * 2048
    assert active_expert_width(Experts(256, 8, 2048, shared_experts=2, shared_ffn_hidden_size=4096)) == 8 * 2048 + 2 * 4096


def test_a_latent_mixtures_layer_by_hand() -> None:
    """DeepSeek-V3: queries and keys of 128 x 192, values and output of 128 x 128, latents of 1,536 + 512 + 64, and 58 of 61 routed layers.

    Routed layers meet nine experts of 2,048 and send eight rows of 7,168; the other three have 18,432 elements.
    """
    queries, outputs, latents = 128 * 192, 128 * 128, 1536 + 512 + 64
    inner = (58 * 9 * 2048 + 3 * 18_432) / 61
    sent = 58 / 61 * 8 * 7168
    width = queries + outputs
    assert kept(DEEPSEEK_V3, NONE) == pytest.approx(2 * (2 * width + latents + 3 * inner + sent) + 8 * 7168)
    # Latents are projected up again; norms' outputs and what follows the activation functions too.
    assert kept(DEEPSEEK_V3, SELECTIVE) == pytest.approx(2 * (latents + outputs + 2 * inner + sent) + 4 * 7168)
    assert kept(DEEPSEEK_V3, FULL) == 2 * 7168


def test_latent_attention_without_compressed_queries_keeps_them() -> None:
    """Queries of 128 x 192 in place of a latent of 1,536."""
    assert DEEPSEEK_V3.latent is not None
    dense = replace(DEEPSEEK_V3, experts=None)
    plain = replace(dense, latent=replace(DEEPSEEK_V3.latent, q_lora_rank=0))
    assert kept(dense, NONE) - kept(plain, NONE) == 2 * 1536
    assert kept(plain, SELECTIVE) - kept(dense, SELECTIVE) == pytest.approx(2 * (128 * 192 - 1536))


def test_quantised_inputs_are_kept_in_a_byte() -> None:
    """Mixtral in fp8: 2 bytes of queries, keys, values, output and gate and up, one of norms' outputs, product, rows sent and a copy."""
    layer = layer_activation_bytes(MIXTRAL, 2048, flash=True, element=2.0, product_input=1.0)
    inner = 2 * 14_336
    assert float(layer.replicated[NONE]) == 2 * 2 * 4096 + 2 * 4096
    assert float(layer.sharded[NONE]) == 2 * (2 * 4096 + 2 * 1024 + 2 * inner) + (inner + 2 * 4096) + 4096
    assert float(layer.replicated[SELECTIVE]) == 2 * 2 * 4096
    assert float(layer.sharded[SELECTIVE]) == 2 * (2 * 4096 + 2 * 1024 + 2 * inner) + 2 * 4096
    assert float(layer.replicated[FULL]) == 2 * 4096


def test_a_decoders_cross_attention_by_hand() -> None:
    """16-bit keys and values of the encoder's tokens; norm, queries and output of a quarter as many of the decoder's; none with full."""
    width = 128 * 128
    for level, bytes_per_token in ((NONE, 2 * (2 * width + 0.25 * (2 * 1024 + 2 * width))), (FULL, 0.0)):
        assert float(cross_attention_bytes(T5_11B, np.array([level]), 0.25)[0]) == bytes_per_token


def test_logits_of_a_decoder_and_of_a_teacher() -> None:
    """2 bytes for each of 128 decoder tokens of two sequences and 32,128 words, on two tensor and two context ranks; a teacher besides."""
    chosen = training(seq_len=512, decoder_seq_len=128)
    found = part("logits", T5_11B, chosen, micro_batch=2, tensor=2, context=2)
    assert found == pytest.approx(2 * 2 * 128 * 32_128 / 4)
    taught = training(method="distill", seq_len=512, auxiliary_models=AuxiliaryModels(teacher=LLAMA_3_8B))
    assert part("logits", LLAMA_7B, taught, micro_batch=2) == pytest.approx(2 * 2 * 512 * (32_000 + 128_256))
