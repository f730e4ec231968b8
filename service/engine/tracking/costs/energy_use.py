"""Energy and emissions of a tracked program: accelerator-hours at what the plan takes for one, beside the plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from service.domain.tracking.budget import EnergyUse, PlannedAndUsed
from service.domain.tracking.events import ProgramBaseline, RunBaseline
from service.domain.tracking.status import CompletionForecast
from service.engine.tracking.runs.planned_work import planned_share
from service.engine.tracking.runs.targets import RunTarget

BASIS = "reported accelerator-hours at the plan's energy an hour, and at its grid's carbon intensity; not metered"
PlannedOf = Callable[[RunBaseline], float | None]


def energy_use(program: ProgramBaseline, all_targets: Sequence[RunTarget], forecasts: Sequence[CompletionForecast]) -> EnergyUse | None:
    """Energy and emissions, planned and used.

    Parameters
    ----------
    program : ProgramBaseline
        Plan of the program, with its runs.
    all_targets, forecasts : sequences
        Runs with targets and their forecasts, in the same order.

    Returns
    -------
    EnergyUse or None
        [MWh] and [t CO2e]; None where no run has them planned.
    """
    if not any(run.energy_mwh for run in (*program.runs, *(target.run.baseline for target in all_targets))):
        return None
    mwh, tco2e = (_planned_and_used(program, all_targets, forecasts, planned) for planned in (_energy_mwh, _tco2e))
    return EnergyUse(mwh, tco2e, BASIS)


def _planned_and_used(
    program: ProgramBaseline, all_targets: Sequence[RunTarget], forecasts: Sequence[CompletionForecast], planned: PlannedOf
) -> PlannedAndUsed:
    tracked = {(target.run.baseline.tier, target.run.baseline.name) for target in all_targets}
    untracked = [planned(run) for run in program.runs if (run.tier, run.name) not in tracked]
    runs = [target.run for target in all_targets]
    whole = _sum([*(planned(run.baseline) for run in runs), *untracked])
    done = [_times(planned(run.baseline), _share_done(target)) for run, target in zip(runs, all_targets, strict=True)]
    used = [_times(_per_hour(run.baseline, planned), run.accelerator_hours) for run in runs]
    left_hours = [one.remaining_accelerator_hours.p50 if one.remaining_accelerator_hours else None for one in forecasts]
    left = [_times(_per_hour(run.baseline, planned), hours) for run, hours in zip(runs, left_hours, strict=True)]
    return PlannedAndUsed(whole, _sum(done), _sum(used), _sum([*used, *left, *untracked]))


def _energy_mwh(run: RunBaseline) -> float | None:
    return run.energy_mwh


def _tco2e(run: RunBaseline) -> float | None:
    return run.tco2e


def _share_done(target: RunTarget) -> float | None:
    run = target.run
    return min(1.0, planned_share(run.baseline, run.history.lineage.position)) if run.baseline.tokens else None


def _per_hour(run: RunBaseline, planned: PlannedOf) -> float | None:
    whole = planned(run)
    return whole / run.accelerator_hours if whole is not None and run.accelerator_hours else None


def _times(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one * other


def _sum(amounts: Sequence[float | None]) -> float | None:
    """The sum; None where one is unknown: a partial sum would flatter."""
    known = [amount for amount in amounts if amount is not None]
    return math.fsum(known) if len(known) == len(amounts) else None
