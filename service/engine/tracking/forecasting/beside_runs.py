"""Planned cost beside the tracked runs: runs of the plan that are not tracked, what is around the runs, people, and the reserve."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from service.domain.programs.budget_parts import AROUND, COMPUTE, PEOPLE, RESERVE, BudgetPart, budget_part
from service.domain.quantities import Range
from service.domain.tracking.events import ProgramBaseline
from service.engine.tracking.costs.budget_parts import planned_parts, spent_by_part
from service.engine.tracking.costs.cost_drivers import planned_cost
from service.engine.tracking.runs.targets import RunTarget

NOTHING, EXACTLY = Range.exactly(0.0), Range.exactly(1.0)
OVERHEAD = "overhead"


def left_beside_runs(program: ProgramBaseline, all_targets: Sequence[RunTarget], rest: float) -> Mapping[BudgetPart, Range] | None:
    """What is still to come of the plan beside the tracked runs, by part.

    Of each part the planned amount less what is reported of it; of compute the planned cost of runs that are not tracked. What a part costs
    beyond its plan is taken off the reserve, and of no other part: people's money does not pay for storage. Runs and overheads have the
    plan's spread; people, storage and the reserve are the same in every percentile. Without a plan it is the budget's share of the tokens
    not tracked.

    Parameters
    ----------
    program : ProgramBaseline
        Plan of the program.
    all_targets : sequence of RunTarget
        Runs with targets.
    rest : float
        Share of the planned tokens that no run is tracked for [1].

    Returns
    -------
    mapping of BudgetPart to Range, or None
        [USD]; None where a part without runs has no budget.
    """
    whole = program.total_usd
    if whole is None or whole.p50 <= 0:
        return {} if not rest else {COMPUTE: Range.exactly(program.budget_usd * rest)} if program.budget_usd else None
    planned = planned_parts(program, whole.p50)
    taken = dict(spent_by_part(line for target in all_targets for line in target.run.lines))
    taken[COMPUTE] = math.fsum(_planned_usd(program, planned[COMPUTE], target) for target in all_targets)
    if not program.lines:
        taken[AROUND] = taken.get(AROUND, 0.0) + taken.pop(PEOPLE, 0.0)
    left = {part: max(0.0, usd - taken.get(part, 0.0)) for part, usd in planned.items()}
    # A plan of which only the total is known has no parts: what is reported beside its runs is taken off all of it.
    has_parts = bool(program.reserve_share or program.around_share)
    over = math.fsum(max(0.0, taken.get(part, 0.0) - planned[part]) for part in (AROUND, PEOPLE, *((COMPUTE,) if has_parts else ())))
    drawn = RESERVE if has_parts else COMPUTE
    left[drawn] = max(0.0, left[drawn] - over)
    return {part: _spread(program, part).scaled(usd) for part, usd in left.items()}


def planned_total(program: ProgramBaseline) -> Range | None:
    """The plan's cost as a forecast has it before anything is spent, the reserve in every percentile [USD]; None without a plan.

    Parameters
    ----------
    program : ProgramBaseline
        Plan of the program.
    """
    return add_ranges((left_beside_runs(program, (), 0.0) or {}).values()) if program.total_usd else None


def _spread(program: ProgramBaseline, part: BudgetPart) -> Range:
    """Range of a part relative to its median."""
    if part == RESERVE or program.total_usd is None:
        return EXACTLY
    if program.cost_spread is None:
        return program.total_usd.scaled(1 / program.total_usd.p50)
    if part == COMPUTE:
        return program.cost_spread
    overheads = math.fsum(line.share for line in program.lines if line.line.startswith(OVERHEAD)) if part == AROUND else 0.0
    around = math.fsum(line.share for line in program.lines if budget_part(line.line) == AROUND)
    spread = program.cost_spread.scaled(overheads / around) if overheads else NOTHING
    certain = 1 - spread.p50
    return Range(spread.p10 + certain, 1.0, spread.p90 + certain)


def add_ranges(ranges: Iterable[Range | None]) -> Range | None:
    """Sum by percentile, as of fully correlated errors; None where one range is unknown."""
    known = list(ranges)
    found = [each for each in known if each is not None]
    if len(found) < len(known):
        return None
    return Range(*(math.fsum(getattr(each, name) for each in found) for name in ("p10", "p50", "p90")))


def _planned_usd(program: ProgramBaseline, compute_usd: float, target: RunTarget) -> float:
    """Planned cost of a run, else its share of the tokens of what all runs are planned to cost [USD]."""
    planned = planned_cost(target.run.baseline)
    if planned is not None:
        return planned.usd
    return compute_usd * (target.tokens or 0.0) / program.planned_tokens if program.planned_tokens else 0.0
