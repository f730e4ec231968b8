"""Memory on the fullest accelerator: laws over layouts, and the published sums for the shapes they were made for."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.model import Model, OtherNetwork
from service.domain.run import OPTIMIZERS, RECOMPUTES, Helpers, Training
from service.engine.layouts import Layouts
from service.engine.memory import (
    NF4_BYTES,
    activation_bytes_per_token,
    activations,
    key_value_bytes_per_sequence,
    kv_cache,
    memory,
    states,
)
from service.engine.parameters import count_parameters
from tests.unit.engine.builders import DEEPSEEK_V3, LLAMA_2_70B, LLAMA_7B, MISTRAL_7B, MIXTRAL, RESNET_50, T5_11B, gpt, llama, training

NONE, SELECTIVE, FULL = range(len(RECOMPUTES))
GPT_22B = gpt(48, 6144, 64)  # Korthikanti et al. 2022, table 3


def parts(model: Model, chosen: Training, **columns: int) -> dict[str, float]:
    return {name: float(values[0]) for name, values in memory(model, chosen, Layouts.single(**columns)).parts.items()}


def total(model: Model, chosen: Training, **columns: int) -> float:
    return sum(parts(model, chosen, **columns).values())


def test_parts_add_up_to_the_total() -> None:
    """The total is the sum of its parts, and every part is a size."""
    sizes = memory(MIXTRAL, training(), Layouts.single(data=8, tensor=2, expert=4, zero_stage=1))
    assert float(sizes.total[0]) == pytest.approx(sum(float(part[0]) for part in sizes.parts.values()))
    assert all(part[0] >= 0 for part in sizes.parts.values())


@given(st.integers(1, 32), st.sampled_from([NONE, SELECTIVE, FULL]), st.booleans())
def test_a_larger_micro_batch_takes_more(micro_batch: int, recompute: int, flash: bool) -> None:
    """Every sequence more in a micro-batch takes memory, by any recomputation and with any attention kernel."""
    chosen = training(global_batch=4096, flash_attention=flash)
    one, more = (total(LLAMA_7B, chosen, micro_batch=size, recompute=recompute) for size in (micro_batch, micro_batch + 1))
    assert one < more


@given(st.sampled_from([(1, 2), (2, 4), (4, 8)]), st.sampled_from(["tensor", "pipeline"]), st.sampled_from([NONE, FULL]))
def test_cutting_the_model_takes_less(sizes: tuple[int, int], axis: str, recompute: int) -> None:
    """Twice the tensor or pipeline ranks hold less each; the micro-batches in flight never eat what the stages save."""
    narrow, wide = (total(LLAMA_7B, training(), **{axis: size}, recompute=recompute) for size in sizes)
    assert wide < narrow


def test_context_ranks_share_a_sequence() -> None:
    """Activations and logits of a sequence divide by the ranks it is cut over; weights do not."""
    whole, cut = (parts(LLAMA_7B, training(seq_len=32_768), context=ranks) for ranks in (1, 4))
    assert cut["activations"] == whole["activations"] / 4
    assert cut["logits"] == whole["logits"] / 4
    assert cut["weights"] == whole["weights"]


@pytest.mark.parametrize("model", [LLAMA_7B, MIXTRAL, DEEPSEEK_V3, RESNET_50])
def test_each_zero_stage_takes_less(model: Model) -> None:
    """Sharding optimizer states, then gradients, then weights over the data ranks frees memory at every stage."""
    stages = [total(model, training(seq_len=128), data=64, zero_stage=stage) for stage in range(4)]
    assert stages == sorted(stages, reverse=True)
    assert len(set(stages)) == 4


def test_fully_sharded_weights_are_gathered_where_they_are_used() -> None:
    """ZeRO 3 holds two layers and a table in full at the activations' width, whatever the number of ranks; lower stages gather nothing."""
    counts = count_parameters(LLAMA_7B)
    layer = (counts.total - counts.embedding - counts.head) / 32
    for ranks in (8, 512):
        gathered = parts(LLAMA_7B, training(global_batch=512), data=ranks, zero_stage=3)["buffers"]
        assert gathered == pytest.approx(2 * (2 * layer + counts.head))
    assert parts(LLAMA_7B, training(), data=8, zero_stage=2)["buffers"] == 0


def test_recomputation_takes_less() -> None:
    """Full recomputation keeps less than selective, and selective less than none where the scores are stored."""
    kept = [total(GPT_22B, training(flash_attention=False), tensor=8, recompute=policy) for policy in (NONE, SELECTIVE, FULL)]
    assert kept == sorted(kept, reverse=True)
    assert len(set(kept)) == 3


@pytest.mark.parametrize(("precision", "expected"), [("bf16", 16), ("fp16", 16), ("fp32", 16), ("tf32", 16), ("fp8", 17)])
def test_adam_takes_sixteen_bytes_a_parameter(precision: Any, expected: float) -> None:
    """Mixed precision: 2 of weight, 2 of gradient, 4 of master copy, 8 of moments; fp32: 4, 4, none and 8; fp8 has one more copy."""
    sizes = states(LLAMA_7B, training(precision=precision), Layouts.single())
    per_parameter = sum(float(size[0]) for size in sizes.values()) / count_parameters(LLAMA_7B).total
    assert per_parameter == pytest.approx(expected)


def test_leaner_optimizers_take_less_than_adam() -> None:
    """Eight-bit moments, factored moments, one momentum: all leave less state than Adam's two."""
    held = {name: parts(LLAMA_7B, training(optimizer=name))["optimizer"] for name in OPTIMIZERS}
    assert held["adafactor"] < held["adamw_8bit"] < held["muon"] == held["sgd"] < held["adamw"]


@pytest.mark.parametrize(("layers", "hidden", "heads"), [(48, 6144, 64), (96, 12_288, 96), (105, 20_480, 128), (128, 25_600, 160)])
@pytest.mark.parametrize("flash", [False, True])
def test_a_gpt_layer_keeps_what_korthikanti_count(layers: int, hidden: int, heads: int, flash: bool) -> None:
    """34 s b h bytes a layer, and 5 a s^2 b of scores without flash attention, within 8 %: 2 of the 34 are dropout masks, left out here.

    Korthikanti et al. 2022 (arXiv 2205.05198), equation 1 and table 3's shapes.
    """
    seq_len = 2048
    published = 34 * hidden + (0 if flash else 5 * heads * seq_len)
    kept = activation_bytes_per_token(gpt(layers, hidden, heads), np.array([NONE]), np.array([1.0]), seq_len, flash=flash)[0]
    assert kept == pytest.approx(published, rel=0.08)
    assert kept == published - 2 * hidden


def test_selective_recomputation_drops_the_scores_alone() -> None:
    """Korthikanti et al. 2022, equation 6: 34 s b h over t with the scores recomputed; theirs of the masks are left out here."""
    kept = activation_bytes_per_token(GPT_22B, np.array([SELECTIVE]), np.array([8.0]), 2048, flash=False)[0]
    assert kept == 32 * 6144 / 8


def test_full_recomputation_keeps_layer_inputs_and_one_layer_at_work() -> None:
    """2 s b h a layer (Korthikanti et al. 2022, table 2), and one layer's whole working set."""
    one_layer = 2048 * 32 * 6144
    kept = float(activations(GPT_22B, training(), Layouts.single(recompute=FULL))[0])
    assert kept == 48 * 2048 * 2 * 6144 + one_layer


@given(st.sampled_from([2, 4, 8]), st.sampled_from([2, 3, 6]))
def test_interleaving_keeps_a_little_more(pipeline: int, virtual: int) -> None:
    """1F1B keeps all layers' activations on the first stage; v chunks a stage keep 1 + (p - 1) / (p v) of that (section 4.2.3)."""
    chosen = training(global_batch=256)
    plain = activations(GPT_22B, chosen, Layouts.single(pipeline=pipeline))[0]
    chunked = activations(GPT_22B, chosen, Layouts.single(pipeline=pipeline, virtual_pipeline=virtual))[0]
    assert plain == activations(GPT_22B, chosen, Layouts.single())[0]
    assert chunked / plain == pytest.approx(1 + (pipeline - 1) / (pipeline * virtual))


def test_a_short_batch_leaves_the_pipeline_half_empty() -> None:
    """No more micro-batches are in flight than a step has."""
    few, many = (activations(GPT_22B, training(global_batch=batch), Layouts.single(pipeline=8))[0] for batch in (2, 64))
    assert many == 4 * few


def test_full_precision_activations_are_twice_as_wide() -> None:
    """An fp32 run keeps 4-byte activations where a bf16 run keeps 2-byte ones, of any network."""
    for model in (LLAMA_7B, RESNET_50):
        wide, narrow = (parts(model, training(precision=precision))["activations"] for precision in ("fp32", "bf16"))
        assert wide == 2 * narrow


def test_expert_ranks_divide_the_experts_alone() -> None:
    """Eight expert ranks hold an eighth of the experts and all of the rest."""
    counts = count_parameters(MIXTRAL)
    held = float(states(MIXTRAL, training(), Layouts.single(data=8, expert=8))["weights"][0])
    assert held == pytest.approx(2 * (counts.total - counts.expert_stored * 7 / 8))


def test_experts_are_not_sharded_below_their_own_replicas() -> None:
    """Expert ranks that take up all data ranks leave one replica of each expert: ZeRO has nothing to divide there."""
    chosen = training()
    counts = count_parameters(MIXTRAL)
    optimizer = float(states(MIXTRAL, chosen, Layouts.single(data=8, expert=8, zero_stage=1))["optimizer"][0])
    assert optimizer == pytest.approx(12 * counts.total / 8)


def test_the_fullest_stage_has_the_routed_layers() -> None:
    """Dense first layers leave a middle stage with nothing but routed ones: 4 of 58 experts' layers, not 4 of 61."""
    layouts = Layouts.single(pipeline=16, data=128, expert=64)
    counts = count_parameters(DEEPSEEK_V3)
    dense = counts.total - counts.embedding - counts.head - counts.expert_stored
    expected = dense * 4 / 61 + counts.head + counts.expert_stored * 4 / 58 / 64
    assert float(states(DEEPSEEK_V3, training(), layouts)["weights"][0]) == pytest.approx(2 * expected)


def test_latent_attention_keeps_expanded_keys_and_caches_compressed_ones() -> None:
    """Training keeps every head's keys and values; sampling caches 576 elements a token and layer (DeepSeek-V2, table 1)."""
    assert key_value_bytes_per_sequence(DEEPSEEK_V3, 1) == 2 * 61 * (512 + 64)
    kept = activation_bytes_per_token(DEEPSEEK_V3, np.array([NONE]), np.array([1.0]), 4096, flash=True)[0]
    assert kept > 2 * 128 * (192 + 192 + 128 + 128)


def test_the_cache_of_a_70b_is_a_third_of_a_megabyte_a_token() -> None:
    """2 x 8 KV heads x 128 x 80 layers x 2 bytes: 327,680 bytes, an eighth of what full heads would take."""
    assert key_value_bytes_per_sequence(LLAMA_2_70B, 1) == 327_680
    assert key_value_bytes_per_sequence(replace(LLAMA_2_70B, kv_heads=64), 1) == 8 * 327_680


def test_a_window_caches_its_own_tokens() -> None:
    """Past the window the cache grows no more."""
    assert key_value_bytes_per_sequence(MISTRAL_7B, 32_768) == key_value_bytes_per_sequence(MISTRAL_7B, 4096)


def test_key_value_heads_divide_and_latent_ones_do_not() -> None:
    """Eight tensor ranks hold an eighth of eight heads' cache, all of one head's, and all of a latent one."""
    chosen = training(method="rl")
    for model, share in ((LLAMA_2_70B, 8), (replace(LLAMA_2_70B, kv_heads=1), 1), (DEEPSEEK_V3, 1)):
        alone, cut = (float(kv_cache(model, chosen, Layouts.single(tensor=ranks))[0]) for ranks in (1, 8))
        assert alone / cut == share


def test_qlora_quantises_the_layers_and_not_the_tables() -> None:
    """Four bits and a little for the layers' matrices, sixteen for embedding and head (Dettmers et al. 2023, section 3)."""
    model = llama(32, 4096, 32, 8, 14_336, 128_256)
    counts = count_parameters(model)
    tables = counts.embedding + counts.head
    weights = parts(model, training(method="qlora", lora_rank=0))["weights"]
    assert weights == pytest.approx(NF4_BYTES * (counts.total - tables) + 2 * tables)


def test_adapters_train_where_the_base_rests() -> None:
    """LoRA holds the base in 16 bit without gradients or states; 16 bytes a parameter are the adapters' alone."""
    sizes = parts(LLAMA_7B, training(method="lora", lora_rank=16))
    assert sizes["gradients"] == 2 * 39_976_960
    assert sizes["optimizer"] == 12 * 39_976_960
    assert sizes["weights"] == pytest.approx(2 * (count_parameters(LLAMA_7B).total + 39_976_960))


def test_expert_adapters_go_where_their_experts_go() -> None:
    """Adapters of the experts divide over expert ranks as the experts do."""
    chosen = training(method="lora", lora_rank=16)
    alone, spread = (parts(MIXTRAL, chosen, data=8, expert=ranks)["gradients"] for ranks in (1, 8))
    experts = 8 * 16 * 32 * 3 * (4096 + 14_336) * 2
    assert alone - spread == pytest.approx(experts * 7 / 8)


def test_helpers_take_their_weights() -> None:
    """A teacher, a reward model and a reference are held in 16 bit, cut as the trained model is; a teacher has logits besides."""
    plain = parts(LLAMA_7B, training())
    taught = parts(LLAMA_7B, training(method="distill", helpers=Helpers(teacher=MIXTRAL)), tensor=2)
    referred = parts(MIXTRAL, training(method="dpo", helpers=Helpers(reference=True)), data=8, expert=8)
    assert plain["helpers"] == 0
    assert taught["helpers"] == pytest.approx(count_parameters(MIXTRAL).total)
    assert taught["logits"] > plain["logits"] / 2
    assert referred["helpers"] == pytest.approx(referred["weights"])


def test_a_networks_frozen_parts_are_held_too() -> None:
    """A diffusion model keeps its text encoder beside it: 2 bytes a frozen weight."""
    model = OtherNetwork(1e12, "image", params=1e9, frozen_params=4.7e9)
    assert parts(model, training(seq_len=1))["helpers"] == 9.4e9


def test_an_encoder_decoder_keeps_both_stacks() -> None:
    """The decoder's layers keep their own tokens and the keys and values of the encoder's: more than nothing, less than the encoder."""
    encoder = replace(T5_11B, decoder_layers=0)
    alone, short, long = (
        float(activations(model, training(seq_len=512, decoder_seq_len=tokens), Layouts.single())[0])
        for model, tokens in ((encoder, 0), (T5_11B, 114), (T5_11B, 512))
    )
    cross = 512 * 24 * 2 * 2 * 128 * 128
    assert alone + cross < short < 2 * alone
    assert long > 2 * alone


def test_logits_are_the_vocabularys() -> None:
    """Eight bytes a vocabulary entry and token, over tensor ranks; an encoder-decoder's for its decoder's tokens alone."""
    assert parts(LLAMA_7B, training(), tensor=4)["logits"] == 8 * 2048 * 32_000 / 4
    assert parts(T5_11B, training(seq_len=512, decoder_seq_len=114))["logits"] == 8 * 114 * 32_128
