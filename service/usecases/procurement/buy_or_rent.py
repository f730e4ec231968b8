"""Whether a fleet is bought or rented: owned fleets, reservations, capacity on demand and spot, and a mix, for the same demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from service.context import AppContext
from service.domain.errors import InvalidRequest, NoOffer, UnknownName
from service.domain.procurement.answer import BuyOrRent, DemandYear, FleetDemand, MixPlan, ProcurementOption, ProcurementVerdict, YearFlow
from service.engine.procurement.cash_flows import BRIDGE, ON_DEMAND, OnDemandPrice, rented_hours
from service.engine.procurement.demand import mean_above
from service.engine.procurement.options import ProcurementInputs, make_scenarios
from service.engine.procurement.present_value import discount_factors
from service.engine.procurement.trials import range_around
from service.presets.procurement.defaults import procurement_default
from service.presets.procurement.ownership import cluster_defaults
from service.presets.version import engine_version
from service.prices.book import PriceBook
from service.prices.offer_table import Floats
from service.usecases.comparison.offer_selection import check_unique_names
from service.usecases.procurement.demand import ResolvedDemand, resolve_demand
from service.usecases.procurement.evaluation import Evaluation, Row, evaluate, rented_capacity
from service.usecases.procurement.owned_fleets import FleetContext, resolve_fleets, resolve_tax_rate
from service.usecases.procurement.rented_offers import CALLER, RentChoice, cheapest, rent_choices
from service.usecases.procurement.resolved_inputs import resolved_inputs
from service.usecases.procurement.spot import apply_spot_terms
from service.usecases.procurement.summary import summarise_verdict
from service.usecases.procurement.uncertainty import resolve_list_change, uncertain_inputs
from service.usecases.procurement.verdict import fleet_break_even_month, make_verdict
from service.usecases.procurement.verdict_warnings import warn_of_verdict
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.price import warn_ends

Request = Mapping[str, Any]
MONTHS_PER_YEAR = 12
DEFAULT_LIMIT = 50
# Work is trials x months x fleets and terms of rents; what turns the verdict takes as much as so many trials, mixes as so many terms.
MAX_WORK = 40_000_000
TRIALS_OF_FLIPS, ROWS_OF_MIXES = 3_000, 12
MOST_USD = 10**13
"""More than any fleet costs; figures of single years, which are not discounted, are numbers then that JSON's readers hold."""
# Below it nothing is demanded.
LEAST_HOURS = 1.0
UNCERTAINTY = "of the demand, list prices and costs of owned fleets, drawn independently, fleets alike: docs/reference/ownership.md"


def buy_or_rent(context: AppContext, request: Request) -> BuyOrRent:
    """The answer to a validated request. Raises DomainErrors with pointers into it."""
    notes, book = AssumptionLog(), _book(context, request)
    _check_names(request)
    demand = resolve_demand(context, request, notes)
    choices = rent_choices(request, demand, book, context.clock(), notes)
    choices = apply_spot_terms(context, demand, choices, notes, owned=bool(request.get("own")))
    known = [(choice.offer.provider, choice.offer.valid_until) for choice in choices if choice.offer.source != CALLER]
    warn_ends(known, book, (demand.accelerator.name,), context.clock().date(), notes)
    list_change = resolve_list_change(request, notes)
    inputs, on_demand = _inputs(context, request, demand, choices, notes)
    inputs = replace(inputs, list_change_per_year=list_change.p50)
    if not inputs.fleets and not inputs.rents:
        raise NoOffer(_nothing_text(demand.accelerator.name, choices), "/rent")
    trials, seed = (int(_default(request, name, notes)) for name in ("trials", "seed"))
    _check_work(inputs, choices, trials)
    notes.assume("uncertainty", "published ranges", UNCERTAINTY)
    evaluation = evaluate(inputs, choices, on_demand, uncertain_inputs(inputs, list_change), (trials, seed))
    _check_amounts(evaluation)
    verdict = make_verdict(evaluation)
    warn_of_verdict(evaluation, verdict, notes)
    return BuyOrRent(
        summary=summarise_verdict(evaluation, verdict),
        demand=_describe_demand(demand, evaluation),
        options=tuple(_make_options(evaluation, verdict, request.get("limit", DEFAULT_LIMIT))),
        considered=len(evaluation.rows),
        verdict=verdict,
        curves=tuple(evaluation.cash_curve(row) for row in evaluation.eligible if row.name in (verdict.choice, verdict.against)),
        mix=_make_mix(evaluation),
        inputs=resolved_inputs(evaluation),
        trials=trials,
        seed=seed,
        price_snapshot=book.name,
        engine_version=engine_version(),
        assumptions=notes.assumptions,
        warnings=tuple(notes.warnings),
    )


def _nothing_text(accelerator: str, choices: Sequence[RentChoice]) -> str:
    if choices:
        first = choices[0]
        return f"every price of {accelerator} is ruled out, {first.words} because {first.ruled_out}: state own or other rent.quotes"
    return f"no price is known at which {accelerator} can be bought or rented: state own, rent.quotes or other filters"


def _book(context: AppContext, request: Request) -> PriceBook:
    """The current prices, or those of the named snapshot."""
    try:
        return context.book(request.get("snapshot"))
    except UnknownName as problem:
        raise UnknownName(problem.message, "/snapshot", problem.near) from problem


def _check_names(request: Request) -> None:
    """Raises InvalidRequest where two fleets or quotes have the same name."""
    own, quotes = request.get("own", ()), request.get("rent", {}).get("quotes", ())
    check_unique_names(own, "/own")
    check_unique_names(quotes, "/rent/quotes")
    taken = {entry["name"] for entry in own}
    for index, quote in enumerate(quotes):
        if quote["name"] in taken:
            raise InvalidRequest(f"an owned fleet has the name {quote['name']!r} too: names must differ", f"/rent/quotes/{index}/name")


def _default(request: Request, name: str, notes: AssumptionLog) -> float:
    usual = procurement_default(name)
    return float(notes.take(request, name, usual.value, usual.source))


def _inputs(
    context: AppContext, request: Request, demand: ResolvedDemand, choices: Sequence[RentChoice], notes: AssumptionLog
) -> tuple[ProcurementInputs, RentChoice | None]:
    """Demand, rates and options, and the price of demand above what is owned or reserved, where that is needed."""
    tax_rate = resolve_tax_rate(request, notes)
    usual = cluster_defaults(demand.accelerator, ())["cost_of_capital"]
    cost_of_capital = float(notes.take(request, "cost_of_capital", usual.value, usual.source))
    fleets = resolve_fleets(request, FleetContext(context, demand, cost_of_capital, tax_rate, notes))
    sold = cheapest(choices, "on_demand")
    peak = sold or cheapest(choices, "spot") or cheapest(choices, "reserved")
    inputs = ProcurementInputs(
        count=demand.count,
        months=demand.months,
        utilisation=demand.utilisation,
        peak_utilisation=demand.peak_utilisation,
        growth_per_year=demand.growth_per_year,
        cost_of_capital=cost_of_capital,
        list_change_per_year=0.0,
        tax_rate=tax_rate,
        plan=demand.plan,
        fleets=fleets,
        rents=rented_capacity(choices),
        on_demand=OnDemandPrice(peak.usd_per_hour, peak.kind == "on_demand" and peak.terms.fixed) if peak else None,
        mixes=sold is not None,
    )
    _note_peak(inputs, peak, notes, sold=sold is not None)
    return inputs, peak


def _note_peak(inputs: ProcurementInputs, peak: RentChoice | None, notes: AssumptionLog, *, sold: bool) -> None:
    """Notes the price of what is rented besides owned and reserved capacity. Raises InvalidRequest where one is needed and none known."""
    demand = make_scenarios(inputs).demand
    bridged = any(rented_hours(fleet.phases, demand) > 0 and _needs_price(fleet.phases) for fleet in inputs.fleets)
    if not bridged and float(demand.high.max()) <= inputs.count:
        return
    if peak is None:
        text = "demand in the lead time or above the fleet has to be rented, but no price is known: state an on-demand quote"
        raise InvalidRequest(text, "/rent/quotes")
    source = "the cheapest on demand" if sold else "the cheapest rent, because no on-demand price is known"
    notes.assume("rent.on_demand", f"{peak.words} at {peak.usd_per_hour:.4f} USD", f"for lead times and demand above capacity: {source}")
    if peak.kind == "reserved":
        text = f"no on-demand price is known: hours rented on demand are priced at the {peak.usd_per_hour:.2f} USD of {peak.words}"
        notes.warn(f"{text}, which is a price for a whole term; they will likely cost more: state an on-demand quote")


def _needs_price(phases: Sequence[Any]) -> bool:
    return any(phase.cluster.bridge_usd_per_accelerator_hour is None for phase in phases)


def _check_work(inputs: ProcurementInputs, choices: Sequence[RentChoice], trials: int) -> None:
    """Raises InvalidRequest where a request takes more than about two seconds of CPU."""
    terms = len({choice.group for choice in choices}) + sum(len(fleet.phases) for fleet in inputs.fleets) + ROWS_OF_MIXES
    work = (trials + TRIALS_OF_FLIPS) * inputs.months * terms
    if work > MAX_WORK:
        most = max(0, MAX_WORK // (inputs.months * terms) - TRIALS_OF_FLIPS)
        hint = f"at most {most:,} trials" if most >= 100 else "fewer fleets, fewer quotes of different terms, or fewer years"
        raise InvalidRequest(
            f"{trials:,} trials of {inputs.months} months and {terms} fleets and terms are too many: state {hint}", "/trials"
        )


def _check_amounts(evaluation: Evaluation) -> None:
    """Raises InvalidRequest where a way to serve the demand costs more than an answer holds."""
    largest = max((float(np.abs(row.draws).max()) for row in evaluation.rows), default=0.0)
    if not largest <= MOST_USD:
        raise InvalidRequest(f"this comes to more than {MOST_USD:,} dollars: state fewer accelerators or years, or lower prices", "/demand")


def _describe_demand(demand: ResolvedDemand, evaluation: Evaluation) -> FleetDemand:
    hours, peak = evaluation.hours_by_month, make_scenarios(evaluation.inputs).demand.high
    years = [slice(first, first + MONTHS_PER_YEAR) for first in range(0, demand.months, MONTHS_PER_YEAR)]
    return FleetDemand(
        accelerator=demand.accelerator.name,
        count=demand.count,
        start=demand.start,
        months=demand.months,
        utilisation=demand.utilisation,
        years=tuple(DemandYear(at + 1, float(hours[year].sum()), float(peak[year].max())) for at, year in enumerate(years)),
    )


def _make_options(evaluation: Evaluation, verdict: ProcurementVerdict, limit: int) -> Iterator[ProcurementOption]:
    """The first options up to the limit, every owned fleet, what the verdict names, and every option that is the best in any trial."""
    named = {verdict.choice, verdict.against, verdict.grid.against if verdict.grid else None}
    for rank, row in enumerate(evaluation.rows, 1):
        if rank <= limit or row.owned or row.name in named or evaluation.probabilities.get(id(row)):
            yield _make_option(rank, row, evaluation)


def _make_option(rank: int, row: Row, evaluation: Evaluation) -> ProcurementOption:
    peak, flows = evaluation.on_demand, evaluation.flows(row)
    rents_peak = row.kind in ("own", "reserved", "mix") and any(line in flows and flows[line].any() for line in (ON_DEMAND, BRIDGE))
    return ProcurementOption(
        rank=rank,
        name=row.name,
        kind=row.kind,
        count=_count(row, evaluation.inputs),
        npv_usd=range_around(row.npv_usd, row.draws),
        usd_per_used_accelerator_hour=row.npv_usd / evaluation.discounted_hours if evaluation.discounted_hours >= LEAST_HOURS else None,
        probability_best=evaluation.probabilities.get(id(row), 0.0),
        years=tuple(_years(flows, evaluation)),
        break_even_month=fleet_break_even_month(evaluation, row) if row.owned else None,
        offer=row.choice.offer if row.choice else None,
        on_demand=peak.offer if peak and rents_peak else None,
        ruled_out=row.choice.ruled_out if row.choice else None,
    )


def _count(row: Row, inputs: ProcurementInputs) -> int:
    """Accelerators owned or reserved at the start; of what is paid by the hour, the fleet's."""
    if row.fleet is not None:
        return row.fleet.phases[0].cluster.count
    if row.kind == "mix":
        return round(row.reserved_count)
    return int(row.choice.terms.count) if row.kind == "reserved" and row.choice else inputs.count


def _years(flows: Mapping[str, Floats], evaluation: Evaluation) -> Iterator[YearFlow]:
    """Cash by year: what is paid at the start is of the first."""
    months, hours = max(len(flow) for flow in flows.values()) - 1, evaluation.hours_by_month
    discount = discount_factors(evaluation.inputs.cost_of_capital, months)
    for year in range(-(-months // MONTHS_PER_YEAR)):
        first, last = year * MONTHS_PER_YEAR, min((year + 1) * MONTHS_PER_YEAR, months)
        at = slice(first + 1 if year else 0, last + 1)
        lines = {line: float(flow[at].sum()) for line, flow in flows.items() if flow[at].any()}
        yield YearFlow(
            year=year + 1,
            cash_usd=sum(lines.values()),
            discounted_usd=float(sum(np.asarray(flow[at]) @ discount[at] for flow in flows.values())),
            lines_usd=lines,
            used_accelerator_hours=float(hours[first:last].sum()),
        )


def _make_mix(evaluation: Evaluation) -> MixPlan | None:
    """The best mix, also where all of it is reserved or on demand."""
    if not evaluation.mixes or evaluation.on_demand is None:
        return None
    best = evaluation.mixes[0]
    assert best.choice is not None
    demand = make_scenarios(evaluation.inputs).demand
    above = float(np.clip(mean_above(demand, best.reserved_count).sum() / max(demand.mean.sum(), LEAST_HOURS), 0.0, 1.0))
    return MixPlan(
        reserved_count=round(best.reserved_count),
        on_demand_share=above,
        critical_ratio=best.critical_ratio,
        reserved=best.choice.offer,
        on_demand=evaluation.on_demand.offer,
        npv_usd=best.npv_usd,
    )
