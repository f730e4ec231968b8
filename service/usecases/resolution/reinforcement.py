"""What a request says of a step of reinforcement learning, and what is assumed of the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from service.domain.errors import InvalidRequest
from service.domain.serving.requirements import WeightFormat
from service.domain.training.hardware import Accelerator
from service.domain.training.reinforcement import GenerationPool, Reinforcement, ResponseLengths, Rollouts
from service.domain.training.run import Axes, Cluster, Training
from service.engine.training.rl.lengths import P90, lengths_from_mean, lengths_from_quantiles, mean_sequence_tokens, mean_tokens
from service.presets.serving import find_format, servable_formats
from service.presets.training.reinforcement import rl_default, rollout_rates, sampling_machine
from service.usecases.resolution.assumption_log import AssumptionLog

Section = Mapping[str, Any]

POINTER = "/training/rl"
PATH = "training.rl"


@dataclass(frozen=True, slots=True)
class _Sequences:
    """Tokens of prompts and answers."""

    prompt_tokens: float
    lengths: ResponseLengths


def with_reinforcement(training: Training, given: Section, cluster: Cluster, notes: AssumptionLog) -> Training:
    """The training with its step of reinforcement learning; `given` is the section `training`. Raises InvalidRequest."""
    rl = _reinforcement(given, training, cluster, notes)
    axes = _axes(training.axes, notes)
    seq_len = mean_sequence_tokens(rl.rollouts, axes.context or 1)
    source = "mean prompt and answer; training.seq_len is the limit of both"
    notes.assume(f"{PATH}.sequence_tokens", seq_len, source)
    return replace(training, axes=axes, seq_len=seq_len, global_batch=rl.rollouts.responses, response_tokens=0, rl=rl)


def _reinforcement(given: Section, training: Training, cluster: Cluster, notes: AssumptionLog) -> Reinforcement:
    asked = given.get("rl", {})
    sequences = _sequences(asked, given, notes)
    prompts, to_each = _prompts(asked, given, sequences, notes)
    lag = int(_take(asked, "asynchronous_steps", notes))
    pool = _generation(asked.get("generation", {}), lag, training, cluster, notes)
    rollouts = Rollouts(prompts, to_each, sequences.prompt_tokens, sequences.lengths, float(_take(asked, "environment_seconds", notes)))
    rates = rollout_rates()
    notes.assume(f"{PATH}.rates", {name: float(f"{getattr(rates, name):.3g}") for name in ("decode_share", "update_share")}, rates.source)
    return Reinforcement(
        rollouts=rollouts,
        generation=pool,
        mini_batch_responses=_mini_batch(asked, rollouts.responses, notes),
        critic_params=float(_take(asked, "critic_params", notes)),
        asynchronous_steps=lag,
        offload=bool(asked["offload"]) if "offload" in asked else _offload(pool, lag, notes),
        rates=rates,
    )


def _take(asked: Section, name: str, notes: AssumptionLog) -> Any:
    """The caller's value, else what rl.toml assumes, noted."""
    fallback = rl_default(name)
    return notes.take(asked, f"{PATH}.{name}", fallback.value, fallback.source)


def _axes(axes: Axes, notes: AssumptionLog) -> Axes:
    """The layout's axes with a micro-batch of one longest sequence where none is stated."""
    if axes.micro_batch is not None:
        return axes
    usual = rl_default("micro_batch")
    return replace(axes, micro_batch=int(notes.assume("training.micro_batch", usual.value, usual.source)))


def _sequences(asked: Section, given: Section, notes: AssumptionLog) -> _Sequences:
    """Tokens of prompts and answers. Raises InvalidRequest for those that contradict each other."""
    if "response_tokens" in asked and "response_tokens" in given:
        raise InvalidRequest("state response_tokens here or in training.rl, not in both", "/training/response_tokens")
    stated = asked.get("response_tokens", given.get("response_tokens"))
    pointer = f"{POINTER}/response_tokens" if "response_tokens" in asked else "/training/response_tokens"
    limit = given.get("seq_len")
    prompt = _prompt_tokens(asked, given, limit, notes)
    room = None if limit is None else float(limit) - prompt
    if room is not None and room < 1:
        raise InvalidRequest(f"a prompt of {prompt:g} tokens leaves no room for an answer in seq_len {limit}", f"{POINTER}/prompt_tokens")
    if stated is None:
        stated = _assumed_response(room, notes)
    if isinstance(stated, Mapping):
        return _Sequences(prompt, _from_percentiles(stated, room, notes))
    return _Sequences(prompt, _from_mean(float(stated), room, pointer, notes))


def _prompt_tokens(asked: Section, given: Section, limit: int | None, notes: AssumptionLog) -> float:
    """Tokens of a prompt: stated, else what a sequence has beside its stated answer, else as usual."""
    if "prompt_tokens" in asked:
        return float(asked["prompt_tokens"])
    usual = rl_default("prompt_tokens")
    stated = given.get("response_tokens")
    if limit is not None and stated is not None and stated < limit:
        return float(notes.assume(f"{PATH}.prompt_tokens", limit - stated, "what seq_len has beside response_tokens"))
    tokens = usual.value if limit is None else min(usual.value, max(limit // 2, 1))
    return float(notes.assume(f"{PATH}.prompt_tokens", tokens, usual.source))


def _assumed_response(room: float | None, notes: AssumptionLog) -> float:
    usual = rl_default("response_tokens")
    tokens = float(usual.value) if room is None else min(float(usual.value), room / 2)
    notes.assume(f"{PATH}.response_tokens", tokens, usual.source)
    notes.warn(
        f"the length of answers is not stated, and it decides what the run costs: {tokens:,.0f} tokens are taken as their mean; state"
        " training.rl.response_tokens, at best as p50, p90 and max of a trial"
    )
    return tokens


def _from_mean(mean: float, room: float | None, pointer: str, notes: AssumptionLog) -> ResponseLengths:
    """Answers of which the mean is known."""
    if room is not None and mean > room:
        raise InvalidRequest(f"a mean answer of {mean:g} tokens is longer than the {room:g} that seq_len leaves beside the prompt", pointer)
    limit = _limit(mean, room, notes)
    spread = rl_default("log_deviation")
    notes.assume(f"{PATH}.response_tokens.log_deviation", spread.value, spread.source)
    return lengths_from_mean(mean, spread.value, limit)


def _from_percentiles(stated: Section, room: float | None, notes: AssumptionLog) -> ResponseLengths:
    """Answers of which percentiles are known."""
    p50 = float(stated["p50"])
    limit = float(stated["max"]) if "max" in stated else None
    if limit is not None and limit < p50:
        raise InvalidRequest(
            f"a limit of {limit:g} tokens below the median answer of {p50:g}: p50, p90 and max rise", f"{POINTER}/response_tokens/max"
        )
    if "p90" in stated:
        p90 = float(stated["p90"])
        if p90 < p50 or (limit is not None and p90 > limit):
            raise InvalidRequest(f"p90 {p90:g} must lie between p50 and max", f"{POINTER}/response_tokens/p90")
    else:
        spread = rl_default("log_deviation")
        notes.assume(f"{PATH}.response_tokens.log_deviation", spread.value, spread.source)
        p90 = p50 * math.exp(spread.value * P90)
    if room is not None and (limit or p50) > room:
        raise InvalidRequest(
            f"answers of {limit or p50:g} tokens do not fit the {room:g} that seq_len leaves beside the prompt; raise training.seq_len",
            f"{POINTER}/response_tokens",
        )
    return lengths_from_quantiles(p50, p90, limit or _limit(max(p50, p90), room, notes))


def _limit(tokens: float, room: float | None, notes: AssumptionLog) -> float:
    """Tokens at which answers are cut off: what the sequence leaves, else a multiple of the stated length."""
    if room is not None and room > tokens:
        return room
    multiple = rl_default("limit_over_mean")
    return float(notes.assume(f"{PATH}.response_tokens.max", tokens * multiple.value, multiple.source))


def _prompts(asked: Section, given: Section, sequences: _Sequences, notes: AssumptionLog) -> tuple[int, int]:
    """Prompts of a step and answers to each; by the tokens of a step where only these are stated."""
    to_each = int(_take(asked, "responses_per_prompt", notes))
    batch = given.get("global_batch_tokens")
    if "prompts_per_step" not in asked and batch is not None:
        tokens = sequences.prompt_tokens + mean_tokens(sequences.lengths)
        answers = max(1.0, float(batch) / tokens)
        to_each = min(to_each, max(1, int(answers)))
        source = f"global_batch_tokens in sequences of {tokens:,.0f} tokens, {to_each} to each prompt"
        return int(notes.assume(f"{PATH}.prompts_per_step", max(1, round(answers / to_each)), source)), to_each
    return int(_take(asked, "prompts_per_step", notes)), to_each


def _mini_batch(asked: Section, responses: int, notes: AssumptionLog) -> int:
    stated = asked.get("mini_batch_responses")
    if stated is None:
        usual = rl_default("mini_batch_responses")
        return int(notes.assume(f"{PATH}.mini_batch_responses", min(usual.value, responses), usual.source))
    if stated > responses:
        raise InvalidRequest(
            f"an optimizer step of {stated} answers is more than the {responses} of a step; prompts_per_step times responses_per_prompt are"
            " what there is",
            f"{POINTER}/mini_batch_responses",
        )
    return int(stated)


def _generation(asked: Section, lag: int, training: Training, cluster: Cluster, notes: AssumptionLog) -> GenerationPool:
    count = _note_pools(asked, lag, cluster, notes)
    eager = training.software_year < rl_default("captured_since").value
    if eager:
        notes.assume(f"{PATH}.generation.eager", value=True, source=rl_default("captured_since").source)
    accelerator = replace(cluster.accelerator, internode_gbit_per_s=cluster.internode_gbit_per_s or None)
    return GenerationPool(
        count=count,
        share=rl_default("sampling_share").value,
        tensor=asked.get("tensor"),
        pipeline=asked.get("pipeline"),
        expert=asked.get("expert"),
        weight_format=_weight_format(asked, cluster.accelerator, notes),
        machine=sampling_machine(accelerator, colocated=count is None and not lag),
        eager=eager,
    )


def _note_pools(asked: Section, lag: int, cluster: Cluster, notes: AssumptionLog) -> int | None:
    """The stated accelerators that only sample; None where all do both, or where a share of them does, which is noted."""
    count = asked.get("count")
    if count is None and lag:
        usual = rl_default("sampling_share")
        notes.assume(f"{PATH}.generation.count", f"{usual.value:g} of all accelerators", usual.source)
    elif count is None:
        notes.assume(f"{PATH}.generation.count", "all accelerators", rl_default("colocated").source)
    return None if count is None or (count == cluster.count and not lag) else int(count)


def _weight_format(asked: Section, accelerator: Accelerator, notes: AssumptionLog) -> WeightFormat:
    """Number format of the sampler's weights. Raises InvalidRequest for one that the accelerator does not serve."""
    served = servable_formats(accelerator)
    pointer = f"{POINTER}/generation/precision"
    if not served:
        raise InvalidRequest(f"{accelerator.name} has no 16-bit arithmetic to sample with: take another accelerator", pointer)
    name = asked.get("precision")
    if name is None:
        usual = next((one for one in ("bf16", "fp16") if one in served), served[0])
        name = notes.assume(f"{PATH}.generation.precision", usual, rl_default("sampling_precision").source)
    if name not in served:
        raise InvalidRequest(f"{accelerator.name} does not sample in {name[:40]}; it has {', '.join(served)}", pointer)
    return find_format(name)


def _offload(pool: GenerationPool, lag: int, notes: AssumptionLog) -> bool:
    usual = rl_default("offload")
    return bool(notes.assume(f"{PATH}.offload", pool.count is None and not lag and usual.value, usual.source))
