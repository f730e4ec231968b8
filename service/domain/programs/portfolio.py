"""Programs that share accelerators: each in time, who waits for whom, and what to delay or rent. Field names are those of the answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated, Literal

from service.domain.answer_fields import Doc, share
from service.domain.programs.schedule import ActivityKind
from service.domain.programs.tiers import TierName
from service.domain.quantities import Assumption, Range
from service.domain.schedule import MonthSpend
from service.domain.summary import Summary
from service.domain.training.estimate import FinishDates

MAX_PROGRAMS = 20
MAX_RUNS = 400
MAX_POOLS = 50
MAX_WEEKS = 100_000
MAX_MONTHS = 2_000
MAX_WAITS = 1_000


@dataclass(frozen=True, slots=True)
class PortfolioActivity:
    """A run, or work of a program, in the portfolio's calendar. `start` and `finish` are medians."""

    what: Annotated[str, Doc("Name of the run, work, risk, gate or milestone")]
    kind: Annotated[ActivityKind, Doc("What it is")]
    tier: Annotated[TierName | None, Doc("Tier it belongs to; null: the whole program")]
    pool: Annotated[str | None, Doc("Pool whose accelerators it takes; null: it takes none")]
    accelerators: Annotated[int, Doc("Accelerators of the pool that it takes")]
    start: Annotated[date, Doc("First day, median")]
    finish: Annotated[date, Doc("Last day, median")]


@dataclass(frozen=True, slots=True)
class PortfolioProgram:
    """A program alone, with all pools to itself, and beside the others."""

    name: Annotated[str, Doc("Name of the program")]
    priority: Annotated[int, Doc("Rank among the programs: the lowest goes first")]
    start: Annotated[date, Doc("First day of the program")]
    deadline: Annotated[date | None, Doc("Deadline; null: none is stated")]
    finish: Annotated[FinishDates, Doc("Day on which it is done, if it runs next to the others")]
    finish_alone: Annotated[FinishDates, Doc("The same with all pools to itself")]
    delay_days: Annotated[float, Doc("How much later it ends because of the others, median", "days", minimum=-1e40, maximum=1e40)]
    slack_days: Annotated[
        float | None, Doc("Days from its median end to its deadline, below 0 late; null without one", "days", minimum=-1e40, maximum=1e40)
    ]
    deadline_probability: Annotated[float | None, share("Probability to meet its deadline beside the others; null without one")]
    deadline_probability_alone: Annotated[float | None, share("The same with all pools to itself; null without one")]
    total_usd: Annotated[Range | None, Doc("Its budget in the portfolio's calendar; null where a price is not known", "USD")]
    months: Annotated[tuple[MonthSpend, ...], Doc("Its planned spend by month; empty where a price is not known", max_items=MAX_MONTHS)]
    calendar: Annotated[tuple[PortfolioActivity, ...], Doc("Its runs and the work around them, in time")]


@dataclass(frozen=True, slots=True)
class PoolWeek:
    """A pool in one ISO 8601 week, by medians: averages over its hours."""

    week: Annotated[str, Doc("Week of ISO 8601, such as 2027-W01")]
    monday: Annotated[date, Doc("First day of the week")]
    held: Annotated[float, Doc("Accelerators that the pool holds", "accelerators")]
    used: Annotated[float, Doc("Accelerators in use", "accelerators")]
    wanted: Annotated[float, Doc("Accelerators that would be in use if nothing waited for them", "accelerators")]
    over: Annotated[float, Doc("Accelerators over what the pool holds, of those wanted", "accelerators")]


@dataclass(frozen=True, slots=True)
class PortfolioPool:
    """Accelerators that all programs share, or the own ones of a program that states pools itself."""

    pool: Annotated[str, Doc("Name of the pool")]
    accelerators: Annotated[int, Doc("Accelerators it holds at most at a time", minimum=1)]
    provider: Annotated[str | None, Doc("Provider whose quota it is; null: not stated")]
    region: Annotated[str | None, Doc("Region of the quota; null: not stated")]
    used_share: Annotated[float, Doc("Accelerator-hours in use over those held, from the first week to the last", "1", maximum=1e40)]
    usd_per_accelerator_hour: Annotated[float | None, Doc("Price of its runs, mean; null where none is known", "USD per accelerator-hour")]
    weeks: Annotated[tuple[PoolWeek, ...], Doc("Its use by week", max_items=MAX_WEEKS)]


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """A run of a program, or other work of it."""

    program: Annotated[str, Doc("Name of the program")]
    run: Annotated[str, Doc("Name of the run, as in its calendar")]


@dataclass(frozen=True, slots=True)
class Contention:
    """A run that waits because others have the accelerators it needs."""

    program: Annotated[str, Doc("Program that waits")]
    run: Annotated[str, Doc("Its run that waits")]
    pool: Annotated[str, Doc("Pool that is waited for")]
    days: Annotated[float, Doc("How much later the run starts, median", "days", maximum=1e40)]
    waits_for: Annotated[tuple[ProgramRun, ...], Doc("Runs whose accelerators it takes over", max_items=MAX_WAITS)]


@dataclass(frozen=True, slots=True)
class ProgramEffect:
    """What an option does to one program."""

    program: Annotated[str, Doc("Name of the program")]
    days_earlier: Annotated[float, Doc("How much earlier it ends, below 0 later; median", "days", minimum=-1e40, maximum=1e40)]
    deadline_probability: Annotated[float | None, share("Probability to meet its deadline then; null without one")]


@dataclass(frozen=True, slots=True)
class PortfolioOption:
    """A change of the plan with its effects. A delayed program goes after all others; rented accelerators are beside the pool.

    The budgets hold the hours of `usd` at the same price already, where runs are paid by the hour.
    """

    kind: Annotated[Literal["delay", "rent"], Doc("What is changed")]
    change: Annotated[str, Doc("The change in a sentence", max_length=1000)]
    program: Annotated[str | None, Doc("Program that is delayed; null where none is")]
    pool: Annotated[str | None, Doc("Pool to which accelerators are added by renting; null where none are")]
    accelerators: Annotated[int | None, Doc("Accelerators rented at most at a time; null where none are")]
    first: Annotated[date | None, Doc("First day of renting; null where nothing is")]
    last: Annotated[date | None, Doc("Last day of renting; null where nothing is")]
    accelerator_hours: Annotated[float | None, Doc("Hours rented; null where none are", "accelerator-hours", maximum=1e40)]
    usd: Annotated[float | None, Doc("Cost of the rented hours; null where none are, or no price is known", "USD", maximum=1e40)]
    effects: Annotated[tuple[ProgramEffect, ...], Doc("Programs whose end moves", max_items=MAX_PROGRAMS)]


@dataclass(frozen=True, slots=True)
class PortfolioAnswer:
    """Several programs on shared accelerators: who gets what when, what it costs, and what to delay or rent."""

    summary: Annotated[Summary, Doc("The answer in a sentence, and what it rests on")]
    start: Annotated[date, Doc("First day of the earliest program")]
    finish: Annotated[FinishDates, Doc("Day on which all programs are done")]
    total_usd: Annotated[Decimal | None, Doc("Budgets of all programs; null where a price is not known", "USD")]
    months: Annotated[tuple[MonthSpend, ...], Doc("Planned spend of all programs by month, their budgets in all", max_items=MAX_MONTHS)]
    programs: Annotated[tuple[PortfolioProgram, ...], Doc("Each program, in the order of the request", max_items=MAX_PROGRAMS)]
    pools: Annotated[tuple[PortfolioPool, ...], Doc("Pools with their use by week", max_items=MAX_POOLS * (MAX_PROGRAMS + 1))]
    contention: Annotated[tuple[Contention, ...], Doc("Runs that wait for accelerators, the longest first", max_items=MAX_WAITS)]
    options: Annotated[
        tuple[PortfolioOption, ...],
        Doc("What to delay, of the least priority and the most slack first, and what to rent in addition to each pool", max_items=2000),
    ]
    price_snapshot: Annotated[str, Doc("Name of the price snapshot the answer is made with")]
    engine_version: Annotated[str, Doc("Version of the engine and its data")]
    assumptions: Annotated[tuple[Assumption, ...], Doc("Values the caller did not state, with the reason for each", max_items=50_000)]
    warnings: Annotated[tuple[str, ...], Doc("What to check before relying on the answer", max_items=20_000, max_length=5000)]
