"""What to delay and what to rent where programs wait for each other's accelerators, each planned anew as a whole."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from service.domain.programs.portfolio import PortfolioOption, PortfolioProgram, ProgramEffect
from service.domain.schedule import AcceleratorPool, PoolShare
from service.engine.scheduling.calendar import HOURS_PER_DAY
from service.engine.scheduling.durations import DurationDraws
from service.engine.scheduling.pool_use import occupied_hours, pool_excess
from service.engine.scheduling.portfolio import MemberProgram, ProgramEnd, level_portfolio, program_ends, split_name
from service.engine.scheduling.resource_levelling import LevelledNetwork
from service.formats.headline import day, money

MAX_DELAYS = 5
LEAST_DAYS = 0.05
"""An end that moves less does not move."""


@dataclass(frozen=True, slots=True)
class Portfolio:
    """The plan that options change. `prices`: of an accelerator-hour by pool [USD], where one is known."""

    members: tuple[MemberProgram, ...]
    pools: Mapping[str, AcceleratorPool]
    prices: Mapping[str, float]
    draws: DurationDraws
    levelled: LevelledNetwork
    ends: Mapping[str, ProgramEnd]


def portfolio_options(portfolio: Portfolio, programs: Sequence[PortfolioProgram]) -> tuple[PortfolioOption, ...]:
    """Programs to delay, those of the least priority and then the most slack first; then what to rent beside each pool."""
    return (*_delays(portfolio, programs), *_rents(portfolio))


def _delays(portfolio: Portfolio, programs: Sequence[PortfolioProgram]) -> Iterator[PortfolioOption]:
    """Programs that others wait for, each put behind all others, where that lets another end earlier."""
    blocking = _blocking(portfolio.levelled)
    candidates = sorted((one for one in programs if one.name in blocking), key=_loss)
    last = max(member.rank for member in portfolio.members) + 1
    for program in candidates[:MAX_DELAYS]:
        members = tuple(replace(one, rank=last) if one.name == program.name else one for one in portfolio.members)
        levelled = level_portfolio(members, tuple(portfolio.pools.values()))
        effects = _effects(portfolio, program_ends(levelled.network, members, portfolio.draws))
        if not any(effect.days_earlier > 0 and effect.program != program.name for effect in effects):
            continue
        yield PortfolioOption(
            kind="delay",
            change=f"{program.name} runs after all others: {_effect_text(effects)}",
            program=program.name,
            pool=None,
            accelerators=None,
            first=None,
            last=None,
            accelerator_hours=None,
            usd=None,
            effects=effects,
        )


def _loss(program: PortfolioProgram) -> tuple[float, float]:
    """What a delay of a program loses, as an order: its priority, then the slack to its deadline."""
    return -program.priority, -math.inf if program.slack_days is None else -program.slack_days


def _blocking(levelled: LevelledNetwork) -> set[str]:
    """Programs that runs of others wait for."""
    pairs = ((split_name(wait.activity)[0], split_name(other)[0]) for wait in levelled.waits for other in wait.waits_for)
    return {blocker for waiting, blocker in pairs if blocker != waiting}


def _rents(portfolio: Portfolio) -> Iterator[PortfolioOption]:
    """As many accelerators beside each pool as let nothing wait for it, for the hours in which it is too small."""
    for name in dict.fromkeys(wait.pool for wait in portfolio.levelled.waits):
        pool, start = portfolio.pools[name], portfolio.levelled.network.start
        most = sum(one.accelerators for member in portfolio.members for one in member.network.activities if one.pool == name)
        enough = {**portfolio.pools, name: replace(pool, shares=(*pool.shares, PoolShare(most)))}
        levelled = level_portfolio(portfolio.members, tuple(enough.values()))
        excess = pool_excess(start, pool, occupied_hours(levelled.network, name))
        if excess is None:
            continue
        effects = _effects(portfolio, program_ends(levelled.network, portfolio.members, portfolio.draws))
        price = portfolio.prices.get(name)
        usd = None if price is None else round(price * excess.accelerator_hours, 2)
        cost = "" if usd is None else f", {money(usd)} at the known price"
        yield PortfolioOption(
            kind="rent",
            change=f"{excess.accelerators:,} accelerators rented in addition to {name} from {day(excess.first)} to {day(excess.last)}"
            f"{cost}: {_effect_text(effects)}",
            program=None,
            pool=name,
            accelerators=excess.accelerators,
            first=excess.first,
            last=excess.last,
            accelerator_hours=round(excess.accelerator_hours, 2),
            usd=usd,
            effects=effects,
        )


def _effects(portfolio: Portfolio, ends: Mapping[str, ProgramEnd]) -> tuple[ProgramEffect, ...]:
    """Programs whose end moves, those that gain most first."""
    effects = [
        ProgramEffect(name, round((portfolio.ends[name].median_hours - end.median_hours) / HOURS_PER_DAY, 2), end.deadline_probability)
        for name, end in ends.items()
    ]
    effects = [effect for effect in effects if abs(effect.days_earlier) >= LEAST_DAYS]
    return tuple(sorted(effects, key=lambda effect: -effect.days_earlier))


def _effect_text(effects: Sequence[ProgramEffect]) -> str:
    said = [f"{one.program} ends {abs(one.days_earlier):,.1f} days {'earlier' if one.days_earlier > 0 else 'later'}" for one in effects]
    more = f", and the end of {len(said) - 4} more changes" if len(said) > 4 else ""
    return f"{', '.join(said[:4])}{more}" if said else "no program ends earlier"
