"""Configs of hybrids, against the presets of the same models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from service.domain.errors import InvalidRequest
from service.domain.training.model import Transformer
from service.formats.huggingface.config import read_hf_config
from service.presets.training.models import find_model

NANO: dict[str, Any] = {
    "model_type": "nemotron_h",
    "hidden_size": 2688,
    "num_hidden_layers": 52,
    "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
    "num_attention_heads": 32,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "intermediate_size": 1856,
    "vocab_size": 131_072,
    "mamba_num_heads": 64,
    "mamba_head_dim": 64,
    "ssm_state_size": 128,
    "n_groups": 8,
    "conv_kernel": 4,
    "n_routed_experts": 128,
    "num_experts_per_tok": 6,
    "moe_intermediate_size": 1856,
    "n_shared_experts": 1,
    "moe_shared_expert_intermediate_size": 3712,
    "tie_word_embeddings": False,
}
GRANITE: dict[str, Any] = {
    "model_type": "granitemoehybrid",
    "hidden_size": 4096,
    "num_hidden_layers": 40,
    "layer_types": ["attention" if layer in (5, 15, 25, 35) else "mamba" for layer in range(40)],
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 768,
    "shared_intermediate_size": 1536,
    "num_local_experts": 72,
    "num_experts_per_tok": 10,
    "mamba_n_heads": 128,
    "mamba_d_head": 64,
    "mamba_d_state": 128,
    "mamba_n_groups": 1,
    "vocab_size": 100_352,
    "tie_word_embeddings": True,
}
QWEN: dict[str, Any] = {
    "model_type": "qwen3_next",
    "hidden_size": 2048,
    "num_hidden_layers": 48,
    "full_attention_interval": 4,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "intermediate_size": 5120,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
    "num_experts": 512,
    "num_experts_per_tok": 10,
    "decoder_sparse_step": 1,
    "linear_num_value_heads": 32,
    "linear_value_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_key_head_dim": 128,
    "linear_conv_kernel_dim": 4,
    "vocab_size": 151_936,
}


@pytest.mark.parametrize(
    ("config", "name"), [(NANO, "nemotron-3-nano-30b-a3b"), (GRANITE, "granite-4.0-h-small"), (QWEN, "qwen3-next-80b-a3b")]
)
def test_a_config_is_read_as_its_preset(config: dict[str, Any], name: str) -> None:
    """Blocks, sizes and experts are the published ones; what a mixture's dense layers would be wide has no meaning."""
    read, preset = read_hf_config(config).model, find_model(name).model
    assert isinstance(preset, Transformer)
    plain = replace(preset, params=None, active_params=None, ffn_hidden_size=read.ffn_hidden_size)
    assert read == plain


def test_a_dense_hybrid_has_the_shared_block() -> None:
    """Granite without routed experts: every layer's feed-forward block is the shared one."""
    dense = read_hf_config({**GRANITE, "num_local_experts": 0}).model
    assert (dense.experts, dense.ffn_hidden_size) == (None, 1536)


@pytest.mark.parametrize(
    ("config", "changes", "key"),
    [
        (NANO, {"hybrid_override_pattern": "M*"}, "hybrid_override_pattern"),
        (NANO, {"hybrid_override_pattern": "X" * 52}, "hybrid_override_pattern"),
        (NANO, {"mamba_num_heads": None}, "mamba_num_heads"),
        (GRANITE, {"layer_types": ["attention"] * 40}, "layer_types"),
        (QWEN, {"layer_types": ["full_attention"] * 48}, "layer_types"),
    ],
)
def test_patterns_that_cannot_be_are_refused(config: dict[str, Any], changes: dict[str, Any], key: str) -> None:
    """Layers that do not add up, and sizes that are missing, are named."""
    with pytest.raises(InvalidRequest) as problem:
        read_hf_config({**config, **changes})
    assert problem.value.pointer == f"/model/hf_config/{key}"
