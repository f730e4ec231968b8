"""Phases of a step of reinforcement learning on every layout of the trainer, and the step that they make.

Sampler and trainer that share accelerators, or take turns on their own, add up; asynchronous ones overlap, and the slower decides.

References
----------
PPO: Schulman et al. 2017 (arXiv 1707.06347), algorithm 1. GRPO: Shao et al. 2024 (arXiv 2402.03300), algorithm 1. The phases are those of
HybridFlow (Sheng et al. 2024, arXiv 2409.19256, section 2.1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from service.domain.errors import InvalidRequest
from service.domain.training.estimate import PhaseBlock
from service.domain.training.model import Model, Transformer
from service.domain.training.reinforcement import PHASES, Reinforcement, Rollouts
from service.domain.training.run import AuxiliaryModels, Cluster, Training
from service.domain.training.utilisation import Utilisation
from service.engine.training.dtypes import optimizer_bytes
from service.engine.training.layouts import Layouts
from service.engine.training.parameters import count_parameters
from service.engine.training.rl.generation import GenerationTime, generation_time
from service.engine.training.rl.lengths import mean_tokens, packed_tokens
from service.engine.training.step.step_time import StepTime, step_time

Floats = NDArray[np.float64]
# Weights are sent in 16 bits and quantised where they arrive.
TRANSFERRED_BYTES = 2.0
POINTER = "/training/rl/generation/count"
SAMPLING = ("prefill", "generation", "environment")
"""Phases of the sampler's pool; all others are the trainer's."""


@dataclass(frozen=True, slots=True)
class TimedStep:
    """A step by phase.

    Attributes
    ----------
    seconds : dict of str to float or (layouts,) float array
        By phase [s].
    steps : StepTime
        The whole step by what bounds it.
    """

    seconds: dict[str, Floats | float]
    steps: StepTime


def update_training(training: Training) -> Training:
    """One optimizer step of a step of reinforcement learning, as the layout is searched for; other training as it is."""
    return training if training.rl is None else replace(training, global_batch=training.rl.mini_batch_responses)


def sampling_accelerators(rl: Reinforcement, count: int) -> int | None:
    """Accelerators that only sample.

    Parameters
    ----------
    rl : Reinforcement
        Stated pool and lag.
    count : int
        All accelerators.

    Returns
    -------
    int or None
        None where all sample and train in turns.

    Raises
    ------
    InvalidRequest
        More than there are, or none left to train while they sample.
    """
    sampling = rl.generation.count
    if sampling is None:
        if not rl.asynchronous_steps:
            return None
        sampling = int(rl.generation.share * count)
    if sampling > count:
        raise InvalidRequest(f"{sampling} accelerators cannot sample: sampler and trainer together are {count}", POINTER)
    if rl.asynchronous_steps and not 0 < sampling < count:
        raise InvalidRequest(
            f"asynchronous steps need accelerators that only sample and others that only train: of {count} in all state a"
            " generation.count below that, or more accelerators",
            POINTER,
        )
    return None if sampling == count else sampling


def training_pool(training: Training, cluster: Cluster) -> Cluster:
    """The accelerators that train: all but those that only sample. Raises InvalidRequest where the pools do not add up."""
    if training.rl is None:
        return cluster
    sampling = sampling_accelerators(training.rl, cluster.count)
    if sampling is None:
        return cluster
    count = cluster.count - sampling
    return replace(cluster, count=count, accelerators_per_node=min(cluster.accelerators_per_node, count))


def sampler_fits(model: Model, training: Training, cluster: Cluster) -> bool:
    """Whether the accelerators that sample hold the policy and a sequence; nothing samples in other methods."""
    if training.rl is None or not isinstance(model, Transformer):
        return True
    count = sampling_accelerators(training.rl, cluster.count) or cluster.count
    return generation_time(model, training.rl, count).fits


def step_by_phase(
    model: Model,
    training: Training,
    cluster: Cluster,
    utilisation: Utilisation,
    layouts: Layouts,
    networks_gbit_per_s: Floats | None = None,
) -> TimedStep:
    """Time of a step of reinforcement learning on every layout of the accelerators that train (`training_pool`).

    Parameters
    ----------
    model : Model
        The policy.
    training : Training
        Of one optimizer step (`update_training`).
    cluster : Cluster
        All accelerators, which sample or train.
    utilisation : Utilisation
        What they achieve.
    layouts : Layouts
        Columns of length (layouts,).
    networks_gbit_per_s : (networks, 1) float array, optional
        Networks of one accelerator, in place of the cluster's [Gbit/s].

    Returns
    -------
    TimedStep

    Raises
    ------
    InvalidRequest
        The accelerators that sample do not divide into replicas, or the pools do not add up.
    """
    assert training.rl is not None
    assert isinstance(model, Transformer)
    rl, packed, pool = training.rl, packed_layouts(training, layouts), training_pool(training, cluster)

    def timed(**auxiliary: object) -> StepTime:
        alone = replace(training, method="pretrain", rl=None, auxiliary_models=AuxiliaryModels(**auxiliary))  # type: ignore[arg-type]
        return step_time(model, alone, pool, utilisation, packed, networks_gbit_per_s)

    update = timed()
    forward = _combined(lambda one, base: one - base, timed(reference=True), update)
    reward_model = training.auxiliary_models.reward_model
    reward = _combined(lambda one, base: one - base, timed(reward_model=reward_model), update) if reward_model else None
    sampling = generation_time(model, rl, sampling_accelerators(rl, cluster.count) or cluster.count)
    return _timed_step(model, training, pool, _Passes(update, forward, reward), sampling)


@dataclass(frozen=True, slots=True)
class StepPhases:
    """Phases of a step that take time, in their order, and the whole step [s]."""

    phases: tuple[PhaseBlock, ...]
    step_s: float


def phases_of(model: Model, training: Training, cluster: Cluster, utilisation: Utilisation, layouts: Layouts) -> StepPhases:
    """Seconds and tokens of a step by phase, on one layout of the trainer.

    Parameters
    ----------
    model : Model
        The policy.
    training : Training
        Of a whole step.
    cluster : Cluster
        All accelerators.
    utilisation : Utilisation
        What they achieve.
    layouts : Layouts
        Columns of length 1.

    Returns
    -------
    StepPhases
    """
    assert training.rl is not None
    found = step_by_phase(model, update_training(training), cluster, utilisation, layouts)
    seconds = {name: float(np.squeeze(value)) for name, value in found.seconds.items()}
    tokens = _tokens(training, training.rl.rollouts)
    phases = tuple(PhaseBlock(name, seconds[name], tokens.get(name, 0.0)) for name in PHASES if seconds.get(name))
    return StepPhases(phases, float(found.steps.total[0]))


def _tokens(training: Training, rollouts: Rollouts) -> dict[str, float]:
    """Tokens of a step by phase."""
    sampled = rollouts.responses * mean_tokens(rollouts.lengths)
    whole = sampled + rollouts.responses * rollouts.prompt_tokens
    scored = dict.fromkeys(("old_log_prob", "reference", "reward", "values"), whole)
    trained = dict.fromkeys(("update_actor", "update_critic"), training.update_epochs * whole)
    return {"prefill": rollouts.prompts * rollouts.prompt_tokens, "generation": sampled, **scored, **trained}


def packed_layouts(training: Training, layouts: Layouts) -> Layouts:
    """Layouts whose micro-batches have the tokens of as many longest sequences: short answers are packed, or batched by their tokens.

    Parameters
    ----------
    training : Training
        Mean sequence and mini-batch.
    layouts : Layouts
        Micro-batches in longest sequences.

    Returns
    -------
    Layouts
        Micro-batches in mean sequences.
    """
    assert training.rl is not None
    share = np.maximum(training.global_batch // layouts.data, 1)
    packed = np.maximum(layouts.micro_batch * packed_tokens(training.rl) // max(training.seq_len, 1), 1)
    return replace(layouts, micro_batch=np.minimum(packed, share).astype(np.int64))


@dataclass(frozen=True, slots=True)
class _Passes:
    """One optimizer step, and forward passes of policy and reward model over its answers."""

    update: StepTime
    forward: StepTime
    reward: StepTime | None


def _timed_step(model: Transformer, training: Training, pool: Cluster, passes: _Passes, sampling: GenerationTime) -> TimedStep:
    rl = training.rl
    assert rl is not None
    rounds = rl.rollouts.responses / passes.update.batch
    updates = training.update_epochs * rounds / rl.rates.update_share
    scored = rounds / rl.rates.update_share
    critic = rl.critic_params / count_parameters(model).active
    reference = float(training.auxiliary_models.reference)
    trained = _combined(lambda one: (1 + critic) * updates * one, passes.update)
    judged = _combined(lambda one: (1 + reference + critic) * scored * one, passes.forward)
    parts = _combined(lambda one, other: one + other, trained, judged)
    seconds: dict[str, Floats | float] = {
        "prefill": sampling.prefill_s,
        "generation": sampling.decode_s,
        "environment": rl.rollouts.environment_seconds,
        "old_log_prob": scored * passes.forward.total,
        "reference": reference * scored * passes.forward.total,
        "values": critic * scored * passes.forward.total,
        "update_actor": updates * passes.update.total,
        "update_critic": critic * updates * passes.update.total,
        "weight_transfer": transfer_s(model, rl, pool),
        "offload": offload_s(model, training, pool),
        "overhead": overhead_s(training),
    }
    if passes.reward is not None:
        rewarded = _combined(lambda one: scored * one, passes.reward)
        parts = _combined(lambda one, other: one + other, parts, rewarded)
        seconds["reward"] = rewarded.total
    return TimedStep(seconds, _whole_step(parts, seconds, rl))


def _whole_step(parts: StepTime, seconds: dict[str, Floats | float], rl: Reinforcement) -> StepTime:
    """The trainer's passes with what the rest of the step takes beyond them."""
    sampled = sum(seconds[name] for name in SAMPLING)
    others = seconds["offload"] + seconds["overhead"]
    trained = parts.total + others + seconds["weight_transfer"]
    # Where pools overlap, sampling is seen only as far as it takes longer than the trainer; it goes on while new weights arrive.
    seen = np.maximum(sampled - trained, 0.0) if rl.asynchronous_steps else sampled
    return replace(
        parts,
        memory=parts.memory + seen,
        network=parts.network + seconds["weight_transfer"],
        launch=parts.launch + others,
        batch=np.full_like(parts.batch, float(rl.rollouts.responses)),
    )


def transfer_s(model: Transformer, rl: Reinforcement, trainers: Cluster) -> float:
    """Transfer of the trained weights to the sampler, tensor by tensor: each is gathered whole where its parts are taken.

    Parameters
    ----------
    model : Transformer
        The policy.
    rl : Reinforcement
        Pools and rates.
    trainers : Cluster
        Accelerators that train.

    Returns
    -------
    float
        [s]. Over the link where it joins all accelerators, over the network where pools are apart or larger than its reach.
    """
    pool = rl.generation
    accelerator = pool.machine.accelerator
    received = TRANSFERRED_BYTES * count_parameters(model).total
    network = (accelerator.internode_gbit_per_s or 0.0) / 8 * 1e9 or math.inf
    link = (accelerator.link_gb_per_s or 0.0) / 2 * 1e9 or network
    domain = max(accelerator.accelerators_per_node, accelerator.link_domain)
    within = rl.colocated and trainers.count <= domain
    rate = link if within else min(link, network)
    return received / (rl.rates.transfer_share * rate)


def offload_s(model: Transformer, training: Training, pool: Cluster) -> float:
    """Optimizer's states and gradients to the host's memory while answers are sampled, and back [s]."""
    rl = training.rl
    assert rl is not None
    if not (rl.offload and rl.colocated):
        return 0.0
    moved = (optimizer_bytes(training) + training.footprint.gradient_bytes[training.precision]) * count_parameters(model).total / pool.count
    return 2 * moved / rl.rates.host_bytes_per_s


def overhead_s(training: Training) -> float:
    """What one process does for a step: starting its phases, and rewards by rule, advantages and batches of its answers [s]."""
    rl = training.rl
    assert rl is not None
    return rl.rates.step_s + rl.rates.sample_s * rl.rollouts.responses


def _combined(what: Callable[..., Floats], *steps: StepTime) -> StepTime:
    """Each part of steps combined; the batch is the first step's."""
    names = [name for name in StepTime.__slots__ if name != "batch"]
    return StepTime(**{name: what(*(getattr(step, name) for step in steps)) for name in names}, batch=steps[0].batch)
