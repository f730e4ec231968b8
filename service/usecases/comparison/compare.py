"""The same workload on every matching offer: clouds, kinds of pricing, accelerators, counts, and owned hardware.

The workload is timed once for each machine; money, energy and carbon of all its offers are sums over columns.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Annotated, Any

import numpy as np

from service.context import AppContext
from service.domain.answer_fields import Doc
from service.domain.comparison.options import BreakEvenVerdict, Constraints, Objective, Option, OwnedClusterCost, VariantSummary
from service.domain.errors import InvalidRequest, UnknownName
from service.domain.quantities import Assumption
from service.engine.comparison.pareto import pareto_front, rank_options
from service.presets.comparison.defaults import default_horizon_days
from service.presets.version import engine_version
from service.prices.book import BUILT_IN_PROVIDER, PriceBook
from service.prices.offer_table import Flags, Ints
from service.usecases.comparison.constraints import apply_constraints
from service.usecases.comparison.empty_result import check_names_known, explain_no_offer, recent_rows
from service.usecases.comparison.offer_selection import (
    check_unique_names,
    matching_rows,
    note_candidates,
    note_networks,
    resolve_accelerators,
    resolve_countries,
    resolve_counts,
    without_stock,
)
from service.usecases.comparison.option_table import OfferGroup, OptionTable, Part, evaluate_offers, group_offers, join_tables
from service.usecases.comparison.options import OptionContext
from service.usecases.comparison.owned_hardware import (
    OwnedHardware,
    compare_break_even,
    evaluate_owned,
    make_owned_cost,
    make_owned_offer,
    resolve_owned_hardware,
    time_owned_hardware,
)
from service.usecases.comparison.shortlist import (
    describe_fresh,
    describe_nearest,
    find_best_of_variants,
    find_fresh,
    find_nearest_if_none,
    make_options,
    select_rivals,
    summarise_variants,
)
from service.usecases.comparison.timed_configurations import (
    TimedConfiguration,
    Workload,
    merge_assumptions,
    merge_notes_warnings,
    resolve_on_accelerator,
    resolve_workload,
    search_weight,
    time_in_networks,
    time_interruptible,
)
from service.usecases.comparison.warning_merge import merge_warnings
from service.usecases.resolution.assumption_log import AssumptionLog

Given = Mapping[str, Any]
# Searching the layout of a dense model is 2, of experts as much more as they can be divided in more ways: some 8 ms of CPU each.
MOST_WORK = 600
# What one accelerator reaches or draws, and another does not.
OF_ONE_ACCELERATOR = (
    *("efficiency.mfu", "efficiency.tokens_per_s_per_accelerator", "efficiency.tflops_per_accelerator"),
    "energy.watts_per_accelerator",
)
USUAL_LIMIT = 50
USUAL_OBJECTIVE: Objective = "cost"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The options in order, how many were considered, and what ruled the others out. `prices_as_of`: the oldest price shown."""

    options: Annotated[tuple[Option, ...], Doc("Options, the best first")]
    considered: Annotated[int, Doc("Options that were considered")]
    infeasible: Annotated[dict[str, int], Doc("How many options each reason rules out; one may be ruled out by several")]
    variants: Annotated[tuple[VariantSummary, ...], Doc("Empty where none are compared")]
    on_prem: Annotated[tuple[OwnedClusterCost, ...], Doc("Cost of each owned cluster")]
    break_even: Annotated[tuple[BreakEvenVerdict, ...], Doc("Each owned cluster against rented options")]
    prices_as_of: Annotated[datetime | None, Doc("When the oldest price shown was read")]
    stale_providers: Annotated[tuple[str, ...], Doc("Providers whose prices are older than they promise", max_items=1000)]
    price_snapshot: Annotated[str, Doc("Name of the price snapshot the answer is made with")]
    engine_version: Annotated[str, Doc("Version of the engine and its data")]
    assumptions: Annotated[tuple[Assumption, ...], Doc("Values the caller did not state, with the reason for each", max_items=1000)]
    warnings: Annotated[tuple[str, ...], Doc("What to check before relying on the answer", max_items=1000, max_length=5000)]


def compare(context: AppContext, request: Given) -> Comparison:
    """All options for a request as the schema gives it. Raises DomainErrors, with pointers into the request."""
    notes, now = AssumptionLog(), context.clock()
    book, candidates = _book(context, request), request.get("candidates", {})
    accelerators = resolve_accelerators(candidates, book.columns, notes)
    check_names_known(candidates, book, notes)
    constraints = resolve_constraints(context, request, notes)
    rows, plants = recent_rows(matching_rows(candidates, accelerators, book), candidates, book, now), resolve_owned_hardware(request)
    if not len(rows) and not plants:
        raise explain_no_offer(candidates, accelerators, book, now)
    workloads, for_sale = workloads_of(request), group_offers(book.columns, rows, constraints)
    sold = {stall.accelerator for stall in for_sale}
    note_candidates(candidates, sorted(sold), notes)
    _note_stock(constraints, book, rows, notes)
    note_networks(book.columns, rows, notes)
    _note_surroundings(request, notes)
    _note_measured(workloads, sold | {plant.plant.accelerator for plant in plants}, notes)
    counts = _affordable_counts(candidates, workloads, for_sale, plants, notes)
    # One reading of the user's measurements for all machines.
    context = replace(context, measurements=functools.cache(context.measurements))
    machines, parts = _rented(context, workloads, for_sale, counts)
    for which, owned in time_owned_hardware(context, plants, workloads):
        parts.append(evaluate_owned(owned, len(machines), plants[which], which))
        machines.append(owned)
    table = apply_constraints(join_tables(parts, constraints), machines, book, constraints, notes)
    seen = OptionContext(book, book.stale_mask(now), constraints, table, machines, [make_owned_offer(plant) for plant in plants])
    order = _order(request.get("objective", USUAL_OBJECTIVE), table)
    shown, verdicts = _shown(request, seen, order, workloads)
    front = _front(table)
    options = make_options(shown, order, seen, front)
    beside = make_options(select_rivals(seen, order, shown, workloads), order, seen, front) if plants else ()
    return Comparison(
        options=options,
        considered=len(table.row),
        infeasible=table.infeasible,
        variants=tuple(summarise_variants(seen, order, workloads)),
        on_prem=tuple(make_owned_cost(plant) for plant in plants),
        break_even=compare_break_even(plants, options, beside),
        prices_as_of=min((option.offer.observed_at for option in options if option.offer.observed_at), default=None),
        stale_providers=_stale_providers(rows[seen.stale[rows]], book),
        price_snapshot=book.name,
        engine_version=engine_version(),
        assumptions=(*notes.assumptions, *merge_assumptions(machines), *(each for plant in plants for each in plant.assumptions)),
        warnings=(
            *verdicts,
            *merge_warnings([*_unpriced(candidates, accelerators, sold), *notes.warnings, *merge_notes_warnings(machines)]),
        ),
    )


def _shown(request: Given, seen: OptionContext, order: Ints, workloads: Sequence[Workload]) -> tuple[Flags, list[str]]:
    """Which options are in the answer, and what is to be said of them first.

    Shown are the first so many, whatever is owned, the best of each variant, the best with a fresh price, and where nothing is feasible
    the nearest.
    """
    chosen = seen.table.row < 0
    chosen[order[: request.get("limit", USUAL_LIMIT)]] = True
    chosen[list(find_best_of_variants(seen, order, workloads).values())] = True
    nearest, fresh = find_nearest_if_none(seen), find_fresh(seen, order)
    chosen[[at for at in (nearest, fresh) if at is not None]] = True
    told = [describe_nearest(seen, nearest)] if nearest is not None else []
    return chosen, told + ([describe_fresh(seen, fresh)] if fresh is not None else [])


def _book(context: AppContext, request: Given) -> PriceBook:
    """The current prices, or those of the snapshot that is named."""
    try:
        return context.book(request.get("snapshot"))
    except UnknownName as problem:
        raise UnknownName(problem.message, "/snapshot", problem.near) from problem


def resolve_constraints(context: AppContext, request: Given, notes: AssumptionLog) -> Constraints:
    """What options must keep to; start and deadline may stand in the workload's schedule too. Without a start the time runs from today."""
    given, schedule = request.get("constraints", {}), request["workload"].get("schedule", {})
    start, deadline = (given.get(name) or schedule.get(name) for name in ("start", "deadline"))
    stated = start is not None
    if start is None:
        start = context.clock().date()
        if deadline is not None:
            notes.assume("constraints.start", start.isoformat(), "today")
    if deadline is not None and deadline < start:
        where = "/constraints/deadline" if given.get("deadline") else "/workload/schedule/deadline"
        raise InvalidRequest(f"the deadline {deadline} is before the start {start}", where)
    if given.get("min_deadline_probability") is not None and deadline is None:
        raise InvalidRequest("state the deadline that is to be kept with this probability", "/constraints/min_deadline_probability")
    return Constraints(
        start=start,
        dated=stated or deadline is not None,
        deadline=deadline,
        min_deadline_probability=given.get("min_deadline_probability"),
        max_cost_usd=given.get("max_cost_usd"),
        max_wall_clock_days=given.get("max_wall_clock_days"),
        max_tco2e=given.get("max_tco2e"),
        countries=resolve_countries(given),
        require_available=bool(given.get("require_available")),
        horizon_days=_horizon_days(deadline, given, notes),
    )


def _horizon_days(deadline: date | None, given: Given, notes: AssumptionLog) -> float | None:
    """The longest run that is an option, where the caller states no end."""
    if deadline is not None or given.get("max_wall_clock_days") is not None:
        return None
    usual = default_horizon_days()
    return float(notes.assume("constraints.max_wall_clock_days", usual.value, usual.source))


def _note_stock(constraints: Constraints, book: PriceBook, rows: Ints, notes: AssumptionLog) -> None:
    """Why nothing is known to be available, where no source tells."""
    live = any(policy.provider != BUILT_IN_PROVIDER for policy in book.policies.values())
    if constraints.require_available and not live and without_stock(book.columns, rows).all():
        notes.warn(
            "require_available leaves no rented option: no live price source has answered yet; GET /v1/providers says which there are"
            " and what each lacks"
        )


def _note_surroundings(request: Given, notes: AssumptionLog) -> None:
    """How options are ordered, where their energy is from, and what would be paid twice."""
    if "objective" not in request:
        notes.assume("objective", USUAL_OBJECTIVE, "not stated: the cheapest first")
    if "limit" not in request:
        notes.assume("limit", USUAL_LIMIT, "not stated")
    energies = [each.get("energy", {}) for each in (request["workload"], *(each["workload"] for each in request.get("variants", ())))]
    if all(each.get("region") is None for each in energies):
        notes.assume("energy.region", "each offer's own", "PUE and grid of its region, of its country or the world where that is not known")
    if any(each.get("usd_per_kwh") for each in energies):
        notes.warn("a cloud's price contains its power, workload.energy.usd_per_kwh adds it again; owned hardware has its own usd_per_kwh")


def _note_measured(workloads: Sequence[Workload], accelerators: Collection[str], notes: AssumptionLog) -> None:
    """What was measured on one accelerator and is taken for others."""
    stated = [path for path in OF_ONE_ACCELERATOR if any(_stated(work.request, path) for work in workloads)]
    if stated and len(accelerators) > 1:
        notes.warn(
            f"{', '.join(stated)} is taken for all {len(accelerators)} accelerators and every number of them alike: compare those it was"
            " measured on, or leave it out to have each modelled"
        )


def _stated(request: Given, path: str) -> bool:
    section, _, name = path.partition(".")
    return request.get(section, {}).get(name) is not None


def workloads_of(request: Given) -> list[Workload]:
    """The workload, or each of its variants: the workload with what a variant says laid over it."""
    base, variants = request["workload"], request.get("variants")
    if not variants:
        return [resolve_workload(None, base, "/workload")]
    check_unique_names(variants, "/variants")
    _check_calendar(variants)
    return [
        resolve_workload(each["name"], _laid_over(base, each["workload"]), f"/variants/{index}/workload")
        for index, each in enumerate(variants)
    ]


def _check_calendar(variants: Sequence[Given]) -> None:
    """Raises InvalidRequest where a variant has days of its own: all are held to the same."""
    for index, each in enumerate(variants):
        for name in ("start", "deadline"):
            if each["workload"].get("schedule", {}).get(name) is not None:
                message = f"{name} holds for the whole comparison: state it in constraints"
                raise InvalidRequest(message, f"/variants/{index}/workload/schedule/{name}")


def _laid_over(base: Given, above: Given) -> dict[str, Any]:
    """`above` merged into `base`, section by section. A model or data stated above stands for the whole: half of one makes no sense."""
    whole = ("model", "data")
    return {**base, **{name: value if name in whole else {**base.get(name, {}), **value} for name, value in above.items()}}


def _affordable_counts(
    candidates: Given, workloads: Sequence[Workload], for_sale: Sequence[OfferGroup], plants: Sequence[OwnedHardware], notes: AssumptionLog
) -> tuple[int, ...]:
    """The counts to compare. Raises InvalidRequest where they make more work than one request may cost."""
    each, accelerators = sum(search_weight(work.model[0]) for work in workloads), len(_by_accelerator(for_sale))
    left = MOST_WORK - each * len(plants)
    counts = resolve_counts(candidates, accelerators, left // (each * max(accelerators, 1)), notes)
    if each * accelerators * len(counts) > left:
        raise InvalidRequest(
            f"{len(workloads)} workloads on {accelerators} accelerators in {len(counts)} counts and on {len(plants)} owned machines are"
            f" {MOST_WORK - left + each * accelerators * len(counts)} units of work, more than the {MOST_WORK} of one comparison: state"
            " fewer of them (a dense model's search is 2 units, one of experts 1 and as many as their number has divisors)",
            "/candidates",
        )
    return counts


def _rented(
    context: AppContext, workloads: Sequence[Workload], for_sale: Sequence[OfferGroup], counts: Sequence[int]
) -> tuple[list[TimedConfiguration], list[Part]]:
    """Every workload on every kind of accelerator in every count, and their offers."""
    machines: list[TimedConfiguration] = []
    parts: list[Part] = []
    for work in workloads:
        steady = _steady(context, work, for_sale, counts)
        for stall in for_sale:
            wanted = [[steady[stall.accelerator, count][rate] for rate in stall.inter_node_gbps] for count in counts]
            wanted = [time_interruptible(each) for each in wanted] if stall.interruptible else wanted
            parts.append(evaluate_offers(wanted, len(machines), stall))
            machines += itertools.chain.from_iterable(wanted)
    return machines, parts


def _steady(
    context: AppContext, work: Workload, for_sale: Sequence[OfferGroup], counts: Sequence[int]
) -> dict[tuple[str, int], dict[float, TimedConfiguration]]:
    """A workload on every kind of accelerator in every count, which nobody takes away: the machines by their networks' rates.

    Layouts of one count are much the same on every accelerator, and quite the same in every network: they are searched one after
    the other.
    """
    rates = {name: sorted({rate for stall in sold for rate in stall.inter_node_gbps}) for name, sold in _by_accelerator(for_sale)}
    kinds = {name: resolve_on_accelerator(work, name) for name in rates}
    return {
        (name, count): dict(zip(rates[name], time_in_networks(context, kinds[name], count, rates[name]), strict=True))
        for count, name in itertools.product(counts, kinds)
    }


def _by_accelerator(for_sale: Sequence[OfferGroup]) -> list[tuple[str, list[OfferGroup]]]:
    return [(name, list(kinds)) for name, kinds in itertools.groupby(for_sale, key=lambda stall: stall.accelerator)]


def _order(objective: Objective, table: OptionTable) -> Ints:
    """Positions of the options, the best first."""
    values = {"cost": table.cost.p50, "time": table.finish_hours, "carbon": table.tco2e}[objective]
    return rank_options(table.feasible, values, table.cost.p50)


def _front(table: OptionTable) -> Flags:
    """Which options nothing beats on cost, finish and carbon together; only feasible ones count."""
    front = np.zeros(len(table.row), dtype=bool)
    possible = np.flatnonzero(table.feasible)
    front[possible] = pareto_front(table.cost.p50[possible], table.finish_hours[possible], table.tco2e[possible])
    return front


def _stale_providers(stale: Ints, book: PriceBook) -> tuple[str, ...]:
    """Providers of these rows, which are stale."""
    provider = book.columns.provider
    return tuple(sorted(provider.names[code] for code in provider.met(stale)))


def _unpriced(candidates: Given, accelerators: Sequence[str], sold: Collection[str]) -> tuple[str, ...]:
    """A warning for the accelerators asked for that nobody here sells."""
    missing = [name for name in accelerators if name not in sold] if candidates.get("accelerators") else []
    return (f"no offer among these candidates: {', '.join(missing)}",) if missing else ()
