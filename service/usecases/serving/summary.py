"""The summary of serving: what a month and a million tokens cost, on what."""

from __future__ import annotations

from service.domain.summary import ServingSummary
from service.engine.numerics.ranges import percentile
from service.formats.headline import count, money, money_range, short_name
from service.usecases.serving.options import ServingOption
from service.usecases.training.summary import KEPT_WITH, price_phrase


def summarise_serving(best: ServingOption) -> ServingSummary:
    """The cheapest option."""
    cost, replica = best.cost, best.configuration
    million, month = cost.usd_per_million_tokens, cost.usd_per_month
    shape = f"{replica.accelerators} {short_name(replica.accelerator)} in {replica.format}"
    if month is None or best.fleet is None:
        figures, fleet = f"{money_range(million)} a million tokens", f"a replica of {shape}"
    else:
        figures = f"{money_range(month)} a month, {money(million.p50)} a million tokens,"
        fleet = f"{count(best.fleet.replicas.p50)} replicas of {shape}"
    return ServingSummary(
        text=f"About {figures} on {fleet} {price_phrase(best.price)}.",
        p50_usd_per_month=None if month is None else month.p50,
        p80_usd_per_month=None if month is None else percentile(month, KEPT_WITH),
        p50_usd_per_million_tokens=million.p50,
        p80_usd_per_million_tokens=percentile(million, KEPT_WITH),
        bound=best.throughput.bound_by,
    )
