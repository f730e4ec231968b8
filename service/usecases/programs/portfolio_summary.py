"""A portfolio in a sentence, and what its calendar warns of."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

from service.domain.programs.portfolio import Contention, PortfolioProgram
from service.domain.summary import Summary
from service.domain.training.estimate import FinishDates
from service.engine.numerics.ranges import percentile
from service.engine.scheduling.portfolio import split_name
from service.engine.scheduling.resource_levelling import LevelledNetwork
from service.formats.headline import day, money
from service.usecases.programs.summary import days_from
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.training.summary import KEPT_WITH, STATE_PRICE

LIKELY = 0.5


def summarise_portfolio(
    programs: Sequence[PortfolioProgram], contention: Sequence[Contention], start: date, finish: FinishDates, total_usd: Decimal | None
) -> Summary:
    """What all cost, when all are done, and what the longest wait is."""
    count = "1 program" if len(programs) == 1 else f"{len(programs)} programs"
    done = f"done by {day(finish.p50)} ({day(finish.p10)}–{day(finish.p90)})"
    cost = f"{STATE_PRICE}" if total_usd is None else f"about {money(float(total_usd))}"
    days = days_from(start, finish)
    return Summary(
        text=f"{count}: {cost}, {done}; {_waits(contention)}.",
        p50_usd=None if total_usd is None else float(total_usd),
        p50_finish_days=days.p50,
        p80_finish_days=percentile(days, KEPT_WITH),
        bound=f"accelerators of pool {contention[0].pool}" if contention else None,
    )


def warn_of_deadlines(programs: Sequence[PortfolioProgram], levelled: LevelledNetwork, notes: AssumptionLog) -> None:
    """Warn of programs that rather miss their deadline beside the others, and of pools that end too early."""
    for program in programs:
        beside, alone = program.deadline_probability, program.deadline_probability_alone
        if beside is not None and alone is not None and beside < LIKELY:
            notes.warn(
                f"{program.name} meets its deadline {program.deadline} with a probability of {beside:.0%} next to the others,"
                f" and of {alone:.0%} alone"
            )
    for activity, pool in levelled.after_end:
        name, run = split_name(activity)
        notes.warn(f"{name}: {run} is still running when its accelerators of pool {pool} end: extend the pool, or start earlier")


def _waits(contention: Sequence[Contention]) -> str:
    if not contention:
        return "no run waits for accelerators"
    longest = contention[0]
    others = ", ".join(dict.fromkeys(run.program for run in longest.waits_for if run.program != longest.program))
    runs = "1 run waits" if len(contention) == 1 else f"{len(contention)} runs wait"
    behind = f" for {others}" if others else ""
    return f"{runs} for accelerators, the longest {longest.days:,.0f} days: {longest.run} of {longest.program}{behind}"
