"""The most that a budget, a machine and a deadline leave room for. Field names are those of the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from service.domain.answer_fields import Doc

Find = Literal["repeats", "sweep_points", "seq_len", "refresh_days"]
Bound = Literal["budget", "days", "memory", "request", "end of the search"]
FINDS: tuple[Find, ...] = ("repeats", "sweep_points", "seq_len", "refresh_days")


@dataclass(frozen=True, slots=True)
class InversePoint:
    """What one value takes, by the medians of its estimate. `usd_per_month` is that of training again and again."""

    value: Annotated[int, Doc("Number of runs or sweep points, tokens a sequence, or days between refreshes")]
    usd: Annotated[float | None, Doc("Cost of all runs, or of one refresh; null without a price, or where none fits", "USD", maximum=1e40)]
    days: Annotated[float | None, Doc("Time of all runs, of one refresh; null where none fits", "days", maximum=1e40)]
    usd_per_month: Annotated[float | None, Doc("Cost of the refreshes of a month; null where that is not asked", "USD", maximum=1e40)]


@dataclass(frozen=True, slots=True)
class InverseLimit:
    """The next value, one more or one day less, and what it breaks."""

    next: Annotated[InversePoint, Doc("What the next value takes")]
    binds: Annotated[Bound, Doc("What it exceeds")]
    reason: Annotated[str, Doc("The same in a sentence, with its figures", max_length=5000)]
