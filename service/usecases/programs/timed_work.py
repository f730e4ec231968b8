"""Work beside a program's runs that takes time: overheads that block, and risks where they happen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

from service.domain.programs.program import Program, ProgramOverhead, Tier
from service.domain.programs.runs import PlannedRun
from service.domain.programs.schedule import TimedWork
from service.domain.quantities import Range
from service.engine.numerics.money import share_usd, sum_usd
from service.engine.programs.budget import relative_duration, repeated_wall_clock_hours, run_equivalents
from service.engine.scheduling.calendar import HOURS_PER_DAY


def activity_name(tier: str, run: str) -> str:
    """A run's name on the calendar."""
    return f"{tier}: {run}"


def overhead_name(tier: str, line: str) -> str:
    """An overhead's name on the calendar, in one tier."""
    return f"{tier}: overhead {line.replace('_', ' ')}"


def risk_name(risk: str) -> str:
    """A risk's name on the calendar."""
    return f"risk: {risk}"


def plan_timed_work(program: Program) -> tuple[TimedWork, ...]:
    """All work of the calendar beside the runs, in the order in which a tier does it."""
    return (*_overheads(program), *_risks(program))


def _overheads(program: Program) -> Iterator[TimedWork]:
    """Each blocking overhead in each of its tiers: its share of the accelerator-hours of the tier's runs, on the tier's machine."""
    for tier in program.tiers:
        for overhead in program.overheads:
            share = _share_in(overhead, tier, program.tiers) if overhead.blocking else 0.0
            if share:
                name, pointer = overhead_name(tier.tier, overhead.line), f"/overhead/{overhead.line}"
                work = _proportional(name, tier, share, [tier], pointer)
                yield replace(work, before_runs=overhead.before_runs, cost_share=share)


def _share_in(overhead: ProgramOverhead, tier: Tier, tiers: Sequence[Tier]) -> float:
    """An overhead of a tier relative to the cost of its runs [1]; an amount is divided by that cost, and takes no time without a price."""
    if overhead.tier not in {None, tier.tier}:
        return 0.0
    runs_usd = float(sum_usd(_runs_usd(other) for other in tiers if overhead.tier in {None, other.tier}))
    amount = float(overhead.usd) / runs_usd if overhead.usd is not None and runs_usd else 0.0
    return (overhead.share or 0.0) + amount


def _risks(program: Program) -> Iterator[TimedWork]:
    """Each risk that takes time, after the runs of its tier, or after the last tier's."""
    for index, risk in enumerate(program.risks):
        concerned = [tier for tier in program.tiers if risk.tier in {None, tier.tier}]
        pointer, last = f"/risks/{index}", concerned[-1]
        if risk.days is None and risk.cost_share_of_tier:
            work = _proportional(risk_name(risk.name), last, risk.cost_share_of_tier, concerned, pointer)
            yield replace(work, kind="risk", probability=risk.probability)
        elif risk.days is not None and risk.days.p90:
            yield TimedWork(
                name=risk_name(risk.name),
                kind="risk",
                tier=last.tier,
                before_runs=False,
                duration=risk.days.scaled(HOURS_PER_DAY),
                probability=risk.probability,
                pointer=pointer,
            )


def _proportional(name: str, tier: Tier, share: float, of: Sequence[Tier], pointer: str) -> TimedWork:
    """Work of a share of the accelerator-hours of the runs of some tiers, on all accelerators that a tier occupies at a time."""
    machine = max(run.occupied for run in tier.runs)
    runs = [(other.tier, run) for other in of for run in other.runs]
    factors = [share * _accelerators_on_average(run) / machine for _, run in runs]
    hours = [
        repeated_wall_clock_hours(run).scaled(factor * (1 + run.overhead_share)) for (_, run), factor in zip(runs, factors, strict=True)
    ]
    return TimedWork(
        name=name,
        kind="overhead",
        tier=tier.tier,
        before_runs=False,
        duration=Range(*(sum(getattr(one, percentile) for one in hours) for percentile in ("p10", "p50", "p90"))),
        proportional_to=tuple((activity_name(place, run.name), factor) for (place, run), factor in zip(runs, factors, strict=True)),
        pointer=pointer,
    )


def _accelerators_on_average(run: PlannedRun) -> float:
    """Accelerator-hours of a run with its repeats over its hours on the clock."""
    return run.accelerators * run_equivalents(run.repetition) / relative_duration(run.repetition)


def _runs_usd(tier: Tier) -> Decimal:
    return sum_usd(share_usd(run_equivalents(run.repetition), sum_usd(line.usd for line in run.lines)) for run in tier.runs)
