"""What serving costs, and the cheapest configuration that keeps its latency: accelerators of a replica, tensor ranks, batch and format.

A configuration is weighed by the dollars of a request. Time is split between prompts and answers as steps spend it, so that input and
output tokens have prices of their own that add up to the request's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from service.domain.errors import DoesNotFit, DomainError, InvalidRequest
from service.domain.serving.requirements import MeanRequest, Replicas
from service.engine.serving.model import ServingSetup, largest_batch, memory_by_part, tensor_groups
from service.engine.serving.roofline import ReplicaSpeed, speed

if TYPE_CHECKING:
    from service.domain.serving.requirements import Amount, CompressionMethod

Floats = NDArray[np.float64]
SECONDS_PER_HOUR = 3600.0
# Batches that are tried: the largest that fits and each smaller one by this factor.
BATCH_FACTOR = 2**-0.5
BATCH_STEPS = 24


@dataclass(frozen=True, slots=True)
class TokenCosts:
    """USD of a million input and output tokens and of one request; infinite where nothing can serve."""

    usd_per_million_input: Amount
    usd_per_million_output: Amount
    usd_per_request: Amount


@dataclass(frozen=True, slots=True)
class Rented:
    """A service on accelerators at a price. `load_factor`: mean over full load, so what of the paid time is used."""

    service: ServingSetup
    usd_per_accelerator_hour: float
    load_factor: float


@dataclass(frozen=True, slots=True)
class Plan:
    """A chosen configuration: figures, not arrays. `memory_bytes` by part on one accelerator."""

    rented: Rented
    accelerators: int
    tensor: int
    batch: int
    speed: ReplicaSpeed
    costs: TokenCosts
    memory_bytes: dict[str, float]


def costs(rented: Rented, found: ReplicaSpeed, replicas: Replicas) -> TokenCosts:
    """What tokens and requests cost. Paid time is that of full load over the load factor."""
    asked = rented.service.requests
    usd_per_s = rented.usd_per_accelerator_hour / SECONDS_PER_HOUR * replicas.accelerators
    with np.errstate(divide="ignore", over="ignore"):  # infinite where no number holds it
        request = usd_per_s / (rented.load_factor * found.requests_per_s)
    return TokenCosts(
        usd_per_million_input=1e6 * request * found.prompt_share / max(asked.prompt_tokens, 1.0),
        usd_per_million_output=1e6 * request * (1 - found.prompt_share) / asked.output_tokens,
        usd_per_request=request,
    )


def lifetime_usd(found: TokenCosts, input_tokens: Amount, output_tokens: Amount) -> Amount:
    """What all tokens of a model's life cost to serve."""
    return (found.usd_per_million_input * input_tokens + found.usd_per_million_output * output_tokens) / 1e6


def replicas_needed(rented: Rented, found: ReplicaSpeed, requests_per_s: Amount) -> Amount:
    """Replicas that carry a mean rate of requests at the load factor."""
    return np.asarray(np.ceil(requests_per_s / (found.requests_per_s * rented.load_factor)))


def cheapest(choices: Sequence[Rented]) -> Plan:
    """The cheapest request of all choices of machine and format that fits and keeps the latencies asked for.

    Raises DoesNotFit where no choice has room for one sequence, InvalidRequest where there is none or all are too slow, saying how
    near they come.
    """
    if not choices:
        raise InvalidRequest("nothing to choose from: state a machine and a format", "/serving")
    weighed = [_weigh(rented) for rented in choices]
    best = min(weighed, key=lambda one: float(np.min(one.usd)))
    if not np.isfinite(np.min(best.usd)):
        raise _obstacle(weighed)
    return _plan(best, int(np.argmin(best.usd)))


def costs_of_sizes(rented: Rented) -> TokenCosts:
    """The cheapest configuration's costs for each size of a column of models (`served_sizes`); infinite where none serves."""
    weighed = _weigh(rented)
    at = np.expand_dims(np.argmin(weighed.usd, axis=-1), -1)
    fields = (weighed.costs.usd_per_million_input, weighed.costs.usd_per_million_output)
    takes = [np.where(np.isfinite(weighed.usd), field, np.inf) for field in fields]
    million_input, million_output, request = (np.take_along_axis(one, at, axis=-1)[..., 0] for one in (*takes, weighed.usd))
    return TokenCosts(million_input, million_output, request)


def list_configurations(service: ServingSetup) -> Replicas:
    """All configurations that are tried: accelerators up to some nodes, tensor ranks within one, batches down from the largest.

    The batch is 0 where the model does not fit.
    """
    part, limits = service.machine.accelerator, service.machine.limits
    domain = max(part.accelerators_per_node, part.link_domain)
    counts = sorted({*_powers(domain), domain, *(domain * power for power in _powers(max(1, limits.max_accelerators // domain)))})
    pairs = [(count, ranks) for count in counts for ranks in {*_powers(domain), domain} if count % ranks == 0]
    accelerators, tensor = (np.repeat(np.array(column, dtype=np.float64), BATCH_STEPS) for column in zip(*pairs, strict=True))
    share = np.tile(BATCH_FACTOR ** np.arange(BATCH_STEPS), len(pairs))
    bare = Replicas(accelerators, tensor, np.ones_like(accelerators))
    largest = largest_batch(service, bare)
    # A pipeline is full from one sequence a stage on.
    batch = np.where(largest >= tensor_groups(bare), np.maximum(np.floor(largest * share), tensor_groups(bare)), 0.0)
    return Replicas(accelerators, tensor, batch)


def lever_flops(lever: CompressionMethod, forward_flops: float, teacher_forward_flops: float, tokens: float) -> float:
    """FLOPs of quantising or distilling on `tokens`: passes of the model itself, and the teacher's forward beside.

    A forward pass to calibrate; forward and twice that backward to train (Kaplan et al. 2020, arXiv 2001.08361, section 2.1).
    """
    own = 3 * forward_flops if lever.trains else forward_flops
    return tokens * (own + (teacher_forward_flops if lever.teacher else 0.0))


def payback_tokens(training_usd: Amount, usd_per_token_before: Amount, usd_per_token_after: Amount) -> Amount:
    """Tokens served after which a lever has paid for its training; infinite where it saves nothing."""
    saved = np.asarray(usd_per_token_before, dtype=np.float64) - usd_per_token_after
    return np.asarray(np.divide(training_usd, saved, out=np.full(np.shape(saved), np.inf), where=saved > 0))


@dataclass(frozen=True, slots=True)
class _Weighed:
    """All configurations of one choice; `usd` of a request is infinite where it does not fit or is too slow."""

    rented: Rented
    replicas: Replicas
    speed: ReplicaSpeed
    costs: TokenCosts
    fits: NDArray[np.bool_]
    usd: Floats


def _weigh(rented: Rented) -> _Weighed:
    replicas = list_configurations(rented.service)
    fits = np.greater(replicas.batch, 0)
    # What does not fit is timed with a sequence each, and left out after.
    timed = replace(replicas, batch=np.maximum(replicas.batch, tensor_groups(replicas)))
    found = speed(rented.service, timed)
    priced = costs(rented, found, timed)
    usd = np.where(fits & _in_time(rented.service.requests, found), priced.usd_per_request, np.inf)
    return _Weighed(rented, timed, found, priced, fits, usd)


def _in_time(asked: MeanRequest, found: ReplicaSpeed) -> NDArray[np.bool_]:
    first = np.less_equal(found.ttft_s, np.inf if asked.ttft_s is None else asked.ttft_s)
    return np.asarray(first & np.less_equal(found.tpot_s, np.inf if asked.tpot_s is None else asked.tpot_s))


def _obstacle(weighed: Sequence[_Weighed]) -> DomainError:
    """What keeps all choices from serving."""
    fitting = [(one.speed, one.fits) for one in weighed if one.fits.any()]
    if not fitting:
        services = (one.rented.service for one in weighed)
        tried = ", ".join(sorted({f"{one.machine.accelerator.name} in {one.stored.name}" for one in services}))
        return DoesNotFit(f"the model and one request do not fit on {tried}; fewer bits, shorter requests or more memory would", "/serving")
    first = min(float(np.min(np.asarray(found.ttft_s)[fits])) for found, fits in fitting)
    each = min(float(np.min(np.asarray(found.tpot_s)[fits])) for found, fits in fitting)
    return InvalidRequest(
        f"no configuration is fast enough; the soonest first token takes {first:.3g} s, the soonest later ones {each:.3g} s each",
        "/serving",
    )


def _plan(weighed: _Weighed, at: int) -> Plan:
    chosen = Replicas(*(np.asarray(getattr(weighed.replicas, name))[at] for name in ("accelerators", "tensor", "batch")))
    found = speed(weighed.rented.service, chosen)
    taken = memory_by_part(weighed.rented.service, chosen)
    return Plan(
        weighed.rented,
        int(chosen.accelerators),
        int(chosen.tensor),
        int(chosen.batch),
        found,
        costs(weighed.rented, found, chosen),
        {part: float(size) for part, size in taken.items()},
    )


def _powers(limit: float) -> list[int]:
    return [2**power for power in range(int(np.log2(limit)) + 1)]
