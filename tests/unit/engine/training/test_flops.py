"""Arithmetic of training: laws that hold for every shape, and what each method adds."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.training.model import Experts, GenericNetwork, LatentAttention
from service.domain.training.run import FROZEN_BASE, METHODS, RECOMPUTES, AuxiliaryModels, Training
from service.engine.training.adapters import adapter_parameters
from service.engine.training.flops import (
    forward_flops,
    mean_context_tokens,
    recomputed_flops,
    training_flops,
    transformer_forward_flops,
)
from service.engine.training.parameters import count_parameters
from tests.unit.engine.builders import DEEPSEEK_V3, LLAMA_7B, MISTRAL_7B, MIXTRAL, RESNET_50, T5_11B, TINY, hardware_flops, llama, training


def adapters(rank: int) -> Training:
    """LoRA on every linear layer, those of routed experts too."""
    return training(method="lora", lora_rank=rank, adapter_targets=("experts",))


lengths = st.integers(1, 1_000_000)
shapes = st.builds(
    lambda layers, heads, width, ffn, vocab: llama(layers, heads * width, heads, heads, ffn, vocab),
    st.integers(1, 128),
    st.integers(1, 64),
    st.sampled_from([32, 64, 128, 256]),
    st.integers(1, 50_000),
    st.integers(2, 300_000),
)


@given(shapes, lengths, st.sampled_from(["layers", "ffn_hidden_size", "vocab_size", "kv_heads", "head_dim"]))
def test_every_size_costs(model, seq_len: int, size: str) -> None:
    """One more of any size of the model is more arithmetic."""
    larger = replace(model, **{size: getattr(model, size) + 1})
    assert transformer_forward_flops(larger, seq_len).trained > transformer_forward_flops(model, seq_len).trained


@given(shapes, lengths, st.integers(1, 40))
def test_layers_add_up(model, seq_len: int, more: int) -> None:
    """A layer costs the same wherever it stands: a model of a + b layers costs what they cost apart, the head counted once."""
    head = 2 * model.vocab_size * model.hidden_size
    deeper = transformer_forward_flops(replace(model, layers=model.layers + more), seq_len).trained
    apart = transformer_forward_flops(model, seq_len).trained + transformer_forward_flops(replace(model, layers=more), seq_len).trained
    assert deeper == pytest.approx(apart - head)


@given(shapes, st.integers(1, 100_000), st.integers(2, 10))
def test_attentions_share_grows_with_the_sequence(model, seq_len: int, times: int) -> None:
    """Weights cost the same a token at any length, attention in proportion to it: its share grows and stays under one."""
    short, long = transformer_forward_flops(model, seq_len), transformer_forward_flops(model, times * seq_len)
    assert long.weights == short.weights
    assert long.attention == pytest.approx(times * short.attention)
    assert short.attention / short.trained < long.attention / long.trained < 1


@given(shapes, lengths)
def test_causal_counting_halves_attention_alone(model, seq_len: int) -> None:
    """Counting the causal half takes half of attention's scores and values away and nothing of the weights."""
    full, causal = transformer_forward_flops(model, seq_len), transformer_forward_flops(model, seq_len, full_attention=False)
    assert causal.attention == full.attention / 2
    assert causal.weights == full.weights


@given(lengths, st.integers(1, 100_000), st.integers(0, 12), st.booleans())
def test_a_window_never_costs_more_than_full_attention(seq_len: int, window: int, every: int, full: bool) -> None:
    """A sliding window in any pattern costs at most full attention, and the same from the sequence's length on."""
    windowed = mean_context_tokens(replace(MISTRAL_7B, sliding_window=window, global_attention_every=every), seq_len, full_attention=full)
    everything = mean_context_tokens(LLAMA_7B, seq_len, full_attention=full)
    assert windowed <= everything * (1 + 1e-12)
    if window >= seq_len:
        assert windowed == pytest.approx(everything)


def test_a_causal_window_sees_its_whole_width_but_at_the_start() -> None:
    """Token i of a causal window of w sees min(i, w) tokens: counted one by one, for a long sequence nearly w and not w / 2."""
    seq_len, window = 32_768, 4096
    one_by_one = sum(min(position, window) for position in range(1, seq_len + 1)) / seq_len
    assert mean_context_tokens(MISTRAL_7B, seq_len, full_attention=False) == pytest.approx(one_by_one, rel=1e-3)


def test_some_layers_look_everywhere() -> None:
    """Where every sixth layer is global, a sixth of the layers sees the whole sequence and the rest the window."""
    model = replace(TINY, layers=12, sliding_window=1024, global_attention_every=6)
    assert mean_context_tokens(model, 8192) == (2 * 8192 + 10 * 1024) / 12


@given(shapes, lengths)
def test_as_many_key_value_heads_as_heads_is_plain_attention(model, seq_len: int) -> None:
    """Grouped heads share projections, never scores: fewer KV heads cost fewer weights and the same attention."""
    grouped = transformer_forward_flops(replace(model, kv_heads=1), seq_len)
    plain = transformer_forward_flops(model, seq_len)
    assert grouped.attention == plain.attention
    saved = 4 * model.layers * model.hidden_size * model.head_dim * (model.kv_heads - 1)
    assert plain.weights - grouped.weights == pytest.approx(saved, abs=1e-6 * plain.weights)


@given(st.integers(1, 16), st.integers(1, 4096), st.integers(0, 3))
def test_visiting_all_experts_is_one_wide_feed_forward(experts: int, width: int, dense: int) -> None:
    """A mixture whose tokens visit every expert costs what a dense model of their summed width costs, and the router."""
    mixture = replace(TINY, ffn_hidden_size=experts * width, experts=Experts(experts, experts, width, dense_layers=dense))
    router = 2 * (TINY.layers - dense) * TINY.hidden_size * experts
    wide = transformer_forward_flops(replace(TINY, ffn_hidden_size=experts * width), 512).trained
    assert transformer_forward_flops(mixture, 512).trained == pytest.approx(wide + router)


def test_idle_experts_are_free() -> None:
    """Twice the experts, as many visited: no arithmetic but the router's."""
    more = replace(MIXTRAL, experts=replace(MIXTRAL.experts, experts=16))
    router = 2 * 32 * 4096 * 8
    assert transformer_forward_flops(more, 4096).trained - transformer_forward_flops(MIXTRAL, 4096).trained == router


def test_a_shared_expert_is_met_by_every_token() -> None:
    """One shared expert costs what one more visited expert costs, the router apart."""
    shared = replace(MIXTRAL, experts=replace(MIXTRAL.experts, shared_experts=1))
    visited = replace(MIXTRAL, experts=replace(MIXTRAL.experts, experts_per_token=3))
    assert transformer_forward_flops(shared, 4096).trained == transformer_forward_flops(visited, 4096).trained


def test_latent_attention_multiplies_in_its_own_dimensions() -> None:
    """Scores take the rotated and the plain query-key parts, values their own width: 4 s (192 + 128) / 2 a head."""
    forward = transformer_forward_flops(DEEPSEEK_V3, 4096)
    assert forward.attention == 2 * 61 * 4096 * 128 * (192 + 128)


def test_latent_attention_of_plain_dimensions_is_plain_attention() -> None:
    """With value as wide as query-key, latent scores and values cost what full heads of that width cost."""
    latent = LatentAttention(kv_lora_rank=64, qk_nope_head_dim=24, qk_rope_head_dim=8, v_head_dim=32)
    assert transformer_forward_flops(replace(TINY, latent=latent), 512).attention == transformer_forward_flops(TINY, 512).attention


def test_an_encoder_counts_the_whole_square_and_a_decoder_its_part() -> None:
    """Encoders see both ways, so causal counting halves nothing but the decoder's own attention."""
    full = transformer_forward_flops(T5_11B, 512, 114)
    causal = transformer_forward_flops(T5_11B, 512, 114, full_attention=False)
    own = 2 * 114 / 512 * 24 * 114 * 2 * 128 * 128
    assert full.attention - causal.attention == pytest.approx(own / 2)


def test_decoders_look_at_themselves_and_at_the_encoder() -> None:
    """Each of 114 decoder tokens scores 114 of its own and 512 of the encoder's; spread over 512 encoder tokens beside their own square."""
    width = 2 * 128 * 128
    expected = 2 * 24 * width * (512 + 114 / 512 * (114 + 512))
    assert transformer_forward_flops(T5_11B, 512, 114).attention == pytest.approx(expected)


def test_a_decoder_without_tokens_still_reads_the_encoder() -> None:
    """Cross-attention's keys and values are made of the encoder's tokens, however few the decoder has."""
    encoder = replace(T5_11B, decoder_layers=0, vocab_size=1)
    rest = transformer_forward_flops(T5_11B, 512, 0).weights - transformer_forward_flops(encoder, 512).weights
    assert rest == pytest.approx(2 * 24 * 2 * 1024 * 128 * 128, rel=1e-3)


def test_a_backward_pass_is_twice_its_forward() -> None:
    """Pretraining costs three forwards, by any of its names."""
    forward = transformer_forward_flops(LLAMA_7B, 4096).trained
    for method in ("pretrain", "continued_pretrain", "full_finetune"):
        flops = training_flops(LLAMA_7B, training(method=method, seq_len=4096))
        assert (flops.forward, flops.backward, flops.total) == (forward, 2 * forward, 3 * forward)


def test_frozen_weights_need_no_gradient_of_their_own() -> None:
    """LoRA costs two forwards of the weights, three of attention, which has no weights, and three of the small adapters."""
    forward = transformer_forward_flops(LLAMA_7B, 4096)
    of_adapters = 2 * adapter_parameters(LLAMA_7B, adapters(16))
    for method in FROZEN_BASE:
        flops = training_flops(LLAMA_7B, training(method=method, seq_len=4096, lora_rank=16))
        assert flops.total == pytest.approx(2 * forward.weights + 3 * forward.attention + 3 * of_adapters)


def test_methods_are_ordered_by_what_they_do() -> None:
    """LoRA costs less than full fine-tuning, that less than distilling from a teacher, and cached logits make that equal again."""
    lora = training_flops(LLAMA_7B, training(method="lora", lora_rank=16)).total
    full = training_flops(LLAMA_7B, training(method="full_finetune")).total
    cached = training_flops(LLAMA_7B, training(method="distill")).total
    taught = training_flops(LLAMA_7B, training(method="distill", auxiliary_models=AuxiliaryModels(teacher=MIXTRAL)))
    assert 2 / 3 < lora / full < 0.75
    assert full == cached
    assert taught.total - full == transformer_forward_flops(MIXTRAL, 2048).trained


def test_preference_training_adds_the_references_forward() -> None:
    """DPO costs four thirds of pretraining a token, attention's share unchanged: the reference has attention too."""
    plain = training_flops(LLAMA_7B, training())
    dpo = training_flops(LLAMA_7B, training(method="dpo", auxiliary_models=AuxiliaryModels(reference=True)))
    assert dpo.total == pytest.approx(4 / 3 * plain.total)
    assert dpo.attention / dpo.total == pytest.approx(plain.attention / plain.total)


@given(st.integers(1, 8))
def test_reinforcement_samples_scores_and_updates(updates: int) -> None:
    """RL costs one forward to sample, one to score, one for each frozen judge, and three for every update over the answers."""
    forward = transformer_forward_flops(LLAMA_7B, 2048).trained
    judges = AuxiliaryModels(reward_model=LLAMA_7B, reference=True)
    flops = training_flops(LLAMA_7B, training(method="rl", update_epochs=float(updates), auxiliary_models=judges))
    assert flops.generation == forward
    assert flops.total == pytest.approx((4 + 3 * updates) * forward)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("model", [LLAMA_7B, MIXTRAL, DEEPSEEK_V3, T5_11B, RESNET_50])
def test_recomputation_is_executed_and_never_counted(model, method: Any) -> None:
    """The model's own FLOPs do not know of recomputation; the machine's are the same without it, and grow with it."""
    chosen = training(method=method, lora_rank=8, decoder_seq_len=100)
    none, selective, full = (hardware_flops(model, chosen, index) for index in range(len(RECOMPUTES)))
    assert none == training_flops(model, chosen).total
    assert none <= selective < full


def test_full_recomputation_repeats_the_layers_and_not_the_head() -> None:
    """One more forward of everything before the last checkpoint; selective repeats the attention core that flash attention never keeps."""
    forward = transformer_forward_flops(LLAMA_7B, 2048)
    assert recomputed_flops(LLAMA_7B, training(flash_attention=False))[:2] == (0, forward.attention)
    none, selective, full = recomputed_flops(LLAMA_7B, training())
    assert (none, selective) == (0, 0)
    assert full == forward.trained - 2 * LLAMA_7B.vocab_size * LLAMA_7B.hidden_size


def test_recomputation_under_lora_is_a_whole_forward_too() -> None:
    """Frozen weights save gradients, not the second forward of a checkpointed layer."""
    lora = recomputed_flops(LLAMA_7B, training(method="lora", lora_rank=16))[2]
    plain = recomputed_flops(LLAMA_7B, training())[2]
    assert lora == pytest.approx(plain + 2 * adapter_parameters(LLAMA_7B, adapters(16)))


@given(st.integers(1, 512))
def test_adapters_have_two_thin_matrices_a_layer(rank: int) -> None:
    """Rank times inputs and outputs of every linear layer: 39.98 million weights for rank 16 on all layers of Llama 7B."""
    one = 4 * (4096 + 4096) + 3 * (4096 + 11_008)
    assert adapter_parameters(LLAMA_7B, adapters(rank)) == rank * 32 * one
    assert adapter_parameters(LLAMA_7B, adapters(16)) == 39_976_960


def test_every_expert_has_adapters_and_a_token_meets_some() -> None:
    """Eight experts store eight sets of adapters; the two visited ones cost arithmetic."""
    stored, met = adapter_parameters(MIXTRAL, adapters(8)), adapter_parameters(MIXTRAL, adapters(8), visited=True)
    assert stored - met == 8 * 32 * 6 * 3 * (4096 + 14_336)


def test_adapters_of_latent_attention_follow_its_five_matrices() -> None:
    """Compressed queries, compressed keys and values, their expansions and the output: inputs plus outputs of each."""
    latent = LatentAttention(kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, q_lora_rank=1536)
    model = replace(DEEPSEEK_V3, experts=None, latent=latent, layers=1)
    attention = (7168 + 1536) + (1536 + 24_576) + (7168 + 576) + (512 + 32_768) + (16_384 + 7168)
    assert adapter_parameters(model, adapters(1)) == attention + 3 * (7168 + 18_432)


def test_other_networks_cost_three_forwards_and_their_frozen_parts_one() -> None:
    """A CNN's step is three forwards; a diffusion model adds its frozen encoders' single forward."""
    assert training_flops(RESNET_50, training(seq_len=1)).total == 3 * 8.178e9
    diffusion = GenericNetwork(1e12, "image", frozen_flops_per_sample=2e11)
    assert training_flops(diffusion, training(seq_len=1)).total == 3e12 + 2e11


def test_reinforcement_learning_by_hand() -> None:
    """Sampling, scoring and two epochs: four forward passes and two backward ones; a reference and a reward model beside."""
    helpers = AuxiliaryModels(reference=True, reward_model=TINY)
    chosen = training(method="rl", update_epochs=2.0, response_tokens=512, auxiliary_models=helpers)
    own, judge = forward_flops(LLAMA_7B, chosen), forward_flops(TINY, chosen)
    found = training_flops(LLAMA_7B, chosen)
    assert found.forward == pytest.approx(4 * own.trained + own.trained + judge.trained)
    assert found.backward == pytest.approx(4 * own.trained)
    assert found.attention == pytest.approx((1 + 3 * 2) * own.attention + own.attention + judge.attention)
    assert found.generation == own.trained


def test_adapters_of_a_frozen_base_by_hand() -> None:
    """Forward over both; backward once through the frozen weights, twice through attention and adapters."""
    chosen = training(method="lora", lora_rank=16)
    own, adapters = forward_flops(LLAMA_7B, chosen), 2 * adapter_parameters(LLAMA_7B, chosen, visited=True)
    found = training_flops(LLAMA_7B, chosen)
    assert found.forward == pytest.approx(own.trained + adapters)
    assert found.backward == pytest.approx(own.weights + 2 * own.attention + 2 * adapters)
    assert found.attention == pytest.approx(3 * own.attention)
    frozen = replace(RESNET_50, frozen_flops_per_sample=1e9)
    plain = training_flops(frozen, training(seq_len=1))
    assert (plain.forward, plain.backward) == pytest.approx((8.178e9 + 1e9, 2 * 8.178e9))


def test_forward_flops_of_an_encoder_and_decoder_by_hand() -> None:
    """A decoder of a quarter of the tokens: its weights for a quarter of them, half of its own square, and all of the encoder's tokens."""
    counts = count_parameters(T5_11B)
    width, encoder, decoder = 2 * 128 * 128, 512, 128
    for full, causal in ((True, 1.0), (False, 0.5)):
        found = transformer_forward_flops(T5_11B, encoder, decoder, full_attention=full)
        assert found.weights == pytest.approx(2 * counts.encoder_multiplied + 2 * 0.25 * counts.decoder_multiplied)
        attention = 2 * 24 * encoder * width + 2 * 0.25 * 24 * (causal * decoder + encoder) * width
        assert found.attention == pytest.approx(attention)
