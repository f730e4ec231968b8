"""What would mislead whoever reads the verdict alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from service.domain.procurement.answer import ProcurementVerdict
from service.domain.procurement.ownership import OwnedCluster
from service.engine.procurement.cash_flows import rented_hours
from service.engine.procurement.options import OwnedFleet, make_scenarios, option_npvs
from service.engine.procurement.price_paths import paid_months
from service.formats.headline import money
from service.presets.procurement.ownership import forgotten_costs
from service.usecases.procurement.evaluation import Evaluation, Row
from service.usecases.procurement.rented_offers import CALLER
from service.usecases.resolution.assumption_log import AssumptionLog

UNSURE = 0.5
# Sizes of a fleet that are tried, over its own, and what they must save of the best cost.
SIZES = tuple(step / 20 for step in range(1, 41))
WORTH_SAYING = 0.01


def warn_of_verdict(evaluation: Evaluation, verdict: ProcurementVerdict, notes: AssumptionLog) -> None:
    """Adds what to check before relying on the verdict, the most important first."""
    choice = evaluation.eligible[0]
    notes.warnings[:0] = [
        *_of_choice(verdict, choice),
        *_of_other_sizes(evaluation),
        *_of_spot(evaluation),
        *_of_stale(evaluation),
        *_of_terms(evaluation),
        *_of_commitments(evaluation),
    ]
    notes.warn(*_of_fleets(evaluation), *_of_lead_times(evaluation, {each.field: each.source for each in notes.assumptions}))


def _of_choice(verdict: ProcurementVerdict, choice: Row) -> Iterator[str]:
    owning = verdict.probability_owning_best
    if choice.owned and owning < UNSURE:
        yield (
            f"owning costs least at the medians, but renting costs less in {1 - owning:.0%} of the trials: the verdict is not safe"
            " against changes of price, use or resale value"
        )
    elif not choice.owned and owning > UNSURE:
        yield f"renting costs least at the medians, but owning costs less in {owning:.0%} of the trials"
    elif verdict.probability_best < UNSURE and verdict.against is not None:
        yield f"{choice.words} is the best in only {verdict.probability_best:.0%} of the trials"
    if choice.kind == "spot":
        yield "spot capacity can be taken back at any time and is not always available: use it for work that can wait, not for a fleet"


def _of_other_sizes(evaluation: Evaluation) -> Iterator[str]:
    """The best fleet in another size, where it would cost less than the best: what is reserved is sized, fleets are as stated."""
    own, best, inputs = evaluation.best(owned=True), evaluation.eligible[0].npv_usd, evaluation.inputs
    if own is None or own.fleet is None or not inputs.mixes:
        return
    fleets = [_resized(own.fleet, size) for size in SIZES]
    costs = option_npvs(replace(inputs, fleets=tuple(fleets), rents=()))[:, 0]
    at = int(costs.argmin())
    if costs[at] < (1 - WORTH_SAYING) * best:
        count = f"{fleets[at].phases[0].cluster.count:,} accelerators of {own.name}, with the demand above them rented on demand,"
        yield f"{count} would cost {money(float(costs[at]))}, less than the best: add it under own with its count"


def _resized(fleet: OwnedFleet, size: float) -> OwnedFleet:
    """The fleet with so many times its accelerators, in whole nodes."""
    return replace(fleet, phases=tuple(replace(phase, cluster=_resized_cluster(phase.cluster, size)) for phase in fleet.phases))


def _resized_cluster(cluster: OwnedCluster, size: float) -> OwnedCluster:
    node = min(cluster.accelerators_per_node, cluster.count)
    return replace(cluster, count=max(1, round(size * cluster.count / node)) * node)


def _of_spot(evaluation: Evaluation) -> Iterator[str]:
    """The cheapest spot price, where it cannot serve the demand and would cost less."""
    best = evaluation.eligible[0]
    spot = next((row for row in evaluation.rows if row.kind == "spot" and not row.eligible and not _is_stale(row)), None)
    if spot is not None and spot.npv_usd < best.npv_usd:
        yield f"{spot.words} would cost {money(spot.npv_usd)}, less than the best, but {spot.choice.ruled_out if spot.choice else ''}"


def _is_stale(row: Row) -> bool:
    return row.choice is not None and row.choice.offer.stale


def _of_stale(evaluation: Evaluation) -> Iterator[str]:
    """The cheapest option that a stale price rules out, where it would be the best."""
    best = evaluation.eligible[0]
    stale = next((row for row in evaluation.rows if row.choice is not None and row.choice.offer.stale and not row.eligible), None)
    if stale is not None and stale.npv_usd < best.npv_usd:
        yield f"{stale.words} would cost {money(stale.npv_usd)}, less than the best, but its price is stale: ask for a quote"


def _of_terms(evaluation: Evaluation) -> Iterator[str]:
    """What is paid beyond the horizon, and when prices are renewed."""
    months, told = evaluation.inputs.months, set()
    for row in evaluation.eligible:
        if row.choice is None or row.kind != "reserved" or row.choice.terms in told:
            continue
        told.add(row.choice.terms)
        term = row.choice.terms.term_months
        unused = paid_months(term, months) - months
        if unused:
            yield f"{row.words} is paid for {unused} months after the demand ends, because terms are paid in full; the cost includes them"
        if term < months:
            yield f"{row.words} holds its price for {term} months; after that it is renewed at the list price then, which may change"


def _of_commitments(evaluation: Evaluation) -> Iterator[str]:
    """The best reservation where it holds no capacity, and reservations that would be taken and lie far outside what is published."""
    reserved = [row for row in evaluation.eligible if row.choice is not None and row.kind == "reserved"]
    for row in reserved[:1]:
        if row.choice is not None and row.choice.offer.holds_capacity is False:
            yield f"{row.words} is only a discount and reserves no capacity: the accelerators must be available on demand on the first day"
    for row in reserved:
        published = row.choice.offer.published if row.choice else None
        if row.choice and published and published.is_far and (row is reserved[0] or row.choice.offer.source == CALLER):
            price = f"{row.choice.offer.usd_per_accelerator_hour:.2f} USD per accelerator-hour"
            yield f"{row.words} at {price} lies {published.text}: check its date and terms"


def _of_fleets(evaluation: Evaluation) -> Iterator[str]:
    demand = make_scenarios(evaluation.inputs).demand
    for fleet in evaluation.inputs.fleets:
        hours = rented_hours(fleet.phases, demand)
        if hours > 0:
            share = hours / evaluation.hours_by_month.sum()
            yield f"{fleet.name} does not cover {share:.0%} of the demanded hours, in its lead time or above its capacity; these are rented"
        forgotten = forgotten_costs(fleet.phases[0].cluster)
        if forgotten:
            yield f"{fleet.name} has no cost for {', '.join(forgotten)}: state them under own, unless its price includes them"


def _of_lead_times(evaluation: Evaluation, assumed: Mapping[str, str]) -> Iterator[str]:
    """Fleets that are bought and taken to be there at once, as nobody said when they come."""
    for fleet in evaluation.inputs.fleets:
        source = assumed.get(f"own.{fleet.name}.lead_time_months")
        if source is not None and not fleet.phases[0].cluster.lead_time_months:
            yield f"{fleet.name} is assumed to run from the first day ({source}): state lead_time_months; until then its work is rented"
