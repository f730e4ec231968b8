"""Budgets of a team: how much of the service one team may use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from service.domain.answer_fields import Doc
from service.domain.errors import DomainError


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """A budget's name, what of it is used, and the whole of it, in the unit that its name states.

    `window_s` is how long a budget of a window lasts [s]; None: what is used stays until it is given back.
    """

    name: Annotated[str, Doc("Name of the budget, with its unit, as a refusal names it")]
    used: Annotated[float, Doc("What is used of it now [unit of its name]", minimum=0)]
    limit: Annotated[int, Doc("The whole budget [unit of its name]", minimum=0)]
    window_s: Annotated[int | None, Doc("How long a window lasts [s]; null: what is used stays until it is given back", minimum=1)]


@dataclass(frozen=True, slots=True)
class BudgetStatus(BudgetUse):
    """How a budget stands, and when its window ends."""

    resets_in_s: Annotated[int | None, Doc("Until when the whole budget is there again [s]; null: not by time", minimum=0)]


@dataclass(frozen=True, slots=True)
class TeamUsage:
    """What a team uses of the service."""

    team: Annotated[str, Doc("Name of the team")]
    budgets: Annotated[tuple[BudgetStatus, ...], Doc("Each budget that holds for the team, and the requests of the key that asks")]


class BudgetUsedUp(DomainError):
    """A budget of the team is used up; `back_s` is when to try again [s], None where only freeing some helps."""

    status = 429
    title = "Budget used up"

    def __init__(self, message: str, budget: BudgetUse, back_s: int | None) -> None:
        super().__init__(message)
        self.budget = budget
        self.back_s = back_s

    def below(self, prefix: str) -> DomainError:
        """The same error: it is about no part of a request."""
        del prefix
        return self


@dataclass(frozen=True, slots=True)
class StorageUse:
    """What a team has stored: rows of its runs' logs, and about how many bytes those and its kept results take."""

    rows: int
    bytes: int


class StorageBudgetUsedUp(BudgetUsedUp):
    """The team's storage is used up: nothing more is stored for it."""

    status = 507
    title = "Storage budget used up"
