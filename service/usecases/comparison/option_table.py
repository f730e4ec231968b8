"""All options as columns: cost, energy, carbon, and the reasons that rule them out."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from service.domain.comparison.options import Constraints
from service.domain.procurement.commitments import COMMITMENT_REASONS
from service.domain.training.run import Run
from service.engine.comparison.offer_costs import OfferCosts, OfferPrices, price_offers
from service.engine.training.cost import overhead_share
from service.engine.training.energy import mwh_at, tco2e_at
from service.engine.training.estimate import checkpoint_tb
from service.prices.offer_table import Flags, Floats, Ints, OfferColumns
from service.usecases.comparison.offer_selection import offer_networks, resolve_places, without_stock
from service.usecases.comparison.timed_configurations import TimedConfiguration
from service.usecases.resolution.limits import MAX_USD

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
    *COMMITMENT_REASONS,
    "over_quota",
    "needs_contract",
    "not_available",
)


@dataclass(frozen=True, slots=True)
class OfferGroup:
    """Offers of one accelerator, interruptible or not, sorted by network rate between nodes [Gbit/s]: rows of the book and all figures
    that do not depend on the run.
    """

    accelerator: str
    interruptible: bool
    inter_node_gbps: tuple[float, ...]
    rows: Ints
    prices: OfferPrices
    pue: Floats
    grid_gco2_per_kwh: Floats
    ruled_out: Mapping[str, Flags]


def group_offers(columns: OfferColumns, rows: Ints, constraints: Constraints, used_share: float | None = None) -> list[OfferGroup]:
    """The rows by accelerator in order of name, uninterrupted capacity before spot.

    `used_share` is the part of its hours in which a reservation is used: its idle hours are then charged to the used ones. None: a
    reservation is charged by whole terms.
    """
    codes, spot = columns.accelerator.codes[rows], columns.pricing.among(("spot",))[rows]
    names = {columns.accelerator.names[code]: code for code in columns.accelerator.met(rows)}
    groups = (
        (name, interruptible, rows[(codes == names[name]) & (spot == interruptible)])
        for name, interruptible in itertools.product(sorted(names), (False, True))
    )
    return [
        _make_group(name, interruptible, columns, group_rows, constraints, used_share)
        for name, interruptible, group_rows in groups
        if len(group_rows)
    ]


def _make_group(
    accelerator: str, interruptible: bool, columns: OfferColumns, rows: Ints, constraints: Constraints, used_share: float | None
) -> OfferGroup:
    """The rows as one group."""
    rates = offer_networks(columns, rows, accelerator)
    networks = np.unique(rates)
    network = np.searchsorted(networks, rates)
    order = np.argsort(network, kind="stable")
    rows, network = rows[order], network[order]
    places, at = resolve_places(columns.place.names), columns.place.codes[rows]
    return OfferGroup(
        accelerator,
        interruptible=interruptible,
        inter_node_gbps=tuple(networks.tolist()),
        rows=rows,
        prices=_prices(columns, rows, network, used_share),
        pue=places.pue[at],
        grid_gco2_per_kwh=places.grid_gco2_per_kwh[at],
        ruled_out=_ruled_out(constraints, columns, rows),
    )


def _prices(columns: OfferColumns, rows: Ints, network: Ints, used_share: float | None) -> OfferPrices:
    """Prices of the rows; with `used_share` those of a used hour of a reservation, without its term."""
    usd, term_hours = columns.usd_per_accelerator_hour[rows], columns.term_hours[rows]
    if used_share is not None:
        usd, term_hours = np.where(term_hours > 0, usd / used_share, usd), np.zeros(len(rows))
    return OfferPrices(usd, columns.accelerator_count[rows], term_hours, network)


def _ruled_out(constraints: Constraints, columns: OfferColumns, rows: Ints) -> dict[str, Flags]:
    """Flags by reason of the offers that the constraints rule out by themselves."""
    return {"not_available": without_stock(columns, rows)} if constraints.require_available else {}


@dataclass(frozen=True)
class OptionTable:
    """Options as columns: position of the configuration, row of the book, figures (NaN where it cannot run), and flags by reason.

    `finish_hours` is the median wall clock with the work around the run and the waiting time until the machine is available [h].
    """

    configuration: Ints
    row: Ints
    cost: OfferCosts
    finish_hours: Floats
    mwh: Floats
    tco2e: Floats
    ruled_out: Mapping[str, Flags]

    @cached_property
    def feasible(self) -> Flags:
        """Flags of the options that nothing rules out."""
        feasible = np.ones(len(self.row), dtype=bool)
        for flags in self.ruled_out.values():
            feasible &= ~flags
        return feasible

    @property
    def infeasible(self) -> dict[str, int]:
        """Number of options that each reason rules out."""
        counts = {reason: int(self.ruled_out[reason].sum()) for reason in REASONS if reason in self.ruled_out}
        return {reason: count for reason, count in counts.items() if count}

    def reasons(self, at: int) -> list[str]:
        """Reasons that rule out the option at a position."""
        return [reason for reason in REASONS if reason in self.ruled_out and self.ruled_out[reason][at]]


def evaluate_offers(configurations: Sequence[Sequence[TimedConfiguration]], first: int, group: OfferGroup) -> OptionTable:
    """All offers of a workload on one accelerator: a row of configurations for each count, one for each of the group's networks.

    `first` is the position of the first configuration; the others follow row by row.
    """
    counts, networks = len(configurations), len(group.inter_node_gbps)
    at = (first + np.arange(counts)[:, np.newaxis] * networks + group.prices.network).ravel()
    row, ruled_out = np.tile(group.rows, counts), {reason: np.tile(flags, counts) for reason, flags in group.ruled_out.items()}
    runs = [of_count[0].run for of_count in configurations if of_count[0].run]
    if not runs:
        return infeasible_options(at, row, ruled_out)
    hours = np.array([[_percentiles(configuration) for configuration in of_count] for of_count in configurations]).transpose(2, 0, 1)
    p50 = hours[1].take(group.prices.network, axis=-1)
    mwh, tco2e = _footprint(configurations[0][0], runs, p50, group)
    cost = price_offers(runs, hours, mwh, checkpoint_tb(runs[0]), group.prices)
    cannot_run = np.isnan(p50).ravel()
    splits_nodes = group.prices.accelerators_per_instance < np.array([[run.cluster.linked_accelerators] for run in runs])
    return OptionTable(
        configuration=at,
        row=row,
        cost=OfferCosts(cost.p10.ravel(), cost.p50.ravel(), cost.p90.ravel()),
        finish_hours=p50.ravel() * (1 + overhead_share(runs[0])) / runs[0].failures.capacity_share + runs[0].schedule.queue_hours,
        mwh=mwh.ravel(),
        tco2e=tco2e.ravel(),
        ruled_out=ruled_out | {"cannot_run": cannot_run, "splits_nodes": splits_nodes.ravel() & ~cannot_run},
    )


def _percentiles(configuration: TimedConfiguration) -> tuple[float, float, float]:
    """10th, 50th and 90th percentile of the hours held [h], NaN where the configuration cannot run."""
    if configuration.timing is None:
        return np.nan, np.nan, np.nan
    hours = configuration.timing.held_hours
    return hours.p10, hours.p50, hours.p90


def infeasible_options(configuration: Ints, row: Ints, ruled_out: Mapping[str, Flags]) -> OptionTable:
    """Options of configurations that cannot run the workload."""
    nan, all_flags = np.full(len(row), np.nan), np.ones(len(row), dtype=bool)
    return OptionTable(configuration, row, OfferCosts(nan, nan, nan), nan, nan, nan, {**ruled_out, "cannot_run": all_flags})


def join_tables(tables: Sequence[OptionTable], constraints: Constraints) -> OptionTable:
    """The options of all tables in order, with those that the limits rule out."""
    cost = OfferCosts(*(np.concatenate([getattr(table.cost, name) for table in tables]) for name in OfferCosts.__slots__))
    configuration, row, finish_hours, mwh, tco2e = (
        np.concatenate([getattr(table, name) for table in tables]) for name in ("configuration", "row", "finish_hours", "mwh", "tco2e")
    )
    table = OptionTable(configuration, row, cost, finish_hours, mwh, tco2e, _join_reasons(tables))
    return replace(table, ruled_out={**table.ruled_out, **_beyond_limits(table, constraints)})


def _beyond_limits(table: OptionTable, constraints: Constraints) -> dict[str, Flags]:
    """Flags by reason of the options beyond the stated limits and beyond what is computed."""
    deadline = deadline_hours(constraints)
    flags_by_reason: dict[str, Flags] = {"beyond_reason": table.cost.p90 > MAX_USD}
    if deadline is not None:
        flags_by_reason["misses_deadline"] = table.finish_hours > deadline
    if constraints.max_cost_usd is not None:
        flags_by_reason["over_budget"] = table.cost.p50 > constraints.max_cost_usd
    if constraints.max_tco2e is not None:
        flags_by_reason["too_much_carbon"] = table.tco2e > constraints.max_tco2e
    return flags_by_reason


def _join_reasons(tables: Sequence[OptionTable]) -> dict[str, Flags]:
    """Flags by reason over all tables."""
    reasons = {reason for table in tables for reason in table.ruled_out}
    return {
        reason: np.concatenate([table.ruled_out.get(reason, np.zeros(len(table.row), dtype=bool)) for table in tables])
        for reason in reasons
    }


def deadline_hours(constraints: Constraints) -> float | None:
    """Hours from the start to the end of the deadline's day; None without a deadline."""
    if constraints.deadline is None:
        return None
    return ((constraints.deadline - constraints.start).days + 1) * 24.0


def _footprint(configuration: TimedConfiguration, runs: Sequence[Run], hours: Floats, group: OfferGroup) -> tuple[Floats, Floats]:
    """Energy [MWh] and carbon [tCO2e] by run and offer: with the stated PUE and grid or region, else with the offer's own."""
    stated, energy = configuration.workload.request.get("energy", {}), runs[0].energy
    region_stated = stated.get("region") is not None
    pue = energy.pue if region_stated or stated.get("pue") is not None else group.pue
    grid_stated = region_stated or stated.get("grid_gco2_per_kwh") is not None
    grid = energy.grid_gco2_per_kwh if grid_stated else group.grid_gco2_per_kwh
    accelerator_hours = hours * np.array([[run.cluster.count] for run in runs])
    mwh = mwh_at(accelerator_hours, energy, pue)
    return mwh, tco2e_at(accelerator_hours, energy, mwh, grid)
