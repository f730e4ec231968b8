"""Deadline options: the program with one change, its probability of meeting the deadline, and the price of that.

Alternatives are networks with their costs. All are judged on the same draws by activity (common random numbers, Glasserman and Yao 1992),
so a smaller or faster program is never found to be later.
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
    """Finish by the end of the deadline's day with this probability, judged on these draws."""

    deadline: date
    probability: float
    draws: DurationDraws


def rank_options(
    plan: ScheduleAlternative, alternatives: Iterable[ScheduleAlternative], target: DeadlineTarget
) -> tuple[DeadlineOption, ...]:
    """Effect of each alternative on the deadline.

    Parameters
    ----------
    plan : ScheduleAlternative
        The plan with its cost [USD].
    alternatives : iterable of ScheduleAlternative
        Changed plans with their costs [USD].
    target : DeadlineTarget
        Deadline and probability to reach.

    Returns
    -------
    tuple of DeadlineOption
        First those that reach the target, by rising price; then the others, by falling probability.

    Raises
    ------
    InvalidRequest, UnknownName
        As `order_network` and `deadline_hours`.
    """
    probability = _probability(plan, target)
    return tuple(sorted((_assess_option(plan, probability, alternative, target) for alternative in alternatives), key=_rank))


def start_earlier(
    plan: ScheduleAlternative, target: DeadlineTarget, usd_when_days_earlier: Callable[[int], float]
) -> ScheduleAlternative | None:
    """The plan from the last day on which it reaches the target.

    Parameters
    ----------
    plan : ScheduleAlternative
        The plan.
    target : DeadlineTarget
        Deadline and probability to reach.
    usd_when_days_earlier : callable
        Cost of the program that starts a number of days earlier [USD].

    Returns
    -------
    ScheduleAlternative or None
        None where the plan's own start reaches the target, or no start does.

    Raises
    ------
    InvalidRequest, UnknownName
        As `latest_network_start`.
    """
    latest = latest_network_start(plan.network, target.draws, target.deadline, target.probability)
    if latest.start is None or latest.start >= plan.network.start:
        return None
    days = (plan.network.start - latest.start).days
    network = replace(plan.network, start=latest.start)
    length = f"{days} day{'' if days == 1 else 's'}"
    return ScheduleAlternative("start", f"start {length} earlier, on {latest.start}", network, usd_when_days_earlier(days))


def _probability(alternative: ScheduleAlternative, target: DeadlineTarget) -> float:
    return deadline_probability(alternative.network, target.draws, target.deadline)


def _assess_option(
    plan: ScheduleAlternative, plan_probability: float, alternative: ScheduleAlternative, target: DeadlineTarget
) -> DeadlineOption:
    probability = _probability(alternative, target)
    price, gain = round(alternative.total_usd - plan.total_usd, 2), probability - plan_probability
    return DeadlineOption(
        lever=alternative.lever,
        change=alternative.change,
        probability=probability,
        probability_gain=gain,
        price_usd=price,
        usd_per_point=price / (100 * gain) if gain > 0 else None,
        reaches_target=probability >= target.probability,
    )


def _rank(option: DeadlineOption) -> tuple[bool, float, str, str]:
    return not option.reaches_target, option.price_usd if option.reaches_target else -option.probability, option.lever, option.change
