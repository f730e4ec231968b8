"""Options shown besides the first ones: the best of each variant and machine, the best with a fresh price, and rivals of owned hardware.

And what to check of the best one's model and data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from service.domain.comparison.options import Option, VariantSummary
from service.domain.quantities import Range
from service.formats.field_words import choice_words
from service.formats.headline import money, short_name
from service.prices.offer_table import Flags, Ints
from service.usecases.comparison.constraints import nearest_option
from service.usecases.comparison.options import ComparedOptions, make_option
from service.usecases.comparison.timed_configurations import TimedConfiguration, Workload
from service.usecases.training.cost_warnings import overhead_warnings
from service.usecases.training.data_warnings import data_warnings

MOST_MACHINES = 6
"""Most machines whose best options a summary names."""
PRICING_KINDS = (("on_demand",), ("spot",), ("reserved_1y", "reserved_3y", "reserved"))


def find_best_of_variants(compared: ComparedOptions, order: Ints, workloads: Sequence[Workload]) -> dict[str, int]:
    """Position of the best feasible option of each variant that has one, by the variant's name."""
    matches = {
        workload.name: _first_in_order(order, _runs_workload(compared, workload) & compared.table.feasible)
        for workload in workloads
        if workload.name is not None
    }
    return {name: at for name, at in matches.items() if at is not None}


def find_best_of_machines(compared: ComparedOptions, order: Ints, candidates: Mapping[str, Any]) -> dict[str, int | None]:
    """Position of the best feasible option of each stated accelerator, or stated pair of accelerator and count, by its name, best first.

    None for a machine without a feasible option; empty where fewer than two or more than `MOST_MACHINES` are stated.
    """
    if candidates.get("accelerators") is None:
        return {}
    paired = candidates.get("machines") is not None
    names = np.array([_machine_name(configuration, paired=paired) for configuration in compared.configurations])
    stated = list(dict.fromkeys(names.tolist()))
    if not 1 < len(stated) <= MOST_MACHINES:
        return {}
    of_options = names[compared.table.configuration]
    best = {name: _first_in_order(order, (of_options == name) & compared.table.feasible) for name in stated}
    return dict(sorted(best.items(), key=lambda item: len(order) if item[1] is None else int((order == item[1]).argmax())))


def _machine_name(configuration: TimedConfiguration, *, paired: bool) -> str:
    name = short_name(configuration.accelerator)
    return f"{configuration.count:,} {name}" if paired else name


def summarise_variants(compared: ComparedOptions, order: Ints, workloads: Sequence[Workload]) -> Iterator[VariantSummary]:
    """Summary of each variant: its best option, or a reason of the nearest where none is feasible."""
    best = find_best_of_variants(compared, order, workloads)
    for workload in workloads:
        if workload.name is None:
            return
        of_variant = _runs_workload(compared, workload)
        at = best.get(workload.name, nearest_option(compared.table, compared.configurations, compared.constraints, of_variant))
        option = make_option(1, at, compared, on_front=False)
        feasible = option if workload.name in best else None
        yield VariantSummary(
            name=workload.name,
            best=feasible.id if feasible else None,
            cost_usd=feasible.cost_usd.p50 if feasible and feasible.cost_usd else None,
            wall_clock_hours=feasible.time.wall_clock_hours.p50 if feasible and feasible.time else None,
            feasible=int((of_variant & compared.table.feasible).sum()),
            reason=option.reasons[0] if option.reasons else None,
        )


def find_fresh(compared: ComparedOptions, order: Ints) -> int | None:
    """Position of the best feasible option with a price that is not stale, where the first option's is; else None."""
    fresh, best = compared.table.feasible & (compared.table.row >= 0), int(order[0])
    if not fresh[best] or not compared.stale[compared.table.row[best]]:
        return None
    fresh[fresh] = ~compared.stale[compared.table.row[fresh]]
    return _first_in_order(order, fresh)


def describe_fresh(compared: ComparedOptions, at: int) -> str:
    """Message that names the best option with a price that is not stale."""
    option = make_option(1, at, compared, on_front=False)
    offer, usd = option.offer, f", {money(option.cost_usd.p50)}" if option.cost_usd else ""
    machine = f"{option.count:,} {short_name(offer.accelerator)}"
    seller = f"{offer.provider} {offer.region}, {choice_words(offer.pricing)}"
    return f"the price of the first option is stale; the best option with a fresh price is {machine} at {seller}{usd}"


def select_rivals(compared: ComparedOptions, order: Ints, shown: Flags, workloads: Sequence[Workload]) -> Flags:
    """Rented options to compare with owned hardware: those shown and the best of each kind of pricing, for each variant.

    Only feasible ones, where the variant has any feasible rented option.
    """
    selected = np.zeros(len(order), dtype=bool)
    for workload in workloads:
        rented = _runs_workload(compared, workload) & (compared.table.row >= 0)
        possible = rented & compared.table.feasible
        pool = possible if possible.any() else rented & ~np.isnan(compared.table.cost.p50)
        selected |= pool & shown
        best = (_first_in_order(order, pool & _has_pricing(compared, pricings)) for pricings in PRICING_KINDS)
        selected[[at for at in best if at is not None]] = True
    return selected


def describe_nearest(compared: ComparedOptions, at: int) -> str:
    """Message that nothing is feasible and what the nearest option misses."""
    option = make_option(1, at, compared, on_front=False)
    return f"No option meets all constraints. The nearest one, {option.id}, does not because: {'; '.join(option.reasons)}"


def find_nearest_if_none(compared: ComparedOptions) -> int | None:
    """Position of the option that misses least, where none is feasible."""
    return (
        None
        if compared.table.feasible.any()
        else nearest_option(compared.table, compared.configurations, compared.constraints, ~compared.table.feasible)
    )


def make_options(selected: Flags, order: Ints, compared: ComparedOptions, front: Flags) -> tuple[Option, ...]:
    """The selected options in order, with their ranks."""
    ranks = np.flatnonzero(selected[order])
    ranked = zip(ranks.tolist(), order[ranks].tolist(), strict=True)
    return tuple(make_option(rank + 1, at, compared, on_front=bool(front[at])) for rank, at in ranked)


def _runs_workload(compared: ComparedOptions, workload: Workload) -> Flags:
    """Flags of the options that run that workload."""
    runs = np.array([configuration.workload is workload for configuration in compared.configurations], dtype=bool)
    matches: Flags = runs[compared.table.configuration]
    return matches


def _has_pricing(compared: ComparedOptions, pricings: Sequence[str]) -> Flags:
    """Flags of the rented options with such a pricing."""
    rented, among = compared.table.row >= 0, compared.book.columns.pricing.among(pricings)
    sold = np.zeros(len(rented), dtype=bool)
    sold[rented] = among[compared.table.row[rented]]
    return sold


def _first_in_order(order: Ints, candidates: Flags) -> int | None:
    """The first position in order among the candidates."""
    return int(order[candidates[order].argmax()]) if candidates.any() else None


def warn_of_data(compared: ComparedOptions, best: int) -> Iterator[str]:
    """The warnings that an estimate of the best option has about its model, data and overhead; they are of no other variant."""
    configuration, cost = compared.configurations[int(compared.table.configuration[best])], compared.table.cost
    if configuration.run is not None and configuration.timing is not None:
        usd = Range(*(float(quantile[best]) for quantile in (cost.p10, cost.p50, cost.p90)))
        name = configuration.workload.name
        request = configuration.workload.request
        found = (*data_warnings(configuration.run, usd), *overhead_warnings(request, configuration.run, usd))
        yield from (f"{name}: {warning}" if name else warning for warning in found)
