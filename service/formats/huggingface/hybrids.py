"""Hybrids of attention and state-space or linear-attention layers in a Hugging Face config."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from service.domain.training.model import Experts, StateSpace
from service.formats.huggingface.fields import Section
from service.formats.huggingface.layers import read_experts
from service.formats.huggingface.traits import Traits


@dataclass(frozen=True, slots=True)
class HybridLayers:
    """The state-space layers of a config, and what goes with them; `ffn_layers` as in `Transformer`."""

    state_space: StateSpace
    experts: Experts | None
    ffn_layers: int | None = None
    ffn_hidden_size: int | None = None


def read_hybrid(section: Section, model_type: str, traits: Traits, layers: int) -> HybridLayers | None:
    """The hybrid's layers; None where the model type is none. Raises InvalidRequest for patterns that say something else."""
    reader = READERS.get(model_type)
    return reader(section, traits, layers) if reader else None


def _nemotron(section: Section, _: Traits, layers: int) -> HybridLayers:
    """Layers of one block each, by a letter: M carries states, * attends, - is a feed-forward block, E one of experts."""
    name = "hybrid_override_pattern"
    blocks = Counter(section.text(name))
    if blocks.total() != layers or blocks.keys() - set("M*-E") or not blocks["M"]:
        raise section.problem(name, f"expected a letter of M, *, - and E for each of the {layers} layers, one of them M")
    experts = Experts(
        experts=section.need(("n_routed_experts",)),
        experts_per_token=section.need(("num_experts_per_tok",)),
        ffn_hidden_size=section.need(("moe_intermediate_size",)),
        shared_experts=section.count(("n_shared_experts",), least=0) or 0,
        shared_ffn_hidden_size=section.count(("moe_shared_expert_intermediate_size",), least=0) or 0,
        dense_layers=blocks["-"],
    )  if blocks["E"] else None  # fmt: skip
    mixer = StateSpace(
        layers=blocks["M"],
        heads=section.need(("mamba_num_heads",)),
        head_dim=section.need(("mamba_head_dim",)),
        state_size=section.need(("ssm_state_size",)),
        groups=section.count(("n_groups",)) or 1,
        conv_kernel=section.count(("conv_kernel",)) or 4,
    )
    return HybridLayers(mixer, experts, ffn_layers=blocks["-"] + blocks["E"])


def _granite(section: Section, traits: Traits, layers: int) -> HybridLayers:
    """Mamba-2 where the list of layers says so; without routed experts the feed-forward block is the shared one."""
    mixer = StateSpace(
        layers=_listed(section, "mamba", layers),
        heads=section.need(("mamba_n_heads",)),
        head_dim=section.need(("mamba_d_head",)),
        state_size=section.need(("mamba_d_state",)),
        groups=section.count(("mamba_n_groups",)) or 1,
        conv_kernel=section.count(("mamba_d_conv",)) or 4,
    )
    experts = read_experts(section, traits, layers)
    return HybridLayers(mixer, experts, ffn_hidden_size=None if experts else section.count(("shared_intermediate_size",)))


def _qwen(section: Section, traits: Traits, layers: int) -> HybridLayers:
    """Gated DeltaNet in all layers but every so many; keys and queries have heads of their own."""
    every = section.count(("full_attention_interval",)) or 4
    listed = _listed(section, "linear_attention", layers) if section.items("layer_types") else layers - layers // every
    mixer = StateSpace(
        layers=listed,
        heads=section.need(("linear_num_value_heads",)),
        head_dim=section.need(("linear_value_head_dim",)),
        state_size=section.need(("linear_key_head_dim",)),
        groups=section.need(("linear_num_key_heads",)),
        conv_kernel=section.count(("linear_conv_kernel_dim",)) or 4,
        delta_rule=True,
    )
    return HybridLayers(mixer, read_experts(section, traits, layers))


def _listed(section: Section, kind: str, layers: int) -> int:
    """How many of the listed layers are of a kind."""
    kinds = section.items("layer_types")
    if len(kinds) != layers or not any(one == kind for one in kinds):
        raise section.problem("layer_types", f"expected the kind of each of the {layers} layers, one of them {kind}")
    return sum(one == kind for one in kinds)


READERS: Mapping[str, Callable[[Section, Traits, int], HybridLayers]] = {
    "nemotron_h": _nemotron,
    "granitemoehybrid": _granite,
    "qwen3_next": _qwen,
}
"""By model type; other hybrids are refused."""
