"""The budget of a program from plan to forecast by part, how the forecast is made, and what moves it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from service.domain.programs.budget_parts import AROUND, BUDGET_PARTS, COMPUTE, PEOPLE, RESERVE, BudgetPart
from service.domain.quantities import Range
from service.domain.tracking.budget import BudgetBridge, BudgetBridgePart, ForecastSwing
from service.domain.tracking.events import ProgramBaseline
from service.domain.tracking.status import CompletionForecast, EarnedValue
from service.engine.tracking.costs.budget_parts import planned_parts, spent_by_part
from service.engine.tracking.earned_value import measured_shares
from service.engine.tracking.forecasting.beside_runs import NOTHING, add_ranges
from service.engine.tracking.runs.targets import RunTarget

CENT_USD = 0.005
UNTRACKED = "runs of the plan that are not tracked yet"


@dataclass(frozen=True, slots=True)
class Outlook:
    """Forecasts of a program and of its runs, and what is left beside the runs by part [USD], None where unknown."""

    program: CompletionForecast
    runs: Sequence[CompletionForecast]
    left: Mapping[BudgetPart, Range] | None


def budget_bridge(program: ProgramBaseline, all_targets: Sequence[RunTarget], outlook: Outlook, earned: EarnedValue) -> BudgetBridge:
    """The bridge from the budget to the forecast.

    Parameters
    ----------
    program : ProgramBaseline
        Plan of the program.
    all_targets : sequence of RunTarget
        Runs with targets.
    outlook : Outlook
        Forecasts in the order of `all_targets`, risks included.
    earned : EarnedValue
        Earned value of the program.

    Returns
    -------
    BudgetBridge
        Parts that are planned, spent or to come; they add up to the forecast by percentile [USD].
    """
    parts = tuple(part for part in _parts(program, all_targets, outlook, earned) if _is_filled(part))
    return BudgetBridge(
        parts=parts,
        method=_method(parts, outlook.program),
        beside_eac=_beside_eac(parts, earned),
        swings=tuple(sorted(_swings(all_targets, outlook), key=lambda swing: swing.low_usd - swing.high_usd)),
    )


def _parts(program: ProgramBaseline, all_targets: Sequence[RunTarget], outlook: Outlook, earned: EarnedValue) -> Iterator[BudgetBridgePart]:
    budget = earned.bac_usd if program.budget_usd is None else program.budget_usd
    planned = {} if budget is None else planned_parts(program, budget)
    spent = spent_by_part(line for target in all_targets for line in target.run.lines)
    measured = measured_shares(program, [target.run for target in all_targets])
    for part in BUDGET_PARTS:
        left = _left(part, outlook)
        usd = spent.get(part, 0.0)
        whole = None if left is None else add_ranges((left, Range.exactly(usd)))
        known = whole if outlook.program.cost_usd is not None else None
        yield BudgetBridgePart(part, planned.get(part), usd, left, known, measured.get(part, 0.0))


def _left(part: BudgetPart, outlook: Outlook) -> Range | None:
    """What is still to come of a part, None where unknown."""
    if outlook.left is None:
        return None
    beside = outlook.left.get(part, NOTHING)
    return add_ranges((beside, *(run.remaining_usd for run in outlook.runs))) if part == COMPUTE else beside


def _is_filled(part: BudgetBridgePart) -> bool:
    left = part.remaining_usd
    return part.part == COMPUTE or any(
        abs(usd) > CENT_USD for usd in (part.budget_usd or 0.0, part.spent_usd, 0.0 if left is None else left.p90)
    )


def _method(parts: Sequence[BudgetBridgePart], forecast: CompletionForecast) -> str:
    """How the forecast comes about, with figures."""
    if forecast.cost_usd is None or forecast.remaining_usd is None:
        return "No forecast of the cost: " + next((each.reason for each in forecast.unknown if each.field == "cost_usd"), "not known") + "."
    spent = math.fsum(part.spent_usd for part in parts)
    left = {part.part: part.remaining_usd for part in parts if part.remaining_usd is not None and part.remaining_usd.p90 > CENT_USD}
    words = {
        COMPUTE: "for the runs by their history and plan",
        AROUND: "around the runs as planned",
        PEOPLE: "for people as planned",
        RESERVE: "of reserve",
    }
    to_come = ", ".join(f"{_text(left[part])} {words[part]}" for part in BUDGET_PARTS if part in left)
    held = "p10, p50 and p90 include no reserve."
    if RESERVE in left:
        without = forecast.cost_usd.p50 - left[RESERVE].p50
        held = f"p10, p50 and p90 all include the reserve; if none of it is needed, the median is {without:,.0f} USD."
    return f"{spent:,.0f} USD spent, and to come: {to_come or 'nothing'}. {held}"


def _beside_eac(parts: Sequence[BudgetBridgePart], earned: EarnedValue) -> str | None:
    """EAC is no second forecast: what it says of the measured work, beside what the forecast has for it."""
    measured = add_ranges(_measured(part) for part in parts if part.earned_share)
    if earned.eac_usd is None or earned.cpi is None or measured is None:
        return None
    others = [
        part.part if not part.earned_share else f"{1 - part.earned_share:.0%} of {part.part}" for part in parts if part.earned_share < 1
    ]
    scope = f" It leaves out {_listed(others)}, which the forecast has." if others else ""
    return (
        f"A check, not a second forecast: at the average cost of the work so far (CPI {earned.cpi:.3g}), the work that earned value"
        f" measures would cost {earned.eac_usd:,.0f} USD (EAC = BAC / CPI). The forecast has {_text(measured)} for it: runs by their"
        f" newest days and plan, the rest as planned.{scope}"
    )


def _measured(part: BudgetBridgePart) -> Range | None:
    """Forecast of what is in BAC of a part."""
    left = part.remaining_usd
    return None if left is None else add_ranges((Range.exactly(part.spent_usd), left.scaled(part.earned_share)))


def _swings(all_targets: Sequence[RunTarget], outlook: Outlook) -> Iterator[ForecastSwing]:
    """Changes of the forecast at the ends of each part of what is to come."""
    for target, forecast in zip(all_targets, outlook.runs, strict=True):
        if forecast.remaining_usd is not None:
            yield from _swing(f"{target.run.baseline.name}: what is left of it", forecast.remaining_usd)
    left = outlook.left or {}
    names: dict[BudgetPart, str] = {COMPUTE: UNTRACKED, AROUND: AROUND, PEOPLE: PEOPLE}
    for part, name in names.items():
        if part in left:
            yield from _swing(name, left[part])
    reserve = left.get(RESERVE, NOTHING).p50
    if reserve > CENT_USD:
        yield ForecastSwing("reserve", -reserve, 0.0, "none of it is needed", f"all {reserve:,.0f} USD are needed")


def _swing(cause: str, left: Range) -> Iterator[ForecastSwing]:
    if left.p90 - left.p10 > CENT_USD:
        yield ForecastSwing(cause, left.p10 - left.p50, left.p90 - left.p50, f"{left.p10:,.0f} USD", f"{left.p90:,.0f} USD")


def _text(usd: Range) -> str:
    if usd.p90 - usd.p10 < 1:
        return f"{usd.p50:,.0f} USD"
    return f"{usd.p50:,.0f} USD ({usd.p10:,.0f} to {usd.p90:,.0f})"


def _listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
