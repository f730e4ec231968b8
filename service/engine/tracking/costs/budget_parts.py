"""Amounts by part of a program's budget: as planned, and as reported."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping

from service.domain.programs.budget_parts import AROUND, COMPUTE, PEOPLE, RESERVE, BudgetPart, budget_part
from service.domain.tracking.events import ProgramBaseline
from service.domain.tracking.status import SpendLine


def planned_parts(program: ProgramBaseline, usd: float) -> dict[BudgetPart, float]:
    """An amount by the parts of the plan's budget [USD]; without a plan all of it is compute.

    Parameters
    ----------
    program : ProgramBaseline
        Plan with the shares of the reserve and of what is around the runs.
    usd : float
        Amount to divide [USD].
    """
    people = math.fsum(line.share for line in program.lines if budget_part(line.line) == PEOPLE)
    return {
        COMPUTE: usd * (1 - program.reserve_share - program.around_share),
        AROUND: usd * (program.around_share - people),
        PEOPLE: usd * people,
        RESERVE: usd * program.reserve_share,
    }


def spent_by_part(lines: Iterable[SpendLine]) -> Mapping[BudgetPart, float]:
    """Reported cost by part of the budget [USD].

    Parameters
    ----------
    lines : iterable of SpendLine
        Lines of any runs.
    """
    spent: dict[BudgetPart, float] = defaultdict(float)
    for line in lines:
        spent[budget_part(line.line)] += line.usd
    return spent
