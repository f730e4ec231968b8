"""What a Hugging Face model type implies beyond its `config.json`: one row a family.

Sources: the models' papers and the configuration classes of transformers 5.23 (defaults of `tie_word_embeddings`,
`multi_query`, `use_sliding_window` and window patterns, read November 2026).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from service.domain.training.model import TransformerKind


@dataclass(frozen=True, slots=True)
class Traits:
    """How the layers of a model type are built.

    `gated`: gated feed-forward block, None where the activation's name tells.
    `tied`, `biases`: defaults; `bias_key` is the flag of the config that says otherwise (`no_bias` inverts it).
    `learned_positions`: position embeddings are weights; `extra_positions` rows of that table are no positions and are not
    in the config's figure, `padding_positions` are in it.
    `ffn_ratio`: feed-forward width over hidden size where the config leaves it out (0: it may not).
    `multi_query`: one key-value head unless `multi_query` is false (or `new_decoder_architecture` is true).
    `window_key` is the window's name; with `window_switch` it counts only if `use_sliding_window`, from layer `max_window_layers` on.
    `global_every`: every so many layers attend to everything where the config does not say (0: none).
    `shared_experts`: experts every token visits that the config does not mention.
    """

    kind: TransformerKind = "transformer"
    gated: bool | None = True
    tied: bool = False
    biases: bool = False
    bias_key: str = "mlp_bias"
    learned_positions: bool = False
    extra_positions: int = 0
    padding_positions: int = 0
    ffn_ratio: int = 0
    multi_query: bool = False
    window_key: str = "sliding_window"
    window_switch: bool = False
    global_every: int = 0
    shared_experts: int = 0


GENERIC = Traits(gated=None)
GPT = Traits(gated=False, tied=True, biases=True, learned_positions=True, ffn_ratio=4)

FAMILIES: tuple[tuple[str, Traits], ...] = (
    ("llama mistral mixtral ministral ministral3 yi internlm internlm2 internlm3 baichuan chatglm seed_oss", Traits()),
    ("phi3 phimoe olmo olmo2 olmoe dbrx stablelm granite granitemoe granitemoeshared minimax_m2", Traits()),
    ("deepseek deepseek_v2 deepseek_v3 kimi_k2 kimi_k25 glm glm4 glm4_moe glm4v glm4v_moe", Traits()),
    ("qwen2 qwen2_moe qwen3 qwen3_moe qwen2_vl qwen2_5_vl qwen3_vl qwen3_vl_moe", Traits(window_switch=True)),
    ("smollm3", Traits(tied=True, window_switch=True)),
    ("olmo3 exaone4", Traits(global_every=4)),
    ("gemma exaone ernie4_5 ernie4_5_moe cohere", Traits(tied=True)),
    ("cohere2", Traits(tied=True, global_every=4)),
    ("gemma2", Traits(tied=True, global_every=2)),
    ("gemma3", Traits(tied=True, global_every=6)),
    ("gpt_oss", Traits(biases=True, global_every=2)),
    ("llama4", Traits(window_key="attention_chunk_size", global_every=4, shared_experts=1)),
    ("nemotron apertus arcee", Traits(gated=False)),
    ("phi gpt_neox", Traits(gated=False, biases=True, bias_key="")),
    ("gptj codegen", Traits(gated=False, ffn_ratio=4)),
    ("gpt2", GPT),
    ("gpt_neo", replace(GPT, window_key="window_size", global_every=2)),
    ("gpt_bigcode", replace(GPT, multi_query=True)),
    ("opt", Traits(gated=False, tied=True, biases=True, bias_key="enable_bias", learned_positions=True, extra_positions=2)),
    ("bloom", Traits(gated=False, tied=True, biases=True, ffn_ratio=4)),
    ("falcon refinedwebmodel", Traits(gated=False, tied=True, bias_key="bias", ffn_ratio=4, multi_query=True)),
    ("refinedweb", Traits(gated=False, tied=True, bias_key="bias", ffn_ratio=4)),
    ("mpt", Traits(gated=False, tied=True, bias_key="no_bias", learned_positions=True, ffn_ratio=4)),
    ("starcoder2", Traits(gated=False, tied=True, biases=True, bias_key="use_bias")),
    ("bert electra distilbert clip_text_model siglip_text_model", Traits(gated=False, tied=True, biases=True, learned_positions=True)),
    ("roberta xlm_roberta camembert", Traits(gated=False, tied=True, biases=True, learned_positions=True, padding_positions=2)),
    ("t5", Traits(kind="encoder_decoder", gated=False, tied=True)),
    ("mt5 umt5", Traits(kind="encoder_decoder", gated=True)),
    ("bart mbart", Traits(kind="encoder_decoder", gated=False, tied=True, biases=True, learned_positions=True, extra_positions=2)),
    ("vit deit dinov2 clip_vision_model siglip_vision_model", Traits(kind="vit", gated=False, biases=True, bias_key="", ffn_ratio=4)),
)
TRAITS: Mapping[str, Traits] = MappingProxyType({name: traits for names, traits in FAMILIES for name in names.split()})

# The language part of a wrapper leaves out what its class has by default.
NESTED_DEFAULTS: Mapping[str, Mapping[str, object]] = MappingProxyType(
    {
        "llama": {
            "vocab_size": 32_000,
            "hidden_size": 4096,
            "intermediate_size": 11_008,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
        },
        "mistral": {
            "vocab_size": 32_000,
            "hidden_size": 4096,
            "intermediate_size": 14_336,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
        },
        "gemma3": {
            "vocab_size": 262_208,
            "hidden_size": 2304,
            "intermediate_size": 9216,
            "num_hidden_layers": 26,
            "num_attention_heads": 8,
            "num_key_value_heads": 4,
            "head_dim": 256,
            "sliding_window": 4096,
            "max_position_embeddings": 131_072,
        },
    }
)

STATE_SPACE = "its layers are not those of a transformer alone (state space, recurrence or linear attention)"
_SHARED = "its layers share weights, experts or caches in a way this shape cannot hold"
_TOWERS = "it is two models side by side: give the `text_config` or the `vision_config` on its own"
REFUSED: Mapping[str, str] = MappingProxyType(
    {
        name: reason
        for names, reason in (
            ("mamba mamba2 falcon_mamba codestral_mamba jamba bamba zamba zamba2 nemotron_h falcon_h1 granitemoehybrid", STATE_SPACE),
            ("rwkv rwkv5 rwkv6 rwkv7 xlstm recurrent_gemma griffin hyena striped_hyena stripedhyena retnet lfm2 lfm2_moe", STATE_SPACE),
            ("qwen3_next qwen3_5 qwen3_5_moe kimi_linear minimax minimax_text_01 olmo_hybrid bailing_hybrid plamo2", STATE_SPACE),
            ("albert gemma3n gemma4 switch_transformers nllb_moe funnel reformer", _SHARED),
            ("qwen", "its `intermediate_size` is twice the width of a block"),
            ("clip siglip siglip2 chinese_clip altclip", _TOWERS),
        )
        for name in names.split()
    }
)
# Keys that only configs of state-space, recurrent and linear-attention layers have.
STATE_SPACE_KEYS = (
    *("ssm_cfg", "ssm_state_size", "state_size", "mamba_d_state", "mamba_d_ssm", "mamba_num_heads", "hybrid_override_pattern"),
    *("layers_block_type", "attn_layer_period", "attn_layer_indices", "linear_num_value_heads", "full_attention_interval"),
    *("linear_attn_config", "attn_type_list", "lru_width"),
)


def canonical(model_type: str) -> str:
    """The model type as the table spells it: `xlm-roberta` is `xlm_roberta`, `gemma3_text` is `gemma3`."""
    name = model_type.strip().lower().replace("-", "_")
    shorter = name.removesuffix("_text_model").removesuffix("_text")
    return shorter if name not in TRAITS and (shorter in TRAITS or shorter in REFUSED) else name
