"""Headline of a program: on budget and in time, or by how much it is not, in one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Literal

from service.domain.answer_fields import Doc
from service.domain.quantities import Range
from service.domain.tracking.events import ProgramBaseline
from service.domain.tracking.status import ProgramStatus
from service.domain.training.estimate import FinishDates
from service.engine.tracking.forecasting.beside_runs import planned_total
from service.formats.headline import day, money, money_range

Health = Literal["on_track", "at_risk", "off_track", "unknown"]


@dataclass(frozen=True, slots=True)
class Headline:
    """`health` is by the medians of the forecast, `at_risk` where only its p90 exceeds budget or deadline.

    `over_usd` is the median cost less the budget, `late_days` the median finish less the deadline; negative values are a margin.
    """

    health: Annotated[Health, Doc("By the forecast's medians against budget and deadline; at_risk where only its p90 is beyond them")]
    text: Annotated[str, Doc("The health in figures", max_length=2000)]
    over_usd: Annotated[float | None, Doc("Median cost less the budget, negative is a margin; null where unknown", "USD")]
    late_days: Annotated[float | None, Doc("Median finish less the deadline; null where unknown", "days")]
    notes: Annotated[tuple[str, ...], Doc("Notes to the headline", max_items=100, max_length=5000)]


@dataclass(frozen=True, slots=True)
class _Limit:
    """A forecast against its limit: excess of median, and of p90 over what was planned of it, and the texts for each case."""

    over: float
    over_at_p90: float
    beyond: str
    within: str
    risk: str


def headline(baseline: ProgramBaseline, status: ProgramStatus) -> Headline:
    """Headline of a program, with notes."""
    cost, finish = status.forecast.cost_usd, status.forecast.finish
    budget = status.earned_value.bac_usd if baseline.budget_usd is None else baseline.budget_usd
    spend = _money(cost, budget, _planned_high(budget, baseline)) if cost and budget else None
    time = _time(finish, baseline.deadline, _planned_end(baseline.deadline, baseline.finish)) if finish and baseline.deadline else None
    standing, text = _standing([limit for limit in (spend, time) if limit], status)
    return Headline(
        health=standing,
        text=text,
        over_usd=spend.over if spend else None,
        late_days=int(time.over) if time else None,
        notes=tuple(_notes(baseline, status, spend, time)),
    )


def _planned_high(budget: float, baseline: ProgramBaseline) -> float:
    """Cost above which the p90 is a risk: the plan's p90 where the budget is its median, which half of its outcomes exceed anyway."""
    planned = planned_total(baseline)
    return planned.p90 if planned is not None and round(planned.p50 - budget, 2) == 0 else budget


def _planned_end(deadline: date, planned: FinishDates | None) -> date:
    """As `_planned_high`, of the deadline."""
    return planned.p90 if planned is not None and planned.p50 == deadline else deadline


def _money(cost: Range, budget: float, risky: float) -> _Limit:
    over, high = round(cost.p50 - budget, 2), round(cost.p90 - budget, 2)
    range_of = f"{money_range(cost)} against a budget of {money(budget)}"
    return _Limit(
        over=over,
        over_at_p90=round(cost.p90 - risky, 2),
        beyond=f"over budget by {money(over)} ({over / budget:.1%}): forecast {range_of}",
        within=f"forecast cost {range_of}",
        risk=f"a 10 % chance that the cost is more than {money(high)} over budget",
    )


def _time(finish: FinishDates, deadline: date, risky: date) -> _Limit:
    over, high = (finish.p50 - deadline).days, (finish.p90 - deadline).days
    range_of = f"{day(finish.p50)} ({day(finish.p10)}–{day(finish.p90)})"
    return _Limit(
        over=over,
        over_at_p90=(finish.p90 - risky).days,
        beyond=f"late by {_days(over)}: forecast end {range_of} against a deadline of {day(deadline)}",
        within=f"forecast end {range_of}, " + (f"{_days(-over)} before the deadline" if over else "the day of the deadline"),
        risk=f"a 10 % chance that the end is more than {_days(high)} late",
    )


def _standing(limits: list[_Limit], status: ProgramStatus) -> tuple[Health, str]:
    if not limits:
        reasons = [each.reason for each in (*status.forecast.unknown, *status.earned_value.unknown)]
        return "unknown", f"The forecast is not known: {next(iter(reasons), 'neither budget nor deadline is stated')}."
    broken = [limit.beyond for limit in limits if limit.over > 0]
    held = [*(limit.within for limit in limits if limit.over <= 0), *_overdue(status)]
    if broken:
        return "off_track", _sentence([*broken, *held])
    risks = [limit.risk for limit in limits if limit.over_at_p90 > 0]
    return ("at_risk", _sentence(["at risk", *held, *risks])) if risks else ("on_track", _sentence(["on track", *held]))


def _overdue(status: ProgramStatus) -> Iterator[str]:
    """The run that is overdue longest, and how many others are."""
    for first in status.overdue[:1]:
        name = f"{first.tier}: {first.run}" if first.tier else first.run
        more = len(status.overdue) - 1
        others = f", and {more} more {'is' if more == 1 else 'are'} overdue" if more else ""
        moved = f"this delays the end by {_days(first.late_days)}" if first.late_days else "its float still covers it"
        yield f"{name} should have begun on {day(first.planned_start)} and is {_days(first.days)} overdue{others}: {moved}"


def _sentence(parts: list[str]) -> str:
    joined = "; ".join(parts)
    return f"{joined[0].upper()}{joined[1:]}."


def _notes(baseline: ProgramBaseline, status: ProgramStatus, spend: _Limit | None, time: _Limit | None) -> Iterator[str]:
    """Notes: what the headline leaves open, and what has to be decided."""
    if time and not spend:
        yield f"Whether the budget is enough is not known: {_reason(status, 'cost_usd', 'no budget is stated')}."
    if spend and not time:
        yield f"Whether the deadline is met is not known: {_reason(status, 'finish', 'no deadline is stated')}."
    if spend and spend.over > 0 and status.reserve and status.reserve.left_usd > 0:
        left = status.reserve.left_usd
        yield (
            f"The forecast includes the whole reserve: {money(left)} of it are still unspent, which is"
            f" {'enough for the overrun' if left >= spend.over else f'{money(spend.over - left)} less than the overrun'}."
        )
    if status.deadline_missed and baseline.deadline is not None:
        yield f"The deadline, {day(baseline.deadline)}, has passed."
    if status.gate.due:
        yield f"The half-spend gate is due: {status.gate.recommendation} is recommended ({'; '.join(status.gate.reasons)})."
    if not status.spend.complete:
        yield "The spend of some runs is not known and is missing from the sum."


def _reason(status: ProgramStatus, field: str, otherwise: str) -> str:
    return next((each.reason for each in status.forecast.unknown if each.field == field), otherwise)


def _days(days: int) -> str:
    return "1 day" if days == 1 else f"{days:,} days"
