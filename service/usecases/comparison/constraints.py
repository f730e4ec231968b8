"""Constraints on time and jurisdiction, and the option that comes nearest where none is feasible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np

from providers.offer import Offer
from service.context import AppContext
from service.domain.comparison.options import Constraints
from service.domain.errors import InvalidRequest
from service.engine.numerics.ranges import probability_below
from service.engine.training.cost import with_overhead
from service.presets.comparison.defaults import default_horizon_days
from service.prices.book import PriceBook
from service.prices.offer_table import Flags, Floats
from service.usecases.comparison.offer_selection import resolve_countries
from service.usecases.comparison.option_table import OptionTable, deadline_hours
from service.usecases.comparison.timed_configurations import TimedConfiguration
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.price import find_country

Request = Mapping[str, Any]


def resolve_constraints(context: AppContext, request: Request, notes: AssumptionLog) -> Constraints:
    """Constraints on options. Start and deadline may also be stated in the workload's schedule; without a start, time runs from today."""
    section, schedule = request.get("constraints", {}), request["workload"].get("schedule", {})
    start, deadline = (section.get(name) or schedule.get(name) for name in ("start", "deadline"))
    stated = start is not None
    if start is None:
        start = context.clock().date()
        if deadline is not None:
            notes.assume("constraints.start", start.isoformat(), "today")
    if deadline is not None and deadline < start:
        where = "/constraints/deadline" if section.get("deadline") else "/workload/schedule/deadline"
        raise InvalidRequest(f"the deadline {deadline} is before the start {start}", where)
    if section.get("min_deadline_probability") is not None and deadline is None:
        raise InvalidRequest("state the deadline for this probability", "/constraints/min_deadline_probability")
    return Constraints(
        start=start,
        dated=stated or deadline is not None,
        deadline=deadline,
        min_deadline_probability=section.get("min_deadline_probability"),
        max_cost_usd=section.get("max_cost_usd"),
        max_wall_clock_days=section.get("max_wall_clock_days"),
        max_tco2e=section.get("max_tco2e"),
        countries=resolve_countries(section),
        require_available=bool(section.get("require_available")),
        horizon_days=_horizon_days(deadline, section, notes),
    )


def _horizon_days(deadline: date | None, section: Request, notes: AssumptionLog) -> float | None:
    """Longest run that is an option [days], where the caller states no end."""
    if deadline is not None or section.get("max_wall_clock_days") is not None:
        return None
    usual = default_horizon_days()
    return float(notes.assume("constraints.max_wall_clock_days", usual.value, usual.source))


def apply_constraints(
    table: OptionTable, configurations: Sequence[TimedConfiguration], book: PriceBook, constraints: Constraints, notes: AssumptionLog
) -> OptionTable:
    """The table with the options that deadline probability, days and jurisdictions rule out."""
    ruled_out: dict[str, Flags] = {}
    if constraints.min_deadline_probability is not None:
        ruled_out["misses_deadline"] = probability_in_time(table, configurations, constraints) < constraints.min_deadline_probability
    if constraints.max_wall_clock_days is not None:
        ruled_out["takes_too_long"] = _days(table, configurations) > constraints.max_wall_clock_days
    if constraints.horizon_days is not None:
        ruled_out["beyond_horizon"] = _days(table, configurations) > constraints.horizon_days
    if constraints.countries is not None:
        ruled_out |= _rule_out_countries(table, book, constraints.countries, notes)
    return replace(table, ruled_out={**table.ruled_out, **ruled_out})


def probability_in_time(table: OptionTable, configurations: Sequence[TimedConfiguration], constraints: Constraints) -> Floats:
    """Probability that each option ends by the deadline [1]; NaN where it cannot run or there is no deadline."""
    probabilities, available = np.full(len(configurations), np.nan), deadline_hours(constraints)
    timed, first = np.unique(table.configuration, return_index=True)
    for index, finish in zip(timed.tolist(), table.finish_hours[first].tolist(), strict=True):
        timing, run = configurations[index].timing, configurations[index].run
        if timing is not None and run is not None and available is not None:
            hours = with_overhead(run, timing.wall_clock_hours)
            probabilities[index] = probability_below(available - (finish - hours.p50), hours)
    return np.asarray(probabilities[table.configuration])


def nearest_option(table: OptionTable, configurations: Sequence[TimedConfiguration], constraints: Constraints, among: Flags) -> int:
    """Position of the option of `among` that violates the fewest constraints, then exceeds its limits by the smallest share."""
    violations = sum((flags.astype(np.int64) for flags in table.ruled_out.values()), np.zeros(len(table.row), dtype=np.int64))
    order = np.lexsort((table.cost.p50, _excess(table, configurations, constraints), violations, np.isnan(table.cost.p50), ~among))
    return int(order[0])


def _excess(table: OptionTable, configurations: Sequence[TimedConfiguration], constraints: Constraints) -> Floats:
    """Largest ratio of an option's figures to their limits."""
    figures = (
        (table.finish_hours, deadline_hours(constraints)),
        (_days(table, configurations), constraints.max_wall_clock_days or constraints.horizon_days),
        (table.cost.p50, constraints.max_cost_usd),
        (table.tco2e, constraints.max_tco2e),
    )
    with np.errstate(over="ignore"):  # a limit may be as small as a number can be
        shares = [figure / limit for figure, limit in figures if limit is not None]
    return np.asarray(np.fmax.reduce([np.ones(len(table.row)), *shares]))


def _days(table: OptionTable, configurations: Sequence[TimedConfiguration]) -> Floats:
    """Median wall clock of each option [days], NaN where it cannot run."""
    days = np.array(
        [configuration.timing.wall_clock_hours.p50 / 24 if configuration.timing else np.nan for configuration in configurations]
    )
    return np.asarray(days[table.configuration])


def _rule_out_countries(table: OptionTable, book: PriceBook, countries: frozenset[str], notes: AssumptionLog) -> Mapping[str, Flags]:
    """Flags of options in other countries and in unknown ones. Owned hardware is never ruled out."""
    rows, at = np.unique(table.row, return_inverse=True)
    offers = [book.offers[row] if row >= 0 else None for row in rows.tolist()]
    # One look-up a place: thousands of offers stand in hundreds.
    countries_by_place = {
        _place(offer): find_country(offer) for offer in {_place(offer): offer for offer in offers if offer is not None}.values()
    }
    places = [None if offer is None else countries_by_place[_place(offer)] for offer in offers]
    unknown = sorted({offer.provider for offer, place in zip(offers, places, strict=True) if offer is not None and not place})
    if unknown:
        notes.warn(f"the country of some places is not known, so they are ruled out as unknown_jurisdiction: of {', '.join(unknown)}")
    return {
        "outside_jurisdictions": np.array([bool(place) and place not in countries for place in places], dtype=bool)[at],
        "unknown_jurisdiction": np.array([place == "" for place in places], dtype=bool)[at],
    }


def _place(offer: Offer) -> tuple[str, str, str | None]:
    """The fields of an offer that determine its country."""
    return offer.provider, offer.region, offer.extras.get("country")
