"""Work and time of one evaluation: samples through replicas of the model, by the roofline of serving."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.domain.quantities import Range
from service.domain.serving.requirements import Replicas
from service.engine.serving.configurations import list_configurations
from service.engine.training.inference.model import ServingSetup, attended_tokens, cached_tokens, tensor_groups
from service.engine.training.inference.roofline import requests_per_s, throughput_spread

Floats = NDArray[np.float64]
# Models whose configurations are timed together: larger arrays leave the processor's caches.
MODELS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class SampleEvaluation:
    """One evaluation.

    Attributes
    ----------
    setup : ServingSetup
        The mean request is one sample. Given answers are scored as part of the prompt, with one step for the last token.
    samples : float
        Samples [1].
    accelerators : int
        Of the machine.
    """

    setup: ServingSetup
    samples: float
    accelerators: int


def evaluation_seconds(evaluations: Sequence[SampleEvaluation]) -> list[Range | None]:
    """Time of all samples on a machine that holds as many replicas as fit, in the fastest configuration.

    Each model is timed once for all evaluations of one mean request, and models of one kind side by side.

    Parameters
    ----------
    evaluations : sequence of SampleEvaluation
        Of any models and machines.

    Returns
    -------
    list of Range or None
        [s], of measured over predicted throughput; None where no replica fits. A replica with fewer samples than its batch takes as long
        as a full one.
    """
    kinds: dict[Hashable, dict[ServingSetup, list[int]]] = {}
    for index, each in enumerate(evaluations):
        kinds.setdefault(_kind(each.setup), {}).setdefault(each.setup, []).append(index)
    found: list[Range | None] = [None] * len(evaluations)
    for alike in kinds.values():
        setups = list(alike)
        spread = throughput_spread(setups[0])
        for begin in range(0, len(setups), MODELS_AT_ONCE):
            few = setups[begin : begin + MODELS_AT_ONCE]
            for setup, (tried, rate) in zip(few, _throughputs(few), strict=True):
                for index in alike[setup]:
                    found[index] = _in_the_fastest(evaluations[index], tried, rate, spread)
    return found


def _kind(setup: ServingSetup) -> Hashable:
    """What serving branches on: setups that have it in common differ in their models' sizes alone."""
    model, cache = setup.model, setup.model.cache
    structure = model.experts, model.experts_per_token, model.weights.routed > 0, cache.window, cache.global_share
    return setup.weight_format, setup.machine, setup.request, structure


def _throughputs(setups: Sequence[ServingSetup]) -> list[tuple[Replicas, Floats]]:
    """Configurations that are tried of each setup of one kind, and their full load [1/s]."""
    together = replace(setups[0], model=_side_by_side([setup.model for setup in setups]))
    tried = list_configurations(together)
    timed = replace(tried, batch=np.maximum(tried.batch, tensor_groups(tried)))
    shape = len(setups), np.size(tried.accelerators)
    batches, rates = (np.broadcast_to(column, shape) for column in (tried.batch, requests_per_s(together, timed)))
    return [(replace(tried, batch=batch), rate) for batch, rate in zip(batches, rates, strict=True)]


def _side_by_side(values: Sequence[Any]) -> Any:
    """Numbers that differ as a column, of dataclasses field by field; what is the same as it is."""
    first = values[0]
    if is_dataclass(first) and not isinstance(first, type):
        return replace(first, **{field.name: _side_by_side([getattr(value, field.name) for value in values]) for field in fields(first)})
    return first if all(value == first for value in values) else np.array(values)[:, np.newaxis]


def _in_the_fastest(evaluation: SampleEvaluation, tried: Replicas, rate: Floats, spread: Range) -> Range | None:
    """Time in the fastest configuration of which at least one replica fits, of measured over predicted throughput [s]."""
    replicas = np.floor(evaluation.accelerators / np.asarray(tried.accelerators))
    fits = np.greater(tried.batch, 0) & (replicas >= 1)
    if not np.any(fits):
        return None
    each = np.ceil(evaluation.samples / np.maximum(replicas, 1.0))
    seconds = np.maximum(each, np.maximum(tried.batch, tensor_groups(tried))) / rate
    best = float(np.min(np.where(fits, seconds, np.inf)))
    return Range(best / spread.p90, best / spread.p50, best / spread.p10)


def sample_flops(setup: ServingSetup) -> float:
    """Arithmetic of one sample.

    Parameters
    ----------
    setup : ServingSetup
        The mean request is one sample.

    Returns
    -------
    float
        [FLOP]: every matrix for each token, attention to half of the prompt while it is read and to all before it while answers are
        generated; the head for generated tokens alone.

    References
    ----------
    Kaplan et al. 2020 (arXiv 2001.08361), section 2.1: forward pass.
    """
    request, flops = setup.request, setup.model.flops
    prompt = request.prompt_tokens * (flops.matrices + flops.prefill * float(cached_tokens(setup.model, request.prompt_tokens / 2)))
    return prompt + request.output_tokens * (flops.matrices + flops.head + flops.decode * float(attended_tokens(setup)))
