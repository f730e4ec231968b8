"""From a request to a run: every default chosen and noted, every name looked up, every contradiction named.

A request is the plain form that the schema gives: nested mappings, values of the domain's types, absent what the caller left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from service.domain.errors import DomainError, InvalidRequest
from service.domain.quantities import Range
from service.domain.training.hardware import Accelerator, Precision
from service.domain.training.model import GenericNetwork, Model, Transformer
from service.domain.training.run import (
    Axes,
    Cluster,
    Data,
    Efficiency,
    Failures,
    Helpers,
    Network,
    Overhead,
    Personnel,
    Schedule,
    Storage,
    Training,
)
from service.engine.training.memory import parameter_total
from service.presets.defaults import Default, batch_tokens, default, flash_attention
from service.presets.hardware.accelerators import Resolution, find_accelerator
from service.presets.hardware.networks import find_network, network_note
from service.presets.training.footprint import find_footprint
from service.presets.training.reliability import find_reliability, recovery_defaults
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.models import resolve_model
from service.usecases.resolution.pricing import Price

Given = Mapping[str, Any]

USUAL_PRECISIONS = ("bf16", "fp16", "tf32", "fp32")
AXES = ("tensor", "pipeline", "data", "context", "expert", "virtual_pipeline")
FIELDS_OF_METHODS = {
    "teacher": ("distill",),
    "cached_logits": ("distill",),
    "reward_model": ("rl",),
    "reference_model": ("dpo", "rl"),
    "lora_rank": ("lora", "qlora"),
    "update_epochs": ("rl",),
    "response_tokens": ("rl",),
}
FINETUNES = ("full_finetune", "lora", "qlora", "dpo", "rl")


def resolve_cluster(given: Given, notes: AssumptionLog, price: Price | None = None) -> Cluster:
    """The machine; its network is that of the instance whose price is taken, unless it is stated or nobody knows it.

    Raises UnknownName for an accelerator nobody knows.
    """
    found = find_accelerator(given["accelerator"])
    accelerator = found.accelerator
    if found.ambiguous_with:
        notes.assume("hardware.accelerator", accelerator.name, other_meanings(found))
    per_node = notes.take(given, "hardware.accelerators_per_node", accelerator.accelerators_per_node, accelerator.source)
    rate = given.get("inter_node_gbps")
    if rate is None:
        rate, source = _inter_node_gbps(accelerator, per_node, price)
        if rate and given["count"] > per_node:
            notes.assume("hardware.inter_node_gbps", rate, source)
    return Cluster(accelerator, given["count"], per_node, rate / per_node)


def other_meanings(found: Resolution) -> str:
    """What else a name may mean, and why it was taken as it was."""
    return f"{found.asked} may also mean {', '.join(found.ambiguous_with)}; {found.why}"


def _inter_node_gbps(accelerator: Accelerator, per_node: int, price: Price | None) -> tuple[float, str]:
    """A node's network [Gbit/s] and its source: of the priced instance its accelerators' share, else the data sheet's."""
    rate, source = usual_inter_node_gbps(accelerator, per_node)
    if price is None or price.provider is None or price.instance_type is None:
        return rate, source
    sold = find_network(price.provider, price.instance_type, accelerator.name)
    note = network_note(price.provider, price.instance_type, sold)
    if sold is None:
        return rate, f"{note} ({source})"
    return sold.gbit_per_s_per_instance / price.accelerators_per_instance * per_node, note


def usual_inter_node_gbps(accelerator: Accelerator, per_node: int) -> tuple[float, str]:
    """A node's network from the data sheet [Gbit/s], and its source; 0 where a link that spans nodes is all that is published.

    Without either the usual card is assumed.
    """
    if accelerator.internode_gbit_per_s is not None:
        return accelerator.internode_gbit_per_s * per_node, accelerator.source
    if accelerator.link_gb_per_s is not None:
        return 0.0, accelerator.source
    usual = default("hardware.inter_node_gbit_per_s_per_accelerator")
    return usual.value * per_node, usual.source


def resolve_data(given: Given, model: Model, seq_len: int, notes: AssumptionLog) -> Data:
    """What is trained on, in the model's own unit. Raises InvalidRequest unless exactly one amount is stated."""
    stated = [name for name in ("tokens", "raw_tokens", "samples") if name in given]
    if len(stated) != 1:
        raise InvalidRequest("state exactly one of tokens, raw_tokens and samples", "/data")
    amount = float(given[stated[0]])
    if stated[0] == "samples":
        amount *= seq_len
    elif isinstance(model, GenericNetwork):
        raise InvalidRequest(f"this network is counted by samples, each a {model.sample_unit}: state samples", f"/data/{stated[0]}")
    if stated[0] == "raw_tokens":
        effective = amount * notes.choose(given, "data.filter_yield") * notes.choose(given, "data.dedupe_yield")
    else:
        _no_yields(given)
        effective = amount
    epochs = float(notes.choose(given, "data.epochs"))
    if effective * epochs < 1:
        raise InvalidRequest(f"nothing is left to train on: {effective:g} x {epochs:g} epochs", f"/data/{stated[0]}")
    return Data(amount, effective, epochs, given.get("quality_share"), given.get("robustness_share"))


def _no_yields(given: Given) -> None:
    for name in ("filter_yield", "dedupe_yield"):
        if name in given:
            raise InvalidRequest(f"{name} belongs to raw_tokens: tokens are what is trained on", f"/data/{name}")


def resolve_training(given: Given, model: Model, model_seq_len: int | None, cluster: Cluster, notes: AssumptionLog) -> Training:
    """How it is trained. Raises InvalidRequest where method, precision or helpers cannot be."""
    method = notes.choose(given, "training.method")
    for name, methods in FIELDS_OF_METHODS.items():
        if name in given and method not in methods:
            raise InvalidRequest(f"{name} belongs to method {' or '.join(methods)}", f"/training/{name}")
    _check_method(method, model)
    seq_len = _seq_len(given, model, model_seq_len, notes)
    precision = _precision(given, cluster.accelerator, notes)
    flash = _flash_attention(given, model, precision, cluster.accelerator.family, notes)
    training = Training(
        method=method,
        precision=precision,
        optimizer=notes.choose(given, "training.optimizer"),
        seq_len=seq_len,
        global_batch=global_batch(given, model, method, seq_len, cluster, notes),
        footprint=find_footprint(cluster.accelerator),
        axes=resolve_axes(given),
        decoder_seq_len=_decoder_seq_len(given, model, seq_len, notes),
        flash_attention=flash,
        sequence_parallel=_sequence_parallel(given, model, notes, flash_attention=flash),
        count_full_attention=notes.choose(given, "training.count_full_attention"),
        input_tokens_per_s_per_node=given.get("input_tokens_per_s_per_node"),
        lora_rank=notes.choose(given, "training.lora_rank") if method in ("lora", "qlora") else 0,
        helpers=_helpers(given, method, notes),
    )
    if method == "rl":
        epochs = notes.choose(given, "training.update_epochs")
        training = replace(training, update_epochs=float(epochs), response_tokens=_response_tokens(given, seq_len, notes))
    return training


def _flash_attention(given: Given, model: Model, precision: Precision, family: str, notes: AssumptionLog) -> bool:
    """Stated, or as software at that precision has it; networks without attention are not told of it."""
    fallback = flash_attention(precision, family)
    if isinstance(model, GenericNetwork):
        return bool(given.get("flash_attention", fallback.value))
    return bool(notes.take(given, "training.flash_attention", fallback.value, fallback.source))


def _sequence_parallel(given: Given, model: Model, notes: AssumptionLog, *, flash_attention: bool) -> bool:
    """Stated, or as software has it: with flash attention."""
    if isinstance(model, GenericNetwork):
        return bool(given.get("sequence_parallel", True))
    if flash_attention:
        return bool(notes.choose(given, "training.sequence_parallel"))
    fallback = default("training.sequence_parallel_before")
    return bool(notes.take(given, "training.sequence_parallel", fallback.value, fallback.source))


def _response_tokens(given: Given, seq_len: int, notes: AssumptionLog) -> int:
    tokens = int(notes.take(given, "training.response_tokens", seq_len, "answers fill the sequence"))
    if tokens > seq_len:
        raise InvalidRequest(f"{tokens} tokens do not fit a sequence of {seq_len}", "/training/response_tokens")
    return tokens


def _check_method(method: str, model: Model) -> None:
    """Raises InvalidRequest for a method that this kind of network cannot be trained by."""
    if method in ("lora", "qlora") and isinstance(model, GenericNetwork):
        raise InvalidRequest(f"{method} needs a transformer: this network has no linear layers known to take adapters", "/training/method")
    if method in ("dpo", "rl") and (isinstance(model, GenericNetwork) or model.kind == "vit"):
        raise InvalidRequest(f"{method} needs a model that writes text", "/training/method")


def resolve_axes(given: Given) -> Axes:
    """What the caller fixed of the layout. Raises InvalidRequest for chunks of the stages of no pipeline."""
    parallelism = given.get("parallelism", "auto")
    fixed = {} if parallelism == "auto" else {name: parallelism[name] for name in AXES if name in parallelism}
    recompute = given.get("activation_recompute", "auto")
    axes = Axes(
        micro_batch=given.get("micro_batch"),
        zero_stage=given.get("zero_stage"),
        recompute=None if recompute == "auto" else recompute,
        **fixed,
    )
    check_chunks(axes, axes.pipeline)
    return axes


def check_chunks(axes: Axes, pipeline: int | None) -> None:
    """Raises InvalidRequest where a stage is to be cut in chunks and the pipeline has one stage alone; None is not known yet."""
    if pipeline == 1 and (axes.virtual_pipeline or 1) > 1:
        raise InvalidRequest(
            f"virtual_pipeline {axes.virtual_pipeline} cuts each stage of a pipeline in chunks, and pipeline 1 is none: state a pipeline"
            " above 1, or leave virtual_pipeline out",
            "/training/parallelism/virtual_pipeline",
        )


def _seq_len(given: Given, model: Model, published: int | None, notes: AssumptionLog) -> int:
    if isinstance(model, GenericNetwork):
        return 1
    if "seq_len" in given:
        return int(given["seq_len"])
    if published is not None:
        return int(notes.assume("training.seq_len", published, "the model's published training context"))
    path = "training.vit_tokens" if model.kind == "vit" else "training.seq_len"
    fallback = default(path)
    return int(notes.assume("training.seq_len", fallback.value, fallback.source))


def _decoder_seq_len(given: Given, model: Model, seq_len: int, notes: AssumptionLog) -> int:
    if not isinstance(model, Transformer) or model.kind != "encoder_decoder":
        return 0
    share = default("training.decoder_share")
    return int(notes.take(given, "training.decoder_seq_len", max(1, round(seq_len * share.value)), share.source))


def _precision(given: Given, accelerator: Accelerator, notes: AssumptionLog) -> Any:
    known = tuple(accelerator.peak_tflops)
    asked = given.get("precision")
    if asked is None:
        usual = next((precision for precision in USUAL_PRECISIONS if precision in known), known[0])
        return notes.assume("training.precision", usual, f"the usual training precision that {accelerator.name} has")
    if asked not in known:
        raise InvalidRequest(
            f"{accelerator.name} has no published dense peak for {asked}; it has {', '.join(known)}", "/training/precision"
        )
    return asked


def global_batch(given: Given, model: Model, method: str, seq_len: int, cluster: Cluster, notes: AssumptionLog) -> int:
    """Sequences (or samples) a step, rounded to whole ones: of how it is trained all that depends on the number of accelerators."""
    stated = given.get("global_batch_tokens")
    if stated is not None:
        sequences = max(1, round(int(stated) / seq_len))
        if sequences * seq_len != stated:
            notes.assume("training.global_batch_tokens", sequences * seq_len, f"{stated} tokens rounded to whole sequences of {seq_len}")
        return sequences
    usual = _usual_batch(model, method, seq_len)
    # A machine larger than the usual batch can feed is given a sequence for every tensor group, of eight where the heads divide.
    group = _tensor_group(model, cluster.count)
    least = -(-cluster.count // group)
    sequences = max(int(usual.value), least)
    source = usual.source if sequences == usual.value else f"one sequence for every {group} of {cluster.count} accelerators; {usual.source}"
    notes.assume("training.global_batch_tokens", sequences * seq_len, source)
    return sequences


def _tensor_group(model: Model, count: int) -> int:
    """The most accelerators, up to eight, that can share one sequence by its attention heads."""
    if isinstance(model, GenericNetwork):
        return 1
    return next(group for group in range(8, 0, -1) if count % group == 0 and model.attention_heads % group == 0)


def _usual_batch(model: Model, method: str, seq_len: int) -> Default:
    if isinstance(model, GenericNetwork) or model.kind == "vit":
        return default("training.samples_per_batch")
    if method in FINETUNES:
        return default("training.finetune_sequences")
    tokens = batch_tokens(parameter_total(model))
    return Default(max(1, round(tokens.value / seq_len)), tokens.source)


def _helpers(given: Given, method: str, notes: AssumptionLog) -> Helpers:
    """Networks run beside the trained one."""
    if method == "distill":
        return Helpers(teacher=_teacher(given, notes))
    if method == "rl" and "reward_model" not in given:
        notes.assume("training.reward_model", None, "rewards by rule: no network is run for them")
    reference = given.get("reference_model")
    if reference is None and method in ("dpo", "rl"):
        reference = notes.assume(
            "training.reference_model", value=True, source="a frozen copy of the policy (arXiv 2305.18290, arXiv 2402.03300)"
        )
    return Helpers(reward_model=_helper(given, "reward_model", notes), reference=bool(reference))


def _teacher(given: Given, notes: AssumptionLog) -> Model | None:
    if "teacher" in given and given.get("cached_logits"):
        raise InvalidRequest("cached logits need no teacher: leave one of them out", "/training/teacher")
    if "teacher" not in given and given.get("cached_logits") is False:
        raise InvalidRequest("logits that are not cached need a teacher: name it", "/training/teacher")
    if "teacher" not in given and "cached_logits" not in given:
        notes.assume("training.cached_logits", value=True, source="no teacher named")
        notes.warn("the teacher's forward pass is not counted: name training.teacher unless its logits are cached")
    return _helper(given, "teacher", notes)


def _helper(given: Given, name: str, notes: AssumptionLog) -> Model | None:
    if name not in given:
        return None
    try:
        return resolve_model(given[name], notes, f"training.{name}")[0]
    except DomainError as problem:
        problem.pointer = f"/training/{name}{problem.pointer.removeprefix('/model')}"
        raise


def resolve_efficiency(given: Given) -> Efficiency:
    """What the caller measured. Raises InvalidRequest for more than one figure; none is the same as no section."""
    stated = [name for name, value in given.items() if value is not None]
    if len(stated) > 1:
        raise InvalidRequest(f"state one efficiency: {' and '.join(sorted(stated))} are given", "/efficiency")
    return Efficiency(**given)


def resolve_failures(given: Given, accelerator: Accelerator, pricing: str | None, notes: AssumptionLog) -> Failures:
    """How the machine fails: the caller's figures, else the accelerator family's published ones. Spot capacity is preempted too."""
    usual = find_reliability(accelerator)
    mttf = usual.mttf_hours
    if given.get("mttf_hours_per_accelerator") is not None:
        mttf = Range.exactly(given["mttf_hours_per_accelerator"])
    else:
        notes.assume("failures.mttf_hours_per_accelerator", mttf.p50, usual.source)
    recovery = {name: _recovery(given, name, notes) for name in recovery_defaults()}
    interval = given.get("checkpoint_interval_minutes", "auto")
    if interval == "auto":
        notes.assume("failures.checkpoint_interval_minutes", "auto", "Daly 2006, equation 37")
    return Failures(
        mttf_hours_per_accelerator=mttf,
        checkpoint_interval_minutes=None if interval == "auto" else interval,
        checkpoint_blocking_share=notes.choose(given, "failures.checkpoint_blocking_share"),
        preemptions_per_node_hour=_preemptions(given, pricing, notes),
        **recovery,
    )


def _preemptions(given: Given, pricing: str | None, notes: AssumptionLog) -> float:
    if pricing != "spot" or given.get("preemptions_per_node_hour") is not None:
        return float(notes.choose(given, "failures.preemptions_per_node_hour"))
    usual = default("failures.spot_preemptions_per_node_hour")
    notes.warn("spot capacity is taken back at any time: state failures.preemptions_per_node_hour as you see it")
    return float(notes.assume("failures.preemptions_per_node_hour", usual.value, usual.source))


def _recovery(given: Given, name: str, notes: AssumptionLog) -> float:
    usual = recovery_defaults()[name]
    return float(notes.take(given, f"failures.{name}", usual.value, usual.source))


def resolve_storage(given: Given, notes: AssumptionLog) -> Storage:
    fields = ("dataset_tb", "checkpoints_kept", "retention_months", "logs_tb", "usd_per_tb_month")
    return Storage(**{name: notes.choose(given, f"storage.{name}") for name in fields})


def resolve_network(given: Given, notes: AssumptionLog) -> Network:
    return Network(**_section(given, "network", ("egress_tb", "usd_per_tb"), notes))


def resolve_personnel(given: Given, notes: AssumptionLog) -> Personnel:
    return Personnel(**_section(given, "personnel", ("evaluation_hours", "analysis_hours", "oncall_hours", "usd_per_hour"), notes))


def resolve_overhead(given: Given, notes: AssumptionLog) -> Overhead:
    if not given:
        notes.warn("no overhead is stated: a real budget has evaluation, debugging, re-runs and people beside the run")
    return Overhead(**_section(given, "overhead", ("evaluation", "debugging", "reruns"), notes))


def _section(given: Given, section: str, names: tuple[str, ...], notes: AssumptionLog) -> dict[str, Any]:
    """The fields of a section that costs nothing where it is left out: then one note says so, and not one a field."""
    if given:
        return {name: notes.choose(given, f"{section}.{name}") for name in names}
    notes.assume(section, None, "none, as none is stated")
    return {name: default(f"{section}.{name}").value for name in names}


def resolve_schedule(given: Given, notes: AssumptionLog) -> Schedule:
    """When it runs. Raises InvalidRequest for a deadline before the start, or one without it."""
    start, deadline = given.get("start"), given.get("deadline")
    if deadline is not None and start is None:
        raise InvalidRequest("a deadline needs a start to count from", "/schedule/start")
    if start is not None and deadline is not None and deadline < start:
        raise InvalidRequest(f"the deadline {deadline} is before the start {start}", "/schedule/deadline")
    return Schedule(start, deadline, **_section(given, "schedule", ("queue_hours", "maintenance_hours_per_week"), notes))
