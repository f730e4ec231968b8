"""Programs that share accelerators: their networks in one calendar, levelled by rank, and the end of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from service.domain.quantities import Range
from service.domain.schedule import AcceleratorPool, Activity, ActivityNetwork
from service.domain.training.estimate import FinishDates
from service.engine.scheduling.activity_network import OrderedNetwork, order_network
from service.engine.scheduling.calendar import hours_until
from service.engine.scheduling.critical_path import (
    deadline_hours,
    finish_dates,
    forward_pass,
    median_durations,
    percentile_hours,
    share_in_time,
)
from service.engine.scheduling.durations import DurationDraws, draw_deviations, sample_durations
from service.engine.scheduling.reservations import reserve_starts
from service.engine.scheduling.resource_levelling import LevelledNetwork, level_resources

Floats = NDArray[np.float64]
SEPARATOR = "\n\n"
"""Between a program's and an activity's name; no name has a line break, and queues of activities have one."""
START = "start of the program"


@dataclass(frozen=True, slots=True)
class MemberProgram:
    """A program of a portfolio: its network without hand-overs, from its own start on. Programs of the lowest `rank` go first."""

    name: str
    network: ActivityNetwork
    rank: int
    deadline: date | None


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """End of a program: days by percentile, its median [h since the portfolio's start], the probability of its deadline [1], if it has one.

    `planned_hours`: the end with every duration at its median [h since the program's own start].
    """

    finish: FinishDates
    median_hours: float
    deadline_probability: float | None
    planned_hours: float


def member_activity(program: str, activity: str) -> str:
    """The name of a program's activity in the portfolio's network."""
    return f"{program}{SEPARATOR}{activity}"


def split_name(name: str) -> tuple[str, str]:
    """The program and the activity of a name in the portfolio's network."""
    program, _, activity = name.partition(SEPARATOR)
    return program, activity


def join_networks(members: Sequence[MemberProgram]) -> ActivityNetwork:
    """One network of all programs from the earliest start on.

    Parameters
    ----------
    members : sequence of MemberProgram
        Programs of different names.

    Returns
    -------
    ActivityNetwork
        Activities by `member_activity`; a program that starts later waits for an event at the beginning of its first day.
    """
    start = min(member.network.start for member in members)
    activities: list[Activity] = []
    for member in members:
        first: tuple[str, ...] = ()
        if member.network.start > start:
            first = (member_activity(member.name, START),)
            eve = member.network.start - timedelta(days=1)
            activities.append(Activity(first[0], Range.exactly(0.0), not_before=eve))
        activities += [_joined(member.name, activity, first) for activity in member.network.activities]
    return ActivityNetwork(start, tuple(activities))


def level_portfolio(members: Sequence[MemberProgram], pools: Sequence[AcceleratorPool]) -> LevelledNetwork:
    """The joint network with a predecessor more for every hand-over of accelerators.

    Parameters
    ----------
    members : sequence of MemberProgram
        Programs by rank: no program is later, by medians, because of one of a lower rank. Equal ranks wait for each other in turn.
    pools : sequence of AcceleratorPool
        Accelerators that they share.

    Returns
    -------
    LevelledNetwork
        As `level_resources`.

    Raises
    ------
    InvalidRequest, UnknownName
        As `level_resources`.
    """
    joint = join_networks(members)
    by_name = {member.name: member.rank for member in members}
    ranks = {activity.name: by_name[split_name(activity.name)[0]] for activity in joint.activities}
    return level_resources(joint, pools, reserve_starts(joint, pools, ranks))


def draw_portfolio(members: Sequence[MemberProgram], seed: int) -> DurationDraws:
    """Deviations of all activities: each program's own, and one common deviation for the errors of planning that all share.

    The first program has the draws that it has alone with the same seed, each further one those of the next seed.
    """
    own: dict[str, NDArray[np.float32]] = {}
    for place, member in enumerate(members):
        draws = draw_deviations(member.network.activities, seed + place)
        own |= {member_activity(member.name, name): values for name, values in draws.own.items()}
    return DurationDraws(own, draws.common)


def program_ends(network: ActivityNetwork, members: Sequence[MemberProgram], draws: DurationDraws) -> dict[str, ProgramEnd]:
    """The end of each program in a joint network, levelled or not.

    Parameters
    ----------
    network : ActivityNetwork
        As `join_networks` names its activities.
    members : sequence of MemberProgram
        Its programs.
    draws : DurationDraws
        As `draw_portfolio` makes them.

    Returns
    -------
    dict of str to ProgramEnd
        By the program's name.

    Raises
    ------
    InvalidRequest
        For a deadline before its program's start.
    """
    net = order_network(network)
    drawn = forward_pass(net, sample_durations(net, draws)).finishes
    planned = forward_pass(net, median_durations(net)).finishes[:, 0]
    rows = _rows_by_program(net)
    return {member.name: _program_end(member, network.start, drawn[rows[member.name]], planned[rows[member.name]]) for member in members}


def _joined(program: str, activity: Activity, first: tuple[str, ...]) -> Activity:
    """The activity with its names in the portfolio."""
    return replace(
        activity,
        name=member_activity(program, activity.name),
        predecessors=tuple(member_activity(program, name) for name in activity.predecessors) or first,
        proportional_to=tuple((member_activity(program, name), factor) for name, factor in activity.proportional_to),
        occurs_with=tuple((member_activity(program, name), weight) for name, weight in activity.occurs_with),
        repeats=member_activity(program, activity.repeats) if activity.repeats else "",
    )


def _rows_by_program(net: OrderedNetwork) -> Mapping[str, list[int]]:
    rows: dict[str, list[int]] = {}
    for row, activity in enumerate(net.activities):
        rows.setdefault(split_name(activity.name)[0], []).append(row)
    return rows


def _program_end(member: MemberProgram, start: date, drawn: Floats, planned: Floats) -> ProgramEnd:
    own = member.network.start
    end, percentiles = drawn.max(axis=0), percentile_hours(drawn.max(axis=0)[np.newaxis])[0]
    limit = None if member.deadline is None else deadline_hours(own, member.deadline) + hours_until(start, own)
    return ProgramEnd(
        finish=finish_dates(start, percentiles),
        median_hours=float(percentiles[1]),
        deadline_probability=None if limit is None else share_in_time(end, limit),
        planned_hours=float(planned.max()) - hours_until(start, own),
    )
