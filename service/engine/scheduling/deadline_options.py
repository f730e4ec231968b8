"""What buys a deadline back: the program with one thing changed, its probability to be in time, and what that costs.

Alternatives are networks with their price, made by whoever knows what an accelerator more does to a run. All are judged on the same draws
by activity (common random numbers, Glasserman and Yao 1992), so that what is compared is the change and not luck: a smaller or faster
program is never found to be later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import date

from service.domain.schedule import DeadlineOption, ScheduleAlternative
from service.engine.scheduling.critical_path import deadline_probability, latest_network_start
from service.engine.scheduling.durations import DurationDraws


@dataclass(frozen=True, slots=True)
class DeadlineTarget:
    """What is to be reached: over by the end of the deadline's day with this probability, judged on these draws."""

    deadline: date
    probability: float
    drawn: DurationDraws


def rank_options(
    plan: ScheduleAlternative, alternatives: Iterable[ScheduleAlternative], wanted: DeadlineTarget
) -> tuple[DeadlineOption, ...]:
    """What each alternative does to the plan's deadline: first those that reach what is wanted, the cheapest first, then the others, the
    most probable first. Raises as `schedule_network.schedule`.
    """
    now = _probability(plan, wanted)
    return tuple(sorted((_assess_option(plan, now, alternative, wanted) for alternative in alternatives), key=_rank))


def start_earlier(
    plan: ScheduleAlternative, wanted: DeadlineTarget, usd_when_days_earlier: Callable[[int], float]
) -> ScheduleAlternative | None:
    """The plan from the last day on which it reaches what is wanted, at what the program costs so many days earlier.

    None where the plan's own start does already, or no start does because of fixed dates. Raises as `latest_network_start`.
    """
    latest = latest_network_start(plan.network, wanted.drawn, wanted.deadline, wanted.probability)
    if latest.start is None or latest.start >= plan.network.start:
        return None
    days = (plan.network.start - latest.start).days
    network = replace(plan.network, start=latest.start)
    length = f"{days} day{'' if days == 1 else 's'}"
    return ScheduleAlternative("start", f"start {length} earlier, on {latest.start}", network, usd_when_days_earlier(days))


def _probability(alternative: ScheduleAlternative, wanted: DeadlineTarget) -> float:
    return deadline_probability(alternative.network, wanted.drawn, wanted.deadline)


def _assess_option(plan: ScheduleAlternative, now: float, alternative: ScheduleAlternative, wanted: DeadlineTarget) -> DeadlineOption:
    probability = _probability(alternative, wanted)
    price, gained = round(alternative.total_usd - plan.total_usd, 2), probability - now
    return DeadlineOption(
        lever=alternative.lever,
        change=alternative.change,
        probability=probability,
        probability_gain=gained,
        price_usd=price,
        usd_per_point=price / (100 * gained) if gained > 0 else None,
        reaches_target=probability >= wanted.probability,
    )


def _rank(found: DeadlineOption) -> tuple[bool, float, str, str]:
    return not found.reaches_target, found.price_usd if found.reaches_target else -found.probability, found.lever, found.change
