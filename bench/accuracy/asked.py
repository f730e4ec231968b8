"""Measured rows as requests of POST /v1/estimate: what a user of the same job would send."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from service.domain.training.model import STATE_SPACE_FIELDS, GenericNetwork, LatentAttention, Model, Transformer
from service.domain.training.reinforcement import GenerationPool, Reinforcement
from service.domain.training.run import FROZEN_BASE, TODAYS_SOFTWARE, Cluster, Training

Request = dict[str, Any]
TOKENS = 10**12
# Enough samples for a run of some hours.
SAMPLES = 10**8
PRICE = {"usd_per_accelerator_hour": 2.0}
SAME_NAME = (
    *("layers", "hidden_size", "attention_heads", "kv_heads", "head_dim", "ffn_hidden_size", "gated_ffn", "vocab_size"),
    *("tied_embeddings", "sliding_window", "ffn_layers"),
)
MIXTURE = {
    "experts": "experts",
    "experts_per_token": "experts_per_token",
    "ffn_hidden_size": "expert_ffn_hidden_size",
    "shared_experts": "shared_experts",
    "dense_layers": "dense_layers",
    "moe_every": "moe_every",
}
RANKS = ("tensor", "pipeline", "data", "context", "expert", "expert_tensor", "virtual_pipeline")


def request_of(model: Model, training: Training, cluster: Cluster) -> Request:
    """The request of a job."""
    counted = isinstance(model, GenericNetwork)
    return {
        "model": _model(model),
        "data": {"samples": SAMPLES} if counted else {"tokens": TOKENS},
        "training": _training(model, training),
        "hardware": _hardware(cluster),
        "price": PRICE,
    }


def _model(model: Model) -> Request:
    if isinstance(model, GenericNetwork):
        return {"flops_per_sample": model.flops_per_sample, "sample_unit": model.sample_unit, "params": int(model.params or 0) or None}
    asked: Request = {name: getattr(model, name) for name in SAME_NAME} | {"architecture": model.kind}
    asked |= {"masked_share": model.masked_share or None, "decoder_layers": model.decoder_layers or None}
    asked |= {"global_attention_every": model.global_attention_every or None}
    if model.experts:
        asked |= {theirs: getattr(model.experts, ours) for ours, theirs in MIXTURE.items()}
    if model.latent:
        asked |= {field.name: getattr(model.latent, field.name) for field in fields(LatentAttention)}
    if model.state_space:
        asked |= {theirs: getattr(model.state_space, ours) for theirs, ours in STATE_SPACE_FIELDS.items()}
    stated = {name: int(value) for name in ("params", "active_params") if (value := getattr(model, name))}
    return _without_none(asked | stated)


def _training(model: Model, training: Training) -> Request:
    axes = training.axes
    ranks = {name: size for name in RANKS if (size := getattr(axes, name)) is not None}
    asked: Request = {
        "method": training.method,
        "precision": training.precision,
        "optimizer": training.optimizer,
        "flash_attention": training.flash_attention,
        "parallelism": ranks or "auto",
        "micro_batch": axes.micro_batch,
        "zero_stage": axes.zero_stage,
        "activation_recompute": axes.recompute,
        "software_year": training.software_year if training.software_year != TODAYS_SOFTWARE else None,
    }
    if training.states_dtype == "bf16":
        asked["states_dtype"] = training.states_dtype
    if training.kernel_fusion:
        asked["kernel_fusion"] = training.kernel_fusion
    if training.method in FROZEN_BASE:
        asked |= {"lora_rank": training.lora_rank, "adapter_targets": _targets(training.adapter_targets)}
    if isinstance(model, Transformer):
        asked |= _lengths(training)
    else:
        asked["global_batch_tokens"] = training.global_batch
    return _without_none(asked)


def _targets(targets: tuple[str, ...]) -> str | list[str]:
    return targets[0] if len(targets) == 1 and targets[0] in ("attention", "all_linear", "experts") else list(targets)


def _lengths(training: Training) -> Request:
    if training.rl:
        return {"rl": _reinforcement(training.rl), "reference_model": training.auxiliary_models.reference}
    asked: Request = {
        "seq_len": int(training.seq_len),
        "global_batch_tokens": int(training.global_batch * training.seq_len),
        "sequence_parallel": training.sequence_parallel,
    }
    return asked | ({"decoder_seq_len": int(training.decoder_seq_len)} if training.decoder_seq_len else {})


def _reinforcement(rl: Reinforcement) -> Request:
    lengths = rl.rollouts.lengths
    return _without_none(
        {
            "prompts_per_step": rl.rollouts.prompts,
            "responses_per_prompt": rl.rollouts.responses_per_prompt,
            "prompt_tokens": rl.rollouts.prompt_tokens,
            "response_tokens": {"p50": lengths.median_tokens, "max": lengths.max_tokens},
            "mini_batch_responses": rl.mini_batch_responses,
            "critic_params": int(rl.critic_params),
            "generation": _generation(rl.generation),
            "asynchronous_steps": rl.asynchronous_steps,
            "offload": rl.offload,
        }
    )


def _generation(pool: GenerationPool) -> Request:
    """What samples, at the width of its weights."""
    ranks = {name: getattr(pool, name) for name in ("count", "tensor", "pipeline", "expert")}
    return _without_none(ranks | {"precision": "fp8" if pool.weight_format.bits == 8 else None})


def _hardware(cluster: Cluster) -> Request:
    return {"accelerator": cluster.accelerator.name, "count": cluster.count, "accelerators_per_node": cluster.accelerators_per_node}


def _without_none(asked: Request) -> Request:
    return {name: value for name, value in asked.items() if value is not None}
