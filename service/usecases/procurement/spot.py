"""What spot capacity costs and can serve of a fleet's demand, by a reference run on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from service.context import AppContext
from service.presets.procurement.defaults import reference_run
from service.usecases.comparison.timed_configurations import (
    TimedConfiguration,
    resolve_on_accelerator,
    resolve_workload,
    time_configuration,
    time_interruptible,
)
from service.usecases.procurement.demand import ResolvedDemand
from service.usecases.procurement.rented_offers import RentChoice
from service.usecases.resolution.assumption_log import AssumptionLog

SPOT = "spot"
FACTOR_TEXT = "hours paid on spot for each uninterrupted hour of the reference run: lost work and restarts"
SHARE_TEXT = "share of the time in which all accelerators of a set are available, median of traces"


def apply_spot_terms(
    context: AppContext, demand: ResolvedDemand, choices: Sequence[RentChoice], notes: AssumptionLog, *, owned: bool
) -> list[RentChoice]:
    """The choices; spot pays for the hours that interruptions lose, and is ruled out where more is demanded than can be had.

    It takes part where there is nothing else; `owned`: fleets are owned besides.
    """
    timed = _time_spot(context, demand.accelerator.name) if any(choice.kind == SPOT for choice in choices) else None
    if timed is None:
        return list(choices)
    factor, share = timed
    notes.assume("rent.spot_hours_factor", round(factor, 4), FACTOR_TEXT)
    notes.assume("rent.spot_capacity_share", share, SHARE_TEXT)
    others = owned or any(choice.kind != SPOT and choice.ruled_out is None for choice in choices)
    busiest, when = demand.busiest_utilisation, "" if demand.is_steady else " in the busiest month"
    short = f"spot is available {share:.0%} of the time, but {busiest:.0%} is needed{when}"
    ruled_out = short if others and busiest > share else None
    most = share if others else math.inf
    return [
        replace(choice, overhead=factor, most_utilisation=most, ruled_out=choice.ruled_out or ruled_out) if choice.kind == SPOT else choice
        for choice in choices
    ]


def time_reference_run(context: AppContext, accelerator: str) -> TimedConfiguration:
    """The run that accelerators are compared on, without interruptions."""
    workload, count, _ = reference_run()
    resolved = resolve_workload(None, workload, "/own")
    return time_configuration(context, resolve_on_accelerator(context, resolved, accelerator), count)


def _time_spot(context: AppContext, accelerator: str) -> tuple[float, float] | None:
    """Hours paid on spot for each uninterrupted one, and the part of the time in which it can be had; None where the run does not fit."""
    uninterrupted = time_reference_run(context, accelerator)
    interrupted = time_interruptible([uninterrupted])[0]
    if uninterrupted.timing is None or interrupted.timing is None:
        return None
    factor = interrupted.timing.held_hours.p50 / uninterrupted.timing.held_hours.p50
    return max(1.0, factor), interrupted.timing.capacity_share
