"""The summary of serving: what a month and a million tokens cost, on what."""

from __future__ import annotations

from service.domain.summary import ServingSummary
from service.engine.numerics.ranges import percentile
from service.formats.headline import count, money, money_range, short_name, three_figures
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
    fleet = f"a replica of {shape}" if best.fleet is None else f"{_replicas(best.fleet.replicas.p50)} of {shape}"
    speed = _speed(best)
    if best.cost is None or best.price is None:
        return f"{fleet[:1].upper()}{fleet[1:]}; {speed}; {STATE_PRICE}."
    million, month = best.cost.usd_per_million_tokens, best.cost.usd_per_month
    if month is None:
        figures = f"{money_range(million)} a million tokens"
    else:
        figures = f"{money_range(month)} a month, {money(million.p50)} a million tokens,"
    return f"About {figures} on {fleet} {price_phrase(best.price)}; {speed}."


def _replicas(number: float) -> str:
    return f"{count(number)} replica" + ("" if number == 1 else "s")


def _speed(best: ServingOption) -> str:
    """Speed that a user sees, with all sequences of a replica in flight and without queues."""
    latency = best.latency
    first, whole = three_figures(latency.time_to_first_token_s.p50), three_figures(latency.request_s.p50)
    per_s = three_figures(1000 / latency.time_per_output_token_ms.p50)
    return f"a user gets {per_s:g} tokens/s, the first after {first:g} s, a request in {whole:g} s"
