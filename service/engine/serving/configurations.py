"""Replica configurations, their cost per token and request, and the cost of compressing a model.

Step time is split between prompts and answers as steps spend it, so that input and output tokens have separate prices that add up to the
request's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from service.domain.serving.requirements import MeanRequest, Replicas
from service.engine.training.inference.model import ServingSetup, largest_batch, tensor_groups
from service.engine.training.inference.roofline import ReplicaSpeed, replica_speed

if TYPE_CHECKING:
    from service.domain.serving.requirements import Amount, CompressionMethod

SECONDS_PER_HOUR = 3600.0
# Batches that are tried: the largest that fits and each smaller one by this factor.
BATCH_FACTOR = 2**-0.5
BATCH_STEPS = 24


@dataclass(frozen=True, slots=True)
class TokenCosts:
    """Cost of tokens and requests; infinite where no configuration can serve.

    Attributes
    ----------
    usd_per_million_input, usd_per_million_output : float or float array
        Cost of a million tokens [USD].
    usd_per_request : float or float array
        Cost of a request [USD].
    """

    usd_per_million_input: Amount
    usd_per_million_output: Amount
    usd_per_request: Amount


def token_costs(
    setup: ServingSetup, replicas: Replicas, speed: ReplicaSpeed, usd_per_accelerator_hour: float, load_factor: float
) -> TokenCosts:
    """Cost of tokens and requests of replicas.

    Parameters
    ----------
    setup : ServingSetup
    replicas : Replicas
    speed : ReplicaSpeed
        At full load.
    usd_per_accelerator_hour : float
        Price [USD/h].
    load_factor : float
        Mean over full load, so the used share of the paid time [1].

    Returns
    -------
    TokenCosts
        Of the replicas' shape.
    """
    request = setup.request
    usd_per_s = usd_per_accelerator_hour / SECONDS_PER_HOUR * replicas.accelerators
    with np.errstate(divide="ignore", over="ignore"):  # infinite where no number holds it
        usd_per_request = usd_per_s / (load_factor * speed.requests_per_s)
    return TokenCosts(
        usd_per_million_input=1e6 * usd_per_request * speed.prompt_share / max(request.prompt_tokens, 1.0),
        usd_per_million_output=1e6 * usd_per_request * (1 - speed.prompt_share) / request.output_tokens,
        usd_per_request=usd_per_request,
    )


def cheapest_usd_per_request(setup: ServingSetup, usd_per_accelerator_hour: float, load_factor: float) -> float:
    """Cost of a request in the cheapest configuration that fits and keeps the latencies.

    Parameters
    ----------
    setup : ServingSetup
    usd_per_accelerator_hour : float
        Price [USD/h].
    load_factor : float
        Mean over full load [1].

    Returns
    -------
    float
        Cost [USD], infinite where no configuration can serve.
    """
    replicas = list_configurations(setup)
    # Configurations that do not fit are timed with one sequence a group and excluded afterwards.
    timed = replace(replicas, batch=np.maximum(replicas.batch, tensor_groups(replicas)))
    speed = replica_speed(setup, timed)
    usd = token_costs(setup, timed, speed, usd_per_accelerator_hour, load_factor).usd_per_request
    feasible = np.greater(replicas.batch, 0) & meets_latency(setup.request, speed)
    return float(np.min(np.where(feasible, usd, np.inf)))


def meets_latency(request: MeanRequest, speed: ReplicaSpeed) -> NDArray[np.bool_]:
    """Which replicas keep the latencies that the requests accept.

    Parameters
    ----------
    request : MeanRequest
    speed : ReplicaSpeed

    Returns
    -------
    bool array
        Of the speed's shape.
    """
    first = np.less_equal(speed.ttft_s, np.inf if request.ttft_s is None else request.ttft_s)
    return np.asarray(first & np.less_equal(speed.tpot_s, np.inf if request.tpot_s is None else request.tpot_s))


def list_configurations(setup: ServingSetup) -> Replicas:
    """All configurations that are tried: accelerators up to some nodes, tensor ranks within a node, batches down from the largest.

    Parameters
    ----------
    setup : ServingSetup

    Returns
    -------
    Replicas
        Arrays of shape (configurations,); the batch is 0 where the model does not fit.
    """
    accelerator, limits = setup.machine.accelerator, setup.machine.limits
    domain = max(accelerator.accelerators_per_node, accelerator.link_domain)
    counts = sorted({*_powers(domain), domain, *(domain * power for power in _powers(max(1, limits.max_accelerators // domain)))})
    splits = [(count, ranks) for count in counts for ranks in {*_powers(domain), domain} if count % ranks == 0]
    accelerators, tensor = (np.repeat(np.array(column, dtype=np.float64), BATCH_STEPS) for column in zip(*splits, strict=True))
    batch_shares = np.tile(BATCH_FACTOR ** np.arange(BATCH_STEPS), len(splits))
    one_sequence = Replicas(accelerators, tensor, np.ones_like(accelerators))
    largest = largest_batch(setup, one_sequence)
    # A pipeline is full from one sequence a stage on.
    batch = np.where(largest >= tensor_groups(one_sequence), np.maximum(np.floor(largest * batch_shares), tensor_groups(one_sequence)), 0.0)
    return Replicas(accelerators, tensor, batch)


def lever_flops(lever: CompressionMethod, forward_flops: float, teacher_forward_flops: float, tokens: float) -> float:
    """Compute of quantising or distilling a model on a number of tokens.

    Parameters
    ----------
    lever : CompressionMethod
    forward_flops, teacher_forward_flops : float
        Forward pass of a token through the model and through its teacher [FLOP].
    tokens : float

    Returns
    -------
    float
        Compute [FLOP]: a forward pass to calibrate; a forward pass and twice that backward to train; the teacher's forward pass on top.

    References
    ----------
    Kaplan et al. 2020 (arXiv 2001.08361), section 2.1.
    """
    own_flops = 3 * forward_flops if lever.trains else forward_flops
    return tokens * (own_flops + (teacher_forward_flops if lever.teacher else 0.0))


def payback_tokens(training_usd: Amount, usd_per_token_before: Amount, usd_per_token_after: Amount) -> Amount:
    """Tokens served after which cheaper tokens have paid for the training.

    Parameters
    ----------
    training_usd : float or float array
        Cost of the training [USD].
    usd_per_token_before, usd_per_token_after : float or float array
        Cost of a token [USD].

    Returns
    -------
    float array
        Tokens, infinite where nothing is saved.
    """
    saved_usd_per_token = np.asarray(usd_per_token_before, dtype=np.float64) - usd_per_token_after
    return np.asarray(
        np.divide(training_usd, saved_usd_per_token, out=np.full(np.shape(saved_usd_per_token), np.inf), where=saved_usd_per_token > 0)
    )


def _powers(limit: float) -> list[int]:
    return [2**power for power in range(int(np.log2(limit)) + 1)]
