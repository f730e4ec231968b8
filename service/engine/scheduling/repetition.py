"""Activities that are done once more, as a tier is whose gate was failed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from service.domain.schedule import Activity


@dataclass(frozen=True, slots=True)
class Repetition:
    """The repeat of that number after the activity `after`: with `probability` [1], as the activity `occurs_with` decides."""

    number: int
    after: str
    probability: float
    occurs_with: str


def repeat_name(activity: str, number: int) -> str:
    """Name of the repeat of an activity; its own for number 0."""
    return f"{activity} (repeat {number})" if number else activity


def repeat_activities(activities: Sequence[Activity], once: Collection[str], repetition: Repetition) -> list[Activity]:
    """The activities once more, in the same order among themselves.

    Parameters
    ----------
    activities : sequence of Activity
        The first attempt; each after those of it that it waits for.
    once : collection of str
        Names of those that are not repeated; what waits for them waits for what they wait for.
    repetition : Repetition
        Number, predecessor and probability of the repeat.

    Returns
    -------
    list of Activity
        What waits for nothing else of the attempt waits for `after`. All take place together, or none of them.
    """
    named = {activity.name: activity for activity in activities}

    def predecessors(names: Iterable[str]) -> tuple[str, ...]:
        found: list[str] = []
        for name in names:
            if name in once and name in named:
                found += predecessors(named[name].predecessors)
            else:
                found.append(repeat_name(name, repetition.number) if name in named else repetition.after)
        return tuple(dict.fromkeys(found))

    return [
        replace(
            activity,
            name=repeat_name(activity.name, repetition.number),
            predecessors=predecessors(activity.predecessors) or (repetition.after,),
            not_before=None,
            proportional_to=tuple((repeat_name(name, repetition.number), factor) for name, factor in activity.proportional_to),
            probability=repetition.probability,
            occurs_with=((repetition.occurs_with, 1.0),),
            repeats=activity.name,
        )
        for activity in activities
        if activity.name not in once
    ]
