"""Several programs on shared accelerators: each alone and beside the others, in one calendar. Definitions: docs/how-to/portfolio.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from service.context import AppContext
from service.domain.errors import DomainError, InvalidRequest
from service.domain.programs.portfolio import (
    MAX_RUNS,
    Contention,
    PortfolioActivity,
    PortfolioAnswer,
    PortfolioPool,
    PortfolioProgram,
    ProgramRun,
)
from service.domain.quantities import Assumption
from service.domain.schedule import AcceleratorPool, MonthSpend, NetworkSchedule, ScheduledActivity
from service.engine.numerics.money import sum_usd
from service.engine.scheduling.activity_network import order_network
from service.engine.scheduling.burn_plan import spend_by_month
from service.engine.scheduling.calendar import HOURS_PER_DAY, hours_until
from service.engine.scheduling.critical_path import schedule_network
from service.engine.scheduling.durations import DurationDraws
from service.engine.scheduling.pool_use import occupied_hours, pool_weeks
from service.engine.scheduling.portfolio import (
    START,
    MemberProgram,
    ProgramEnd,
    draw_portfolio,
    level_portfolio,
    program_ends,
    split_name,
)
from service.engine.scheduling.resource_levelling import LevelledNetwork
from service.engine.training.cost import HOURS_PER_MONTH
from service.presets.version import engine_version
from service.usecases.programs.estimates import EstimateCache, Request, shared_estimates
from service.usecases.programs.pools import most_at_a_time
from service.usecases.programs.portfolio_options import Portfolio, portfolio_options
from service.usecases.programs.portfolio_pools import join_pools, name_pools, place_runs, rename_pools
from service.usecases.programs.portfolio_summary import summarise_portfolio, warn_of_deadlines
from service.usecases.programs.resolve import DRAWS_SEED, ResolvedProgram, lengthen_program, resolve_program
from service.usecases.programs.runs import collect_run_warnings, common_price_snapshot
from service.usecases.programs.schedule import plan_spending
from service.usecases.resolution.assumption_log import AssumptionLog

LEAST_DAYS = 0.01
"""A wait of less is none."""


@dataclass(frozen=True, slots=True)
class _Member:
    """A program of the portfolio with what its own request assumes."""

    resolved: ResolvedProgram
    priority: int
    notes: AssumptionLog


def plan_portfolio(context: AppContext, request: Request) -> PortfolioAnswer:
    """The plan of a portfolio's validated request. Raises DomainErrors, with pointers into it."""
    shared = name_pools(request.get("pools", ()))
    members = _resolve_programs(shared_estimates(context), request, shared, context.clock().date())
    pools, names = join_pools({name: member.resolved for name, member in members.items()}, shared)
    networks = [_network(name, member, names[name]) for name, member in members.items()]
    draws, levelled = draw_portfolio(networks, DRAWS_SEED), level_portfolio(networks, tuple(pools.values()))
    ends = program_ends(levelled.network, networks, draws)
    portfolio = Portfolio(tuple(networks), pools, _prices(members, names), draws, levelled, ends)
    timed = schedule_network(order_network(levelled.network), levelled.network.activities, draws, None)
    programs = tuple(_program(members[network.name], network, portfolio, timed) for network in networks)
    priced = all(member.resolved.plan.priced for member in members.values())
    contention, notes = _contention(levelled), AssumptionLog()
    _note_pools(pools, shared, notes)
    warn_of_deadlines(programs, levelled, notes)
    runs = {(f"{name}: {tier}", run): one for name, member in members.items() for (tier, run), one in member.resolved.runs.items()}
    snapshot = common_price_snapshot(runs, notes)
    total = sum_usd(months.usd for program in programs for months in program.months) if priced else None
    return PortfolioAnswer(
        summary=summarise_portfolio(programs, contention, levelled.network.start, timed.finish, total),
        start=levelled.network.start,
        finish=timed.finish,
        total_usd=total,
        months=_sum_months(programs) if priced else (),
        programs=programs,
        pools=tuple(_pool(pool, shared, portfolio) for pool in pools.values()),
        contention=contention,
        options=portfolio_options(portfolio, programs),
        price_snapshot=snapshot,
        engine_version=engine_version(),
        assumptions=(*notes.assumptions, *_assumptions(members)),
        warnings=tuple(dict.fromkeys((*notes.warnings, *_warnings(members)))),
    )


def _resolve_programs(estimates: EstimateCache, request: Request, shared: Sequence[Request], today: date) -> dict[str, _Member]:
    """Each program by its name, as it is planned alone."""
    entries = request["programs"]
    runs = sum(len(tier["runs"]) for entry in entries for tier in entry["tiers"])
    if runs > MAX_RUNS:
        raise InvalidRequest(
            f"{runs:,} runs are more than the {MAX_RUNS:,} that a portfolio may have: state repeated runs with repeat", "/programs"
        )
    members: dict[str, _Member] = {}
    for index, entry in enumerate(entries):
        if entry["name"] in members:
            raise InvalidRequest(f"two programs are called {entry['name']!r}: give each its own name", f"/programs/{index}/name")
        start = {"start": request["start"]} if "start" in request and "start" not in entry else {}
        notes, program = AssumptionLog(), {name: value for name, value in entry.items() if name != "priority"} | start
        try:
            placed = place_runs(program, shared, "")
            members[entry["name"]] = _Member(resolve_program(estimates, placed, today, notes), entry.get("priority", 0), notes)
        except DomainError as problem:
            raise problem.below(_pointer_above(problem, index, len(shared))) from problem
    return members


def _pointer_above(problem: DomainError, index: int, shared: int) -> str:
    """Where a program's problem stands: its first pools are those of the portfolio."""
    place = problem.pointer.removeprefix("/pools/").partition("/")[0]
    is_shared = problem.pointer.startswith("/pools/") and place.isdecimal() and int(place) < shared
    return "" if is_shared else f"/programs/{index}"


def _network(name: str, member: _Member, pools: Mapping[str, str]) -> MemberProgram:
    """The program's network without hand-overs, on the portfolio's pools."""
    stated, deadline = member.resolved.levelled.stated, member.resolved.request.get("deadline")
    return MemberProgram(name, rename_pools(stated, pools), member.priority, deadline)


def _program(member: _Member, network: MemberProgram, portfolio: Portfolio, timed: NetworkSchedule) -> PortfolioProgram:
    """A program beside the others, and with all pools to itself."""
    end, alone = portfolio.ends[network.name], _end_alone(network, portfolio.pools, portfolio.draws)
    resolved = lengthen_program(member.resolved, end.planned_hours / HOURS_PER_MONTH)
    own = _own_schedule(network, timed, portfolio.levelled)
    return PortfolioProgram(
        name=network.name,
        priority=member.priority,
        start=network.network.start,
        deadline=network.deadline,
        finish=end.finish,
        finish_alone=alone.finish,
        delay_days=round((end.median_hours - alone.median_hours) / HOURS_PER_DAY, 2),
        slack_days=None if network.deadline is None else float((network.deadline - end.finish.p50).days),
        deadline_probability=end.deadline_probability,
        deadline_probability_alone=alone.deadline_probability,
        total_usd=resolved.plan.total_usd if resolved.plan.priced else None,
        months=spend_by_month(network.network.start, plan_spending(resolved, own)) if resolved.plan.priced else (),
        calendar=tuple(sorted(_calendar(resolved, network, own), key=lambda entry: (entry.start, entry.finish))),
    )


def _end_alone(network: MemberProgram, pools: Mapping[str, AcceleratorPool], draws: DurationDraws) -> ProgramEnd:
    alone = level_portfolio([network], tuple(pools.values()))
    return program_ends(alone.network, [network], draws)[network.name]


def _own_schedule(network: MemberProgram, timed: NetworkSchedule, levelled: LevelledNetwork) -> NetworkSchedule:
    """The program's part of the joint schedule, its activities by their own names and in hours since its own start."""
    before = hours_until(levelled.network.start, network.network.start)
    named = [(split_name(activity.name), activity) for activity in timed.activities]
    own = tuple(_shifted(activity, name, before) for (program, name), activity in named if program == network.name and name != START)
    return replace(timed, activities=own)


def _shifted(activity: ScheduledActivity, name: str, hours: float) -> ScheduledActivity:
    return replace(activity, name=name, start_hours=activity.start_hours - hours, finish_hours=activity.finish_hours - hours)


def _calendar(resolved: ResolvedProgram, network: MemberProgram, own: NetworkSchedule) -> Iterator[PortfolioActivity]:
    taken = {activity.name: activity for activity in network.network.activities}
    for activity in own.activities:
        kind, tier = resolved.kinds[activity.name]
        on = taken[activity.name]
        yield PortfolioActivity(activity.name, kind, tier, on.pool or None, on.accelerators, activity.start, activity.finish.p50)


def _sum_months(programs: Sequence[PortfolioProgram]) -> tuple[MonthSpend, ...]:
    """All months in which a program spends."""
    names = sorted({month.month for program in programs for month in program.months})
    spent = [month for program in programs for month in program.months]
    return tuple(MonthSpend(name, sum_usd(month.usd for month in spent if month.month == name)) for name in names)


def _contention(levelled: LevelledNetwork) -> tuple[Contention, ...]:
    """Waits, the longest first."""
    found = [
        Contention(*split_name(wait.activity), wait.pool, round(wait.hours / HOURS_PER_DAY, 2), _program_runs(wait.waits_for))
        for wait in levelled.waits
        if wait.hours >= LEAST_DAYS * HOURS_PER_DAY
    ]
    return tuple(sorted(found, key=lambda wait: -wait.days))


def _program_runs(names: Sequence[str]) -> tuple[ProgramRun, ...]:
    return tuple(ProgramRun(*split_name(name)) for name in names)


def _pool(pool: AcceleratorPool, shared: Sequence[Request], portfolio: Portfolio) -> PortfolioPool:
    """A pool with its use by week; of several stated entries the first says whose quota it is."""
    stated: Request = next((entry for entry in shared if entry["name"] == pool.name), {})
    levelled = portfolio.levelled
    used, wanted = (occupied_hours(network, pool.name) for network in (levelled.network, levelled.stated))
    weeks = pool_weeks(levelled.network.start, pool, used, wanted)
    held = sum(week.held for week in weeks)
    return PortfolioPool(
        pool=pool.name,
        accelerators=most_at_a_time(pool),
        provider=stated.get("provider"),
        region=stated.get("region"),
        used_share=round(sum(week.used for week in weeks) / held, 4) if held else 0.0,
        usd_per_accelerator_hour=portfolio.prices.get(pool.name),
        weeks=weeks,
    )


def _prices(members: Mapping[str, _Member], names: Mapping[str, Mapping[str, str]]) -> dict[str, float]:
    """Mean price of an accelerator-hour of the runs on each pool, by their accelerator-hours [USD]."""
    usd: dict[str, float] = {}
    hours: dict[str, float] = {}
    for name, member in members.items():
        for run in member.resolved.runs.values():
            if run.answer.price is not None:
                pool, used = names[name][run.run.pool], run.run.use.accelerator_hours.p50 * run.run.repetition.runs
                usd[pool] = usd.get(pool, 0.0) + used * run.answer.price.usd_per_accelerator_hour
                hours[pool] = hours.get(pool, 0.0) + used
    return {pool: round(usd[pool] / used, 6) for pool, used in hours.items() if used}


def _note_pools(pools: Mapping[str, AcceleratorPool], shared: Sequence[Request], notes: AssumptionLog) -> None:
    stated = {pool["name"] for pool in shared}
    for name, pool in pools.items():
        if name not in stated and ": " not in name:
            source = "not stated: the largest machine of any program; all programs share it"
            notes.assume(f"pools.{name}.count", most_at_a_time(pool), source)


def _assumptions(members: Mapping[str, _Member]) -> Iterator[Assumption]:
    """What all programs assume alike once, the rest by program."""
    logs = {name: member.notes.assumptions for name, member in members.items()}
    first, *others = logs.values()
    common = [one for one in first if all(one in log for log in others)] if others else []
    yield from common
    for name, log in logs.items():
        yield from (replace(one, field=f"programs.{name}.{one.field}") for one in log if one not in common)


def _warnings(members: Mapping[str, _Member]) -> Iterator[str]:
    for name, member in members.items():
        said = (*member.resolved.plan.warnings, *member.notes.warnings, *collect_run_warnings(member.resolved.runs))
        yield from (f"{name}: {warning}" for warning in said)
