"""Work beside a program's runs that takes time: overheads that block, and risks where they happen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from service.domain.programs.program import Program, ProgramOverhead, Tier
from service.domain.programs.runs import PlannedRun
from service.domain.programs.schedule import TimedWork
from service.domain.programs.tiers import TierName
from service.domain.quantities import Range
from service.engine.numerics.money import share_usd, sum_usd
from service.engine.programs.budget import calendar_hours, relative_duration, run_equivalents
from service.engine.programs.risk_register import correlation_matrix, mixing_matrix
from service.engine.programs.risks import planned_risk
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


@dataclass(frozen=True, slots=True)
class _RunLoad:
    """A run's activity, its hours on the calendar, and the accelerators that it uses on average over them."""

    activity: str
    hours: Range
    accelerators: float


def plan_timed_work(program: Program) -> tuple[TimedWork, ...]:
    """All work of the calendar beside the runs, in the order in which a tier does it."""
    loads = {tier.tier: [_run_load(tier, run) for run in tier.runs] for tier in program.tiers}
    return (
        *_mitigations(program),
        *_evaluations(program),
        *_overheads(program, loads),
        *_dependent(program, tuple(_risks(program, loads))),
        *_sign_offs(program),
    )


def _evaluations(program: Program) -> Iterator[TimedWork]:
    """Each blocking suite in each of its tiers, after the runs: those evaluated on the way are in the same time, which only ends later."""
    tiers_usd = {tier.tier: float(_runs_usd(tier)) for tier in program.tiers}
    for cost in program.evaluation.suites if program.evaluation is not None else ():
        if cost.tier is not None and cost.blocking and cost.hours.p90:
            yield TimedWork(
                name=f"{cost.tier}: evaluation {cost.suite}",
                kind="evaluation",
                tier=cost.tier,
                before_runs=False,
                duration=cost.hours,
                cost_share=float(cost.usd or 0) / tiers_usd[cost.tier] if tiers_usd[cost.tier] else 0.0,
                pointer=f"/evaluation/suites/{cost.index}",
            )


def _sign_offs(program: Program) -> Iterator[TimedWork]:
    """The approval of each tier's evaluation: as long as the person with the most to do takes."""
    signed = program.evaluation.sign_offs if program.evaluation is not None else ()
    for tier in program.tiers:
        days = max((sign_off.days for sign_off in signed if sign_off.tier == tier.tier), default=0.0)
        if days:
            duration = Range.exactly(days * HOURS_PER_DAY)
            yield TimedWork(
                name=f"{tier.tier}: evaluation sign-off",
                kind="sign_off",
                tier=tier.tier,
                before_runs=False,
                duration=duration,
                pointer="/evaluation/suites",
            )


def _overheads(program: Program, loads: Mapping[TierName, list[_RunLoad]]) -> Iterator[TimedWork]:
    """Each blocking overhead in each of its tiers: its share of the accelerator-hours of the tier's runs, on the tier's machine."""
    blocking = [overhead for overhead in program.overheads if overhead.blocking]
    runs_usd = {tier.tier: _runs_usd(tier) for tier in program.tiers} if blocking else {}
    for tier in program.tiers:
        for overhead in blocking:
            if share := _share_in(overhead, tier, runs_usd):
                name, pointer = overhead_name(tier.tier, overhead.line), f"/overhead/{overhead.line}"
                work = _proportional(name, tier, share, loads[tier.tier], pointer)
                yield replace(work, before_runs=overhead.before_runs, cost_share=share)


def _share_in(overhead: ProgramOverhead, tier: Tier, runs_usd: Mapping[TierName, Decimal]) -> float:
    """An overhead of a tier relative to the cost of its runs [1]; an amount is divided by that cost, and takes no time without a price."""
    if overhead.tier not in {None, tier.tier}:
        return 0.0
    around = float(sum_usd(usd for name, usd in runs_usd.items() if overhead.tier in {None, name}))
    amount = float(overhead.usd) / around if overhead.usd is not None and around else 0.0
    return (overhead.share or 0.0) + amount


def _mitigations(program: Program) -> Iterator[TimedWork]:
    """Each mitigation that is taken and takes time, before the runs of its risk's tier, or of the first."""
    for index, risk in enumerate(program.risks):
        mitigation = risk.mitigation
        if mitigation is not None and mitigation.taken and mitigation.days is not None and mitigation.days.p90:
            yield TimedWork(
                name=f"mitigation: {risk.name}",
                kind="mitigation",
                tier=risk.tier or program.tiers[0].tier,
                before_runs=True,
                duration=mitigation.days.scaled(HOURS_PER_DAY),
                pointer=f"/risks/{index}/mitigation",
            )


def _risks(program: Program, loads: Mapping[TierName, list[_RunLoad]]) -> Iterator[TimedWork]:
    """Each risk that takes time, after the runs of its tier, or after the last tier's."""
    for index, risk in enumerate(map(planned_risk, program.risks)):
        if risk.state == "closed":
            continue
        concerned = [tier for tier in program.tiers if risk.tier in {None, tier.tier}]
        pointer, last = f"/risks/{index}", concerned[-1]
        if risk.days is None and risk.cost_share_of_tier:
            runs = [load for tier in concerned for load in loads[tier.tier]]
            work = _proportional(risk_name(risk.name), last, risk.cost_share_of_tier, runs, pointer)
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


def _dependent(program: Program, risks: tuple[TimedWork, ...]) -> Iterator[TimedWork]:
    """The risks that take time, as they happen together where a correlation is stated: with the scores that the register's losses have."""
    if not program.risk_correlation:
        yield from risks
        return
    correlations = correlation_matrix([risk.name for risk in program.risks], program.risk_correlation)
    rows = {risk_name(risk.name): row for row, risk in enumerate(program.risks)}
    open_names = [work.name for work in risks if work.probability < 1]
    places = [rows[name] for name in open_names]
    mixing = mixing_matrix(correlations[np.ix_(places, places)]).tolist()
    weights = {name: tuple(zip(open_names, own, strict=True)) for name, own in zip(open_names, mixing, strict=True)}
    for work in risks:
        yield replace(work, occurs_with=weights.get(work.name, ()))


def _proportional(name: str, tier: Tier, share: float, runs: Sequence[_RunLoad], pointer: str) -> TimedWork:
    """Work of a share of the accelerator-hours of some runs, on all accelerators that a tier occupies at a time."""
    machine = max(run.occupied for run in tier.runs)
    factors = [share * run.accelerators / machine for run in runs]
    return TimedWork(
        name=name,
        kind="overhead",
        tier=tier.tier,
        before_runs=False,
        duration=Range(
            sum(factor * run.hours.p10 for factor, run in zip(factors, runs, strict=True)),
            sum(factor * run.hours.p50 for factor, run in zip(factors, runs, strict=True)),
            sum(factor * run.hours.p90 for factor, run in zip(factors, runs, strict=True)),
        ),
        proportional_to=tuple((run.activity, factor) for factor, run in zip(factors, runs, strict=True)),
        pointer=pointer,
    )


def _run_load(tier: Tier, run: PlannedRun) -> _RunLoad:
    accelerators = run.accelerators * run_equivalents(run.repetition) / relative_duration(run.repetition)
    return _RunLoad(activity_name(tier.tier, run.name), calendar_hours(run), accelerators)


def _runs_usd(tier: Tier) -> Decimal:
    return sum_usd(share_usd(run_equivalents(run.repetition), sum_usd(line.usd for line in run.lines)) for run in tier.runs)
