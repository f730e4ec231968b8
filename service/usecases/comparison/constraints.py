"""What rules options out beyond their own figures: the day they end, the country they stand in; and which comes nearest where all are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from providers.offer import Offer
from service.domain.comparison.options import Constraints
from service.engine.numerics.ranges import probability_below
from service.prices.book import PriceBook
from service.prices.offer_table import Flags, Floats
from service.usecases.comparison.option_table import OptionTable, deadline_hours
from service.usecases.comparison.timed_configurations import TimedConfiguration
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.price import find_country


def apply_constraints(
    table: OptionTable, machines: Sequence[TimedConfiguration], book: PriceBook, constraints: Constraints, notes: AssumptionLog
) -> OptionTable:
    """The table with what the deadline's probability, the days of the run and the jurisdictions rule out."""
    found: dict[str, Flags] = {}
    if constraints.min_deadline_probability is not None:
        found["misses_deadline"] = probability_in_time(table, machines, constraints) < constraints.min_deadline_probability
    if constraints.max_wall_clock_days is not None:
        found["takes_too_long"] = _days(table, machines) > constraints.max_wall_clock_days
    if constraints.horizon_days is not None:
        found["beyond_horizon"] = _days(table, machines) > constraints.horizon_days
    if constraints.countries is not None:
        found |= _elsewhere(table, book, constraints.countries, notes)
    return replace(table, ruled_out={**table.ruled_out, **found})


def probability_in_time(table: OptionTable, machines: Sequence[TimedConfiguration], constraints: Constraints) -> Floats:
    """Probability that each option ends by the deadline, NaN where it cannot run or there is none."""
    chances, available = np.full(len(machines), np.nan), deadline_hours(constraints)
    used, first = np.unique(table.machine, return_index=True)
    for index, finish in zip(used.tolist(), table.finish_hours[first].tolist(), strict=True):
        timing = machines[index].timing
        if timing is not None and available is not None:
            hours = timing.wall_clock_hours
            chances[index] = probability_below(available - (finish - hours.p50), hours)
    return np.asarray(chances[table.machine])


def nearest_option(table: OptionTable, machines: Sequence[TimedConfiguration], constraints: Constraints, among: Flags) -> int:
    """Position of the option of `among` that misses least: that breaks the fewest constraints, and those of figures by the least share."""
    broken = sum((flags.astype(np.int64) for flags in table.ruled_out.values()), np.zeros(len(table.row), dtype=np.int64))
    order = np.lexsort((table.cost.p50, _excess(table, machines, constraints), broken, np.isnan(table.cost.p50), ~among))
    return int(order[0])


def _excess(table: OptionTable, machines: Sequence[TimedConfiguration], constraints: Constraints) -> Floats:
    """The largest of an option's figures over their limits."""
    figures = (
        (table.finish_hours, deadline_hours(constraints)),
        (_days(table, machines), constraints.max_wall_clock_days or constraints.horizon_days),
        (table.cost.p50, constraints.max_cost_usd),
        (table.tco2e, constraints.max_tco2e),
    )
    with np.errstate(over="ignore"):  # a limit may be as small as a number can be
        shares = [figure / limit for figure, limit in figures if limit is not None]
    return np.asarray(np.fmax.reduce([np.ones(len(table.row)), *shares]))


def _days(table: OptionTable, machines: Sequence[TimedConfiguration]) -> Floats:
    """Wall-clock p50 of each option in days, NaN where it cannot run."""
    each = np.array([machine.timing.wall_clock_hours.p50 / 24 if machine.timing else np.nan for machine in machines])
    return np.asarray(each[table.machine])


def _elsewhere(table: OptionTable, book: PriceBook, countries: frozenset[str], notes: AssumptionLog) -> Mapping[str, Flags]:
    """Which options stand in another country, and which in one that nobody knows. What is owned stands where its owner wants it."""
    rows, at = np.unique(table.row, return_inverse=True)
    offers = [book.offers[row] if row >= 0 else None for row in rows.tolist()]
    # One look-up a place: thousands of offers stand in hundreds.
    alike = {_place(offer): find_country(offer) for offer in {_place(each): each for each in offers if each is not None}.values()}
    places = [None if offer is None else alike[_place(offer)] for offer in offers]
    unknown = sorted({offer.provider for offer, place in zip(offers, places, strict=True) if offer is not None and not place})
    if unknown:
        notes.warn(f"the country of some places is not known, so they are ruled out as unknown_jurisdiction: of {', '.join(unknown)}")
    return {
        "outside_jurisdictions": np.array([bool(place) and place not in countries for place in places], dtype=bool)[at],
        "unknown_jurisdiction": np.array([place == "" for place in places], dtype=bool)[at],
    }


def _place(offer: Offer) -> tuple[str, str, str | None]:
    """What an offer's country follows from."""
    return offer.provider, offer.region, offer.extras.get("country")
