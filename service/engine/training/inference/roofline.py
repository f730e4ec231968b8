"""Speed of a model in service: a roofline of each step of continuous batching, and from it throughput and latency.

A step gives every sequence in flight its next token and processes the prompt tokens that arrive meanwhile (chunked prefill: Agrawal et al.
2024, Sarathi-Serve, arXiv 2403.02310, section 4), so that both share one read of the weights. Matrices and attention each take the longer
of their memory and their arithmetic time (Pope et al. 2022, arXiv 2211.05102, section 2); exchanges and fixed times are added. Not
included: queueing before the first step, speculative decoding, and traffic of activations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from service.domain.quantities import Range
from service.domain.serving.requirements import MeanRequest, Replicas, ServingMachine
from service.domain.training.hardware import SIXTEEN_BIT, Accelerator
from service.engine.training.inference.model import (
    ACTIVATION_BYTES,
    ServedModel,
    ServingSetup,
    attended_tokens,
    cache_parts,
    cached_tokens,
    pipeline_stages,
    state_bytes,
    tensor_groups,
    token_cache_bytes,
)
from service.engine.training.step.workload import peak_flops

if TYPE_CHECKING:
    from service.domain.serving.requirements import Amount

# An expert's input is sent in 8 bits, its output comes back in 16 (DeepSeek-V3, arXiv 2412.19437, section 3.2.2).
EXCHANGED_BYTES = 3.0
# Mixtral has 8 experts a layer; Llama 4, Qwen3 and DeepSeek have 16 to 384, whose uneven load and small products are measured apart.
MANY_EXPERTS = 16


@dataclass(frozen=True, slots=True)
class ServingStep:
    """Time of one pass through a stage.

    Attributes
    ----------
    matrices, attention, exchange, fixed : float or float array
        Matrices, attention, exchanges among ranks, and fixed times [s].
    prompt : float or float array
        Part of these spent on prompt tokens [s].
    memory_bound : bool array
        Reading weights takes longer than multiplying with them.
    """

    matrices: Amount
    attention: Amount
    exchange: Amount
    fixed: Amount
    prompt: Amount
    memory_bound: NDArray[np.bool_]

    @property
    def seconds(self) -> Amount:
        """Whole time [s]."""
        return self.matrices + self.attention + self.exchange + self.fixed


@dataclass(frozen=True, slots=True)
class ReplicaSpeed:
    """Steady state of replicas.

    Attributes
    ----------
    output_tokens_per_s, input_tokens_per_s, requests_per_s : float or float array
        Throughput [1/s].
    ttft_s : float or float array
        Time to first token without a queue: half a step's wait, then the prompt's chunks [s].
    tpot_s : float or float array
        Time per output token [s].
    prompt_share : float or float array
        Share of the time spent on prompts [1].
    memory_bound : bool array
    """

    output_tokens_per_s: Amount
    input_tokens_per_s: Amount
    requests_per_s: Amount
    ttft_s: Amount
    tpot_s: Amount
    prompt_share: Amount
    memory_bound: NDArray[np.bool_]


def replica_speed(setup: ServingSetup, replicas: Replicas) -> ReplicaSpeed:
    """Throughput and latency of replicas at full load.

    Parameters
    ----------
    setup : ServingSetup
    replicas : Replicas

    Returns
    -------
    ReplicaSpeed
        Of the replicas' shape.
    """
    request, step = setup.request, _loaded_step(setup, replicas)
    tpot_s = pipeline_stages(setup.model, replicas) * step.seconds
    rate = replicas.batch / tpot_s
    return ReplicaSpeed(
        output_tokens_per_s=rate,
        input_tokens_per_s=rate * request.prompt_tokens / request.output_tokens,
        requests_per_s=rate / request.output_tokens,
        ttft_s=step.seconds / 2 + _chunked_prefill_s(setup, replicas),
        tpot_s=tpot_s,
        prompt_share=step.prompt / step.seconds,
        memory_bound=step.memory_bound,
    )


def requests_per_s(setup: ServingSetup, replicas: Replicas) -> Amount:
    """Throughput of replicas at full load without their latency, as `replica_speed` has it [1/s]."""
    tpot_s = pipeline_stages(setup.model, replicas) * _loaded_step(setup, replicas).seconds
    return replicas.batch / tpot_s / setup.request.output_tokens


def throughput_spread(setup: ServingSetup) -> Range:
    """Measured over predicted throughput for the setup's kind of model on its machine's family [1]."""
    achieved = setup.machine.achieved
    if np.any(np.greater_equal(setup.model.experts, MANY_EXPERTS)):
        return achieved.many_experts_spread
    return achieved.routed_spread if np.any(np.greater(setup.model.weights.routed, 0)) else achieved.spread


def crosses_network(model: ServedModel, accelerator: Accelerator) -> bool:
    """Whether any replica's time depends on the network between nodes: experts are exchanged over it, activations of stages not counted."""
    return accelerator.link_gb_per_s is None or bool(np.any(np.greater(model.weights.routed, 0)))


def computed_prompt_tokens(requests: MeanRequest) -> float:
    """Prompt tokens that are not found in a cache."""
    return requests.prompt_tokens * (1 - requests.cached_share)


def prefill_s(setup: ServingSetup, replicas: Replicas) -> Amount:
    """Time of a prompt that has the replica to itself: its chunks one after the other through the stages [s]."""
    return _chunked_prefill_s(setup, Replicas(replicas.accelerators, replicas.tensor, np.zeros_like(replicas.batch)))


def time_step(setup: ServingSetup, replicas: Replicas, prompt_tokens: Amount) -> ServingStep:
    """Time of one step of a group of tensor ranks.

    Parameters
    ----------
    setup : ServingSetup
    replicas : Replicas
    prompt_tokens : float or float array
        Prompt tokens processed beside the next token of each sequence.

    Returns
    -------
    ServingStep
        Of the replicas' shape.
    """
    sequences = replicas.batch / tensor_groups(replicas)
    tokens = sequences + prompt_tokens
    matrices, excess = _matrices_s(setup, replicas, tokens)
    head = _head_s(setup, replicas, sequences)
    attention = _decode_attention_s(setup, replicas)
    prompt_attention = _prompt_attention_s(setup, replicas, prompt_tokens)
    overlapping = matrices + head + attention + prompt_attention
    exchange = tensor_exchange_s(setup, replicas, tokens) + _visible_exchange_s(
        setup, replicas, expert_exchange_s(setup, replicas, tokens), overlapping
    )
    prompt_share = prompt_tokens / np.maximum(tokens, 1e-9)
    return ServingStep(
        matrices=matrices + head,
        attention=attention + prompt_attention,
        exchange=exchange,
        fixed=_fixed_s(setup, replicas),
        prompt=prompt_share * (matrices + exchange) + prompt_attention,
        memory_bound=np.greater(excess, 0),
    )


def decode_roofline_s(setup: ServingSetup, replicas: Replicas) -> Amount:
    """Lower bound of the time per output token: bytes over the data sheet's bandwidth, or the matrices' FLOPs over its peak.

    Parameters
    ----------
    setup : ServingSetup
    replicas : Replicas

    Returns
    -------
    float or float array
        Time [s].
    """
    model, sequences = setup.model, replicas.batch / tensor_groups(replicas)
    weights = _dense_bytes(setup, replicas) + _expert_bytes(setup, replicas, sequences) + _head_bytes(setup, replicas)
    read = weights + _cache_bytes(setup, replicas)
    multiply_s = _per_accelerator(setup, replicas, sequences * model.flops.matrices) / arithmetic_peak_flop_per_s(setup)
    return pipeline_stages(model, replicas) * np.maximum(read / _memory_bytes_per_s(setup), multiply_s)


def arithmetic_peak_flop_per_s(setup: ServingSetup) -> float:
    """Dense peak for the weight format [FLOP/s]: that of the first of its precisions that the accelerator has, else of 16 bit."""
    return _peak_flop_per_s(setup.machine, (*setup.weight_format.arithmetic, *SIXTEEN_BIT))


def visited_experts(experts: Amount, per_token: Amount, tokens: Amount) -> Amount:
    """Expected share of a layer's experts that a number of tokens visit, evenly: 1 - (1 - k / E)^tokens.

    Parameters
    ----------
    experts, per_token : float or float array
        Experts E of a layer and distinct ones k of a token.
    tokens : float or float array

    Returns
    -------
    float or float array
        Share [1].
    """
    return 1 - (1 - per_token / np.maximum(experts, 1.0)) ** tokens


def tensor_exchange_s(setup: ServingSetup, replicas: Replicas, tokens: Amount) -> Amount:
    """Two ring all-reduces a layer, each of 2 (T - 1) / T of the activations, and a latency for each doubling of the ranks.

    Parameters
    ----------
    setup : ServingSetup
    replicas : Replicas
    tokens : float or float array
        Tokens of the step in a group.

    Returns
    -------
    float or float array
        Time [s].

    References
    ----------
    Megatron-LM (arXiv 1909.08053), section 3.
    """
    model, ranks = setup.model, np.asarray(replicas.tensor, dtype=np.float64)
    payload = ACTIVATION_BYTES * tokens * model.hidden_size * 2 * (ranks - 1) / ranks
    all_reduce_s = setup.machine.achieved.hop_s * np.log2(ranks) + payload / _link_bytes_per_s(setup.machine, ranks)
    return np.asarray(2 * model.layers / pipeline_stages(model, replicas) * all_reduce_s)


def _visible_exchange_s(setup: ServingSetup, replicas: Replicas, exchange: Amount, overlapping: Amount) -> Amount:
    """Visible part of the experts' exchanges: all within a node; beyond it half of the batch computes while the other half is exchanged, as
    DeepSeek-V3 (arXiv 2412.19437, section 3.4) and SGLang serve.
    """
    return np.where(_nodes(setup, replicas) > 1, np.maximum(exchange - overlapping, 0.0), exchange)


def _nodes(setup: ServingSetup, replicas: Replicas) -> Amount:
    """Nodes, or domains of the fast link (racks, pods), in a replica."""
    accelerator = setup.machine.accelerator
    return np.maximum(replicas.accelerators / max(accelerator.accelerators_per_node, accelerator.link_domain), 1.0)


def expert_exchange_s(setup: ServingSetup, replicas: Replicas, tokens: Amount) -> Amount:
    """Dispatch and combine of every routed layer where groups share experts.

    Parameters
    ----------
    setup : ServingSetup
    replicas : Replicas
    tokens : float or float array
        Tokens of the step in a group.

    Returns
    -------
    float or float array
        Time [s]. A token is sent once to each other node with one of its experts, and there over the fast link to each of them.
    """
    model, nodes = setup.model, _nodes(setup, replicas)
    visited = (nodes - 1) * (1 - (1 - 1 / nodes) ** model.experts_per_token)
    sent_bytes = EXCHANGED_BYTES * tokens / replicas.tensor * model.hidden_size * (tensor_groups(replicas) > 1)
    link_rate = sent_bytes * model.experts_per_token / _link_bytes_per_s(setup.machine, 1.0)
    return np.asarray(model.expert_layers * (link_rate + sent_bytes * visited / _link_bytes_per_s(setup.machine, np.inf)))


def _loaded_step(setup: ServingSetup, replicas: Replicas) -> ServingStep:
    """A step at full load: beside each sequence's next token the prompt tokens that arrive meanwhile."""
    request = setup.request
    prompt_tokens_per_step = replicas.batch / tensor_groups(replicas) * computed_prompt_tokens(request) / request.output_tokens
    return time_step(setup, replicas, prompt_tokens_per_step)


def _chunked_prefill_s(setup: ServingSetup, replicas: Replicas) -> Amount:
    """Time until a prompt's chunks have passed all stages while the replica's sequences decode [s]."""
    prompt = max(computed_prompt_tokens(setup.request), 1.0)
    chunks = np.ceil(prompt / setup.machine.limits.chunk_tokens)
    step = time_step(setup, replicas, np.full(np.shape(replicas.batch), prompt / chunks))
    return np.asarray((chunks + pipeline_stages(setup.model, replicas) - 1) * step.seconds)


def _matrices_s(setup: ServingSetup, replicas: Replicas, tokens: Amount) -> tuple[Amount, Amount]:
    """Time of the layers' matrices, and the excess of reading over multiplying: those that all tokens meet, and the experts', which
    reach a part of the others' rates.
    """
    model, achieved = setup.model, setup.machine.achieved
    bandwidth = _memory_bytes_per_s(setup) * achieved.bandwidth_share
    rate = arithmetic_peak_flop_per_s(setup) * achieved.compute_share
    routed = model.flops.routed
    dense, experts = _dense_bytes(setup, replicas) / bandwidth, _expert_bytes(setup, replicas, tokens) / bandwidth
    multiplied = _per_accelerator(setup, replicas, tokens * (model.flops.matrices - routed)) / rate
    routed_s = _per_accelerator(setup, replicas, tokens * routed) / rate
    excess = dense + experts - multiplied - routed_s
    return np.maximum(dense, multiplied) + np.maximum(experts, routed_s) / achieved.routed_share, excess


def _head_s(setup: ServingSetup, replicas: Replicas, tokens: Amount) -> Amount:
    """As `_matrices_s`, for the output matrix, which stays in 16 bits; stages are cut so that they take equally long."""
    read_s = _head_bytes(setup, replicas) / (_memory_bytes_per_s(setup) * setup.machine.achieved.bandwidth_share)
    multiply_s = _per_accelerator(setup, replicas, tokens * setup.model.flops.head) / _sixteen_bit_flop_per_s(setup)
    return np.maximum(read_s, multiply_s) * np.greater(tokens, 0)


def _decode_attention_s(setup: ServingSetup, replicas: Replicas) -> Amount:
    read_s = _cache_bytes(setup, replicas) / (_memory_bytes_per_s(setup) * setup.machine.achieved.bandwidth_share)
    flops = replicas.batch / tensor_groups(replicas) * setup.model.flops.decode * attended_tokens(setup)
    return np.maximum(read_s, _per_accelerator(setup, replicas, flops) / _sixteen_bit_flop_per_s(setup))


def _prompt_attention_s(setup: ServingSetup, replicas: Replicas, tokens: Amount) -> Amount:
    """A prompt token attends to half of the prompt on average, and to all cached tokens."""
    attended = setup.request.prompt_tokens * (1 + setup.request.cached_share) / 2
    flops = tokens * setup.model.flops.prefill * cached_tokens(setup.model, attended)
    return _per_accelerator(setup, replicas, flops) / _sixteen_bit_flop_per_s(setup)


def _fixed_s(setup: ServingSetup, replicas: Replicas) -> Amount:
    achieved = setup.machine.achieved
    return achieved.host_s + achieved.layer_s * setup.model.layers / pipeline_stages(setup.model, replicas)


def _per_accelerator(setup: ServingSetup, replicas: Replicas, total: Amount) -> Amount:
    """A group's part of a token's whole pass, on one of its accelerators."""
    return total / (replicas.tensor * pipeline_stages(setup.model, replicas))


def _dense_bytes(setup: ServingSetup, replicas: Replicas) -> Amount:
    """Weights met by every token that an accelerator reads in a step [B]."""
    return _per_accelerator(setup, replicas, setup.weight_format.weight_bytes * setup.model.weights.dense)


def _expert_bytes(setup: ServingSetup, replicas: Replicas, tokens: Amount) -> Amount:
    """Experts visited by any group's tokens that an accelerator reads in a step [B]."""
    model = setup.model
    visited = visited_experts(model.experts, model.experts_per_token, tokens * tensor_groups(replicas))
    return setup.weight_format.weight_bytes * visited * model.weights.routed / replicas.accelerators


def _head_bytes(setup: ServingSetup, replicas: Replicas) -> Amount:
    return _per_accelerator(setup, replicas, setup.weight_format.table_bytes * setup.model.weights.output)


def _cache_bytes(setup: ServingSetup, replicas: Replicas) -> Amount:
    """Keys and values that an accelerator reads for its sequences' next tokens, and states that it reads and writes [B]."""
    sequences = replicas.batch / tensor_groups(replicas)
    read = token_cache_bytes(setup) * attended_tokens(setup) / (cache_parts(setup, replicas) * pipeline_stages(setup.model, replicas))
    return sequences * (read + _per_accelerator(setup, replicas, 2 * state_bytes(setup.model)))


def _memory_bytes_per_s(setup: ServingSetup) -> float:
    return setup.machine.accelerator.memory_bandwidth_gb_per_s * 1e9


def _sixteen_bit_flop_per_s(setup: ServingSetup) -> float:
    return _peak_flop_per_s(setup.machine, SIXTEEN_BIT) * setup.machine.achieved.compute_share


def _peak_flop_per_s(machine: ServingMachine, precisions: tuple[str, ...]) -> float:
    """Dense peak of the first of `precisions` that the accelerator has, else of its fastest [FLOP/s]."""
    peaks = machine.accelerator.peak_tflops
    supported = next((name for name in precisions if name in peaks), None)
    return peak_flops(machine.accelerator, supported or max(peaks, key=lambda name: peaks[name]))


def _link_bytes_per_s(machine: ServingMachine, span: Amount) -> Amount:
    """One-way rate that a group of `span` accelerators reaches on the fast link, or on the network where it is larger [B/s]."""
    accelerator = machine.accelerator
    network_rate = (accelerator.internode_gbit_per_s or 0.0) / 8 * 1e9 or np.inf
    link_rate = (accelerator.link_gb_per_s or 0.0) / 2 * 1e9 or network_rate
    within_domain = np.less_equal(span, max(accelerator.accelerators_per_node, accelerator.link_domain))
    return machine.achieved.link_share * np.where(within_domain, link_rate, np.minimum(link_rate, network_rate))
