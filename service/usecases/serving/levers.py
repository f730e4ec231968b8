"""Ways to serve a model more cheaply on the best option's offer: quantisation, or distillation into half of its layers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from service.domain.serving.answer import ServingLever
from service.domain.serving.requirements import CompressionMethod
from service.domain.training.model import Transformer
from service.engine.serving.configurations import SECONDS_PER_HOUR, lever_flops, payback_tokens
from service.engine.training.inference.model import ServedModel, describe_served_model
from service.engine.training.inference.roofline import arithmetic_peak_flop_per_s
from service.presets.serving import load_compression_methods, load_formats, serving_defaults
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.price import require_priced
from service.usecases.serving.options import usd_per_million_tokens
from service.usecases.serving.search import ServingRequirements, ServingResult, search_configurations

UNPRICED_LEVERS = "levers are left out, because they are ranked by savings and the cost is not known"
STUDENT_SOURCE = "half of the layers, as Minitron's 15B to 8B is about half of the weights (Muralidharan et al. 2024, arXiv 2407.14679)"


@dataclass(frozen=True, slots=True)
class LeverBaseline:
    """What levers are compared with: the best option, and the tokens it serves in a month and in its life."""

    requirements: ServingRequirements
    model: Transformer
    best: ServingResult
    tokens_per_month: float | None
    lifetime_tokens: float | None


def rank_levers(baseline: LeverBaseline, notes: AssumptionLog) -> tuple[ServingLever, ...] | None:
    """Every lever that keeps the latencies, by savings; None, with a warning, where no price is known."""
    if baseline.best.priced.usd_per_accelerator_hour is None:
        notes.warn(UNPRICED_LEVERS)
        return None
    share = serving_defaults()["training_share"]
    notes.assume("serving.training_share", share.value, share.source)
    levers = [
        _lever(baseline, method, change, result)
        for method in load_compression_methods().values()
        for change, result in _apply_method(baseline, method, notes)
    ]
    return tuple(sorted(levers, key=lambda lever: -lever.saves_usd_per_million_tokens))


def _apply_method(
    baseline: LeverBaseline, method: CompressionMethod, notes: AssumptionLog
) -> Iterator[tuple[dict[str, Any], ServingResult]]:
    """The request's changes for a compression method, each with the best configuration after it."""
    if not method.formats:
        yield from _distilled(baseline, notes)
    for name in method.formats:
        weight_format = load_formats()[name]
        if weight_format.bits < baseline.best.format.bits:
            yield from (
                ({"formats": [name]}, result) for result in _find_best(replace(baseline.requirements, formats=(weight_format,)), baseline)
            )


def _distilled(baseline: LeverBaseline, notes: AssumptionLog) -> Iterator[tuple[dict[str, Any], ServingResult]]:
    """The model with half of its layers in the same format; none of a hybrid, whose layers are no number alone."""
    layers = baseline.model.layers // 2
    if layers == 0 or baseline.model.state_space or (baseline.model.experts and baseline.model.experts.dense_layers >= layers):
        return
    student = describe_served_model(replace(baseline.model, layers=layers, params=None, active_params=None))
    notes.assume("levers.distillation.layers", layers, STUDENT_SOURCE)
    for result in _find_best(replace(baseline.requirements, model=student, formats=(baseline.best.format,)), baseline):
        yield {"model.layers": layers}, result


def _find_best(requirements: ServingRequirements, baseline: LeverBaseline) -> list[ServingResult]:
    return search_configurations(requirements, [baseline.best.priced], {})[:1]


def _lever(baseline: LeverBaseline, method: CompressionMethod, change: dict[str, Any], result: ServingResult) -> ServingLever:
    before, after = usd_per_million_tokens(baseline.best), usd_per_million_tokens(result)
    training_usd = _training_usd(baseline, method, result)
    payback = float(payback_tokens(training_usd, before / 1e6, after / 1e6))
    paid_back = payback if np.isfinite(payback) else None
    return ServingLever(
        lever=method.name,
        title=method.title,
        change=change,
        usd_per_million_tokens=after,
        saves_usd_per_million_tokens=before - after,
        training_tokens=method.tokens,
        training_usd=training_usd,
        payback_tokens=paid_back,
        payback_months=paid_back / baseline.tokens_per_month if paid_back is not None and baseline.tokens_per_month else None,
        lifetime_saves_usd=(before - after) / 1e6 * baseline.lifetime_tokens - training_usd if baseline.lifetime_tokens else None,
        quality_loss_percent=method.quality_loss,
        risk=method.risk,
        source=method.source,
    )


def _training_usd(baseline: LeverBaseline, method: CompressionMethod, result: ServingResult) -> float:
    """Cost of the method [USD]: its FLOPs at the share of the 16-bit peak that training reaches, at the best option's price."""
    flops = lever_flops(method, _forward_flops(result.replica.setup.model), _forward_flops(baseline.requirements.model), method.tokens)
    sixteen_bit = replace(baseline.best.replica.setup, weight_format=load_formats()["bf16"])
    rate = arithmetic_peak_flop_per_s(sixteen_bit) * float(serving_defaults()["training_share"].value)
    return flops / rate / SECONDS_PER_HOUR * require_priced(baseline.best.priced.usd_per_accelerator_hour)


def _forward_flops(model: ServedModel) -> float:
    """Compute of a token through all matrices [FLOP]."""
    return float(model.flops.matrices + model.flops.head)
