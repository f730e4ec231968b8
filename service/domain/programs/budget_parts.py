"""Parts of a budget: what the runs cost, what is around them, people, and the reserve; and to which a line belongs."""

from __future__ import annotations

from typing import Literal

from service.domain.programs.tiers import TIERS
from service.domain.training.estimate import COMPUTE_LINE

BudgetPart = Literal["compute", "around the runs", "people", "reserve"]
COMPUTE: BudgetPart = "compute"
AROUND: BudgetPart = "around the runs"
PEOPLE: BudgetPart = "people"
RESERVE: BudgetPart = "reserve"
BUDGET_PARTS: tuple[BudgetPart, ...] = (COMPUTE, AROUND, PEOPLE, RESERVE)
"""In the order of a budget."""
_PEOPLE_LINES = ("personnel", "people", "staff", "salar", "wage", "payroll", "labelling", "labeling", "labour", "labor")
_RESERVE_LINES = ("reserve", "contingency")


def budget_part(line: str) -> BudgetPart:
    """The part of the budget to which a line of a plan, or of a reported cost, belongs by how its name begins."""
    name = line.strip().lower()
    if name == COMPUTE_LINE or name in TIERS:
        return COMPUTE
    if name.startswith(_RESERVE_LINES):
        return RESERVE
    return PEOPLE if name.startswith(_PEOPLE_LINES) else AROUND
