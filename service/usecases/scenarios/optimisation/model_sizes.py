"""Sizes of a model that reach a loss, with the tokens each takes by a scaling law."""

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
    """Parameters in equal factors, each with its tokens, without those that miss the loss. Raises InvalidRequest where all do."""
    low, high = wanted["min_params"], wanted["max_params"]
    if low > high:
        raise InvalidRequest(f"min_params {low:,} is above max_params {high:,}", "/model_size/min_params")
    params = np.geomspace(low, high, COARSE_SIZES).tolist() if high > low else [float(low)]
    found = [(size, tokens) for size, tokens in sizes_with_tokens(wanted, most_loss, params) if math.isfinite(tokens)]
    if not found:
        raise InvalidRequest(f"no size up to {high:,} reaches a loss of {most_loss:g} by this law", "/constraints/max_loss")
    return found


def sizes_with_tokens(wanted: Body, most_loss: float, params: Sequence[float]) -> list[tuple[float, float]]:
    """Sizes with the tokens that take each to the loss, infinite where none do. Raises DomainErrors for a law that cannot say."""
    try:
        tokens = tokens_for_loss(require_parametric(select_law(wanted).law), np.asarray(params), most_loss)
    except DomainError as problem:
        raise problem.below("/model_size") from problem
    return list(zip(params, tokens.tolist(), strict=True))


def select_law(wanted: Body) -> PublishedLaw:
    """The law that is named, or the default. Raises UnknownName."""
    return find_law(wanted["law"]) if wanted.get("law") else default_law()


def sized_workload(params: float | None, tokens: float | None) -> SizedWorkload:
    """What a size changes of the workload; nothing where it is None."""
    if params is None or tokens is None:
        return SizedWorkload({})
    model = {"params": round(params), **default_shape()}
    return SizedWorkload({"model": model, "data": {"tokens": math.ceil(tokens)}}, float(round(params)), float(math.ceil(tokens)))
