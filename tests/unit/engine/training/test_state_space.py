"""Hybrids: layers with a state-space or linear-attention block in place of attention, by hand and in the limit without any."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.domain.errors import InvalidRequest
from service.domain.training.model import StateSpace, Transformer
from service.engine.training.adapters import adapter_parameters, linear_layers
from service.engine.training.flops import forward_flops, state_space_flops
from service.engine.training.layouts import Layouts
from service.engine.training.memory.memory_use import key_value_bytes_per_sequence, memory_use
from service.engine.training.parameters import attention_layer_count, block_shares, count_parameters, ffn_layer_count
from service.engine.training.shape import infer_shape
from service.engine.training.step.step_work import StepWork, step_work
from service.presets.training.models import find_model
from tests.unit.engine.builders import LLAMA_7B, cluster, training

# 24 of 32 layers carry states: 64 heads of 128 values, each with states of 128, in 8 groups.
MIXER = StateSpace(layers=24, heads=64, head_dim=128, state_size=128, groups=8)
HYBRID = replace(LLAMA_7B, state_space=MIXER)
INNER, KEYS, HIDDEN = 64 * 128, 8 * 128, 4096
TOKENS, BANDWIDTH = 2048, 2039e9


def asked(model: Transformer, **columns: int) -> StepWork:
    return step_work(model, training(seq_len=TOKENS), cluster(1), Layouts.single(**columns))


def test_layers_that_attend_are_those_left() -> None:
    """Every layer has a feed-forward block, or, where layers are one block each, those that are stated."""
    assert (attention_layer_count(HYBRID), ffn_layer_count(HYBRID)) == (8, 32)
    single = replace(HYBRID, layers=52, state_space=replace(MIXER, layers=23), ffn_layers=23)
    assert (attention_layer_count(single), ffn_layer_count(single)) == (6, 23)
    assert block_shares(single).blocks == pytest.approx(1)
    assert block_shares(HYBRID).blocks == block_shares(LLAMA_7B).blocks == 2


def test_weights_of_a_state_space_block() -> None:
    """Projections to values, gates, keys, queries and steps, and back; a convolution of four with its bias; three figures a head."""
    attention = 4 * HIDDEN**2
    block = HIDDEN * (2 * INNER + 2 * KEYS + 64) + INNER * HIDDEN + (INNER + 2 * KEYS) * 5 + 3 * 64 + INNER
    change = count_parameters(HYBRID).total - count_parameters(LLAMA_7B).total
    assert change == pytest.approx(24 * (block - attention))


def test_arithmetic_of_a_chunk() -> None:
    """Keys by queries and scores by values in 128 tokens, and states written and read; attention is left in a quarter of the layers."""
    recurrence = 2 * 128 * (KEYS + INNER) + 4 * INNER * 128
    assert state_space_flops(MIXER) == recurrence
    whole, part = (forward_flops(model, training(seq_len=TOKENS)).attention for model in (LLAMA_7B, HYBRID))
    assert part == pytest.approx(whole / 4 + 24 * recurrence)
    assert state_space_flops(replace(MIXER, delta_rule=True)) > recurrence


def test_long_sequences_cost_a_hybrid_less() -> None:
    """Attention grows with the sequence, the recurrence does not."""
    mixers = replace(HYBRID, state_space=replace(MIXER, layers=32))
    short, long = (forward_flops(mixers, training(seq_len=size)).attention for size in (1024, 65_536))
    assert short == long
    assert key_value_bytes_per_sequence(HYBRID, 4096) == pytest.approx(key_value_bytes_per_sequence(LLAMA_7B, 4096) / 4)


def test_operands_of_a_hybrids_layer() -> None:
    """A quarter of attention's two products, three quarters of the block's, and the feed-forward's."""

    def moved(inputs: int, outputs: int) -> int:
        return TOKENS * (inputs + outputs) + inputs * outputs

    attention = moved(HIDDEN, 3 * HIDDEN) + moved(HIDDEN, HIDDEN)
    block = moved(HIDDEN, 2 * INNER + 2 * KEYS + 64) + moved(INNER, HIDDEN)
    ffn = moved(HIDDEN, 2 * 11_008) + moved(11_008, HIDDEN)
    assert asked(HYBRID).operands[0] == pytest.approx(3 * 2 * (attention / 4 + block * 3 / 4 + ffn) * 32 / BANDWIDTH)


def test_recurrences_pass_the_memory_bus() -> None:
    """Kernel by kernel, states in fp32 once a chunk; the backward pass runs the forward's kernels again and twice as many of its own."""
    states = 8 * INNER * 128 / 128
    recurrence = 2 * (INNER + 2 * KEYS) + 8 * INNER + 4 * KEYS + 4 * 8 * 128 + states
    attention = 2 * 128 * 64
    change = asked(HYBRID).traffic[0] - asked(LLAMA_7B).traffic[0]
    assert change == pytest.approx(2 * (4 * recurrence - 3 * attention) * 24 * TOKENS / BANDWIDTH)


def test_kept_activations_of_a_hybrid() -> None:
    """Projection, convolution, recurrence and gated output of a block, in place of queries, keys, values, output and joint projection."""
    layouts, chosen = Layouts.single(), training(seq_len=TOKENS)
    plain, hybrid = (memory_use(model, chosen, layouts).parts["activations"][0] for model in (LLAMA_7B, HYBRID))
    block = (2 * INNER + 2 * KEYS + 64) + (INNER + 2 * KEYS) + 2 * INNER
    assert hybrid - plain == pytest.approx(2 * (block - 6 * HIDDEN) * 24 * TOKENS)


def test_adapters_are_on_the_blocks_projections_too() -> None:
    """Of all linear layers those in and out of the block; of attention's only where layers attend."""
    lora = training(method="lora", lora_rank=8, adapter_targets=("in_proj", "out_proj"))
    assert adapter_parameters(HYBRID, lora) == 8 * 24 * (HIDDEN + 2 * INNER + 2 * KEYS + 64 + INNER + HIDDEN)
    assert "in_proj" in linear_layers(HYBRID)
    assert "in_proj" not in linear_layers(LLAMA_7B)
    attention = training(method="lora", lora_rank=8, adapter_targets=("attention",))
    assert adapter_parameters(HYBRID, attention) == pytest.approx(adapter_parameters(LLAMA_7B, attention) / 4)


def test_a_shape_states_its_state_space_layers() -> None:
    """Groups, convolution and the delta rule have defaults; the other fields go together."""
    fields = {
        "layers": 32,
        "hidden_size": 4096,
        "ssm_layers": 24,
        "ssm_heads": 64,
        "ssm_head_dim": 128,
        "ssm_state_size": 128,
        "ssm_groups": 8,
    }
    assert infer_shape(fields).model.state_space == MIXER


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"ssm_layers": 24}, "ssm_heads"),
        ({"ssm_layers": 33, "ssm_heads": 64, "ssm_head_dim": 64, "ssm_state_size": 128}, "ssm_layers"),
        ({"ssm_layers": 24, "ssm_heads": 64, "ssm_head_dim": 64, "ssm_state_size": 128, "ffn_layers": 24}, "ssm_layers"),
        ({"ssm_layers": 24, "ssm_heads": 64, "ssm_head_dim": 64, "ssm_state_size": 128, "ssm_groups": 3}, "ssm_groups"),
        ({"ffn_layers": 24}, "ffn_layers"),
    ],
)
def test_state_space_layers_that_cannot_be(fields: dict[str, int], field: str) -> None:
    """Missing sizes, more blocks than layers, groups that do not divide heads, and one-block layers without a hybrid are named."""
    with pytest.raises(InvalidRequest) as problem:
        infer_shape({"layers": 32, "hidden_size": 4096, **fields})
    assert problem.value.pointer == f"/model/{field}"


@pytest.mark.parametrize(
    "name", ["nemotron-h-8b", "nemotron-nano-9b-v2", "nemotron-3-nano-30b-a3b", "qwen3-next-80b-a3b", "granite-4.0-h-small"]
)
def test_published_hybrids_have_all_blocks(name: str) -> None:
    """Each has all three kinds of blocks, and at least the arithmetic of the weights that a token meets."""
    model = find_model(name).model
    assert isinstance(model, Transformer)
    shares = block_shares(model)
    assert min(shares.attention, shares.state_space, shares.feed_forward) > 0
    counts, work = count_parameters(model), asked(model)
    # Experts' rows fill whole tiles.
    met = counts.multiplied - counts.head_multiplied
    assert work.matmul[0] + work.routed[0] >= 6 * met * TOKENS / 312e12 * (1 - 1e-9)
