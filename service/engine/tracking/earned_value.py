"""Earned value with tokens as the measure of progress.

PV, EV and AC, CPI = EV / AC, SPI = EV / PV, EAC = BAC / CPI, VAC = BAC - EAC and TCPI = (BAC - EV) / (BAC - AC) as in ANSI/EIA-748 and the
PMI's Standard for Earned Value Management (2019). BAC is the budget without its reserve. EV is the share of the planned tokens that is
done times BAC; runs are weighted by planned cost where all of these are known, runs of the plan that are not tracked yet included, but not
those that were planned to end before a tracked one began: nothing is known of them. What is planned around the runs is apportioned effort
(ANSI/EIA-748, guideline 12) and earned with them; people are level of effort and earned as planned; each counts once a cost of it is
reported. An unknown figure is None with a reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from operator import mul, sub, truediv
from statistics import fmean
from typing import Literal

from service.domain.programs.budget_parts import AROUND, BUDGET_PARTS, COMPUTE, PEOPLE, BudgetPart, budget_part
from service.domain.tracking.events import PlannedWeek, ProgramBaseline, RunBaseline
from service.domain.tracking.status import EarnedValue, UnknownFigure
from service.domain.training.estimate import COMPUTE_LINE
from service.engine.tracking.costs.budget_parts import planned_parts
from service.engine.tracking.costs.cost import CostedRun
from service.engine.tracking.runs.planned_work import planned_share

Basis = Literal["cost", "tokens"]
WEEK = timedelta(weeks=1)
# Relative tolerance of the runs' planned tokens against the program's.
SAME = 0.01
# Runs named in `basis`.
MAX_NAMES = 5


@dataclass(frozen=True, slots=True)
class _Figure:
    """A figure, or the reason why it is unknown."""

    value: float | None
    reason: str = ""


def earned_value(
    program: ProgramBaseline, runs: Sequence[CostedRun], now: datetime, positions: Sequence[float] | None = None
) -> EarnedValue:
    """Earned value of a program.

    Parameters
    ----------
    program : ProgramBaseline
        Budget, schedule and scope.
    runs : sequence of CostedRun
        Runs are weighted by planned cost where the plans of all, with those not tracked yet, are complete, otherwise by tokens.
    now : datetime
        Status date, UTC.
    positions : sequence of float, optional
        Positions of the runs [tokens] to earn by; left out: their present ones.

    Returns
    -------
    EarnedValue
        Amounts [USD], indices and shares [1].

    References
    ----------
    ANSI/EIA-748; PMI, Standard for Earned Value Management (2019).
    """
    at = [run.history.lineage.position for run in runs] if positions is None else positions
    scope, passed, basis = _scope(program, runs)
    budget = _measured_budget(program, runs) or math.fsum(run.baseline.usd or 0.0 for run in runs) or None
    done = _cost_share(scope, runs, at) if basis == "cost" else _tokens_share(program, runs, at)
    planned = _planned_share(program, scope, now, basis)
    if program.runs and basis == "cost":
        done, planned = (_with_people(program, runs, share, now) for share in (done, planned))
    bac = _Figure(budget, "no budget is stated, nor what the runs were planned to cost")
    words = "runs weighed by their planned cost" if basis == "cost" else "each token worth the same"
    if passed:
        words += f", without {_names(passed)}: planned to end before a tracked run began, and not tracked"
    return _block(bac, done, planned, _actual(runs), (words, _spent_out(program, budget, runs)))


def measured_shares(program: ProgramBaseline, runs: Sequence[CostedRun]) -> dict[BudgetPart, float]:
    """Share of each part of the budget that is in BAC [1].

    Of compute it is all but the runs that have passed untracked, of the others the planned lines that a cost is reported of; what is around
    the runs is earned with them.

    Parameters
    ----------
    program : ProgramBaseline
        Plan of the program.
    runs : sequence of CostedRun
        Its runs.
    """
    reported = {line.line for run in runs for line in run.lines}
    parts = {budget_part(line) for line in reported}
    found = {COMPUTE: _kept_share(program, runs)}
    if program.around_share <= 0:
        return dict.fromkeys(parts, 1.0) | found
    if not program.lines:
        return found | (dict.fromkeys((AROUND, PEOPLE), 1.0) if parts - {COMPUTE} else {})
    for part in (AROUND, PEOPLE):
        planned = [line for line in program.lines if budget_part(line.line) == part]
        mine = [line for line in reported if budget_part(line) == part]
        measured = math.fsum(line.share for line in planned if any(_is_of(each, line.line) for each in mine))
        # People have many names: one that no planned line has stands for all of them.
        whole = math.fsum(line.share for line in planned)
        found[part] = (1.0 if part == PEOPLE and mine and not measured else measured / whole) if whole else 0.0
    found[AROUND] *= found[COMPUTE]
    return {part: share for part, share in found.items() if share}


def _is_of(reported: str, planned: str) -> bool:
    """Whether a reported line is of a planned one: `storage` of `storage: logs`, `debugging` of `overhead: debugging`."""
    name, line = (text.strip().lower() for text in (reported, planned))
    kind, _, what = line.partition(": ")
    return name in (line, kind, what, what.replace("_", " ")) or line.startswith(f"{name}:") or name.startswith(f"{line}:")


def _untracked(program: ProgramBaseline, runs: Sequence[CostedRun]) -> list[RunBaseline]:
    """Runs of the plan that are not tracked yet."""
    tracked = {(run.baseline.tier, run.baseline.name) for run in runs}
    return [run for run in program.runs if (run.tier, run.name) not in tracked]


def _passed_untracked(program: ProgramBaseline, runs: Sequence[CostedRun]) -> list[RunBaseline]:
    """Untracked runs that were planned to end before a tracked run began: nothing is known of their work and cost, so neither counts."""
    begun = [run.baseline.start for run in runs if run.history.last_at and run.baseline.start]
    last = max(begun, default=date.min)
    return [run for run in _untracked(program, runs) if run.finish and run.finish <= last]


def _scope(program: ProgramBaseline, runs: Sequence[CostedRun]) -> tuple[list[RunBaseline], list[RunBaseline], Basis]:
    """Runs that count, those of `runs` first; those that have passed untracked; and how they are weighted."""
    scope = [*(run.baseline for run in runs), *_untracked(program, runs)]
    if not _all_known(program, scope):
        return scope, [], "tokens"
    passed = _passed_untracked(program, runs)
    return [run for run in scope if run not in passed], passed, "cost"


def _kept_share(program: ProgramBaseline, runs: Sequence[CostedRun]) -> float:
    """Share of the runs' planned cost that counts."""
    scope, passed, _ = _scope(program, runs)
    whole = math.fsum(run.usd or 0.0 for run in (*scope, *passed))
    return 1 - math.fsum(run.usd or 0.0 for run in passed) / whole if passed and whole else 1.0


def _measured_budget(program: ProgramBaseline, runs: Sequence[CostedRun]) -> float | None:
    """Budget of the measured work [USD]: without the reserve (ANSI/EIA-748: outside the measurement baseline).

    What is planned around the runs and for people is part of it only once a cost of such a line is reported; otherwise EV would count work
    without cost.
    """
    if program.budget_usd is None:
        return None
    discrete, people = _weights(program, runs)
    return program.budget_usd * (discrete + people)


def _weights(program: ProgramBaseline, runs: Sequence[CostedRun]) -> tuple[float, float]:
    """Shares of the budget that are earned with the runs, and with time (people)."""
    measured = measured_shares(program, runs)
    planned = planned_parts(program, 1.0)
    if not program.lines:
        # Where a plan does not tell people from what is around the runs, both are earned as people are.
        planned = {**planned, AROUND: 0.0, PEOPLE: planned[AROUND]}
    compute, around, people = (planned[part] * measured.get(part, 0.0) for part in (COMPUTE, AROUND, PEOPLE))
    return compute + around, people


def _with_people(program: ProgramBaseline, runs: Sequence[CostedRun], share: _Figure, now: datetime) -> _Figure:
    """A share of the runs, and of what is around them, together with people, who are spent evenly from the start to the plan's finish."""
    discrete, people = _weights(program, runs)
    passed = _span_share(program.start, program.finish.p50 if program.finish else program.deadline, now)
    if share.value is None or passed.value is None or not people:
        return share
    return _Figure((discrete * share.value + people * passed.value) / (discrete + people))


def _spent_out(program: ProgramBaseline, bac: float | None, runs: Sequence[CostedRun]) -> str:
    """What is spent out where AC has reached BAC: the whole budget, or that of the measured work alone."""
    if program.budget_usd is None or bac is None or math.isclose(bac, program.budget_usd):
        return "the budget"
    spent = math.fsum(run.usd or 0.0 for run in runs)
    parts = " and ".join(part for part in BUDGET_PARTS if part in measured_shares(program, runs))
    return f"{spent / program.budget_usd:.0%} of the whole budget is spent, but the part for {parts}, {bac:,.0f} USD,"


def _names(runs: Sequence[RunBaseline]) -> str:
    named = [run.name for run in runs[:MAX_NAMES]]
    return ", ".join(named) + (f" and {len(runs) - MAX_NAMES} more" if len(runs) > MAX_NAMES else "")


def run_earned_value(run: CostedRun, now: datetime) -> EarnedValue:
    """Earned value of one run by its own plan.

    Parameters
    ----------
    run : CostedRun
        Run with plan and cost.
    now : datetime
        Status date, UTC.
    """
    planned = _span_share(run.baseline.start, run.baseline.finish, now)
    bac = _Figure(run.baseline.usd, "no cost of the run is planned")
    done = _work_share(run, run.history.lineage.position)
    return _block(bac, done, planned, _actual_compute(run), ("the run's own plan", "the run's budget"))


def _block(bac: _Figure, done: _Figure, planned: _Figure, actual: _Figure, words: tuple[str, str]) -> EarnedValue:
    """`words`: how runs are weighted, and what is spent out where AC reaches BAC."""
    basis, budget = words
    pv, ev = _combine(bac, planned, mul), _combine(bac, done, mul)
    cpi, spi = _ratio(ev, actual, "nothing was spent yet"), _ratio(ev, pv, "nothing was planned to be spent by now")
    eac = _ratio(bac, cpi, "nothing was earned yet")
    left = _combine(bac, actual, sub)
    tcpi = _ratio(_combine(bac, ev, sub), left, f"{budget} is spent: no performance brings the rest in within it")
    if left.value is not None and left.value < 0:
        tcpi = _Figure(None, f"{budget} is overspent by {-left.value:,.0f} USD: no performance brings the rest in within it")
    found = {
        "pv_usd": pv,
        "ev_usd": ev,
        "ac_usd": actual,
        "cpi": cpi,
        "spi": spi,
        "eac_usd": eac,
        "tcpi": tcpi,
        "bac_usd": bac,
        "cv_usd": _combine(ev, actual, sub),
        "sv_usd": _combine(ev, pv, sub),
        "vac_usd": _combine(bac, eac, sub),
        "tokens_share": done,
    }
    unknown = tuple(UnknownFigure(name, figure.reason) for name, figure in found.items() if figure.value is None)
    return EarnedValue(**{name: figure.value for name, figure in found.items()}, basis=basis, unknown=unknown)


def _actual(runs: Sequence[CostedRun]) -> _Figure:
    """Actual cost of the runs [USD]; unknown where that of one run is: a partial sum would flatter."""
    unknown = next((run.unknown_reason for run in runs if run.unknown_reason), None)
    return _Figure(None, unknown) if unknown else _Figure(math.fsum(run.usd or 0.0 for run in runs))


def _actual_compute(run: CostedRun) -> _Figure:
    """Actual cost of a run's accelerators [USD]: its plan has no other lines, which the program plans around the runs."""
    if run.unknown_reason:
        return _Figure(None, run.unknown_reason)
    return _Figure(math.fsum(line.usd for line in run.lines if line.line == COMPUTE_LINE))


def _all_known(program: ProgramBaseline, scope: Sequence[RunBaseline]) -> bool:
    """Whether the runs cover the planned tokens and all have planned tokens and costs."""
    plans = [(run.tokens, run.usd) for run in scope]
    if not plans or not all(tokens and usd for tokens, usd in plans):
        return False
    whole = math.fsum(tokens or 0.0 for tokens, _ in plans)
    return program.planned_tokens is None or math.isclose(whole, program.planned_tokens, rel_tol=SAME)


def _cost_share(scope: Sequence[RunBaseline], runs: Sequence[CostedRun], positions: Sequence[float]) -> _Figure:
    """Share of the runs' planned cost that is earned; `scope` has the plans of `runs` first."""
    shares = [_work_share(*pair).value or 0.0 for pair in zip(runs, positions, strict=True)]
    shares += [0.0] * (len(scope) - len(runs))
    return _Figure(fmean(shares, [run.usd or 0.0 for run in scope]))


def _work_share(run: CostedRun, position: float) -> _Figure:
    """Share of a run's planned work that is done at a position [tokens], at most 1."""
    if not run.baseline.tokens:
        return _Figure(None, "no tokens of the run are planned")
    return _Figure(min(1.0, planned_share(run.baseline, position)))


def _tokens_share(program: ProgramBaseline, runs: Sequence[CostedRun], positions: Sequence[float]) -> _Figure:
    """Tokens of each run, at most as planned, over the planned tokens of the program, or of its runs without such a plan."""
    tokens = math.fsum(min(position, run.baseline.tokens or math.inf) for run, position in zip(runs, positions, strict=True))
    planned = program.planned_tokens or math.fsum(run.baseline.tokens or 0.0 for run in runs)
    return _share(tokens, planned, "no tokens are planned")


def _share(tokens: float, planned: float | None, reason: str) -> _Figure:
    """Share of the plan that is done, at most 1."""
    return _Figure(min(1.0, tokens / planned)) if planned else _Figure(None, reason)


def _planned_share(program: ProgramBaseline, runs: Sequence[RunBaseline], now: datetime, basis: Basis) -> _Figure:
    """Share of the budget planned until now: by the burn plan, else by the runs' dates, else evenly from start to deadline.

    Where runs of a plan are weighted by cost, their dates come first: the weeks hold reserve and people too, which the runs do not earn.
    """
    dated = bool(runs) and all(run.usd and run.start and run.finish for run in runs)
    if program.weeks and not (dated and program.runs and basis == "cost"):
        return _weeks_share(program.weeks, now, basis)
    if dated:
        shares = [_span_share(run.start, run.finish, now).value or 0.0 for run in runs]
        return _Figure(fmean(shares, [run.usd or 0.0 for run in runs]))
    return _span_share(program.start, program.deadline, now)


def _weeks_share(weeks: Sequence[PlannedWeek], now: datetime, basis: Basis) -> _Figure:
    """Share of the burn plan until now, evenly within a week: by USD, or by tokens where these measure progress."""
    amounts = [week.usd if basis == "cost" else week.tokens for week in weeks]
    if not any(amounts):
        return _Figure(None, "the burn plan is empty")
    return _Figure(fmean([share_passed(week, now) for week in weeks], amounts))


def share_passed(week: PlannedWeek, now: datetime) -> float:
    """Share of a planned week that has passed [1]."""
    return min(1.0, max(0.0, (now - midnight(week.week)) / WEEK))


def _span_share(start: date | None, finish: date | None, now: datetime) -> _Figure:
    """Share of the time between two days that has passed."""
    if start is None or finish is None or finish < start:
        return _Figure(None, "no start and deadline are planned")
    whole = max(midnight(finish) - midnight(start), timedelta(days=1))
    return _Figure(min(1.0, max(0.0, (now - midnight(start)) / whole)))


def midnight(day: date) -> datetime:
    """Beginning of a day, UTC."""
    return datetime.combine(day, time(), UTC)


def _combine(first: _Figure, second: _Figure, operation: Callable[[float, float], float]) -> _Figure:
    """The result of two figures; unknown where one is, with the first reason."""
    if first.value is None or second.value is None:
        return _Figure(None, first.reason if first.value is None else second.reason)
    return _Figure(operation(first.value, second.value))


def _ratio(first: _Figure, second: _Figure, reason: str) -> _Figure:
    """The ratio of two figures; unknown for `reason` where the second is 0."""
    if first.value is not None and second.value == 0:
        return _Figure(None, reason)
    return _combine(first, second, truediv)
