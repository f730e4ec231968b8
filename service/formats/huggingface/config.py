"""A Hugging Face `config.json` as the shape of a transformer.

What a model type implies without saying so stands in `data/model_types.toml`; experts and windows are read in `layers.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from service.domain.errors import InvalidRequest
from service.domain.training.model import LatentAttention, Transformer
from service.formats.huggingface.fields import Section
from service.formats.huggingface.hybrids import READERS, read_hybrid
from service.formats.huggingface.layers import Window, read_experts, read_window
from service.formats.huggingface.traits import GENERIC, Traits, canonical, load_model_types

POINTER = "/model/hf_config"
MOST_LAYERS = 10_000
USUAL_CLASSES = 1000

LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers")
DECODER_LAYERS = ("num_decoder_layers", "decoder_layers")
HIDDEN = ("hidden_size", "n_embd", "n_embed", "d_model", "dim")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num", "attn_config.kv_n_heads")
HEAD_DIM = ("head_dim", "d_kv")
FFN = (
    *("intermediate_size", "ffn_dim", "d_ff", "n_inner", "ffn_hidden_size", "encoder_ffn_dim"),
    *("hidden_dim", "ffn_config.ffn_hidden_size", "moe_intermediate_size"),
)
VOCABULARY = ("vocab_size", "padded_vocab_size")
CONTEXT = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "max_sequence_length", "seq_length")
# Rotary scalings beside which `max_position_embeddings` may be what the model was trained with (vLLM's `max_model_len` is derived alike).
INTERPOLATIONS = frozenset({"linear", "dynamic", "yarn"})
SCALED_CONTEXT_STATED = frozenset({"gemma3"})
LANGUAGE_PARTS = ("text_config", "llm_config", "language_config")
OTHER_PARTS = ("vision_config", "audio_config", "vision_tower", "mm_vision_tower", "visual")
PREDICTION_LAYERS = ("num_nextn_predict_layers", "num_mtp_modules")
ONLY_LANGUAGE = "only the language model is counted, not the encoder beside it"
GATED_ACTIVATIONS = frozenset({"silu", "swish", "swiglu", "geglu", "reglu", "glu"})


@dataclass(frozen=True, slots=True)
class HfModel:
    """What a `config.json` says: the shape, the longest sequence in tokens (None: not stated), and what was assumed."""

    model: Transformer
    context_tokens: int | None
    warnings: tuple[str, ...]


def read_hf_config(config: Mapping[str, object]) -> HfModel:
    """The transformer that the content of a Hugging Face `config.json` describes.

    Known model types are read with what they imply (see `traits`); others by their usual keys, with a warning. A
    multimodal wrapper is read by its language part. Counts published elsewhere are not looked up: `params` stays None.
    Raises `InvalidRequest`, pointing at the key, for missing or impossible values, and for state-space models and hybrids that are not in
    `hybrids.py`.
    """
    section, warnings = _language_part(Section(config, POINTER))
    model_type = _model_type(section)
    traits = load_model_types().traits.get(model_type, GENERIC)
    if traits is GENERIC:
        warnings += (_generic_warning(model_type),)
    if section.count(PREDICTION_LAYERS, least=0):
        warnings += ("layers for multi-token prediction are not counted",)
    if traits.kind == "vit":
        return _vision_model(section, traits, warnings)
    return _language_model(section, traits, warnings)


def _language_part(outer: Section) -> tuple[Section, tuple[str, ...]]:
    """The section that describes the language model, which wrappers of several models hold in a member."""
    _model_type(outer)
    encoder = (ONLY_LANGUAGE,) if outer.has(OTHER_PARTS) else ()
    name = next((name for name in LANGUAGE_PARTS if outer.has((name,))), None)
    if name is None or outer.has(LAYERS):
        return outer, encoder
    inner = outer.section(name)
    if inner is None:
        return outer, encoder
    return _with_defaults(outer, inner), (*_left_out(outer, inner), f"read from `{name}`: {ONLY_LANGUAGE}")


def _with_defaults(outer: Section, inner: Section) -> Section:
    """The inner section, with what the wrapper and then the class of the model say where it says nothing."""
    inherited = {key: outer.values[key] for key in ("model_type", "tie_word_embeddings") if key in outer.values}
    return Section({**_class_defaults(outer, inner), **inherited, **inner.values}, inner.pointer)


def _left_out(outer: Section, inner: Section) -> Iterator[str]:
    missing = [key for key in _class_defaults(outer, inner) if key not in inner.values]
    if missing:
        yield f"{', '.join(missing)} left out: taken as the defaults of model type {_inner_type(outer, inner)!r}"


def _class_defaults(outer: Section, inner: Section) -> Mapping[str, object]:
    return load_model_types().nested_defaults.get(_inner_type(outer, inner), {})


def _inner_type(outer: Section, inner: Section) -> str:
    return canonical(inner.text("model_type") or outer.text("model_type"))


def _model_type(section: Section) -> str:
    """The model type as the tables spell it, refused where its layers are none that a transformer's shape can hold."""
    model_type, known = canonical(section.text("model_type")), load_model_types()
    if model_type in known.refused:
        raise _refusal(section, "model_type", f"model type {model_type!r}", known.refused[model_type])
    if model_type not in READERS and (state_space := section.find(known.state_space_keys)):
        raise _refusal(section, state_space[0], f"a model with `{state_space[0]}`", known.state_space)
    return model_type


def _refusal(section: Section, key: str, what: str, reason: str) -> InvalidRequest:
    return section.problem(key, f"{what} cannot be read from its config: {reason}; give `params` or `flops_per_sample` instead")


def _generic_warning(model_type: str) -> str:
    name = f"model type {model_type[:40]!r} is not known" if model_type else "the config names no `model_type`"
    return (
        f"{name}: read as a decoder with full attention unless `sliding_window` says otherwise, rotary positions, no biases, "
        "an untied head unless `tie_word_embeddings` says otherwise, and a gated feed-forward block if its activation is usually gated"
    )


def _language_model(section: Section, traits: Traits, warnings: tuple[str, ...]) -> HfModel:
    _refuse_uneven(section)
    layers = section.need(LAYERS, most=MOST_LAYERS)
    heads, hidden = section.need(HEADS), section.need(HIDDEN)
    _refuse_narrow_embeddings(section, hidden)
    latent = _latent_attention(section)
    context = _context(section)
    hybrid = read_hybrid(section, canonical(section.text("model_type")), traits, layers)
    window = Window() if hybrid else read_window(section, traits, layers)
    model = Transformer(
        layers=layers,
        hidden_size=hidden,
        attention_heads=heads,
        kv_heads=heads if latent else _kv_heads(section, traits, heads),
        head_dim=latent.qk_nope_head_dim + latent.qk_rope_head_dim if latent else _head_dim(section, hidden, heads),
        ffn_hidden_size=hybrid.ffn_hidden_size if hybrid and hybrid.ffn_hidden_size else _ffn_hidden_size(section, traits, hidden),
        vocab_size=section.need(VOCABULARY),
        kind=traits.kind,
        gated_ffn=_is_gated(section, traits),
        tied_embeddings=section.flag("tie_word_embeddings", default=traits.tied),
        biases=_has_biases(section, traits),
        max_positions=_learned_positions(section, traits),
        masked_share=traits.masked_share,
        sliding_window=window.tokens,
        global_attention_every=window.global_every,
        experts=hybrid.experts if hybrid else read_experts(section, traits, layers),
        latent=latent,
        state_space=hybrid.state_space if hybrid else None,
        ffn_layers=hybrid.ffn_layers if hybrid else None,
        decoder_layers=_decoder_layers(section, traits, layers),
    )
    usable_context = None if context is None else max(1, context - traits.padding_positions)
    return HfModel(model, usable_context, (*warnings, *window.warnings))


def _vision_model(section: Section, traits: Traits, warnings: tuple[str, ...]) -> HfModel:
    """An image encoder: a sequence of patches and one class token, and a head of as many outputs as there are classes."""
    hidden, heads = section.need(HIDDEN), section.need(HEADS)
    patches = section.need(("image_size",)) // section.need(("patch_size",))
    if not patches:
        raise section.problem("patch_size", "a patch cannot be larger than the image")
    classes = _classes(section)
    swiglu = section.flag("use_swiglu_ffn", default=False)
    ffn = _ffn_hidden_size(section, traits, hidden)
    model = Transformer(
        layers=section.need(LAYERS, most=MOST_LAYERS),
        hidden_size=hidden,
        attention_heads=heads,
        kv_heads=heads,
        head_dim=_head_dim(section, hidden, heads),
        # DINOv2 (arXiv 2304.07193) keeps the weights of the two-matrix block: two thirds, rounded up to eights.
        ffn_hidden_size=(ffn * 2 // 3 + 7) // 8 * 8 if swiglu else ffn,
        vocab_size=classes or USUAL_CLASSES,
        kind="vit",
        gated_ffn=swiglu,
        biases=True,
        max_positions=patches**2 + 1,
    )
    assumed = () if classes else (f"the config names no classes: a head of {USUAL_CLASSES} is assumed",)
    return HfModel(model, patches**2 + 1, (*warnings, *assumed))


def _context(section: Section) -> int | None:
    """Longest sequence that serving engines accept [tokens]; None where the config states none.

    Positions that are interpolated reach `factor` times those trained with. Configs with other rotary scalings state the longer context.
    """
    context = section.count(CONTEXT)
    scaling = section.section("rope_scaling") or section.section("rope_parameters")
    if context is None or scaling is None or _model_type(section) in SCALED_CONTEXT_STATED:
        return context
    factor = scaling.ratio("factor")
    if factor is None or (scaling.text("rope_type") or scaling.text("type")) not in INTERPOLATIONS:
        return context
    return max(context, round(factor * (scaling.count(("original_max_position_embeddings",)) or context)))


def _classes(section: Section) -> int | None:
    labels = section.section("id2label")
    if labels is not None and labels.values:
        return len(labels.values)
    return section.count(("num_labels", "projection_dim"))


def _head_dim(section: Section, hidden: int, heads: int) -> int:
    explicit = section.count(HEAD_DIM)
    if explicit is not None:
        return explicit
    if hidden % heads:
        raise section.problem(_said(section, HEADS), f"{heads} heads do not divide the hidden size {hidden} and there is no `head_dim`")
    return hidden // heads


def _kv_heads(section: Section, traits: Traits, heads: int) -> int:
    """Heads of keys and values: one with multi-query attention, as many as of queries where the config says nothing."""
    if traits.multi_query and not section.flag("new_decoder_architecture", default=False):
        return 1 if section.flag("multi_query", default=True) else heads
    kv_heads = section.count(KV_HEADS) or heads
    if heads % kv_heads:
        raise section.problem(_said(section, KV_HEADS), f"{kv_heads} key-value heads do not divide {heads} attention heads")
    return kv_heads


def _latent_attention(section: Section) -> LatentAttention | None:
    rank = section.count(("kv_lora_rank",))
    if rank is None:
        return None
    return LatentAttention(
        kv_lora_rank=rank,
        qk_nope_head_dim=section.need(("qk_nope_head_dim",)),
        qk_rope_head_dim=section.need(("qk_rope_head_dim",)),
        v_head_dim=section.need(("v_head_dim",)),
        q_lora_rank=section.count(("q_lora_rank",), least=0) or 0,
    )


def _ffn_hidden_size(section: Section, traits: Traits, hidden: int) -> int:
    """Width of the dense feed-forward block, by the model type's ratio where the config leaves it out.

    Llama 4 keeps that of its dense layers apart from that of its experts.
    """
    dense = section.count(("intermediate_size_mlp",))
    if dense is not None:
        return dense
    ratio = section.ratio("expansion_ratio") or section.ratio("mlp_ratio") or traits.ffn_ratio
    if section.has(FFN) or not ratio:
        return section.need(FFN)
    return max(1, int(hidden * ratio))


def _is_gated(section: Section, traits: Traits) -> bool:
    if traits.kind == "encoder_decoder" and (section.has(("is_gated_act",)) or section.has(("feed_forward_proj",))):
        return section.flag("is_gated_act", default=section.text("feed_forward_proj").startswith("gated"))
    if traits.gated is not None:
        return traits.gated
    activation = next((section.text(key) for key in ("hidden_act", "hidden_activation") if section.has((key,))), "silu")
    return activation.lower() in GATED_ACTIVATIONS


def _has_biases(section: Section, traits: Traits) -> bool:
    if not traits.bias_key:
        return traits.biases
    if traits.bias_key == "no_bias":
        return not section.flag("no_bias", default=not traits.biases)
    return section.flag(traits.bias_key, default=traits.biases)


def _learned_positions(section: Section, traits: Traits) -> int:
    """Rows of the position tables; the encoder and the decoder have one each."""
    # ALiBi replaces the table (MPT).
    if not traits.learned_positions or section.flag("attn_config.alibi", default=False):
        return 0
    tables = 2 if traits.kind == "encoder_decoder" else 1
    return tables * (section.need(CONTEXT) + traits.extra_positions)


def _decoder_layers(section: Section, traits: Traits, layers: int) -> int:
    if traits.kind != "encoder_decoder":
        return 0
    return section.count(DECODER_LAYERS, most=MOST_LAYERS) or layers


def _refuse_uneven(section: Section) -> None:
    """The shape has one width for both halves of an encoder-decoder."""
    for ours, theirs in (("encoder_attention_heads", "decoder_attention_heads"), ("encoder_ffn_dim", "decoder_ffn_dim")):
        encoder, decoder = section.count((ours,)), section.count((theirs,))
        if encoder and decoder and encoder != decoder:
            raise section.problem(theirs, f"differs from `{ours}`, which this shape cannot hold; give `params` instead")


def _refuse_narrow_embeddings(section: Section, hidden: int) -> None:
    for name in ("embedding_size", "word_embed_proj_dim"):
        width = section.count((name,))
        if width not in (None, hidden):
            raise section.problem(name, f"embeddings {width} wide in a model {hidden} wide are not counted right; give `params` instead")


def _said(section: Section, names: tuple[str, ...]) -> str:
    return (section.find(names) or names)[0]
