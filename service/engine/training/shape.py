"""A transformer's shape from what is known of it: stated fields, a stated parameter count, and the field's usual proportions.

Width to depth: hidden_size = 128 * layers holds within a fifth from GPT-3's 1.3B to LLaMA's 65B and GPT-3's 175B (Brown et al. 2020, arXiv
2005.14165, table 2.1; Touvron et al. 2023, arXiv 2302.13971, table 2); heads of 128 and gated feed-forwards of 8/3 hidden sizes as there
(Shazeer 2020, arXiv 2002.05202, section 2).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from service.domain.errors import InvalidRequest
from service.domain.training.model import STATE_SPACE_FIELDS, Experts, LatentAttention, StateSpace, Transformer, read_state_space
from service.engine.training.parameters import count_parameters, feed_forward_parameters

WIDTH_PER_LAYER = 128
HEAD_DIM = 128
GATED_FFN_RATIO = 8 / 3
PLAIN_FFN_RATIO = 4
ROUND_TO = 128
# Hidden sizes from a width on are multiples of a step: heads of 128 in eights, fours and ones, as tensor parallelism wants them.
WIDTH_STEPS = ((4096, 8 * HEAD_DIM), (1024, 4 * HEAD_DIM), (0, HEAD_DIM))
USUAL_VOCABULARY = 32000
DISAGREEMENT_SHARE = 0.2
# Names of models round their counts by up to this.
COUNT_ROUNDING_SHARE = 0.05
# Mixtures below this many total to active parameters look like Mixtral (2 of 8 experts), those above like DeepSeek (8 of many).
COARSE_EXPERTS_RATIO = 5
# Numbers of experts have many divisors, most of them powers of two: 8, 64, 128, 160, 256, 384. An inferred one is moved by less than this.
EXPERTS_ROUNDING_SHARE = 0.1
STATE_SPACE_REQUIRED = ("ssm_layers", "ssm_heads", "ssm_head_dim", "ssm_state_size")
LATENT_FIELDS = ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
COMPLETE_FIELDS = ("layers", "hidden_size", "attention_heads", "ffn_hidden_size", "vocab_size")


@dataclass(frozen=True, slots=True)
class InferredShape:
    """A complete shape, the fields of it that were assumed, and warnings."""

    model: Transformer
    assumed: Mapping[str, Any]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StatedRanks:
    """Ranks that the caller divides a model over: heads and experts that are not stated are multiples of them."""

    tensor: int = 1
    expert: int = 1


UNDIVIDED = StatedRanks()


def infer_shape(fields: Mapping[str, Any], ranks: StatedRanks = UNDIVIDED) -> InferredShape:
    """Complete shape from the contract's fields. Stated counts replace the shape's where experts or a partial shape are stated.

    Parameters
    ----------
    fields : mapping of str to number or str
        Fields of the request's `model`.
    ranks : StatedRanks
        Ranks that the caller divides the model over.

    Returns
    -------
    InferredShape
        Shape, assumed fields, warnings.

    Raises
    ------
    InvalidRequest
        The fields contradict each other: heads that do not divide, experts without their count, a complete dense shape more than 20 %
        off the stated parameters.
    """
    params, active = fields.get("params"), fields.get("active_params")
    _check_counts(params, active)
    assumed: dict[str, Any] = {}
    sizes = _sizes(fields, assumed)
    heads = _heads(fields, sizes["hidden_size"], ranks.tensor, assumed)
    ffn = _feed_forward(fields, sizes["hidden_size"], assumed)
    kind = fields.get("architecture", "transformer")
    model = Transformer(
        layers=sizes["layers"],
        hidden_size=sizes["hidden_size"],
        ffn_hidden_size=ffn,
        vocab_size=_choose(fields, assumed, "vocab_size", _vocabulary(fields)),
        kind=kind,
        gated_ffn=fields.get("gated_ffn", kind == "transformer"),
        tied_embeddings=fields.get("tied_embeddings", False),
        masked_share=fields.get("masked_share", 0.0),
        sliding_window=fields.get("sliding_window"),
        global_attention_every=fields.get("global_attention_every", 0),
        experts=None,
        latent=_latent(fields),
        state_space=_state_space(fields, sizes["layers"]),
        ffn_layers=_ffn_layers(fields),
        decoder_layers=_decoder_layers(fields, kind, sizes["layers"], assumed),
        attention_heads=heads["attention_heads"],
        kv_heads=heads["kv_heads"],
        head_dim=heads["head_dim"],
    )
    model = replace(model, experts=_experts(fields, model, ranks.expert, assumed))
    model = _with_matrices_of_count(fields, model, assumed)
    return _with_stated_counts(fields, model, assumed)


def _choose(fields: Mapping[str, Any], assumed: dict[str, Any], field: str, value: Any) -> Any:
    if field in fields:
        return fields[field]
    assumed[field] = value
    return value


def _check_counts(params: float | None, active: float | None) -> None:
    if active is not None and params is None:
        raise InvalidRequest("active_params needs params, the count of all parameters", "/model/params")
    if active is not None and params is not None and active > params:
        raise InvalidRequest(f"active_params {active:g} cannot be above params {params:g}", "/model/active_params")


def _sizes(fields: Mapping[str, Any], assumed: dict[str, Any]) -> dict[str, int]:
    """Layers and hidden size, from the parameter count where they are not stated. Raises InvalidRequest."""
    # From 12 * layers * hidden_size^2 (Kaplan et al. 2020, table 1) and embeddings. An encoder layer goes with a decoder layer, which has
    # cross-attention too: 28 * hidden_size^2 for both.
    body = float(fields.get("active_params") or fields.get("params") or 0)
    layers, hidden = fields.get("layers"), fields.get("hidden_size")
    if not body and (layers is None or hidden is None):
        missing = "hidden_size" if hidden is None else "layers"
        raise InvalidRequest(f"a shape needs layers and hidden_size, or params; {missing} is missing", f"/model/{missing}")
    squares = 28 if fields.get("architecture") == "encoder_decoder" else 12
    embedded = _vocabulary(fields) * (1 if fields.get("tied_embeddings") or fields.get("architecture") == "vit" else 2)
    if hidden is None:
        usual = layers or max(1, round((body / (squares * WIDTH_PER_LAYER**2)) ** (1 / 3)))
        hidden = assumed["hidden_size"] = _width(fields, body, squares * usual, embedded)
    if layers is None:
        layers = assumed["layers"] = max(1, round((body - embedded * hidden) / (squares * hidden**2)))
    return {"layers": layers, "hidden_size": hidden}


def _width(fields: Mapping[str, Any], body: float, squares: int, embedded: int) -> int:
    """Hidden size h with squares * h^2 + embedded * h = body, rounded so that heads divide it evenly."""
    exact: float = ((embedded**2 + 4 * squares * body) ** 0.5 - embedded) / (2 * squares)
    heads = fields.get("attention_heads")
    if heads is None or "head_dim" in fields:
        step = next(size for width, size in WIDTH_STEPS if exact >= width)
    else:
        step = int(heads * max(1, round(HEAD_DIM / heads)))
    return max(step, round(exact / step) * step)


def _vocabulary(fields: Mapping[str, Any]) -> int:
    return int(fields.get("vocab_size", 1000 if fields.get("architecture") == "vit" else USUAL_VOCABULARY))


def _heads(fields: Mapping[str, Any], hidden: int, tensor_ranks: int, assumed: dict[str, Any]) -> dict[str, int]:
    """Heads and their sizes. Raises InvalidRequest where stated ones do not divide."""
    heads = _choose(fields, assumed, "attention_heads", _usual_heads(fields, hidden, tensor_ranks))
    kv_heads = _choose(fields, assumed, "kv_heads", heads)
    if heads % kv_heads:
        raise InvalidRequest(f"{heads} attention heads do not divide into {kv_heads} key-value heads", "/model/kv_heads")
    return {"attention_heads": heads, "kv_heads": kv_heads, "head_dim": _head_dim(fields, hidden, heads, assumed)}


def _usual_heads(fields: Mapping[str, Any], hidden: int, tensor_ranks: int) -> int:
    """Heads nearest to the usual size that make up the hidden size, in full groups of the stated key-value heads and tensor ranks."""
    group = math.lcm(fields.get("kv_heads", 1), tensor_ranks)
    usual = hidden / fields.get("head_dim", HEAD_DIM if hidden >= 2 * HEAD_DIM else hidden)
    number = _nearest_multiple(usual, group)
    if tensor_ranks == 1 or "head_dim" in fields or hidden % number == 0:
        return number
    dividing = [heads for heads in range(group, int(4 * usual) + 1, group) if hidden % heads == 0]
    return int(min(dividing, key=lambda heads: abs(math.log(heads / usual)), default=number))


def _head_dim(fields: Mapping[str, Any], hidden: int, heads: int, assumed: dict[str, Any]) -> int:
    if "head_dim" in fields:
        return int(fields["head_dim"])
    if "qk_nope_head_dim" in fields and "qk_rope_head_dim" in fields:
        return int(fields["qk_nope_head_dim"] + fields["qk_rope_head_dim"])
    if hidden % heads == 0:
        return hidden // heads
    if "attention_heads" in fields:
        raise InvalidRequest(
            f"hidden_size {hidden} does not divide into {heads} attention heads; state head_dim if that is meant", "/model/attention_heads"
        )
    return int(_choose(fields, assumed, "head_dim", max(1, round(hidden / heads))))


def _feed_forward(fields: Mapping[str, Any], hidden: int, assumed: dict[str, Any]) -> int:
    gated = fields.get("gated_ffn", fields.get("architecture", "transformer") == "transformer")
    usual = GATED_FFN_RATIO * hidden if gated else PLAIN_FFN_RATIO * hidden
    return int(_choose(fields, assumed, "ffn_hidden_size", max(ROUND_TO, round(usual / ROUND_TO) * ROUND_TO)))


def _decoder_layers(fields: Mapping[str, Any], kind: str, layers: int, assumed: dict[str, Any]) -> int:
    if kind != "encoder_decoder":
        if fields.get("decoder_layers"):
            raise InvalidRequest('decoder_layers needs architecture "encoder_decoder"', "/model/decoder_layers")
        return 0
    return int(_choose(fields, assumed, "decoder_layers", layers))


def _latent(fields: Mapping[str, Any]) -> LatentAttention | None:
    named = [field for field in (*LATENT_FIELDS, "q_lora_rank") if field in fields]
    if not named:
        return None
    missing = [field for field in LATENT_FIELDS if field not in fields]
    if missing:
        raise InvalidRequest(f"latent attention needs {', '.join(LATENT_FIELDS)}; {missing[0]} is missing", f"/model/{missing[0]}")
    return LatentAttention(**{field: fields[field] for field in named})


def _state_space(fields: Mapping[str, Any], layers: int) -> StateSpace | None:
    """State-space layers. Raises InvalidRequest where fields are missing, layers are too many, or heads do not divide into groups."""
    named = [field for field in STATE_SPACE_FIELDS if field in fields]
    missing = [field for field in STATE_SPACE_REQUIRED if field not in fields]
    if named and missing:
        needed = ", ".join(STATE_SPACE_REQUIRED)
        raise InvalidRequest(f"state-space layers need {needed}; {missing[0]} is missing", f"/model/{missing[0]}")
    if named and fields["ssm_layers"] + fields.get("ffn_layers", 0) > layers:
        raise InvalidRequest(f"{fields['ssm_layers']} state-space layers are more than the {layers} layers hold", "/model/ssm_layers")
    mixer = read_state_space(fields)
    if mixer is not None and mixer.heads % mixer.groups:
        raise InvalidRequest(
            f"{mixer.heads} state-space heads do not divide into {mixer.groups} groups; take a divisor", "/model/ssm_groups"
        )
    return mixer


def _ffn_layers(fields: Mapping[str, Any]) -> int | None:
    """Feed-forward blocks of a hybrid whose layers are one block each; None elsewhere. Raises InvalidRequest."""
    blocks = fields.get("ffn_layers")
    if blocks is not None and "ssm_layers" not in fields:
        raise InvalidRequest("ffn_layers belongs to hybrids: state ssm_layers too, or leave it out", "/model/ffn_layers")
    return blocks


def _experts(fields: Mapping[str, Any], model: Transformer, expert_ranks: int, assumed: dict[str, Any]) -> Experts | None:
    """Stated experts, or the usual ones of a total and an active count. Raises InvalidRequest."""
    if "experts" not in fields:
        stray = [f for f in ("experts_per_token", "shared_experts", "expert_ffn_hidden_size", "dense_layers", "moe_every") if f in fields]
        if stray:
            raise InvalidRequest(f"{stray[0]} needs experts, the number of experts in a layer", "/model/experts")
        if fields.get("active_params") is None or fields["active_params"] >= fields["params"]:
            return None
        return _usual_experts(fields["params"], fields["active_params"], model, expert_ranks, assumed)
    experts = Experts(
        experts=fields["experts"],
        experts_per_token=_choose(fields, assumed, "experts_per_token", min(2, fields["experts"])),
        ffn_hidden_size=_choose(fields, assumed, "expert_ffn_hidden_size", model.ffn_hidden_size),
        shared_experts=fields.get("shared_experts", 0),
        dense_layers=fields.get("dense_layers", 0),
        moe_every=fields.get("moe_every", 1),
    )
    if experts.experts_per_token > experts.experts:
        raise InvalidRequest(f"a token cannot visit {experts.experts_per_token} of {experts.experts} experts", "/model/experts_per_token")
    if experts.dense_layers >= model.layers:
        raise InvalidRequest(f"{experts.dense_layers} dense layers leave none of the {model.layers} for experts", "/model/dense_layers")
    return experts


def _usual_experts(params: float, active: float, model: Transformer, expert_ranks: int, assumed: dict[str, Any]) -> Experts:
    """Experts of which the active ones make up the active count and the others the rest."""
    coarse = 2 if params / active < COARSE_EXPERTS_RATIO else 8
    body = model.layers * feed_forward_parameters(model, model.ffn_hidden_size)
    stored_over_visited = max(1.0, (params - count_parameters(model).total + body) / body)
    usual = coarse * stored_over_visited
    number = _round_experts(usual, expert_ranks)
    # More ranks than usual experts: a mixture of narrower experts, of which a token visits more.
    visited = min(number, coarse * max(1, round(number / usual)))
    width = max(ROUND_TO, round(model.ffn_hidden_size / visited / ROUND_TO) * ROUND_TO)
    assumed |= {"experts": number, "experts_per_token": visited, "expert_ffn_hidden_size": width}
    return Experts(number, visited, width)


def _round_experts(number: float, expert_ranks: int) -> int:
    """The multiple of the ranks nearest to `number` that has the largest power of two as a factor without being far from it."""
    powers = (2**exponent for exponent in range(math.ceil(math.log2(number)), 0, -1))
    rounded = (_nearest_multiple(number, math.lcm(power, expert_ranks)) for power in powers)
    return next((near for near in rounded if abs(near / number - 1) < EXPERTS_ROUNDING_SHARE), _nearest_multiple(number, expert_ranks))


def _nearest_multiple(number: float, step: int) -> int:
    return step * max(1, round(number / step))


def _with_matrices_of_count(fields: Mapping[str, Any], model: Transformer, assumed: dict[str, Any]) -> Transformer:
    """A complete dense shape with the matrices that make up the stated count, where gate or tied embeddings are not stated."""
    # The usual ones, a gate and an output head of its own, unless they miss the count; of those that miss, the nearest.
    params = fields.get("params")
    open_fields = [name for name in ("gated_ffn", "tied_embeddings") if name not in fields]
    if params is None or model.experts is not None or model.state_space is not None or not _is_complete(fields) or not open_fields:
        return model
    choices = [
        dict(zip(open_fields, values, strict=True))
        for values in itertools.product(*([getattr(model, name), not getattr(model, name)] for name in open_fields))
    ]
    gaps = [abs(count_parameters(replace(model, **choice)).total / params - 1) for choice in choices]
    best = next((at for at, gap in enumerate(gaps) if gap < COUNT_ROUNDING_SHARE), gaps.index(min(gaps)))
    assumed |= {name: value for name, value in choices[best].items() if value != getattr(model, name)}
    return replace(model, **choices[best])


def _is_complete(fields: Mapping[str, Any]) -> bool:
    return all(field in fields for field in COMPLETE_FIELDS)


def _with_stated_counts(fields: Mapping[str, Any], model: Transformer, assumed: dict[str, Any]) -> InferredShape:
    params, active = fields.get("params"), fields.get("active_params")
    if params is None:
        return InferredShape(model, assumed)
    counted = count_parameters(model).total
    gap = abs(counted - params) / params
    complete = _is_complete(fields)
    partial = any(field in fields for field in (*COMPLETE_FIELDS, "experts"))
    if complete and model.experts is None and gap > DISAGREEMENT_SHARE:
        raise InvalidRequest(
            f"the shape has {counted / 1e9:.3g}B parameters, params says {params / 1e9:.3g}B; correct one of them",
            "/model/params",
        )
    warnings: tuple[str, ...] = ()
    if partial and gap > DISAGREEMENT_SHARE:
        warnings = (f"the shape, completed as in assumptions, has {counted / 1e9:.3g}B parameters; the stated {params / 1e9:.3g}B count",)
    return InferredShape(replace(model, params=float(params), active_params=None if active is None else float(active)), assumed, warnings)
