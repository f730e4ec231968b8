"""The most that a budget, a machine and a deadline leave room for: runs, sweep points, tokens a sequence, or refreshes.

Every value that is tried is estimated as a whole; the search is `last_true`. Definitions: docs/how-to/inverse.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from service.context import AppContext
from service.domain.answer_fields import Doc
from service.domain.errors import DoesNotFit, DomainError, InvalidRequest, UnpricedAccelerator
from service.domain.programs.inverse import Bound, Find, InverseLimit, InversePoint
from service.domain.programs.runs import RunRepetition
from service.domain.quantities import Assumption
from service.domain.summary import Summary
from service.engine.numerics.money import share_usd, sum_usd
from service.engine.numerics.monotone_search import last_true
from service.engine.programs.budget import calendar_hours, run_equivalents, successive_halving
from service.engine.scheduling.calendar import HOURS_PER_DAY
from service.engine.training.cost import HOURS_PER_MONTH
from service.formats.headline import duration, money
from service.presets.version import engine_version
from service.usecases.programs.estimates import EstimateCache, Request, shared_estimates
from service.usecases.programs.runs import planned_run
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.scaling.optimum_request import hours_left
from service.usecases.training.estimate import EstimateAnswer

TOKENS_A_STEP = 1024
"""Lengths are searched in multiples of this [tokens]."""
MOST: Mapping[Find, int] = {"repeats": 1_000_000, "sweep_points": 1_000_000, "seq_len": 10**8 // TOKENS_A_STEP, "refresh_days": 3650}
UNITS: Mapping[Find, str] = {"repeats": "runs", "sweep_points": "sweep points", "seq_len": "tokens a sequence", "refresh_days": "days"}
OWN_FIELDS = ("find", "budget", "accelerators", "seeds", "early_stopping", "new_tokens_per_day", "levers")


@dataclass(frozen=True, slots=True)
class InverseAnswer:
    """The last value that keeps every limit, by the medians of its estimate, and what the next one breaks."""

    summary: Annotated[Summary, Doc("The answer in a sentence")]
    find: Annotated[Find, Doc("What was asked for")]
    value: Annotated[int, Doc("The most runs, sweep points or tokens a sequence, or the fewest days between refreshes")]
    unit: Annotated[str, Doc("Unit of the value")]
    at: Annotated[InversePoint, Doc("What it takes")]
    limit: Annotated[InverseLimit, Doc("What keeps it from going further")]
    evaluations: Annotated[int, Doc("Number of values that were tried", minimum=1)]
    estimate: Annotated[EstimateAnswer, Doc("Estimate of one run at the value")]
    price_snapshot: Annotated[str, Doc("Name of the price snapshot the answer is made with")]
    engine_version: Annotated[str, Doc("Version of the engine and its data")]
    assumptions: Annotated[tuple[Assumption, ...], Doc("Values beyond the estimate's that the caller did not state", max_items=100)]
    warnings: Annotated[tuple[str, ...], Doc("What to check before relying on the answer", max_items=200, max_length=5000)]


@dataclass(frozen=True, slots=True)
class _BudgetLimits:
    """What may be spent [USD, USD a month], and how long it may take [days]; None: not limited. `recurring`: until the next begins."""

    usd: float | None
    usd_per_month: float | None
    days: float | None
    recurring: bool


@dataclass(frozen=True, slots=True)
class _Tried:
    """A value with its estimate, where it has one, and the limit that it breaks, if it does."""

    point: InversePoint
    answer: EstimateAnswer | None
    broken: InverseLimit | None


def invert_estimate(context: AppContext, request: Request) -> InverseAnswer:
    """The answer to a validated request. Raises DomainErrors, with pointers into it."""
    notes, find, estimates = AssumptionLog(), request["find"], shared_estimates(context)
    limits = _limits(request, context, notes)
    tried: dict[int, _Tried] = {}
    evaluate = _evaluation(estimates, request, notes)

    def trial(step: int) -> _Tried:
        if step not in tried:
            tried[step] = _try(evaluate, _value(find, step), limits)
        return tried[step]

    found = last_true(lambda step: trial(step).broken is None, 1, MOST[find])
    if found is None:
        raise InvalidRequest(f"already {find} of {_value(find, 1):,} exceeds a limit: {_reason(tried[1])}", "/budget")
    best, following = trial(found), tried.get(found + 1)
    limit = _end_of_search(find, found + 1) if following is None or following.broken is None else following.broken
    assert best.answer is not None
    return InverseAnswer(
        summary=_summarise(find, best.point, limit),
        find=find,
        value=best.point.value,
        unit=UNITS[find],
        at=best.point,
        limit=limit,
        evaluations=len(tried),
        estimate=best.answer,
        price_snapshot=best.answer.price_snapshot,
        engine_version=engine_version(),
        assumptions=notes.assumptions,
        warnings=(*notes.warnings, *best.answer.warnings),
    )


def _value(find: Find, step: int) -> int:
    """The value of a step of the search: intervals fall from the longest on."""
    if find == "seq_len":
        return step * TOKENS_A_STEP
    return MOST[find] + 1 - step if find == "refresh_days" else step


def _limits(request: Request, context: AppContext, notes: AssumptionLog) -> _BudgetLimits:
    """The stated limits. Raises InvalidRequest where one has no meaning for the question, or none is stated that it needs."""
    find, budget = request["find"], request.get("budget", {})
    recurring = find == "refresh_days"
    for name in ("usd", "days", "deadline") if recurring else ("usd_per_month",):
        if name in budget:
            other = "state usd_per_month, because each refresh ends before the next one" if recurring else "state usd, the cost of all runs"
            raise InvalidRequest(f"{name} does not limit {find}: {other}", f"/budget/{name}")
    if find in ("repeats", "sweep_points") and not budget:
        raise InvalidRequest("state budget.usd, budget.days or budget.deadline: nothing else limits their number", "/budget")
    days = [budget["days"]] if "days" in budget else []
    if "deadline" in budget:
        days.append(hours_left(request, context.clock().date(), notes) / HOURS_PER_DAY)
    return _BudgetLimits(budget.get("usd"), budget.get("usd_per_month"), min(days, default=None), recurring)


def _evaluation(estimates: EstimateCache, request: Request, notes: AssumptionLog) -> Callable[[int], tuple[InversePoint, EstimateAnswer]]:
    """What estimates a value of what is asked for."""
    run = {name: section for name, section in request.items() if name not in OWN_FIELDS}
    if request["find"] == "seq_len":
        return lambda value: _single(estimates, {**run, "training": {**run.get("training", {}), "seq_len": value}}, value)
    if request["find"] == "refresh_days":
        return lambda value: _refresh(estimates, run, request, value)
    count, machine = run["hardware"]["count"], request.get("accelerators")
    if machine is None:
        machine = notes.assume("accelerators", count, "not stated: those of one run, so that the runs are one after another")
    if machine < count:
        raise InvalidRequest(f"one run needs {count:,} accelerators, but the machine has {machine:,}", "/accelerators")
    seeds = notes.take(request, "seeds", 1, "not stated: one run of each point")
    return lambda value: _repeated(estimates, run, _repetition(request, value, seeds, machine // count), value)


def _single(estimates: EstimateCache, run: Request, value: int) -> tuple[InversePoint, EstimateAnswer]:
    answer = estimates.estimate(run)
    total = answer.estimate.cost.total_usd
    days = calendar_hours(planned_run("run", answer, run, RunRepetition())).p50 / HOURS_PER_DAY
    return InversePoint(value, None if total is None or answer.price is None else total.p50, days, None), answer


def _refresh(estimates: EstimateCache, run: Request, request: Request, days: int) -> tuple[InversePoint, EstimateAnswer]:
    """Training every so many days, on what is stated and on what came since."""
    data = run["data"]
    if "tokens" not in data:
        raise InvalidRequest("state data.tokens: the tokens of each refresh, without those that arrive in between", "/data/tokens")
    tokens = data["tokens"] + round(request.get("new_tokens_per_day", 0) * days)
    point, answer = _single(estimates, {**run, "data": {**data, "tokens": tokens}}, days)
    monthly = None if point.usd is None else point.usd * HOURS_PER_MONTH / (days * HOURS_PER_DAY)
    return replace(point, usd_per_month=monthly), answer


def _repeated(estimates: EstimateCache, run: Request, repetition: RunRepetition, value: int) -> tuple[InversePoint, EstimateAnswer]:
    """Cost and time of all runs, as a program has them."""
    answer = estimates.estimate(run)
    planned = planned_run("run", answer, run, repetition)
    usd = share_usd(run_equivalents(repetition), sum_usd(line.usd for line in planned.lines))
    hours = calendar_hours(planned).p50
    return InversePoint(value, float(usd) if planned.priced else None, hours / HOURS_PER_DAY, None), answer


def _repetition(request: Request, value: int, seeds: int, side_by_side: int) -> RunRepetition:
    stopping = request.get("early_stopping")
    rungs = () if stopping is None else successive_halving(value, stopping["factor"], stopping["least_share"])
    concurrency = max(1, min(value * seeds, side_by_side))
    if request["find"] == "repeats":
        return RunRepetition(repeat=value, seeds=seeds, rungs=rungs, concurrency=concurrency)
    return RunRepetition(grid=(value,), seeds=seeds, rungs=rungs, concurrency=concurrency)


def _try(evaluate: Callable[[int], tuple[InversePoint, EstimateAnswer]], value: int, limits: _BudgetLimits) -> _Tried:
    """A value against the limits. Raises UnpricedAccelerator for a budget without a price."""
    nothing = InversePoint(value, None, None, None)
    try:
        point, answer = evaluate(value)
    except DoesNotFit as problem:
        return _Tried(nothing, None, InverseLimit(nothing, "memory", problem.message))
    except DomainError as problem:
        if problem.pointer.startswith(("/training", "/data")):
            return _Tried(nothing, None, InverseLimit(nothing, "request", problem.message))
        raise
    broken = _broken(point, limits)
    return _Tried(point, answer, None if broken is None else InverseLimit(point, *broken))


def _broken(point: InversePoint, limits: _BudgetLimits) -> tuple[Bound, str] | None:
    """The limit that a value exceeds, with its figures."""
    for usd, most, per in ((point.usd, limits.usd, ""), (point.usd_per_month, limits.usd_per_month, " a month")):
        if most is None:
            continue
        if usd is None:
            text = "no price of the accelerator is known: state price.usd_per_accelerator_hour"
            raise UnpricedAccelerator(text, "/hardware/accelerator")
        if usd > most:
            return "budget", f"it costs ${usd:,.0f}{per}, more than ${most:,.0f}"
    most_days = point.value if limits.recurring else limits.days
    days = point.days or 0.0
    if most_days is not None and days > most_days:
        return "days", f"it takes {duration(days * HOURS_PER_DAY)}, more than {duration(most_days * HOURS_PER_DAY)}"
    return None


def _reason(tried: _Tried) -> str:
    return "" if tried.broken is None else tried.broken.reason


def _end_of_search(find: Find, step: int) -> InverseLimit:
    """Where every value that is searched keeps the limits."""
    point = InversePoint(max(0, _value(find, step)), None, None, None)
    return InverseLimit(point, "end of the search", f"no limit is reached up to {_value(find, step - 1):,} {UNITS[find]}")


def _summarise(find: Find, at: InversePoint, limit: InverseLimit) -> Summary:
    most = f"At least {at.value:,} days between refreshes" if find == "refresh_days" else f"At most {at.value:,} {UNITS[find]}"
    usd = at.usd if at.usd_per_month is None else at.usd_per_month
    per = "" if at.usd_per_month is None else " a month"
    cost = "" if usd is None else f"{money(usd)}{per} and "
    days = at.days or math.nan
    return Summary(
        text=f"{most}: {cost}{duration(days * HOURS_PER_DAY)}. With {limit.next.value:,}, {limit.reason}."[:1000],
        p50_usd=at.usd,
        p50_finish_days=at.days,
        bound=limit.binds,
    )
