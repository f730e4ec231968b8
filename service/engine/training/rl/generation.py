"""Time to sample the answers of a step: prompts in full, then decode steps at the batch's real occupancy, to the end of the longest answer.

A decode step is the roofline of a served model (`inference.roofline`), slower by what samplers inside a trainer reach of a tuned serving
engine, and the time of the host, which grows with the sequences in flight. A replica holds as many sequences as its memory and its engine
allow; the others wait. Once none waits, the batch empties as the answers end, and steps become cheap but no tokens come of them. Not
included: speculative decoding, and evictions from a full cache.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from service.domain.errors import InvalidRequest
from service.domain.serving.requirements import MeanRequest, Replicas
from service.domain.training.model import Transformer
from service.domain.training.reinforcement import GenerationPool, Reinforcement
from service.engine.training.inference.model import ServingSetup, describe_served_model, largest_batch, pipeline_stages, tensor_groups
from service.engine.training.inference.roofline import time_step
from service.engine.training.rl.lengths import longest_tokens, mean_tokens, share_longer

Floats = NDArray[np.float64]

# Parts that the time to the longest answer is cut into.
PARTS = 16
WIDEST_REPLICA = 64
POINTER = "/training/rl/generation"


@dataclass(frozen=True, slots=True)
class GenerationTime:
    """Sampling of a step's answers.

    Attributes
    ----------
    replica_accelerators, tensor : int
        Accelerators of a replica and tensor ranks of its groups.
    sequences : float
        In flight in a replica at most.
    fits : bool
        Whether a replica's memory holds the weights and one sequence.
    prefill_s : float
        Prompts [s].
    steady_s : float
        Decode steps until every answer has begun, and of the others in proportion to the tokens that come of them [s].
    waiting_s : float
        The rest of the decode steps: fewer and fewer sequences, until the longest answer ends [s].
    """

    replica_accelerators: int
    tensor: int
    sequences: float
    fits: bool
    prefill_s: float
    steady_s: float
    waiting_s: float

    @property
    def decode_s(self) -> float:
        """All decode steps [s]."""
        return self.steady_s + self.waiting_s


@lru_cache(maxsize=512)
def generation_time(model: Transformer, rl: Reinforcement, count: int) -> GenerationTime:
    """Time to sample a step's answers on the replicas that sample them fastest.

    Parameters
    ----------
    model : Transformer
        The policy.
    rl : Reinforcement
        What is sampled, and on what.
    count : int
        Accelerators that sample.

    Returns
    -------
    GenerationTime
        On the widest replicas where none holds the weights and a sequence, with `fits` false.

    Raises
    ------
    InvalidRequest
        The accelerators cannot be divided into the stated replicas.
    """
    setup, shapes = _setup(model, rl), replica_shapes(model, rl.generation, count)
    accelerators, tensor = (np.array(column, dtype=np.float64) for column in zip(*shapes, strict=True))
    held = np.asarray(largest_batch(setup, Replicas(accelerators, tensor, np.ones(len(shapes)))))
    fits = held >= 1 if np.any(held >= 1) else accelerators == accelerators.max()
    accelerators, tensor, held = accelerators[fits], tensor[fits], held[fits]
    each = np.ceil(rl.rollouts.responses / (count // accelerators))
    # Asynchronously the answers of several steps are sampled side by side.
    in_flight: Floats = np.minimum(each * max(rl.asynchronous_steps, 1), np.maximum(held, 1.0))
    replicas = Replicas(accelerators, tensor, in_flight)
    steady, waiting = _decode_s(setup, replicas, rl, each)
    prefill = _prefill_s(setup, replicas, rl, each)
    best = int(np.argmin(prefill + steady + waiting))
    return GenerationTime(
        replica_accelerators=int(accelerators[best]),
        tensor=int(tensor[best]),
        sequences=float(in_flight[best]),
        fits=bool(held[best] >= 1),
        prefill_s=float(prefill[best]),
        steady_s=float(steady[best]),
        waiting_s=float(waiting[best]),
    )


def replica_shapes(model: Transformer, pool: GenerationPool, count: int) -> list[tuple[int, int]]:
    """Accelerators and tensor ranks of every replica worth trying. Raises InvalidRequest."""
    stages, experts = pool.pipeline or 1, pool.expert or 1
    sizes = [pool.tensor] if pool.tensor else [2**power for power in range(WIDEST_REPLICA.bit_length())]
    sizes = [size for size in sizes if model.attention_heads % size == 0]
    if not sizes:
        raise InvalidRequest(f"{model.attention_heads} attention heads do not divide by tensor {pool.tensor}", f"{POINTER}/tensor")
    if experts > 1 and model.experts is None:
        raise InvalidRequest("expert parallelism needs a mixture of experts; leave it out or set it to 1", f"{POINTER}/expert")
    shapes = [(max(size * stages, experts), size) for size in sizes]
    shapes = [(replica, size) for replica, size in shapes if count % replica == 0 and replica % size == 0]
    if not shapes:
        raise InvalidRequest(
            f"{count} accelerators that sample do not divide into replicas of tensor {pool.tensor or 1} x pipeline {stages}"
            f" (experts over {experts}); take a divisor",
            f"{POINTER}/tensor",
        )
    return shapes


def _setup(model: Transformer, rl: Reinforcement) -> ServingSetup:
    rollouts = rl.rollouts
    request = MeanRequest(rollouts.prompt_tokens, mean_tokens(rollouts.lengths))
    return ServingSetup(describe_served_model(model), rl.generation.weight_format, rl.generation.machine, request)


def _prefill_s(setup: ServingSetup, replicas: Replicas, rl: Reinforcement, each: Floats) -> Floats:
    """Prompts of a replica in full chunks; the answers to a prompt share its keys and values."""
    limits, rollouts = setup.machine.limits, rl.rollouts
    chunk = np.full_like(each, limits.chunk_tokens)
    step = time_step(setup, Replicas(replicas.accelerators, replicas.tensor, np.zeros_like(each)), chunk)
    groups = tensor_groups(replicas) / pipeline_stages(setup.model, replicas)
    prompts = np.minimum(np.ceil(each / rollouts.responses_per_prompt), rollouts.prompts)
    chunks = prompts * rollouts.prompt_tokens / limits.chunk_tokens / groups
    return np.asarray(chunks * step.seconds / rl.rates.decode_share)


def _decode_s(setup: ServingSetup, replicas: Replicas, rl: Reinforcement, each: Floats) -> tuple[Floats, Floats]:
    """Decode steps of a replica: those that its tokens take at full occupancy, and what the emptying batch takes beyond it [s]."""
    rollouts, batch = rl.rollouts, np.asarray(replicas.batch)
    mean = mean_tokens(rollouts.lengths)
    full = decode_step_s(setup, replicas, rl, rollouts.prompt_tokens + mean / 2)
    longest = longest_tokens(rollouts.lengths, rollouts.responses)
    part, emptying = longest / PARTS, np.zeros_like(full)
    for at in range(PARTS):
        begun = (at + 0.5) * part
        # The replica with the longest answer has it to the end.
        left = np.maximum(np.minimum(batch, each) * share_longer(rollouts.lengths, begun), 1.0)
        inside = Replicas(replicas.accelerators, replicas.tensor, left)
        emptying += part * decode_step_s(setup, inside, rl, rollouts.prompt_tokens + begun)
    alone = decode_step_s(setup, replace(replicas, batch=np.minimum(batch, each)), rl, rollouts.prompt_tokens + mean / 2)
    waiting = np.maximum(emptying - mean * alone, 0.0)
    # Asynchronous sampling goes on with the next answers while the longest end: the batch seldom empties.
    return each / batch * mean * full, waiting / (1 + rl.asynchronous_steps)


def decode_step_s(setup: ServingSetup, replicas: Replicas, rl: Reinforcement, context_tokens: float) -> Floats:
    """Time in which every sequence in flight gets its next token.

    Parameters
    ----------
    setup : ServingSetup
        The sampled model on its machine.
    replicas : Replicas
        With the sequences in flight.
    rl : Reinforcement
        How it is sampled.
    context_tokens : float
        Tokens that a sequence attends to.

    Returns
    -------
    (replicas,) float array
        Roofline over `decode_share`, and the host's time [s].
    """
    at = replace(setup, request=MeanRequest(context_tokens, 1.0))
    stages, rates = pipeline_stages(setup.model, replicas), rl.rates
    step = time_step(at, replicas, np.zeros_like(replicas.batch))
    host = rates.decode_host_s + rl.generation.eager * rates.eager_layer_s * setup.model.layers / stages
    return np.asarray(stages * (step.seconds / rates.decode_share + host))
