"""Variants of the optimum in service: as trained, quantised, and distilled, by what training and serving cost in all."""

from __future__ import annotations

import math

from service.domain.quantities import Range
from service.domain.scaling.optimum import ServingVariant
from service.domain.serving.answer import ServingLever
from service.domain.training.model import Transformer
from service.engine.serving.fleet import RentalUnit, ServingDemand
from service.engine.training.inference.model import describe_served_model
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.scaling.size_costs import LifetimeServing
from service.usecases.serving.levers import LeverBaseline, rank_levers
from service.usecases.serving.offers import PricedAccelerator
from service.usecases.serving.options import usd_per_million_tokens
from service.usecases.serving.search import ServingRequirements, search_configurations

AS_TRAINED = "as trained"


def rank_variants(serving: LifetimeServing, model: Transformer, training_usd: float, notes: AssumptionLog) -> tuple[ServingVariant, ...]:
    """Variants that keep the latencies, cheapest in all first; none without a price.

    `model` costs `training_usd` to train [USD]. Levers of POST /v1/serving on the same accelerator at the same price: their tokens' price
    over that of the model as trained scales its serving.
    """
    if serving.price is None:
        return ()
    demand = ServingDemand(None, serving.load_factor)
    requirements = ServingRequirements(describe_served_model(model), serving.request, demand, (serving.weight_format,))
    priced = PricedAccelerator(serving.machine.accelerator, RentalUnit(1, math.inf), serving.price.usd_per_accelerator_hour)
    found = search_configurations(requirements, [priced], {})
    if not found:
        return ()
    levers = rank_levers(LeverBaseline(requirements, model, found[0], None, serving.tokens), notes) or ()
    before_usd, before = serving.usd(model), usd_per_million_tokens(found[0])
    as_trained = ServingVariant(
        AS_TRAINED, {}, 0.0, before_usd, training_usd + before_usd, Range.exactly(0.0), "none", "the optimum in serving.format"
    )
    variants = [as_trained, *(_variant(lever, before_usd / before, training_usd) for lever in levers)]
    return tuple(sorted(variants, key=lambda variant: variant.total_usd))


def _variant(lever: ServingLever, usd_per_price: float, training_usd: float) -> ServingVariant:
    """A lever's variant; `usd_per_price`: cost of the lifetime over the price of a million tokens."""
    serving_usd = lever.usd_per_million_tokens * usd_per_price
    return ServingVariant(
        variant=lever.title,
        change=lever.change,
        preparation_usd=lever.training_usd,
        serving_usd=serving_usd,
        total_usd=training_usd + lever.training_usd + serving_usd,
        quality_loss_percent=lever.quality_loss_percent,
        risk=lever.risk,
        source=lever.source,
    )
