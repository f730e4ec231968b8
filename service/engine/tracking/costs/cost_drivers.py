"""Cost drivers: the difference of actual to planned cost by price, failures, utilisation and scope.

Compute cost is accelerator-hours times price. The difference is decomposed by the logarithmic mean Divisia index, as in `cost_variance`:
complete, in whole cents. `failures` is the part of the hours due to goodput, `utilisation` the rest of them, `scope` the tokens added to
the first plan, or left untrained by a closed run.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from service.domain.tracking.events import ProgramBaseline, RunBaseline
from service.domain.tracking.status import CompletionForecast, CostDriver, CostDrivers
from service.domain.training.estimate import COMPUTE_LINE
from service.engine.numerics.money import CENT
from service.engine.programs.cost_variance import logarithmic_mean, round_causes
from service.engine.tracking.costs.cost import CostedRun
from service.engine.tracking.runs.planned_work import planned_share

TO_DATE = "spend to date against what the tokens earned were planned to cost"
AT_COMPLETION = "forecast at completion against the first plan"


@dataclass(frozen=True, slots=True)
class ComputeCost:
    """Cost of compute [USD], its accelerator-hours, and its goodput [1], None where unknown."""

    usd: float
    accelerator_hours: float
    goodput: float | None


def drivers_to_date(run: CostedRun, goodput: float | None) -> CostDrivers | None:
    """Why a run's cost to date differs from the planned cost of its tokens; None where plan or spend are incomplete.

    Parameters
    ----------
    run : CostedRun
        Run with plan and cost.
    goodput : float or None
        Goodput of the run [1].
    """
    planned, actual = planned_cost(run.baseline), _actual(run, goodput)
    if planned is None or actual is None or not run.baseline.tokens:
        return None
    share = planned_share(run.baseline, run.history.lineage.position)
    parts = _parts(ComputeCost(planned.usd * share, planned.accelerator_hours * share, planned.goodput), actual)
    return None if parts is None else _why({**parts, "other lines": (run.usd or 0.0) - actual.usd}, TO_DATE)


def drivers_at_completion(
    program: ProgramBaseline,
    runs: Sequence[CostedRun],
    forecasts: Sequence[CompletionForecast],
    goodputs: Sequence[float | None],
    beside_usd: float,
) -> CostDrivers | None:
    """Why the forecast cost at completion differs from the first plan, by medians; None where the figures of one run are incomplete.

    Parameters
    ----------
    program : ProgramBaseline
        Plan of the program.
    runs, forecasts, goodputs : sequences
        Runs with their forecasts and goodputs [1], in the same order.
    beside_usd : float
        What is still forecast beside the runs less what was planned there [USD]: a cost of a planned line takes from it.
    """
    sums: dict[str, float] = defaultdict(float)
    for run, forecast, goodput in zip(runs, forecasts, goodputs, strict=True):
        parts = _at_completion(run, forecast, goodput)
        if parts is None:
            return None
        for cause, usd in parts.items():
            sums[cause] += usd
    sums["scope"] += _scope(program, runs)
    sums["other lines"] += beside_usd
    return _why(sums, AT_COMPLETION) if runs else None


def planned_cost(baseline: RunBaseline) -> ComputeCost | None:
    """Planned compute cost of the whole run; of cost, hours and price any two give the third. None where fewer are planned."""
    usd, hours, price = baseline.usd, baseline.accelerator_hours, baseline.usd_per_accelerator_hour
    hours = hours or (usd / price if usd and price else None)
    usd = usd or (hours * price if hours and price else None)
    return ComputeCost(usd, hours, baseline.goodput) if usd and hours else None


def _at_completion(run: CostedRun, forecast: CompletionForecast, goodput: float | None) -> Mapping[str, float] | None:
    planned, actual = planned_cost(run.baseline), _actual(run, goodput)
    left_usd, left_hours = forecast.remaining_usd, forecast.remaining_accelerator_hours
    if planned is None or run.unknown_reason or left_usd is None or left_hours is None:
        return None
    spent = actual or ComputeCost(0.0, 0.0, None)
    whole = ComputeCost(spent.usd + left_usd.p50, spent.accelerator_hours + left_hours.p50, spent.goodput or planned.goodput)
    share = _share_trained(run)
    others = {"scope": planned.usd * (share - 1), "other lines": (run.usd or 0.0) - spent.usd}
    if not share and not whole.usd:
        return others
    parts = _parts(ComputeCost(planned.usd * share, planned.accelerator_hours * share, planned.goodput), whole)
    return None if parts is None else parts | others


def _share_trained(run: CostedRun) -> float:
    """Share of the planned tokens that the run will have trained in the end: 1, less for a run that was closed early."""
    if not run.baseline.closed or not run.baseline.tokens:
        return 1.0
    return min(1.0, planned_share(run.baseline, run.history.lineage.position))


def _actual(run: CostedRun, goodput: float | None) -> ComputeCost | None:
    """Compute cost until now; None where cost or hours are unknown, or nothing was spent."""
    if run.unknown_reason or not run.accelerator_hours:
        return None
    usd = math.fsum(line.usd for line in run.lines if line.line == COMPUTE_LINE)
    return ComputeCost(usd, run.accelerator_hours, goodput) if usd > 0 else None


def _parts(planned: ComputeCost, actual: ComputeCost) -> dict[str, float] | None:
    """Contribution of each factor to the cost difference [USD]; without both goodputs `failures` is part of `utilisation`."""
    if not (planned.usd > 0 and actual.usd > 0 and planned.accelerator_hours > 0 and actual.accelerator_hours > 0):
        return None
    weight = logarithmic_mean(actual.usd, planned.usd)
    price = math.log(actual.usd / actual.accelerator_hours / (planned.usd / planned.accelerator_hours))
    failures = math.log(planned.goodput / actual.goodput) if planned.goodput and actual.goodput else 0.0
    utilisation = math.log(actual.accelerator_hours / planned.accelerator_hours) - failures
    return {"price": weight * price, "failures": weight * failures, "utilisation": weight * utilisation}


def _scope(program: ProgramBaseline, runs: Sequence[CostedRun]) -> float:
    """Cost of the tokens added since the first plan, at the planned cost per token [USD]; 0 where a plan's total stands for all of it."""
    if not program.original_tokens or not program.planned_tokens or program.total_usd is not None:
        return 0.0
    planned = math.fsum(cost.usd for cost in (planned_cost(run.baseline) for run in runs) if cost)
    return planned * (1 - program.original_tokens / program.planned_tokens)


def _why(parts: Mapping[str, float], against: str) -> CostDrivers:
    usd = Decimal(repr(math.fsum(parts.values()))).quantize(CENT)
    found = round_causes(usd, parts)
    return CostDrivers(against, found.usd, tuple(CostDriver(cause.cause, cause.usd) for cause in found.causes), found.headline)
