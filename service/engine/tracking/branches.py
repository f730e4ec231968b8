"""The ways on from a gate of a tracked program: continue by the forecast, pivot by its plan, stop by what is committed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from service.domain.programs.branches import BranchName, GateDecision
from service.domain.tracking.gates import PlannedBranch, PlannedGate
from service.domain.tracking.status import CompletionForecast
from service.domain.training.estimate import FinishDates
from service.engine.programs.branches import BranchFigures, decide, describe_branch, stop_figures

NO_FORECAST = "what is still to be spent is not known: the program has no forecast yet"


@dataclass(frozen=True, slots=True)
class GateActuals:
    """Actual figures at a gate: spent so far [USD, None where unknown], forecast, and the time, UTC."""

    spent_usd: float | None
    forecast: CompletionForecast
    now: datetime


def decide_gate(
    planned: PlannedGate, actual: GateActuals, criteria: Sequence[str], by_criteria: BranchName | None, *, agreed: bool
) -> GateDecision:
    """The decision at a gate with actual figures.

    Parameters
    ----------
    planned : PlannedGate
        Ways on with their planned figures.
    actual : GateActuals
        Spend and forecast. Continuing costs what the forecast still has [USD], over the gates ahead in the plan's proportion; its end is
        the forecast's. A pivot takes what it was planned to take, from now on.
    criteria, by_criteria, agreed
        As of `service.engine.programs.branches.decide`.
    """
    branches = [describe_branch(each.branch, _figures(each, planned.day, actual), each.program, NO_FORECAST) for each in planned.branches]
    return decide(actual.spent_usd, branches, criteria, by_criteria, agreed=agreed)


def _figures(planned: PlannedBranch, day: date, actual: GateActuals) -> BranchFigures:
    today = actual.now.date()
    if planned.branch == "stop":
        return stop_figures(FinishDates(today, today, today), planned.expected_cost_usd or 0.0)
    if planned.branch == "pivot":
        finish = None if planned.finish is None else FinishDates(*_moved(planned.finish, today - day))
        return BranchFigures(planned.cost_usd, planned.expected_cost_usd, finish, planned.outcome_probability, _worth_usd(planned))
    left = actual.forecast.remaining_usd
    expected = None if left is None else round(left.p50 * _expected_share(planned), 2)
    return BranchFigures(left, expected, actual.forecast.finish, planned.outcome_probability, _worth_usd(planned))


def _expected_share(planned: PlannedBranch) -> float:
    """Expected cost over the gates ahead relative to that with all of them passed [1]."""
    if planned.cost_usd is None or planned.expected_cost_usd is None or not planned.cost_usd.p50:
        return 1.0
    return planned.expected_cost_usd / planned.cost_usd.p50


def _worth_usd(planned: PlannedBranch) -> float | None:
    """Worth of the outcome as planned [USD]; None where it or its probability is not known."""
    net, cost, chance = planned.expected_value_usd, planned.expected_cost_usd, planned.outcome_probability
    if net is None or cost is None or chance is None:
        return None
    return (net + cost) / chance if chance else 0.0


def _moved(finish: FinishDates, by: timedelta) -> Iterator[date]:
    return (day + by for day in (finish.p10, finish.p50, finish.p90))
