"""Ways to serve the same model more cheaply on the best option's offer: quantising it, or distilling it into half of its layers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from service.domain.serving.answer import ServingLever
from service.domain.serving.requirements import CompressionMethod
from service.domain.training.model import Transformer
from service.engine.serving.configurations import SECONDS_PER_HOUR, lever_flops, payback_tokens
from service.engine.serving.model import ServedModel, describe_served_model
from service.engine.serving.roofline import arithmetic_peak_flop_per_s
from service.presets.serving import load_compression_methods, load_formats, serving_defaults
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.serving.options import usd_per_million_tokens
from service.usecases.serving.search import ServingRequest, ServingResult, search_configurations

STUDENT_SOURCE = "half of the layers, as Minitron's 15B to 8B is about half of the weights (Muralidharan et al. 2024, arXiv 2407.14679)"


@dataclass(frozen=True, slots=True)
class LeverBaseline:
    """What levers are weighed against: the best option, the tokens it serves in a month and in its life."""

    asked: ServingRequest
    model: Transformer
    best: ServingResult
    tokens_per_month: float | None
    lifetime_tokens: float | None


def rank_levers(base: LeverBaseline, notes: AssumptionLog) -> tuple[ServingLever, ...]:
    """Every lever that can be pulled and still keeps the latencies, the one that saves most first."""
    share = serving_defaults()["training_share"]
    notes.assume("serving.training_share", share.value, share.source)
    found = [
        _lever(base, kind, change, other) for kind in load_compression_methods().values() for change, other in _changes(base, kind, notes)
    ]
    return tuple(sorted(found, key=lambda lever: -lever.saves_usd_per_million_tokens))


def _changes(base: LeverBaseline, kind: CompressionMethod, notes: AssumptionLog) -> Iterator[tuple[dict[str, Any], ServingResult]]:
    """What a kind of lever changes of the request, and the best configuration after it."""
    if not kind.formats:
        yield from _distilled(base, notes)
    for name in kind.formats:
        stored = load_formats()[name]
        if stored.bits < base.best.format.bits:
            yield from (({"formats": [name]}, other) for other in _best(replace(base.asked, formats=(stored,)), base))


def _distilled(base: LeverBaseline, notes: AssumptionLog) -> Iterator[tuple[dict[str, Any], ServingResult]]:
    """The model with half of its layers, in the same format."""
    layers = base.model.layers // 2
    if layers == 0 or (base.model.experts and base.model.experts.dense_layers >= layers):
        return
    student = describe_served_model(replace(base.model, layers=layers, params=None, active_params=None))
    notes.assume("levers.distillation.layers", layers, STUDENT_SOURCE)
    for other in _best(replace(base.asked, model=student, formats=(base.best.format,)), base):
        yield {"model.layers": layers}, other


def _best(asked: ServingRequest, base: LeverBaseline) -> list[ServingResult]:
    return search_configurations(asked, [base.best.lot], {})[:1]


def _lever(base: LeverBaseline, kind: CompressionMethod, change: dict[str, Any], other: ServingResult) -> ServingLever:
    before, after = usd_per_million_tokens(base.best), usd_per_million_tokens(other)
    training_usd = _training_usd(base, kind, other)
    back = float(payback_tokens(training_usd, before / 1e6, after / 1e6))
    paid_back = back if np.isfinite(back) else None
    return ServingLever(
        lever=kind.name,
        title=kind.title,
        change=change,
        usd_per_million_tokens=after,
        saves_usd_per_million_tokens=before - after,
        training_tokens=kind.tokens,
        training_usd=training_usd,
        payback_tokens=paid_back,
        payback_months=paid_back / base.tokens_per_month if paid_back is not None and base.tokens_per_month else None,
        lifetime_saves_usd=(before - after) / 1e6 * base.lifetime_tokens - training_usd if base.lifetime_tokens else None,
        quality_loss_percent=kind.quality_loss,
        risk=kind.risk,
        source=kind.source,
    )


def _training_usd(base: LeverBaseline, kind: CompressionMethod, other: ServingResult) -> float:
    """The lever's FLOPs at the share of the 16-bit peak that training reaches, at the best option's price."""
    flops = lever_flops(kind, _forward_flops(other.chosen.setup.model), _forward_flops(base.asked.model), kind.tokens)
    wide = replace(base.best.chosen.setup, weight_format=load_formats()["bf16"])
    rate = arithmetic_peak_flop_per_s(wide) * float(serving_defaults()["training_share"].value)
    return flops / rate / SECONDS_PER_HOUR * base.best.lot.usd_per_accelerator_hour


def _forward_flops(model: ServedModel) -> float:
    """FLOPs of a token through all matrices."""
    return float(model.matrix_flops + model.head_flops)
