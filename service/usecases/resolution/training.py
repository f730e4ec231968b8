"""How a request trains its model: method, precision, batch, sequence length, layout axes, helper networks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from service.domain.errors import DomainError, InvalidRequest
from service.domain.training.hardware import Accelerator, Precision
from service.domain.training.model import GenericNetwork, Model, Transformer
from service.domain.training.run import (
    ADAPTER_TARGETS,
    FROZEN_BASE,
    TUNED,
    AuxiliaryModels,
    Axes,
    Cluster,
    KernelFusion,
    Optimizer,
    StatesDtype,
    Training,
)
from service.engine.training.adapters import linear_layers
from service.engine.training.parameters import total_parameters
from service.engine.training.shape import StatedRanks
from service.presets.defaults import Default, batch_tokens, default, flash_attention
from service.presets.hardware.accelerators import load_accelerators
from service.presets.hardware.formats import load_format_support
from service.presets.training.finetuning import finetuning_rates
from service.presets.training.footprint import find_footprint
from service.presets.training.throughput_parameters import load_parameters
from service.presets.training.utilisation import has_fused_experts
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.model import resolve_model
from service.usecases.resolution.reinforcement import with_reinforcement

Section = Mapping[str, Any]

MAX_NAMED = 3
USUAL_PRECISIONS = ("bf16", "fp16", "tf32", "fp32")
AXES = ("tensor", "pipeline", "data", "context", "expert", "expert_tensor", "virtual_pipeline")
METHODS_BY_FIELD = {
    "teacher": ("distill",),
    "cached_logits": ("distill",),
    "reward_model": ("rl",),
    "reference_model": ("dpo", "rl"),
    "lora_rank": FROZEN_BASE,
    "adapter_targets": FROZEN_BASE,
    "kernel_fusion": TUNED,
    "update_epochs": ("rl",),
    "response_tokens": ("rl",),
    "rl": ("rl",),
}
FINETUNES = ("full_finetune", "lora", "qlora", "dpo", "rl")


def resolve_training(
    given: Section, model: Model, model_seq_len: int | None, cluster: Cluster, this_year: int, notes: AssumptionLog
) -> Training:
    """The training of a request; `this_year` is that of the clock. Raises InvalidRequest for an unsupported method, precision or helper."""
    if "phases" in given:
        raise InvalidRequest("phases are planned by estimates, programs and tracking, not here: leave them out", "/training/phases")
    method = notes.choose(given, "training.method")
    for name, methods in METHODS_BY_FIELD.items():
        if name in given and method not in methods:
            raise InvalidRequest(f"{name} belongs to method {' or '.join(methods)}", f"/training/{name}")
    _check_method(given, method, model)
    # A step of reinforcement learning has lengths and a batch of its own.
    reinforced = method == "rl" and isinstance(model, Transformer) and model.kind == "transformer"
    seq_len = 1 if reinforced else _seq_len(given, model, method, model_seq_len, notes)
    precision = _precision(given, cluster.accelerator, notes)
    flash = _flash_attention(given, model, method, precision, cluster.accelerator.family, notes)
    year = int(notes.take(given, "training.software_year", this_year, "the year of the clock: software of today"))
    training = Training(
        method=method,
        precision=precision,
        optimizer=_optimizer(given, method, notes),
        seq_len=seq_len,
        global_batch=1 if reinforced else resolve_global_batch(given, model, method, seq_len, cluster, notes),
        footprint=find_footprint(cluster.accelerator, year),
        axes=resolve_axes(given),
        decoder_seq_len=_decoder_seq_len(given, model, seq_len, notes),
        flash_attention=flash,
        sequence_parallel=_sequence_parallel(given, model, notes, flash_attention=flash),
        count_full_attention=notes.choose(given, "training.count_full_attention"),
        input_tokens_per_s_per_node=given.get("input_tokens_per_s_per_node"),
        states_dtype=_states_dtype(given, method, notes),
        kernel_fusion=_kernel_fusion(given, method, precision, notes),
        finetuning=finetuning_rates(cluster.accelerator.family) if method in TUNED and isinstance(model, Transformer) else None,
        software_year=year,
        fused_experts=has_fused_experts(load_parameters(), cluster.accelerator.family, precision, year),
        **_adapters(given, method, model, notes),
        auxiliary_models=_helpers(given, method, notes),
    )
    if method == "rl":
        epochs = notes.choose(given, "training.update_epochs")
        training = replace(training, update_epochs=float(epochs))
        if reinforced:
            return with_reinforcement(training, given, cluster, notes)
        training = replace(training, response_tokens=_response_tokens(given, seq_len, notes))
    return training


def _optimizer(given: Section, method: str, notes: AssumptionLog) -> Optimizer:
    fallback = default("training.qlora_optimizer" if method == "qlora" else "training.optimizer")
    optimizer: Optimizer = notes.take(given, "training.optimizer", fallback.value, fallback.source)
    return optimizer


def _states_dtype(given: Section, method: str, notes: AssumptionLog) -> StatesDtype:
    """What the optimizer updates: stated, else fp32; an assumption in full fine-tuning, which is often otherwise."""
    fallback = default("training.states_dtype")
    stated: StatesDtype = given.get("states_dtype") or fallback.value
    if "states_dtype" not in given and method == "full_finetune":
        notes.assume("training.states_dtype", stated, fallback.source)
    return stated


def _kernel_fusion(given: Section, method: str, precision: Precision, notes: AssumptionLog) -> KernelFusion | None:
    """Kernels of fine-tuning: stated, else those of the software that the precision or the stated ranks come with; else left open."""
    stated: KernelFusion | None = given.get("kernel_fusion")
    axes = resolve_axes(given)
    split = max(axes.tensor or 1, axes.pipeline or 1, axes.context or 1) > 1
    if stated is None and method in TUNED and (split or precision not in USUAL_PRECISIONS):
        usual = default("training.kernel_fusion")
        fused: KernelFusion = notes.assume("training.kernel_fusion", usual.value, usual.source)
        return fused
    return stated


def _adapters(given: Section, method: str, model: Model, notes: AssumptionLog) -> dict[str, Any]:
    """Rank and targets of adapters; none where another method trains. Raises InvalidRequest for layers that the model does not have."""
    if method not in FROZEN_BASE or isinstance(model, GenericNetwork):
        return {}
    rank, targets = notes.choose(given, "training.lora_rank"), notes.choose(given, "training.adapter_targets")
    named = (targets,) if isinstance(targets, str) else tuple(targets)
    known = (*ADAPTER_TARGETS, *linear_layers(model)) if model.experts else (*ADAPTER_TARGETS[:-1], *linear_layers(model))
    unknown = [name for name in named if name not in known]
    if unknown:
        raise InvalidRequest(f"the model has no layers called {', '.join(unknown)}; it has {', '.join(known)}", "/training/adapter_targets")
    return {"lora_rank": rank, "adapter_targets": named}


def _flash_attention(given: Section, model: Model, method: str, precision: Precision, family: str, notes: AssumptionLog) -> bool:
    """Whether flash attention is used: stated, else by method, precision and family; not recorded for networks without attention."""
    adapted_16_bit = method in FROZEN_BASE and precision in ("bf16", "fp16")
    fallback = default("training.adapter_flash_attention") if adapted_16_bit else flash_attention(precision, family)
    if isinstance(model, GenericNetwork):
        return bool(given.get("flash_attention", fallback.value))
    return bool(notes.take(given, "training.flash_attention", fallback.value, fallback.source))


def _sequence_parallel(given: Section, model: Model, notes: AssumptionLog, *, flash_attention: bool) -> bool:
    """Whether sequence parallelism is used: stated, else with flash attention."""
    if isinstance(model, GenericNetwork):
        return bool(given.get("sequence_parallel", True))
    if flash_attention:
        return bool(notes.choose(given, "training.sequence_parallel"))
    fallback = default("training.sequence_parallel_before")
    return bool(notes.take(given, "training.sequence_parallel", fallback.value, fallback.source))


def _response_tokens(given: Section, seq_len: int, notes: AssumptionLog) -> int:
    tokens = int(notes.take(given, "training.response_tokens", seq_len, "answers fill the sequence"))
    if tokens > seq_len:
        raise InvalidRequest(f"{tokens} tokens do not fit a sequence of {seq_len}", "/training/response_tokens")
    return tokens


def _check_method(given: Section, method: str, model: Model) -> None:
    """Raise InvalidRequest for a method that this kind of network does not support."""
    if method in ("lora", "qlora") and isinstance(model, GenericNetwork):
        raise InvalidRequest(f"{method} needs a transformer: this network has no linear layers known to take adapters", "/training/method")
    if "rl" in given and (isinstance(model, GenericNetwork) or model.kind != "transformer"):
        raise InvalidRequest("a step of rl is modelled for decoder-only transformers; leave it out", "/training/rl")
    if method in ("dpo", "rl") and (isinstance(model, GenericNetwork) or model.kind == "vit"):
        raise InvalidRequest(f"{method} needs a model that writes text", "/training/method")


def stated_ranks(given: Section) -> StatedRanks:
    """Ranks that the caller divides the model over; 1 where they state none."""
    axes = resolve_axes(given)
    return StatedRanks(tensor=axes.tensor or 1, expert=axes.expert or 1)


def resolve_axes(given: Section) -> Axes:
    """The layout axes the caller fixed. Raises InvalidRequest for virtual stages without a pipeline."""
    parallelism = given.get("parallelism", "auto")
    fixed = {} if parallelism == "auto" else {name: parallelism[name] for name in AXES if name in parallelism}
    recompute = given.get("activation_recompute", "auto")
    axes = Axes(
        micro_batch=given.get("micro_batch"),
        zero_stage=given.get("zero_stage"),
        recompute=None if recompute == "auto" else recompute,
        **fixed,
    )
    check_virtual_pipeline(axes, axes.pipeline)
    return axes


def check_virtual_pipeline(axes: Axes, pipeline: int | None) -> None:
    """Raise InvalidRequest for virtual stages of a pipeline of one stage; None: the pipeline is not known yet."""
    if pipeline == 1 and (axes.virtual_pipeline or 1) > 1:
        raise InvalidRequest(
            f"virtual_pipeline {axes.virtual_pipeline} cuts each stage of a pipeline in chunks, and pipeline 1 is none: state a pipeline"
            " above 1, or leave virtual_pipeline out",
            "/training/parallelism/virtual_pipeline",
        )


def _seq_len(given: Section, model: Model, method: str, published: int | None, notes: AssumptionLog) -> int:
    if isinstance(model, GenericNetwork):
        return 1
    if "seq_len" in given:
        return int(given["seq_len"])
    if method in FROZEN_BASE and model.kind == "transformer":
        usual = default("training.adapter_seq_len")
        return int(notes.assume("training.seq_len", min(usual.value, published or usual.value), usual.source))
    if published is not None:
        return int(notes.assume("training.seq_len", published, "the model's published training context"))
    path = "training.vit_tokens" if model.kind == "vit" else "training.seq_len"
    fallback = default(path)
    return int(notes.assume("training.seq_len", fallback.value, fallback.source))


def _decoder_seq_len(given: Section, model: Model, seq_len: int, notes: AssumptionLog) -> int:
    if not isinstance(model, Transformer) or model.kind != "encoder_decoder":
        return 0
    share = default("training.decoder_share")
    return int(notes.take(given, "training.decoder_seq_len", max(1, round(seq_len * share.value)), share.source))


def _precision(given: Section, accelerator: Accelerator, notes: AssumptionLog) -> Any:
    known = tuple(accelerator.peak_tflops)
    asked = given.get("precision")
    if asked is None:
        usual = next((precision for precision in USUAL_PRECISIONS if precision in known), known[0])
        return notes.assume("training.precision", usual, f"the usual training precision that {accelerator.name} has")
    if asked not in known:
        raise InvalidRequest(_explain_precision(asked, accelerator), "/training/precision")
    return asked


def _explain_precision(asked: str, accelerator: Accelerator) -> str:
    """Why a run on the accelerator cannot be in this precision, what it can be in, and which others have it."""
    support = load_format_support()[accelerator.family]
    known = ", ".join(accelerator.peak_tflops)
    if asked in support.arithmetic:
        return f"{accelerator.name} has no published dense peak for {asked}; it has {known}"
    with_it = [other for other in load_accelerators().values() if asked in other.peak_tflops and other.vendor == accelerator.vendor]
    nearest = sorted(with_it, key=lambda other: (other.release_year, -other.peak_tflops[asked]))[:MAX_NAMED]
    others = f"; {asked} is computed by {', '.join(other.name for other in nearest)}" if nearest else ""
    return f"{accelerator.name} does not compute in {asked}; it has {known}{others}"


def resolve_global_batch(given: Section, model: Model, method: str, seq_len: int, cluster: Cluster, notes: AssumptionLog) -> int:
    """Sequences (or samples) a step, rounded to whole ones. The only part of training that depends on the accelerator count."""
    stated = given.get("global_batch_tokens")
    if stated is None:
        usual = usual_batch(model, method, seq_len, cluster)
        notes.assume("training.global_batch_tokens", int(usual.value) * seq_len, usual.source)
        return int(usual.value)
    if stated < seq_len:
        raise InvalidRequest(
            f"{stated:,} tokens are less than one sequence of {seq_len:,} (training.seq_len): a step takes whole sequences, of pretraining"
            " usually millions of tokens; leave it out for the usual batch",
            "/training/global_batch_tokens",
        )
    sequences = round(int(stated) / seq_len)
    if sequences * seq_len != stated:
        notes.assume("training.global_batch_tokens", sequences * seq_len, f"{stated} tokens rounded to whole sequences of {seq_len}")
    return sequences


def usual_batch(model: Model, method: str, seq_len: int, cluster: Cluster) -> Default:
    """Sequences (or samples) a step where none are stated.

    A cluster too large for the usual batch of the model gets one sequence a tensor group, of eight where the heads divide.
    """
    usual = _batch_of_model(model, method, seq_len)
    group = _tensor_group(model, cluster.count)
    least = least_batch(model, cluster)
    if least <= usual.value:
        return usual
    return Default(least, f"one sequence for every {group} of {cluster.count} accelerators; {usual.source}")


def least_batch(model: Model, cluster: Cluster) -> int:
    """Sequences that give every tensor group of the cluster one."""
    return -(-cluster.count // _tensor_group(model, cluster.count))


def _tensor_group(model: Model, count: int) -> int:
    """Largest tensor-parallel group, up to eight, that divides both the accelerators and the attention heads."""
    if isinstance(model, GenericNetwork):
        return 1
    return next(group for group in range(8, 0, -1) if count % group == 0 and model.attention_heads % group == 0)


def _batch_of_model(model: Model, method: str, seq_len: int) -> Default:
    if isinstance(model, GenericNetwork) or model.kind == "vit":
        return default("training.samples_per_batch")
    if method in FINETUNES:
        return default("training.finetune_sequences")
    tokens = batch_tokens(total_parameters(model))
    return Default(max(1, round(tokens.value / seq_len)), tokens.source)


def _helpers(given: Section, method: str, notes: AssumptionLog) -> AuxiliaryModels:
    """Teacher, reward and reference networks."""
    if method == "distill":
        return AuxiliaryModels(teacher=_teacher(given, notes))
    if method == "rl" and "reward_model" not in given:
        notes.assume("training.reward_model", None, "rewards by rule: no network is run for them")
    reference = given.get("reference_model")
    if reference is None and method in ("dpo", "rl"):
        reference = notes.assume(
            "training.reference_model", value=True, source="a frozen copy of the policy (arXiv 2305.18290, arXiv 2402.03300)"
        )
    return AuxiliaryModels(reward_model=_helper(given, "reward_model", notes), reference=bool(reference))


def _teacher(given: Section, notes: AssumptionLog) -> Model | None:
    if "teacher" in given and given.get("cached_logits"):
        raise InvalidRequest("cached logits need no teacher: leave one of them out", "/training/teacher")
    if "teacher" not in given and given.get("cached_logits") is False:
        raise InvalidRequest("logits that are not cached need a teacher: name it", "/training/teacher")
    if "teacher" not in given and "cached_logits" not in given:
        notes.assume("training.cached_logits", value=True, source="no teacher named")
        notes.warn("the teacher's forward pass is not counted: name training.teacher unless its logits are cached")
    return _helper(given, "teacher", notes)


def _helper(given: Section, name: str, notes: AssumptionLog) -> Model | None:
    if name not in given:
        return None
    try:
        return resolve_model(given[name], notes, f"training.{name}")[0]
    except DomainError as problem:
        problem.pointer = f"/training/{name}{problem.pointer.removeprefix('/model')}"
        raise
