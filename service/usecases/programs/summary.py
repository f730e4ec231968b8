"""The summary of a program: budget and finish, and what its dearest run rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date

from service.domain.programs.plan import ProgramPlan
from service.domain.programs.schedule import ProgramSchedule
from service.domain.quantities import Range
from service.domain.summary import Driver, Summary
from service.domain.training.estimate import FinishDates
from service.engine.numerics.ranges import percentile
from service.formats.headline import day, money_range
from service.presets.programs import find_program_default
from service.usecases.training.estimate import EstimateAnswer
from service.usecases.training.summary import KEPT_WITH, STATE_PRICE


def summarise_program(plan: ProgramPlan, schedule: ProgramSchedule, estimates: Mapping[tuple[str, str], EstimateAnswer]) -> Summary:
    """The budget with every gate passed, and the last day; drivers and comparable run are those of the run that costs most.

    Where a price is not known, of the run of the most accelerator-hours, and nothing is in dollars.
    """
    days, done = days_from(schedule.start, schedule.finish), _finish_text(schedule)
    runs = ((tier.tier, block) for tier in plan.tiers for block in tier.runs)
    priced = plan.priced
    tier, name = max(runs, key=lambda pair: pair[1].cost_usd if priced else pair[1].use.accelerator_hours.p50)
    dearest = estimates[tier, name.run.name].summary
    return Summary(
        text=f"{plan.name}: about {money_range(plan.total_usd)} and done by {done}."
        if priced
        else f"{plan.name}: done by {done}; {STATE_PRICE}.",
        p50_usd=plan.total_usd.p50 if priced else None,
        p80_usd=percentile(plan.total_usd, KEPT_WITH) if priced else None,
        p50_finish_days=days.p50,
        p80_finish_days=percentile(days, KEPT_WITH),
        bound=dearest.bound,
        drivers=tuple(_of_run(driver, tier, name.run.name) for driver in dearest.drivers),
        comparable=dearest.comparable,
    )


def days_from(start: date, finish: FinishDates) -> Range:
    """Days from a start to a finish [d]; 0 where it is over already."""
    return Range(*(max(0.0, float((end - start).days)) for end in (finish.p10, finish.p50, finish.p90)))


def _finish_text(schedule: ProgramSchedule) -> str:
    finish, probability = schedule.finish, schedule.deadline_probability
    text = f"{day(finish.p50)} ({day(finish.p10)}–{day(finish.p90)})"
    if probability is None or schedule.deadline is None:
        return text
    return (
        f"{text}; {probability:.0%} to meet {day(schedule.deadline)}: {deadline_verdict(probability, schedule.target_probability or 0.0)}"
    )


def deadline_verdict(probability: float, target: float | None = None) -> str:
    """The chance of a goal in words, beside the chance that is aimed at; where none is stated, that which programs aim at."""
    aimed: float = find_program_default("target_probability").value if target is None else target
    if probability >= aimed:
        return "on track"
    return "at risk" if probability >= find_program_default("off_track_below").value else "off track"


def _of_run(driver: Driver, tier: str, name: str) -> Driver:
    return replace(driver, field=f"tiers.{tier}.{name}.{driver.field}", effect=f"one run of {name}: {driver.effect}")
