"""Model sizes that reach a loss, and the tokens that each needs by a scaling law."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from service.domain.errors import DomainError, InvalidRequest
from service.engine.scaling.laws import require_parametric, tokens_for_loss
from service.presets.scaling.laws import PublishedLaw, default_law, find_law
from service.presets.serving import default_shape
from service.usecases.scenarios.optimisation.options import SizedWorkload

Body = Mapping[str, Any]

COARSE_SIZES = 9


def coarse_sizes(wanted: Body, most_loss: float) -> list[tuple[float, float]]:
    """Sizes [parameters] in equal factors with their tokens, without those that miss the loss. Raises InvalidRequest where all do."""
    low, high = wanted["min_params"], wanted["max_params"]
    if low > high:
        raise InvalidRequest(f"min_params {low:,} is above max_params {high:,}", "/model_size/min_params")
    params = np.geomspace(low, high, COARSE_SIZES).tolist() if high > low else [float(low)]
    sizes = [(size, tokens) for size, tokens in sizes_with_tokens(wanted, most_loss, params) if math.isfinite(tokens)]
    if not sizes:
        raise InvalidRequest(f"no size up to {high:,} reaches a loss of {most_loss:g} by this law", "/constraints/max_loss")
    return sizes


def sizes_with_tokens(wanted: Body, most_loss: float, params: Sequence[float]) -> list[tuple[float, float]]:
    """Sizes [parameters] with the tokens that reach the loss, infinite where none do. Raises DomainErrors for an unsuitable law."""
    try:
        tokens = tokens_for_loss(require_parametric(select_law(wanted).law), np.asarray(params), most_loss)
    except DomainError as problem:
        raise problem.below("/model_size") from problem
    return list(zip(params, tokens.tolist(), strict=True))


def select_law(wanted: Body) -> PublishedLaw:
    """The named law, or the default. Raises UnknownName."""
    return find_law(wanted["law"]) if wanted.get("law") else default_law()


def sized_workload(params: float | None, tokens: float | None) -> SizedWorkload:
    """The workload changes of a size; none where it is None."""
    if params is None or tokens is None:
        return SizedWorkload({})
    model = {"params": round(params), **default_shape()}
    return SizedWorkload({"model": model, "data": {"tokens": math.ceil(tokens)}}, float(round(params)), float(math.ceil(tokens)))
