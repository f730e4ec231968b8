"""Work and time of one evaluation: samples through replicas of the model, by the roofline of serving."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from service.domain.quantities import Range
from service.engine.serving.configurations import list_configurations
from service.engine.training.inference.model import ServingSetup, attended_tokens, cached_tokens, tensor_groups
from service.engine.training.inference.roofline import requests_per_s, throughput_spread


def evaluation_seconds(setup: ServingSetup, samples: float, accelerators: int) -> Range | None:
    """Time of all samples on a machine that holds as many replicas as fit, in the fastest configuration.

    Parameters
    ----------
    setup : ServingSetup
        The mean request is one sample. Given answers are scored as part of the prompt, with one step for the last token.
    samples : float
        Of one evaluation.
    accelerators : int
        Of the machine.

    Returns
    -------
    Range or None
        [s], of measured over predicted throughput; None where no replica fits. A replica with fewer samples than its batch takes as long
        as a full one.
    """
    tried = list_configurations(setup)
    timed = replace(tried, batch=np.maximum(tried.batch, tensor_groups(tried)))
    replicas = np.floor(accelerators / np.asarray(tried.accelerators))
    fits = np.greater(tried.batch, 0) & (replicas >= 1)
    if not np.any(fits):
        return None
    each = np.ceil(samples / np.maximum(replicas, 1.0))
    seconds = np.maximum(each, timed.batch) / requests_per_s(setup, timed)
    best, spread = float(np.min(np.where(fits, seconds, np.inf))), throughput_spread(setup)
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
