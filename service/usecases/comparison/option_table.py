"""All offers of a machine as columns: what each costs, emits, and what rules it out."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from service.domain.comparison.options import Constraints
from service.domain.training.run import Run
from service.engine.comparison.offer_costs import OfferCosts, OfferPrices, price_offers
from service.engine.training.energy import mwh_at, tco2e_at
from service.engine.training.estimate import checkpoint_tb
from service.prices.offer_table import Flags, Floats, Ints, OfferColumns
from service.usecases.comparison.offer_selection import offer_networks, resolve_places, without_stock
from service.usecases.comparison.timed_configurations import TimedConfiguration
from service.usecases.training.estimate import MAX_USD

REASONS = (
    "cannot_run",
    "beyond_reason",
    "beyond_horizon",
    "splits_nodes",
    "misses_deadline",
    "takes_too_long",
    "over_budget",
    "too_much_carbon",
    "outside_jurisdictions",
    "unknown_jurisdiction",
    "not_available",
)


TORUS = "torus"


@dataclass(frozen=True, slots=True)
class OfferGroup:
    """Offers of one accelerator, interruptible or not, the slowest networks between nodes first [Gbit/s]: rows of the book with all
    that does not depend on the run.
    """

    accelerator: str
    interruptible: bool
    inter_node_gbps: tuple[float, ...]
    rows: Ints
    prices: OfferPrices
    pue: Floats
    grid_gco2_per_kwh: Floats
    ruled_out: Mapping[str, Flags]


def group_offers(columns: OfferColumns, rows: Ints, constraints: Constraints) -> list[OfferGroup]:
    """The rows by accelerator, in order of name, within it those that stay before those that are taken back."""
    codes, spot = columns.accelerator.codes[rows], columns.pricing.among(("spot",))[rows]
    names = {columns.accelerator.names[code]: code for code in columns.accelerator.met(rows)}
    kinds = ((name, kind, rows[(codes == names[name]) & (spot == kind)]) for name, kind in itertools.product(sorted(names), (False, True)))
    return [_make_group(name, kind, columns, found, constraints) for name, kind, found in kinds if len(found)]


def _make_group(accelerator: str, kind: bool, columns: OfferColumns, rows: Ints, constraints: Constraints) -> OfferGroup:
    """The rows as one stall."""
    rates = offer_networks(columns, rows, accelerator)
    networks = np.unique(rates)
    network = np.searchsorted(networks, rates)
    order = np.argsort(network, kind="stable")
    rows, network = rows[order], network[order]
    places, at = resolve_places(columns.place.names), columns.place.codes[rows]
    return OfferGroup(
        accelerator,
        interruptible=kind,
        inter_node_gbps=tuple(networks.tolist()),
        rows=rows,
        prices=OfferPrices(columns.usd_per_accelerator_hour[rows], columns.accelerator_count[rows], columns.term_hours[rows], network),
        pue=places.pue[at],
        grid_gco2_per_kwh=places.grid_gco2_per_kwh[at],
        ruled_out=_ruled_out(constraints, columns, rows),
    )


def _ruled_out(constraints: Constraints, columns: OfferColumns, rows: Ints) -> dict[str, Flags]:
    """What of the offers alone rules them out, by the constraints that are set."""
    found = {}
    if constraints.require_available:
        found["not_available"] = without_stock(columns, rows)
    return found


@dataclass(frozen=True, slots=True)
class Part:
    """Options of some machines, one machine after the other: its position, the row of the book, figures (NaN where it cannot run), and
    what rules them out beside the limits.

    `finish_hours` is the wall-clock p50 with the time until the machine is there.
    """

    machine: Ints
    row: Ints
    cost: OfferCosts
    finish_hours: Floats
    mwh: Floats
    tco2e: Floats
    ruled_out: Mapping[str, Flags]


@dataclass(frozen=True)
class OptionTable:
    """All options as columns: the machine and the row of the book, figures as in a `Part`, and what rules an option out, by reason."""

    machine: Ints
    row: Ints
    cost: OfferCosts
    finish_hours: Floats
    mwh: Floats
    tco2e: Floats
    ruled_out: Mapping[str, Flags]

    @cached_property
    def feasible(self) -> Flags:
        """Options that nothing rules out."""
        found = np.ones(len(self.row), dtype=bool)
        for flags in self.ruled_out.values():
            found &= ~flags
        return found

    @property
    def infeasible(self) -> dict[str, int]:
        """How many options each reason rules out."""
        counts = {reason: int(self.ruled_out[reason].sum()) for reason in REASONS if reason in self.ruled_out}
        return {reason: count for reason, count in counts.items() if count}

    def reasons(self, at: int) -> list[str]:
        """What rules the option at a position out."""
        return [reason for reason in REASONS if reason in self.ruled_out and self.ruled_out[reason][at]]


def evaluate_offers(machines: Sequence[Sequence[TimedConfiguration]], first: int, stall: OfferGroup) -> Part:
    """All offers of machines of one kind: a row of them for each count, one for each of the stall's networks.

    `first` is the position of the first machine, the others following row by row.
    """
    counts, networks = len(machines), len(stall.inter_node_gbps)
    at = (first + np.arange(counts)[:, np.newaxis] * networks + stall.prices.network).ravel()
    row, ruled_out = np.tile(stall.rows, counts), {reason: np.tile(flags, counts) for reason, flags in stall.ruled_out.items()}
    runs = [each[0].run for each in machines if each[0].run]
    if not runs:
        return infeasible_options(at, row, ruled_out)
    hours = np.array([[_percentiles(each) for each in of_count] for of_count in machines]).transpose(2, 0, 1)
    p50 = hours[1].take(stall.prices.network, axis=-1)
    mwh, tco2e = _footprint(machines[0][0], runs, p50, stall)
    cost = price_offers(runs, hours, mwh, checkpoint_tb(runs[0]), stall.prices)
    cannot_run = np.isnan(p50).ravel()
    splits = stall.prices.billed_in < np.array([[linked_accelerators(run)] for run in runs])
    return Part(
        machine=at,
        row=row,
        cost=OfferCosts(cost.p10.ravel(), cost.p50.ravel(), cost.p90.ravel()),
        finish_hours=p50.ravel() + runs[0].schedule.queue_hours,
        mwh=mwh.ravel(),
        tco2e=tco2e.ravel(),
        ruled_out=ruled_out | {"cannot_run": cannot_run, "splits_nodes": splits.ravel() & ~cannot_run},
    )


def _percentiles(machine: TimedConfiguration) -> tuple[float, float, float]:
    """Of the hours of its run, NaN where it cannot run."""
    if machine.timing is None:
        return np.nan, np.nan, np.nan
    hours = machine.timing.wall_clock_hours
    return hours.p10, hours.p50, hours.p90


def infeasible_options(machine: Ints, row: Ints, ruled_out: Mapping[str, Flags]) -> Part:
    """Options of machines that cannot run the workload."""
    none, every = np.full(len(row), np.nan), np.ones(len(row), dtype=bool)
    return Part(machine, row, OfferCosts(none, none, none), none, none, none, {**ruled_out, "cannot_run": every})


def join_tables(parts: Sequence[Part], constraints: Constraints) -> OptionTable:
    """The options of all machines, in their order, with what the limits rule out."""
    cost = OfferCosts(*(np.concatenate([getattr(part.cost, name) for part in parts]) for name in OfferCosts.__slots__))
    machine, row, finish_hours, mwh, tco2e = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("machine", "row", "finish_hours", "mwh", "tco2e")
    )
    table = OptionTable(machine, row, cost, finish_hours, mwh, tco2e, _joined_reasons(parts))
    return replace(table, ruled_out={**table.ruled_out, **_beyond_limits(table, constraints)})


def _beyond_limits(table: OptionTable, constraints: Constraints) -> dict[str, Flags]:
    """What the limits that are set rule out, and what nobody could pay."""
    deadline = deadline_hours(constraints)
    found: dict[str, Flags] = {"beyond_reason": table.cost.p90 > MAX_USD}
    if deadline is not None:
        found["misses_deadline"] = table.finish_hours > deadline
    if constraints.max_cost_usd is not None:
        found["over_budget"] = table.cost.p50 > constraints.max_cost_usd
    if constraints.max_tco2e is not None:
        found["too_much_carbon"] = table.tco2e > constraints.max_tco2e
    return found


def _joined_reasons(parts: Sequence[Part]) -> dict[str, Flags]:
    """What rules options out in any part, over all of them."""
    nothing = [np.zeros(len(part.row), dtype=bool) for part in parts]
    reasons = {reason for part in parts for reason in part.ruled_out}
    return {name: np.concatenate([part.ruled_out.get(name, none) for part, none in zip(parts, nothing, strict=True)]) for name in reasons}


def deadline_hours(constraints: Constraints) -> float | None:
    """Hours from the start to the end of the deadline's day; None without one."""
    if constraints.deadline is None:
        return None
    return ((constraints.deadline - constraints.start).days + 1) * 24.0


def _footprint(machine: TimedConfiguration, runs: Sequence[Run], hours: Floats, stall: OfferGroup) -> tuple[Floats, Floats]:
    """MWh and tCO2e by run and offer: at the caller's PUE and grid where they state them or a region, else at the offer's own."""
    stated, energy = machine.workload.request.get("energy", {}), runs[0].energy
    own_region = stated.get("region") is not None
    pue = energy.pue if own_region or stated.get("pue") is not None else stall.pue
    grid_stated = own_region or stated.get("grid_gco2_per_kwh") is not None
    grid = energy.grid_gco2_per_kwh if grid_stated else stall.grid_gco2_per_kwh
    accelerator_hours = hours * np.array([[run.cluster.count] for run in runs])
    mwh = mwh_at(accelerator_hours, energy, pue)
    return mwh, tco2e_at(accelerator_hours, energy, mwh, grid)


def linked_accelerators(run: Run) -> int:
    """Accelerators that the model takes to be joined by the fast link: nodes, or, of a torus, which is let in slices, all of a pod."""
    cluster = run.cluster
    unit = cluster.link_domain if TORUS in cluster.accelerator.link else cluster.accelerators_per_node
    return min(unit, cluster.count)
