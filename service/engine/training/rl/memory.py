"""Memory of the accelerators that train in a step of reinforcement learning, beside that of training itself."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from service.domain.serving.requirements import MeanRequest, Replicas
from service.domain.training.model import Transformer
from service.domain.training.run import Training
from service.engine.training.dtypes import gradient_bytes, optimizer_bytes, weight_bytes
from service.engine.training.inference.model import ServingSetup, describe_served_model, sequence_bytes, weight_memory
from service.engine.training.layouts import Layouts
from service.engine.training.parameters import total_parameters
from service.engine.training.rl.generation import generation_time
from service.engine.training.rl.lengths import mean_tokens, packed_tokens
from service.engine.training.sharding import local_parameters, zero_sharded

Floats = NDArray[np.float64]


def longest_sequences(training: Training) -> Training:
    """The training as memory has to hold it: micro-batches of the longest sequences; other methods as they are."""
    if training.rl is None:
        return training
    ranks = training.axes.context or 1
    return replace(training, seq_len=math.ceil(packed_tokens(training.rl) / ranks) * ranks)


def resident_bytes(model: Transformer, training: Training, layouts: Layouts) -> dict[str, Floats]:
    """Critic and sampler on the accelerators that train.

    A sampler that shares accelerators and is not offloaded keeps its weights and the keys and values of its sequences; one that is
    offloaded sleeps while the trainer works, and one on accelerators of its own takes nothing here.

    Parameters
    ----------
    model : Transformer
        The policy.
    training : Training
        With its step of reinforcement learning.
    layouts : Layouts
        Columns of length (layouts,).

    Returns
    -------
    dict of str to (layouts,) float array
        Parts "critic", "sampler_weights" and "kv_cache" [B].
    """
    rl = training.rl
    assert rl is not None
    weights = cache = 0.0
    if rl.colocated and not rl.offload:
        count = int(np.max(layouts.tensor * layouts.pipeline * layouts.data * layouts.context))
        sampling = generation_time(model, rl, count)
        request = MeanRequest(rl.rollouts.prompt_tokens, mean_tokens(rl.rollouts.lengths))
        setup = ServingSetup(describe_served_model(model), rl.generation.weight_format, rl.generation.machine, request)
        replicas = Replicas(float(sampling.replica_accelerators), float(sampling.tensor), sampling.sequences)
        weights, cache = float(weight_memory(setup, replicas)), float(sampling.sequences * sequence_bytes(setup, replicas))
    nothing = np.zeros(np.shape(layouts.tensor))
    return {"critic": critic_bytes(model, training, layouts), "sampler_weights": nothing + weights, "kv_cache": nothing + cache}


def critic_bytes(model: Transformer, training: Training, layouts: Layouts) -> Floats:
    """Weights, gradients and optimizer states of the critic, divided as the policy's.

    Parameters
    ----------
    model : Transformer
        The policy.
    training : Training
        With its step of reinforcement learning.
    layouts : Layouts
        Columns of length (layouts,).

    Returns
    -------
    (layouts,) float array
        [B].
    """
    assert training.rl is not None
    share = training.rl.critic_params / total_parameters(model)
    local = local_parameters(model, layouts)
    held = weight_bytes(training) * zero_sharded(local, layouts, 3) + gradient_bytes(training, layouts) * zero_sharded(local, layouts, 2)
    states: Floats = share * (held + optimizer_bytes(training) * zero_sharded(local, layouts, 1))
    return states
