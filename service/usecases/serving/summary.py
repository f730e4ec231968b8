"""The summary of serving: what a month and a million tokens cost, on what."""

from __future__ import annotations

from service.domain.summary import ServingSummary
from service.engine.numerics.ranges import percentile
from service.formats.headline import count, money, money_range, short_name
from service.usecases.serving.options import ServingOption
from service.usecases.training.summary import KEPT_WITH, STATE_PRICE, price_phrase


def summarise_serving(best: ServingOption) -> ServingSummary:
    """The cheapest option; without a price the one of the fewest accelerator-hours."""
    million, month = (best.cost.usd_per_million_tokens, best.cost.usd_per_month) if best.cost else (None, None)
    return ServingSummary(
        text=_text(best),
        p50_usd_per_month=None if month is None else month.p50,
        p80_usd_per_month=None if month is None else percentile(month, KEPT_WITH),
        p50_usd_per_million_tokens=None if million is None else million.p50,
        p80_usd_per_million_tokens=None if million is None else percentile(million, KEPT_WITH),
        bound=best.throughput.bound_by,
    )


def _text(best: ServingOption) -> str:
    replica = best.configuration
    shape = f"{replica.accelerators} {short_name(replica.accelerator)} in {replica.format}"
    fleet = f"a replica of {shape}" if best.fleet is None else f"{count(best.fleet.replicas.p50)} replicas of {shape}"
    if best.cost is None or best.price is None:
        return f"{fleet[:1].upper()}{fleet[1:]}; {STATE_PRICE}."
    million, month = best.cost.usd_per_million_tokens, best.cost.usd_per_month
    if month is None:
        figures = f"{money_range(million)} a million tokens"
    else:
        figures = f"{money_range(month)} a month, {money(million.p50)} a million tokens,"
    return f"About {figures} on {fleet} {price_phrase(best.price)}."
