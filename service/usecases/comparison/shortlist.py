"""Options shown beside the first so many: the best of each variant, with a fresh price, and to weigh against what is owned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from service.domain.comparison.options import Option, VariantSummary
from service.prices.offer_table import Flags, Ints
from service.usecases.comparison.constraints import nearest_option
from service.usecases.comparison.options import OptionContext, make_option
from service.usecases.comparison.timed_configurations import Workload

PRICING_KINDS = (("on_demand",), ("spot",), ("reserved_1y", "reserved_3y"))


def find_best_of_variants(seen: OptionContext, order: Ints, workloads: Sequence[Workload]) -> dict[str, int]:
    """The best feasible option of each variant that has one: its position by the variant's name."""
    found = {work.name: _first(order, _of(seen, work) & seen.table.feasible) for work in workloads if work.name is not None}
    return {name: at for name, at in found.items() if at is not None}


def summarise_variants(seen: OptionContext, order: Ints, workloads: Sequence[Workload]) -> Iterator[VariantSummary]:
    """What comes of each variant: its best option, or a reason of the nearest where none is feasible."""
    best = find_best_of_variants(seen, order, workloads)
    for work in workloads:
        if work.name is None:
            return
        own = _of(seen, work)
        at = best.get(work.name, nearest_option(seen.table, seen.machines, seen.constraints, own))
        option = make_option(1, at, seen, on_front=False)
        feasible = option if work.name in best else None
        yield VariantSummary(
            name=work.name,
            best=feasible.id if feasible else None,
            cost_usd=feasible.cost_usd.p50 if feasible and feasible.cost_usd else None,
            wall_clock_hours=feasible.time.wall_clock_hours.p50 if feasible and feasible.time else None,
            feasible=int((own & seen.table.feasible).sum()),
            reason=option.reasons[0] if option.reasons else None,
        )


def find_fresh(seen: OptionContext, order: Ints) -> int | None:
    """The best feasible option with a price that is not stale, where that of the first is; None where there is no need or none."""
    fresh, best = seen.table.feasible & (seen.table.row >= 0), int(order[0])
    if not fresh[best] or not seen.stale[seen.table.row[best]]:
        return None
    fresh[fresh] = ~seen.stale[seen.table.row[fresh]]
    return _first(order, fresh)


def describe_fresh(seen: OptionContext, at: int) -> str:
    """Which option is the best with a price that is not stale."""
    option = make_option(1, at, seen, on_front=False)
    usd = f" at {option.cost_usd.p50:,.0f} USD" if option.cost_usd else ""
    return f"the first option's price is stale; the best with a price that is not: {option.id}{usd}"


def select_rivals(seen: OptionContext, order: Ints, shown: Flags, workloads: Sequence[Workload]) -> Flags:
    """Rented options to weigh against what is owned: those shown and the best of each kind of pricing, of each variant.

    Only feasible ones where the variant has any that is rented.
    """
    chosen = np.zeros(len(order), dtype=bool)
    for work in workloads:
        rented = _of(seen, work) & (seen.table.row >= 0)
        possible = rented & seen.table.feasible
        pool = possible if possible.any() else rented & ~np.isnan(seen.table.cost.p50)
        chosen |= pool & shown
        best = (_first(order, pool & _sold(seen, pricings)) for pricings in PRICING_KINDS)
        chosen[[at for at in best if at is not None]] = True
    return chosen


def describe_nearest(seen: OptionContext, at: int) -> str:
    """That nothing is feasible, and by what the nearest option misses."""
    option = make_option(1, at, seen, on_front=False)
    return f"No option meets these constraints; nearest: {option.id} misses: {'; '.join(option.reasons)}"


def find_nearest_if_none(seen: OptionContext) -> int | None:
    """Position of the option that misses least where none is feasible."""
    return None if seen.table.feasible.any() else nearest_option(seen.table, seen.machines, seen.constraints, ~seen.table.feasible)


def make_options(chosen: Flags, order: Ints, seen: OptionContext, front: Flags) -> tuple[Option, ...]:
    """The chosen options in order, with their ranks."""
    ranks = np.flatnonzero(chosen[order])
    ranked = zip(ranks.tolist(), order[ranks].tolist(), strict=True)
    return tuple(make_option(rank + 1, at, seen, on_front=bool(front[at])) for rank, at in ranked)


def _of(seen: OptionContext, work: Workload) -> Flags:
    """Options that run that workload."""
    runs = np.array([machine.workload is work for machine in seen.machines], dtype=bool)
    found: Flags = runs[seen.table.machine]
    return found


def _sold(seen: OptionContext, pricings: Sequence[str]) -> Flags:
    """Rented options at such a price."""
    rented, among = seen.table.row >= 0, seen.book.columns.pricing.among(pricings)
    sold = np.zeros(len(rented), dtype=bool)
    sold[rented] = among[seen.table.row[rented]]
    return sold


def _first(order: Ints, wanted: Flags) -> int | None:
    """The first position in order of those wanted."""
    return int(order[wanted[order].argmax()]) if wanted.any() else None
