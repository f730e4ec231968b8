"""When a program starts and what buys its deadline back: more accelerators, a smaller scope, an earlier start, each planned whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

from service.domain.errors import DoesNotFit, InvalidRequest
from service.domain.programs.program import PlannedRun, ProgramPlan, RunCostLine, RunRepetition, Tier
from service.domain.schedule import ActivityNetwork, DeadlineOption, ScheduleAlternative
from service.engine.numerics.money import share_usd
from service.engine.scheduling.critical_path import deadline_hours, latest_network_start
from service.engine.scheduling.deadline_options import DeadlineTarget, rank_options, start_earlier
from service.engine.scheduling.durations import DurationDraws, draw_seeded
from service.presets.programs import find_program_default
from service.usecases.programs.runs import merge_requests
from service.usecases.resolution.assumption_log import AssumptionLog

Given = Mapping[str, Any]

SEED = 0
NOT_STATED = "not stated: today"


@dataclass(frozen=True, slots=True)
class ProgramDraft:
    """A program planned and put in time."""

    plan: ProgramPlan
    network: ActivityNetwork


@dataclass(frozen=True, slots=True)
class AlternativePlanner:
    """How an alternative is planned: a request from the beginning, or the same request with other runs or from another day on."""

    of_request: Callable[[Given], ProgramDraft]
    of_tiers: Callable[[tuple[Tier, ...]], ProgramDraft]
    of_start: Callable[[date], ProgramDraft]


def draw_durations(network: ActivityNetwork) -> DurationDraws:
    """The draws that a program and its alternatives are judged on, the same whenever it starts: a start found on them is enough on them."""
    return draw_seeded(network.activities, SEED)


def resolve_target_probability(request: Given, notes: AssumptionLog) -> float:
    """How probable it is to be that the deadline is met."""
    fallback = find_program_default("wanted_probability")
    probability: float = notes.take(request.get("schedule", {}), "schedule.wanted_probability", fallback.value, fallback.source)
    return probability


def resolve_start(request: Given, today: date, network: Callable[[date], ActivityNetwork], notes: AssumptionLog) -> date:
    """The day stated; else the last from which the deadline is met with the wanted probability; else today.

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
    request: Given, draft: ProgramDraft, tiers: Sequence[Tier], target: DeadlineTarget, planner: AlternativePlanner, notes: AssumptionLog
) -> tuple[DeadlineOption, ...]:
    """What each lever does to the deadline, and its price: each alternative is planned and priced whole."""
    plan = _alternative("", "", draft)
    found = [*_accelerator_alternatives(request, planner, notes), *_scope_alternatives(request, tiers, planner, notes)]
    earlier = start_earlier(plan, target, lambda days: planner.of_start(plan.network.start - timedelta(days=days)).plan.total_usd.p50)
    return rank_options(plan, [*found, *([earlier] if earlier else [])], target)


def scale_run(run: PlannedRun, share: float) -> PlannedRun:
    """A run of so many of its tokens: all that it takes is as much less."""
    lines = tuple(RunCostLine(line.line, share_usd(share, line.usd)) for line in run.lines)
    return replace(
        run,
        lines=lines,
        usd=run.usd.scaled(share),
        accelerator_hours=run.accelerator_hours.scaled(share),
        wall_clock_hours=run.wall_clock_hours.scaled(share),
        **{name: getattr(run, name) * share for name in ("flops", "tokens", "interruptions", "lost_hours", "tco2e")},
    )


def _accelerator_alternatives(request: Given, planner: AlternativePlanner, notes: AssumptionLog) -> Iterator[ScheduleAlternative]:
    """The program on more accelerators, where its runs take their number from the defaults."""
    count = request.get("defaults", {}).get("hardware", {}).get("count")
    if count is None:
        return
    factor = find_program_default("accelerators_factor")
    schedule = request.get("schedule", {})
    for other in notes.take(schedule, "schedule.accelerators", [count * factor.value], factor.source):
        try:
            draft = planner.of_request(merge_requests(request, {"defaults": {"hardware": {"count": other}}}))
        except (DoesNotFit, InvalidRequest) as problem:
            notes.warn(f"the deadline cannot be bought back with {other:,} accelerators: {problem.message}")
            continue
        yield _alternative("accelerators", f"{other:,} accelerators instead of {count:,}", draft)


def _scope_alternatives(
    request: Given, tiers: Sequence[Tier], planner: AlternativePlanner, notes: AssumptionLog
) -> Iterator[ScheduleAlternative]:
    """The program with each tier's runs on fewer tokens, and a sweep on the critical machine with half of its candidates."""
    fallback = find_program_default("scope_share")
    share = notes.take(request.get("schedule", {}), "schedule.scope_share", fallback.value, fallback.source)
    for at, tier in enumerate(tiers):
        smaller = replace(tier, runs=tuple(scale_run(run, share) for run in tier.runs))
        yield _alternative(
            "scope", f"{share:.0%} of the tokens of tier {tier.tier}", planner.of_tiers((*tiers[:at], smaller, *tiers[at + 1 :]))
        )
        if any(run.repetition.repeat > 1 for run in tier.runs):
            fewer = replace(tier, runs=tuple(replace(run, repetition=_halve_repeats(run.repetition)) for run in tier.runs))
            yield _alternative(
                "scope", f"half of the repeats of tier {tier.tier}", planner.of_tiers((*tiers[:at], fewer, *tiers[at + 1 :]))
            )


def _halve_repeats(repetition: RunRepetition) -> RunRepetition:
    return replace(repetition, repeat=-(-repetition.repeat // 2))


def _alternative(lever: str, change: str, draft: ProgramDraft) -> ScheduleAlternative:
    return ScheduleAlternative(lever, change, draft.network, draft.plan.total_usd.p50)
