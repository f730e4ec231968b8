"""Which layers of a Hugging Face config route to experts, and which look at a window only."""

from __future__ import annotations

from dataclasses import dataclass, replace

from service.domain.training.model import Experts
from service.formats.huggingface.fields import Section, whole_number
from service.formats.huggingface.traits import Traits

EXPERTS = ("num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts", "ffn_config.moe_num_experts")
VISITED = ("num_experts_per_tok", "experts_per_token", "moe_top_k", "moe_k", "ffn_config.moe_top_k")
EXPERT_FFN = ("moe_intermediate_size", "intermediate_size", "ffn_config.ffn_hidden_size")
SHARED = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts")
SHARED_FFN = ("shared_expert_intermediate_size", "shared_intermediate_size")
FIRST_ROUTED = ("first_k_dense_replace", "moe_layer_start_index")
STEP = ("decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval")
CHUNK = "attention_chunk_size"
PATTERN = ("sliding_window_pattern", "_sliding_window_pattern")
GLOBAL_KINDS = frozenset({"full_attention", "global"})
WINDOWED_KINDS = frozenset({"sliding_attention", "chunked_attention", "local"})


@dataclass(frozen=True, slots=True)
class Window:
    """The tokens a windowed layer attends to (None: there is no such layer) and every how many layers one attends to all."""

    tokens: int | None = None
    global_every: int = 0
    warnings: tuple[str, ...] = ()


def read_window(section: Section, traits: Traits, layers: int) -> Window:
    """The sliding window of the config, with the layers that attend to everything spread evenly over the model."""
    listed = _listed_global_layers(section, layers)
    tokens = section.count((traits.window_key,))
    if tokens is None or not section.flag("use_sliding_window", default=not traits.window_switch):
        return Window()
    window = _evenly(tokens, layers, _global_layers(section, traits, layers) if listed is None else listed)
    if window.tokens is None or traits.window_key != CHUNK:
        return window
    return replace(window, warnings=(*window.warnings, f"attention in chunks of {tokens} tokens is counted as a window of as many"))


def _evenly(tokens: int, layers: int, full: int) -> Window:
    """`full` of `layers` layers without a window, as every n-th: exact, or the nearest that does not count too little."""
    if full == layers:
        return Window()
    if full == 0:
        return Window(tokens)
    every = layers // full
    if layers // every == full:
        return Window(tokens, every)
    counted = layers // every
    warning = f"{full} of {layers} layers attend to all tokens; counted as {counted}"
    return Window(None, 0, (warning,)) if every == 1 else Window(tokens, every, (warning,))


def _listed_global_layers(section: Section, layers: int) -> int | None:
    """How many layers the config's list says attend to everything; None where it has no list."""
    name = next((name for name in ("layer_types", "attention_layers") if section.items(name)), None)
    if name is None:
        return None
    kinds = section.items(name)
    if len(kinds) != layers:
        raise section.problem(name, f"lists {len(kinds)} layers of {layers}")
    if not all(isinstance(kind, str) and kind in GLOBAL_KINDS | WINDOWED_KINDS for kind in kinds):
        raise section.problem(name, "has layers that are neither full nor windowed attention; give `params` or `flops_per_sample` instead")
    return sum(kind in GLOBAL_KINDS for kind in kinds)


def _global_layers(section: Section, traits: Traits, layers: int) -> int:
    # Qwen: the first `max_window_layers` layers have no window.
    if traits.window_switch:
        return min(layers, section.count(("max_window_layers",), least=0) or 0)
    # Llama 4: layers without rotary positions (0 in the list) look at all chunks.
    unrotated = section.items("no_rope_layers") if traits.window_key == CHUNK else ()
    if unrotated:
        return min(layers, sum(item == 0 for item in unrotated))
    every = section.count(PATTERN) or traits.global_every
    return layers // every if every else 0


def read_experts(section: Section, traits: Traits, layers: int) -> Experts | None:
    """The mixture of experts of the config; None where it is dense."""
    experts = section.count(EXPERTS, least=0)
    if not experts:
        return None
    routed = _routed_layers(section, layers)
    if not routed:
        return None
    dense_layers, moe_every = _as_pattern(routed, layers)
    shared, shared_ffn = _shared_experts(section, traits)
    return Experts(
        experts=experts,
        experts_per_token=_visited(section, experts),
        ffn_hidden_size=section.need(EXPERT_FFN),
        shared_experts=shared,
        shared_ffn_hidden_size=shared_ffn,
        dense_layers=dense_layers,
        moe_every=moe_every,
    )


def _visited(section: Section, experts: int) -> int:
    visited = section.need(VISITED)
    if visited > experts:
        raise section.problem(VISITED[0], f"a token cannot visit {visited} of {experts} experts")
    return visited


def _shared_experts(section: Section, traits: Traits) -> tuple[int, int]:
    """How many experts every token visits, and their width (0: that of the routed ones)."""
    width = section.count(SHARED_FFN, least=0)
    count = section.count(SHARED, least=0)
    if count is None:
        count = 1 if width else traits.shared_experts
    return count, width or 0


def _routed_layers(section: Section, layers: int) -> list[int]:
    """The indices of the layers that route, by any of the ways configs say it."""
    flags = section.find(("moe_layer_freq",))
    if flags is not None and isinstance(flags[1], list | tuple):
        return _flagged_layers(section, layers)
    listed = _indices(section, "moe_layers", layers)
    if listed:
        return sorted(listed)
    first = section.count(FIRST_ROUTED, least=0) or 0
    frequency = section.count(("moe_layer_freq",)) or 1
    step = section.count(STEP) or 1
    dense = _indices(section, "mlp_only_layers", layers)
    return [i for i in range(first, layers) if i not in dense and i % frequency == 0 and (i + 1) % step == 0]


def _flagged_layers(section: Section, layers: int) -> list[int]:
    flags = section.items("moe_layer_freq")
    if len(flags) != layers or not all(whole_number(flag) in (0, 1) for flag in flags):
        raise section.problem("moe_layer_freq", f"expected a 0 or 1 for each of the {layers} layers")
    return [i for i, flag in enumerate(flags) if flag]


def _indices(section: Section, name: str, layers: int) -> frozenset[int]:
    indices = [whole_number(item) for item in section.items(name)]
    if not all(index is not None and 0 <= index < layers for index in indices):
        raise section.problem(name, f"expected indices of layers, 0 to {layers - 1}")
    return frozenset(index for index in indices if index is not None)


def _as_pattern(routed: list[int], layers: int) -> tuple[int, int]:
    """(dense layers at the start, every how many of the rest routes): the layers' own pattern if it is one, else their number."""
    step = routed[1] - routed[0] if len(routed) > 1 else 1
    if step > 1 and routed == list(range(step - 1, layers, step)):
        return 0, step
    return layers - len(routed), 1
