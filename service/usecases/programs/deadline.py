"""When a program starts, and its deadline options: more accelerators, less scope, an earlier start, each planned as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

from service.domain.errors import DoesNotFit, InvalidRequest
from service.domain.programs.plan import ProgramPlan
from service.domain.programs.program import Tier
from service.domain.programs.runs import PlannedRun, RunCostLine, RunRepetition
from service.domain.schedule import ActivityNetwork, DeadlineOption, ScheduleAlternative
from service.engine.numerics.money import share_usd
from service.engine.scheduling.critical_path import deadline_hours, latest_network_start
from service.engine.scheduling.deadline_options import DeadlineTarget, rank_options, start_earlier
from service.engine.scheduling.durations import DurationDraws, draw_deviations
from service.presets.programs import find_program_default
from service.usecases.programs.defaults import take_or_default
from service.usecases.programs.runs import merge_requests
from service.usecases.resolution.assumption_log import AssumptionLog

Request = Mapping[str, Any]

SEED = 0
NOT_STATED = "not stated: today"


@dataclass(frozen=True, slots=True)
class ProgramDraft:
    """A program's plan and its network."""

    plan: ProgramPlan
    network: ActivityNetwork


@dataclass(frozen=True, slots=True)
class AlternativePlanner:
    """Plans alternatives: a changed request from the beginning, or the same request with other tiers or another start."""

    plan_request: Callable[[Request], ProgramDraft]
    plan_tiers: Callable[[tuple[Tier, ...]], ProgramDraft]
    plan_start: Callable[[date], ProgramDraft]


def draw_durations(network: ActivityNetwork) -> DurationDraws:
    """The draws that a program and its alternatives are compared on; they do not depend on the start."""
    return draw_deviations(network.activities, SEED)


def resolve_target_probability(request: Request, notes: AssumptionLog) -> float:
    """The probability with which the deadline is to be met."""
    probability: float = take_or_default(request.get("schedule", {}), "schedule.target_probability", notes)
    return probability


def resolve_start(request: Request, today: date, network: Callable[[date], ActivityNetwork], notes: AssumptionLog) -> date:
    """The stated day; else the last that meets the deadline with the target probability; else today.

    Raises InvalidRequest for a deadline before the start, and one that no start meets.
    """
    stated, deadline = request.get("start"), request.get("deadline")
    if deadline is None:
        return notes.assume("start", today, NOT_STATED) if stated is None else stated  # type: ignore[no-any-return]
    if stated is not None:
        deadline_hours(stated, deadline)
        return stated  # type: ignore[no-any-return]
    earliest = network(min(today, deadline))
    latest = latest_network_start(earliest, draw_durations(earliest), deadline, resolve_target_probability(request, notes))
    if latest.start is None:
        raise InvalidRequest(
            f"no start meets the deadline with that probability, fixed dates leave {latest.best_probability:.0%}: move one of them",
            "/deadline",
        )
    if latest.start < today:
        notes.warn(f"backwards from the deadline the program had to start on {latest.start}, before today")
    return notes.assume("start", latest.start, f"the last day that meets the deadline with {latest.probability:.0%}")  # type: ignore[no-any-return]


def find_deadline_options(
    request: Request, draft: ProgramDraft, tiers: Sequence[Tier], target: DeadlineTarget, planner: AlternativePlanner, notes: AssumptionLog
) -> tuple[DeadlineOption, ...]:
    """What each alternative does to the deadline, and its price; each is planned and priced as a whole."""
    plan = _alternative("", "", draft)
    alternatives = [*_accelerator_alternatives(request, planner, notes), *_scope_alternatives(request, tiers, planner, notes)]
    start = plan.network.start
    earlier = start_earlier(plan, target, lambda days: planner.plan_start(start - timedelta(days=days)).plan.total_usd.p50)
    return rank_options(plan, [*alternatives, *([earlier] if earlier else [])], target)


def scale_run(run: PlannedRun, share: float) -> PlannedRun:
    """A run on a share of its tokens; all it uses falls in proportion."""
    return replace(
        run,
        lines=tuple(RunCostLine(line.line, share_usd(share, line.usd)) for line in run.lines),
        use=run.use.scaled(share),
        reliability=replace(
            run.reliability, interruptions=run.reliability.interruptions * share, lost_hours=run.reliability.lost_hours * share
        ),
    )


def _accelerator_alternatives(request: Request, planner: AlternativePlanner, notes: AssumptionLog) -> Iterator[ScheduleAlternative]:
    """The program on more accelerators, where its runs take their number from the defaults."""
    count = request.get("defaults", {}).get("hardware", {}).get("count")
    if count is None:
        return
    factor = find_program_default("accelerators_factor")
    for other in notes.take(request.get("schedule", {}), "schedule.accelerators", [count * factor.value], factor.source):
        try:
            draft = planner.plan_request(merge_requests(request, {"defaults": {"hardware": {"count": other}}}))
        except (DoesNotFit, InvalidRequest) as problem:
            notes.warn(f"the deadline cannot be bought back with {other:,} accelerators: {problem.message}")
            continue
        yield _alternative("accelerators", f"{other:,} accelerators instead of {count:,}", draft)


def _scope_alternatives(
    request: Request, tiers: Sequence[Tier], planner: AlternativePlanner, notes: AssumptionLog
) -> Iterator[ScheduleAlternative]:
    """The program with one tier's runs on fewer tokens, and with half of one tier's repeats."""
    share = take_or_default(request.get("schedule", {}), "schedule.scope_share", notes)
    for index, tier in enumerate(tiers):
        before, after = tiers[:index], tiers[index + 1 :]
        smaller = replace(tier, runs=tuple(scale_run(run, share) for run in tier.runs))
        yield _alternative("scope", f"{share:.0%} of the tokens of tier {tier.tier}", planner.plan_tiers((*before, smaller, *after)))
        if any(run.repetition.repeat > 1 for run in tier.runs):
            fewer = replace(tier, runs=tuple(replace(run, repetition=_halve_repeats(run.repetition)) for run in tier.runs))
            yield _alternative("scope", f"half of the repeats of tier {tier.tier}", planner.plan_tiers((*before, fewer, *after)))


def _halve_repeats(repetition: RunRepetition) -> RunRepetition:
    return replace(repetition, repeat=-(-repetition.repeat // 2))


def _alternative(lever: str, change: str, draft: ProgramDraft) -> ScheduleAlternative:
    return ScheduleAlternative(lever, change, draft.network, draft.plan.total_usd.p50)
