"""Comparison of a workload on every matching offer: clouds, kinds of pricing, accelerators, counts, and owned hardware.

The workload is timed once for each configuration; cost, energy and carbon of all its offers are column operations.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any

import numpy as np

from service.context import AppContext
from service.domain.answer_fields import Doc
from service.domain.comparison.options import BreakEvenVerdict, Objective, Option, OwnedClusterCost, VariantSummary
from service.domain.errors import InvalidRequest
from service.domain.quantities import Assumption
from service.domain.summary import Summary
from service.domain.tracking.feedback import LessonsReference
from service.engine.comparison.pareto import pareto_front, rank_options
from service.presets.version import engine_version
from service.prices.book import PriceBook
from service.prices.offer_table import Flags, Ints
from service.usecases.comparison.break_even import compare_break_even
from service.usecases.comparison.break_even_warnings import explain_differences
from service.usecases.comparison.capacity import (
    apply_capacity,
    capacity_limits,
    warn_contracts,
)
from service.usecases.comparison.commitments import apply_commitments, discount_rows, warn_commitments
from service.usecases.comparison.constraints import apply_constraints
from service.usecases.comparison.empty_result import describe_unpriced
from service.usecases.comparison.offer_selection import (
    resolve_counts,
)
from service.usecases.comparison.option_table import OfferGroup, OptionTable, evaluate_offers, join_tables
from service.usecases.comparison.options import ComparedOptions, make_option
from service.usecases.comparison.owned_hardware import (
    evaluate_owned,
    make_owned_cost,
    make_owned_offer,
    time_owned_hardware,
)
from service.usecases.comparison.selection import DEFAULT_LIMIT, DEFAULT_OBJECTIVE, Selection, select
from service.usecases.comparison.shortlist import (
    describe_fresh,
    describe_nearest,
    find_best_of_machines,
    find_best_of_variants,
    find_fresh,
    find_nearest_if_none,
    make_options,
    select_rivals,
    summarise_variants,
    warn_of_data,
)
from service.usecases.comparison.summary import summarise_comparison
from service.usecases.comparison.timed_configurations import (
    TimedConfiguration,
    Workload,
    merge_assumptions,
    merge_notes_warnings,
    resolve_on_accelerator,
    search_weight,
    time_in_networks,
    time_interruptible,
)
from service.usecases.comparison.warning_merge import merge_warnings
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.price import warn_ends

Request = Mapping[str, Any]
# A layout search is 2 units of work for a dense model, more for experts by their number of divisors; a unit is about 8 ms of CPU.
MAX_WORK = 600


@dataclass(frozen=True, slots=True)
class Comparison:
    """The options in order, how many were considered, and what ruled the others out. `prices_as_of`: the oldest price shown."""

    summary: Annotated[Summary, Doc("The answer in a sentence, and what it rests on")]
    options: Annotated[tuple[Option, ...], Doc("Options, the best first")]
    considered: Annotated[int, Doc("Options that were considered")]
    infeasible: Annotated[dict[str, int], Doc("How many options each reason rules out; one may be ruled out by several")]
    variants: Annotated[tuple[VariantSummary, ...], Doc("Empty where none are compared")]
    on_prem: Annotated[tuple[OwnedClusterCost, ...], Doc("Cost of each owned cluster")]
    break_even: Annotated[tuple[BreakEvenVerdict, ...], Doc("Each owned cluster against rented options")]
    prices_as_of: Annotated[datetime | None, Doc("When the oldest price shown was read")]
    stale_providers: Annotated[tuple[str, ...], Doc("Providers whose prices are older than they promise", max_items=1000)]
    price_snapshot: Annotated[str, Doc("Name of the price snapshot the answer is made with")]
    lessons: Annotated[LessonsReference | None, Doc("Lessons of the team's finished runs; null: it has none")]
    engine_version: Annotated[str, Doc("Version of the engine and its data")]
    assumptions: Annotated[tuple[Assumption, ...], Doc("Values the caller did not state, with the reason for each", max_items=1000)]
    warnings: Annotated[tuple[str, ...], Doc("What to check before relying on the answer", max_items=1000, max_length=5000)]


def compare(context: AppContext, request: Request) -> Comparison:
    """All options for a validated request. Raises DomainErrors with pointers into the request."""
    notes, now = AssumptionLog(), context.clock()
    # Measurements are read once for all configurations.
    context = replace(context, measurements=functools.cache(context.measurements))
    selection = select(context, request, notes, now)
    compared = _evaluate(context, selection, notes, now)
    table, workloads, owned_hardware = compared.table, selection.workloads, selection.owned_hardware
    objective: Objective = request.get("objective", DEFAULT_OBJECTIVE)
    order, front = _rank(objective, table), _pareto_front(table)
    of_machines = {} if request.get("variants") else find_best_of_machines(compared, order, selection.candidates)
    shown, messages = _select_shown(request, compared, order, workloads)
    shown[[at for at in of_machines.values() if at is not None]] = True
    options = make_options(shown, order, compared, front)
    _warn_of_options(options, compared, order, selection, notes)
    rivals = make_options(select_rivals(compared, order, shown, workloads), order, compared, front) if owned_hardware else ()
    break_even = compare_break_even(owned_hardware, options, rivals)
    messages += explain_differences(owned_hardware, (*options, *rivals), break_even)
    machines = {name: None if at is None else make_option(0, at, compared, on_front=False) for name, at in of_machines.items()}
    variants = tuple(summarise_variants(compared, order, workloads))
    return Comparison(
        summary=summarise_comparison(objective, options, variants, machines, table, compared.configurations),
        options=options,
        considered=len(table.row),
        infeasible=table.infeasible,
        variants=variants,
        on_prem=tuple(make_owned_cost(hardware) for hardware in owned_hardware),
        break_even=break_even,
        prices_as_of=min((option.offer.observed_at for option in options if option.offer.observed_at), default=None),
        stale_providers=_stale_providers(selection.rows[compared.stale[selection.rows]], selection.book),
        price_snapshot=selection.book.name,
        lessons=context.lessons_reference(),
        engine_version=engine_version(),
        assumptions=(
            *notes.assumptions,
            *merge_assumptions(compared.configurations),
            *(assumption for hardware in owned_hardware for assumption in hardware.assumptions),
        ),
        warnings=(
            *messages,
            *merge_warnings([*_unpriced(selection), *notes.warnings, *merge_notes_warnings(compared.configurations)]),
        ),
    )


def _evaluate(context: AppContext, selection: Selection, notes: AssumptionLog, now: datetime) -> ComparedOptions:
    """Every workload timed on every machine, and all options priced and held against the constraints."""
    book, constraints, owned_hardware = selection.book, selection.constraints, selection.owned_hardware
    configurations, tables = _evaluate_rented(context, selection, _affordable_counts(selection, notes))
    for position, configuration in time_owned_hardware(context, owned_hardware, selection.workloads):
        tables.append(evaluate_owned(configuration, len(configurations), owned_hardware[position], position))
        configurations.append(configuration)
    table = apply_constraints(join_tables(tables, constraints), configurations, book, constraints, notes)
    table = apply_commitments(table, configurations, book, constraints, now.date())
    limits = capacity_limits(book.columns, selection.quotas, discount_rows(book))
    table = apply_capacity(table, configurations, limits, require_available=constraints.require_available)
    owned_offers, owned_npvs = [make_owned_offer(each) for each in owned_hardware], [each.cost.npv_usd for each in owned_hardware]
    return ComparedOptions(book, book.stale_mask(now), constraints, table, configurations, limits, now.date(), owned_offers, owned_npvs)


def _warn_of_options(options: Sequence[Option], compared: ComparedOptions, order: Ints, selection: Selection, notes: AssumptionLog) -> None:
    """Warns of contracts, commitments, prices that end, and of the best option's data."""
    warn_contracts(options, notes)
    warn_commitments(options, notes)
    ends = [(option.offer.provider, option.offer.terms.valid_until) for option in options if option.feasible and option.offer.terms]
    warn_ends(ends, selection.book, selection.offered, compared.today, notes)
    notes.warn(*warn_of_data(compared, int(order[0])))


def _unpriced(selection: Selection) -> list[str]:
    return describe_unpriced(selection.candidates, selection.accelerators, selection.offered, selection.book)


def _select_shown(request: Request, compared: ComparedOptions, order: Ints, workloads: Sequence[Workload]) -> tuple[Flags, list[str]]:
    """Flags of the options in the answer, and the messages that come first.

    Shown are the first options up to the limit, owned hardware, the best of each variant, the best with a price that is not stale and,
    where nothing is feasible, the nearest.
    """
    shown = compared.table.row < 0
    shown[order[: request.get("limit", DEFAULT_LIMIT)]] = True
    shown[list(find_best_of_variants(compared, order, workloads).values())] = True
    nearest, fresh = find_nearest_if_none(compared), find_fresh(compared, order)
    shown[[at for at in (nearest, fresh) if at is not None]] = True
    messages = [describe_nearest(compared, nearest)] if nearest is not None else []
    return shown, messages + ([describe_fresh(compared, fresh)] if fresh is not None else [])


def _affordable_counts(selection: Selection, notes: AssumptionLog) -> dict[str, tuple[int, ...]]:
    """Counts of each accelerator to compare. Raises InvalidRequest where they exceed the work of one request."""
    workloads, owned_hardware = selection.workloads, selection.owned_hardware
    work_per_machine = sum(search_weight(workload.model[0]) for workload in workloads)
    names = [name for name, _ in _by_accelerator(selection.offer_groups)]
    remaining = MAX_WORK - work_per_machine * len(owned_hardware)
    counts = resolve_counts(selection.candidates, names, remaining // (work_per_machine * max(len(names), 1)), notes)
    machines = sum(len(of_accelerator) for of_accelerator in counts.values())
    required = work_per_machine * machines
    if required > remaining:
        raise InvalidRequest(
            f"{len(workloads)} workloads on {machines} machines (each accelerator in each count) and on {len(owned_hardware)} owned"
            f" machines are {MAX_WORK - remaining + required} units of work, more than the {MAX_WORK} of one comparison:"
            " state fewer of them (a dense model's search is 2 units, one of experts 1 and as many as their number has divisors)",
            "/candidates",
        )
    return counts


def _evaluate_rented(
    context: AppContext, selection: Selection, counts: Mapping[str, Sequence[int]]
) -> tuple[list[TimedConfiguration], list[OptionTable]]:
    """Every workload on every accelerator in its counts, and tables of their offers."""
    configurations: list[TimedConfiguration] = []
    tables: list[OptionTable] = []
    for workload in selection.workloads:
        uninterrupted = _time_uninterrupted(context, workload, selection.offer_groups, counts)
        for group in selection.offer_groups:
            name = group.accelerator
            by_count = [[uninterrupted[name, count][rate] for rate in group.inter_node_gbps] for count in counts[name]]
            by_count = [time_interruptible(of_count) for of_count in by_count] if group.interruptible else by_count
            tables.append(evaluate_offers(by_count, len(configurations), group))
            configurations += itertools.chain.from_iterable(by_count)
    return configurations, tables


def _time_uninterrupted(
    context: AppContext, workload: Workload, offer_groups: Sequence[OfferGroup], counts: Mapping[str, Sequence[int]]
) -> dict[tuple[str, int], dict[float, TimedConfiguration]]:
    """A workload on every accelerator in every count, not interruptible: configurations by accelerator and count, and by network rate.

    Layouts of one count are similar on every accelerator and equal in every network, so they are searched one after the other.
    """
    rates = {name: sorted({rate for group in offered for rate in group.inter_node_gbps}) for name, offered in _by_accelerator(offer_groups)}
    on_accelerators = {name: resolve_on_accelerator(context, workload, name) for name in rates}
    return {
        (name, count): dict(zip(rates[name], time_in_networks(context, on_accelerators[name], count, rates[name]), strict=True))
        for count, name in sorted((count, name) for name in on_accelerators for count in counts[name])
    }


def _by_accelerator(offer_groups: Sequence[OfferGroup]) -> list[tuple[str, list[OfferGroup]]]:
    return [(name, list(on_accelerators)) for name, on_accelerators in itertools.groupby(offer_groups, key=lambda group: group.accelerator)]


def _rank(objective: Objective, table: OptionTable) -> Ints:
    """Positions of the options, the best first."""
    values = {"cost": table.cost.p50, "time": table.finish_hours, "carbon": table.tco2e}[objective]
    return rank_options(table.feasible, values, table.cost.p50)


def _pareto_front(table: OptionTable) -> Flags:
    """Flags of the options on the Pareto front of cost, finish and carbon; only feasible ones count."""
    front = np.zeros(len(table.row), dtype=bool)
    possible = np.flatnonzero(table.feasible)
    front[possible] = pareto_front(table.cost.p50[possible], table.finish_hours[possible], table.tco2e[possible])
    return front


def _stale_providers(stale: Ints, book: PriceBook) -> tuple[str, ...]:
    """Providers of these stale rows."""
    provider = book.columns.provider
    return tuple(sorted(provider.names[code] for code in provider.met(stale)))
