"""Speed of a model in service: a roofline of each step of continuous batching, and from it throughput and latency.

A step gives every sequence in flight its next token and takes in the prompt tokens that arrive meanwhile (chunked prefill: Agrawal et al.
2024, Sarathi-Serve, arXiv 2403.02310, section 4), so that both share one reading of the weights. Matrices and attention's core each take
the longer of their memory and their arithmetic (Pope et al. 2022, arXiv 2211.05102, section 2); exchanges and fixed times come on top.
Left out: queueing before the first step, speculative decoding, and traffic of activations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from service.domain.quantities import Range
from service.domain.serving.requirements import MeanRequest, Replicas, ServingMachine
from service.engine.serving.model import (
    ACTIVATION_BYTES,
    ServingSetup,
    attended_tokens,
    cache_parts,
    cached_tokens,
    pipeline_stages,
    tensor_groups,
    token_cache_bytes,
)
from service.engine.training.step.workload import SIXTEEN_BIT, peak_flops

if TYPE_CHECKING:
    from service.domain.serving.requirements import Amount

# An expert's input is sent in 8 bits, its output comes back in 16 (DeepSeek-V3, arXiv 2412.19437, section 3.2.2).
EXCHANGED_BYTES = 3.0


@dataclass(frozen=True, slots=True)
class ServingStep:
    """Seconds of one pass through a stage: matrices, attention's core, exchanges among ranks, fixed times, and of all these
    what goes with prompt tokens. `memory_bound`: reading weights takes longer than multiplying with them.
    """

    matrices: Amount
    attention: Amount
    exchange: Amount
    fixed: Amount
    prompt: Amount
    memory_bound: NDArray[np.bool_]

    @property
    def seconds(self) -> Amount:
        return self.matrices + self.attention + self.exchange + self.fixed


@dataclass(frozen=True, slots=True)
class ReplicaSpeed:
    """What a replica does in steady state, one element a configuration: tokens and requests a second, seconds of latency.

    `prompt_share` of its time goes with prompts. `ttft_s` has no queue: half a step's wait, then the prompt's chunks.
    """

    output_tokens_per_s: Amount
    input_tokens_per_s: Amount
    requests_per_s: Amount
    ttft_s: Amount
    tpot_s: Amount
    prompt_share: Amount
    memory_bound: NDArray[np.bool_]


def speed(service: ServingSetup, replicas: Replicas) -> ReplicaSpeed:
    """Throughput and latency of replicas that are kept full."""
    asked = service.requests
    arriving = replicas.batch / tensor_groups(replicas) * computed_prompt_tokens(asked) / asked.output_tokens
    step = step_time(service, replicas, arriving)
    tpot = pipeline_stages(service.model, replicas) * step.seconds
    rate = replicas.batch / tpot
    return ReplicaSpeed(
        output_tokens_per_s=rate,
        input_tokens_per_s=rate * asked.prompt_tokens / asked.output_tokens,
        requests_per_s=rate / asked.output_tokens,
        ttft_s=step.seconds / 2 + _chunks_s(service, replicas),
        tpot_s=tpot,
        prompt_share=step.prompt / step.seconds,
        memory_bound=step.memory_bound,
    )


def throughput_spread(service: ServingSetup) -> Range:
    """Measured over predicted throughput of the service's kind of model on its machine's family."""
    achieved = service.machine.achieved
    return achieved.routed_spread if np.any(np.greater(service.model.routed, 0)) else achieved.spread


def computed_prompt_tokens(requests: MeanRequest) -> float:
    """Prompt tokens that are not found in a cache."""
    return requests.prompt_tokens * (1 - requests.cached_share)


def prefill_s(service: ServingSetup, replicas: Replicas) -> Amount:
    """Seconds of a prompt with the replica to itself: its chunks one after the other through the stages."""
    return _chunks_s(service, Replicas(replicas.accelerators, replicas.tensor, np.zeros_like(replicas.batch)))


def step_time(service: ServingSetup, replicas: Replicas, prompt_tokens: Amount) -> ServingStep:
    """One step of a group of tensor ranks: its sequences' next tokens, and `prompt_tokens` of prompts."""
    sequences = replicas.batch / tensor_groups(replicas)
    tokens = sequences + prompt_tokens
    matrices, excess = _matrices_s(service, replicas, tokens)
    head = _head_s(service, replicas, sequences)
    attention = _decode_attention_s(service, replicas)
    prompt_attention = _prompt_attention_s(service, replicas, prompt_tokens)
    beside = matrices + head + attention + prompt_attention
    exchange = tensor_exchange_s(service, replicas, tokens) + _exposed_s(
        service, replicas, expert_exchange_s(service, replicas, tokens), beside
    )
    of_prompts = prompt_tokens / np.maximum(tokens, 1e-9)
    return ServingStep(
        matrices=matrices + head,
        attention=attention + prompt_attention,
        exchange=exchange,
        fixed=_fixed_s(service, replicas),
        prompt=of_prompts * (matrices + exchange) + prompt_attention,
        memory_bound=np.greater(excess, 0),
    )


def decode_roofline_s(service: ServingSetup, replicas: Replicas) -> Amount:
    """Seconds that no output token can come sooner in: bytes over the data sheet's bandwidth, or the matrices' FLOPs over its peak."""
    model, sequences = service.model, replicas.batch / tensor_groups(replicas)
    weights = _dense_read(service, replicas) + _experts_read(service, replicas, sequences) + _head_bytes(service, replicas)
    read = weights + _cache_read(service, replicas)
    multiplying = _per_accelerator(service, replicas, sequences * model.matrix_flops) / arithmetic_peak(service)
    return pipeline_stages(model, replicas) * np.maximum(read / _bandwidth(service), multiplying)


def arithmetic_peak(service: ServingSetup) -> float:
    """Dense peak [FLOP/s] that weights of the format are multiplied at: of the first precision the accelerator has."""
    return _first_peak(service.machine, service.stored.arithmetic)


def touched_experts(experts: Amount, per_token: Amount, tokens: Amount) -> Amount:
    """Expected share of a layer's experts that `tokens` visit, `per_token` distinct ones each, evenly: 1 - (1 - k / E)^tokens."""
    return 1 - (1 - per_token / np.maximum(experts, 1.0)) ** tokens


def tensor_exchange_s(service: ServingSetup, replicas: Replicas, tokens: Amount) -> Amount:
    """Two all-reduces a layer round a ring (Megatron-LM, arXiv 1909.08053, section 3), each 2 (T - 1) / T of the activations, and a
    latency for each doubling of the ranks.
    """
    model, ranks = service.model, np.asarray(replicas.tensor, dtype=np.float64)
    payload = ACTIVATION_BYTES * tokens * model.hidden_size * 2 * (ranks - 1) / ranks
    one = service.machine.achieved.hop_s * np.log2(ranks) + payload / _link(service.machine, ranks)
    return np.asarray(2 * model.layers / pipeline_stages(model, replicas) * one)


def _exposed_s(service: ServingSetup, replicas: Replicas, exchange: Amount, beside: Amount) -> Amount:
    """What is seen of experts' exchanges: all within a node; beyond it half of the batch computes while the other half is exchanged, as
    DeepSeek-V3 (arXiv 2412.19437, section 3.4) and SGLang serve.
    """
    return np.where(_nodes(service, replicas) > 1, np.maximum(exchange - beside, 0.0), exchange)


def _nodes(service: ServingSetup, replicas: Replicas) -> Amount:
    """Nodes, racks or pods that the fast link joins, in a replica."""
    part = service.machine.accelerator
    return np.maximum(replicas.accelerators / max(part.accelerators_per_node, part.link_domain), 1.0)


def expert_exchange_s(service: ServingSetup, replicas: Replicas, tokens: Amount) -> Amount:
    """Dispatch and combine of every routed layer where groups share experts: a token goes once to each other node it visits an expert
    of, and there over the fast link to each of its experts.
    """
    model, nodes = service.model, _nodes(service, replicas)
    visited = (nodes - 1) * (1 - (1 - 1 / nodes) ** model.experts_per_token)
    rows = EXCHANGED_BYTES * tokens / replicas.tensor * model.hidden_size * (tensor_groups(replicas) > 1)
    inside = rows * model.experts_per_token / _link(service.machine, 1.0)
    return np.asarray(model.expert_layers * (inside + rows * visited / _link(service.machine, np.inf)))


def _chunks_s(service: ServingSetup, replicas: Replicas) -> Amount:
    """Seconds until a prompt's chunks have passed all stages, the sequences of `replicas` decoding beside."""
    prompt = max(computed_prompt_tokens(service.requests), 1.0)
    chunks = np.ceil(prompt / service.machine.limits.chunk_tokens)
    step = step_time(service, replicas, np.full(np.shape(replicas.batch), prompt / chunks))
    return np.asarray((chunks + pipeline_stages(service.model, replicas) - 1) * step.seconds)


def _matrices_s(service: ServingSetup, replicas: Replicas, tokens: Amount) -> tuple[Amount, Amount]:
    """Seconds of the layers' matrices, and by how much reading them exceeds multiplying: those that all tokens meet, then the experts',
    which reach a part of the others' rates.
    """
    model, achieved = service.model, service.machine.achieved
    bandwidth = _bandwidth(service) * achieved.bandwidth_share
    rate = arithmetic_peak(service) * achieved.compute_share
    routed = model.routed_flops
    dense, experts = _dense_read(service, replicas) / bandwidth, _experts_read(service, replicas, tokens) / bandwidth
    multiplied = _per_accelerator(service, replicas, tokens * (model.matrix_flops - routed)) / rate
    routed_s = _per_accelerator(service, replicas, tokens * routed) / rate
    excess = dense + experts - multiplied - routed_s
    return np.maximum(dense, multiplied) + np.maximum(experts, routed_s) / achieved.routed_share, excess


def _head_s(service: ServingSetup, replicas: Replicas, tokens: Amount) -> Amount:
    """As `_matrices_s`, of the output's matrix, which stays in 16 bit; stages are cut so that they take alike."""
    reading = _head_bytes(service, replicas) / (_bandwidth(service) * service.machine.achieved.bandwidth_share)
    multiplying = _per_accelerator(service, replicas, tokens * service.model.head_flops) / _sixteen_bit_rate(service)
    return np.maximum(reading, multiplying) * np.greater(tokens, 0)


def _decode_attention_s(service: ServingSetup, replicas: Replicas) -> Amount:
    reading = _cache_read(service, replicas) / (_bandwidth(service) * service.machine.achieved.bandwidth_share)
    flops = replicas.batch / tensor_groups(replicas) * service.model.decode_flops * attended_tokens(service)
    return np.maximum(reading, _per_accelerator(service, replicas, flops) / _sixteen_bit_rate(service))


def _prompt_attention_s(service: ServingSetup, replicas: Replicas, tokens: Amount) -> Amount:
    """A prompt's token sees half of it in the mean, and all of what was found in a cache."""
    seen = service.requests.prompt_tokens * (1 + service.requests.cached_share) / 2
    flops = tokens * service.model.prefill_flops * cached_tokens(service.model, seen)
    return _per_accelerator(service, replicas, flops) / _sixteen_bit_rate(service)


def _fixed_s(service: ServingSetup, replicas: Replicas) -> Amount:
    achieved = service.machine.achieved
    return achieved.host_s + achieved.layer_s * service.model.layers / pipeline_stages(service.model, replicas)


def _per_accelerator(service: ServingSetup, replicas: Replicas, whole: Amount) -> Amount:
    """A group's part of what a token's whole pass takes, on one of its accelerators."""
    return whole / (replicas.tensor * pipeline_stages(service.model, replicas))


def _dense_read(service: ServingSetup, replicas: Replicas) -> Amount:
    """Bytes of the weights that every token meets, which an accelerator reads in a step."""
    return _per_accelerator(service, replicas, service.stored.weight_bytes * service.model.dense)


def _experts_read(service: ServingSetup, replicas: Replicas, tokens: Amount) -> Amount:
    """Bytes of the experts that any group's tokens visit, on one accelerator."""
    model, lanes = service.model, tensor_groups(replicas) / pipeline_stages(service.model, replicas)
    touched = touched_experts(model.experts, model.experts_per_token, tokens * lanes)
    return service.stored.weight_bytes * touched * model.routed / replicas.accelerators


def _head_bytes(service: ServingSetup, replicas: Replicas) -> Amount:
    return _per_accelerator(service, replicas, service.stored.table_bytes * service.model.table)


def _cache_read(service: ServingSetup, replicas: Replicas) -> Amount:
    """Bytes of keys and values that an accelerator reads for its sequences' next tokens."""
    read = replicas.batch / tensor_groups(replicas) * token_cache_bytes(service) * attended_tokens(service)
    return read / (cache_parts(service, replicas) * pipeline_stages(service.model, replicas))


def _bandwidth(service: ServingSetup) -> float:
    return service.machine.accelerator.memory_bandwidth_gb_per_s * 1e9


def _sixteen_bit_rate(service: ServingSetup) -> float:
    return _first_peak(service.machine, SIXTEEN_BIT) * service.machine.achieved.compute_share


def _first_peak(machine: ServingMachine, precisions: tuple[str, ...]) -> float:
    """Dense peak in FLOP/s of the first of `precisions` that the accelerator has, or else of its fastest."""
    peaks = machine.accelerator.peak_tflops
    known = next((name for name in precisions if name in peaks), None)
    return peak_flops(machine.accelerator, known or max(peaks, key=lambda name: peaks[name]))


def _link(machine: ServingMachine, span: Amount) -> Amount:
    """Bytes a second, one way, that a group of `span` accelerators reaches of the fast link, or of the network where it is larger."""
    part = machine.accelerator
    across = (part.internode_gbit_per_s or 0.0) / 8 * 1e9 or np.inf
    inside = (part.link_gb_per_s or 0.0) / 2 * 1e9 or across
    near = np.less_equal(span, max(part.accelerators_per_node, part.link_domain))
    return machine.achieved.link_share * np.where(near, inside, np.minimum(inside, across))
