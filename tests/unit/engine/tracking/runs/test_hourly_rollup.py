"""Folds of hours: a pure function of the set of effective events, that survives JSON exactly."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.tracking.events import Event, EventType
from service.engine.tracking.runs.hourly_rollup import (
    TYPES,
    HourlyRollup,
    apply_corrections,
    hour_of,
    roll_up_hour,
    rollup_from_json,
    rollup_to_json,
)
from tests.unit.engine.tracking_builders import at, correction, cost, event

counts = st.none() | st.integers(0, 2**52)
running: dict[str, st.SearchStrategy[Any]] = {
    "step": counts,
    "tokens": counts,
    "accelerator_hours": st.none() | st.floats(0, 1e9),
    "cost_micro_usd": counts,
    "accelerators": st.none() | st.integers(0, 10**5),
    "loss": st.none() | st.floats(),
    "mfu": st.none() | st.floats(0, 1),
}
own: dict[EventType, dict[str, st.SearchStrategy[Any]]] = {
    "progress": running,
    "interruption": {**running, "cause": st.text(max_size=5)},
    "restart": running,
    "checkpoint": {**running, "bytes": st.integers(0, 10**13)},
    "rollback": {**running, "tokens": st.integers(0, 10**15)},
    "branch": {**running, "from_step": st.integers(0, 10**6), "name": st.text(max_size=5)},
    "evaluation": {"metric": st.text(max_size=5), "value": st.floats()},
    "cost": {"micro_usd": st.integers(-(10**15), 10**15), "line": st.sampled_from(["compute", "storage"])},
    "utilisation": {"share": st.floats(0, 1)},
    "decision": {"gate": st.just("midpoint"), "verdict": st.sampled_from(["continue", "stop"])},
    "note": {"text": st.text(max_size=5)},
}


@st.composite
def told(draw: Callable[[st.SearchStrategy[Any]], Any], within: float = 0.999) -> list[Event]:
    """Events of one hour, many of them at the same moments."""
    kinds = draw(st.lists(st.sampled_from(sorted(own)), max_size=12))
    moments = st.sampled_from([0.0, 0.25, 0.5]) | st.floats(0, within)
    found = [event(draw(moments), kind, **{name: draw(values) for name, values in own[kind].items()}) for kind in kinds]
    return [each._replace(id=f"{place}") for place, each in enumerate(found)]


@given(told(), st.randoms(use_true_random=False), st.integers(1, 3))
def test_order_and_repetition_change_nothing(events: list[Event], random: Any, times: int) -> None:
    """Shuffled, and each of them told several times, they fold to the same text."""
    turned = events * times
    random.shuffle(turned)
    assert rollup_to_json(roll_up_hour(turned)) == rollup_to_json(roll_up_hour(events))


@given(told())
def test_json_keeps_a_fold_exactly(events: list[Event]) -> None:
    """What comes back is equal, and has no more text than before."""
    fold = roll_up_hour(events)
    text = rollup_to_json(fold)
    assert rollup_from_json(text) == fold
    assert rollup_to_json(rollup_from_json(text)) == text


@given(told())
def test_every_event_counts_once(events: list[Event]) -> None:
    """Counts are by type, and all of them together are the events."""
    assert roll_up_hour(events).counts == tuple(sum(each.type == name for each in events) for name in TYPES)


@given(told(), st.randoms(use_true_random=False), st.data())
def test_corrections_work_in_any_order(events: list[Event], random: Any, data: st.DataObject) -> None:
    """Corrections, and corrections of corrections, give the same events however they come; nothing is in place of what they take back."""
    corrections: list[Event] = []
    for number in range(data.draw(st.integers(0, 6))):
        named = data.draw(st.sampled_from([*events, *corrections])) if events else event(0, "note", text="x")
        given_fields = data.draw(st.sampled_from([{}, {"tokens": 5}, {"loss": 2.0, "value": 1.0}]))
        corrections.append(correction(number % 3, named, **given_fields)._replace(id=f"c{number}"))
    turned, other = list(events), list(corrections)
    random.shuffle(turned)
    random.shuffle(other)
    assert repr(apply_corrections(turned * 2, other * 2)) == repr(apply_corrections(events, corrections))


def test_no_events_fold_to_nothing() -> None:
    """An hour without events is an empty fold."""
    assert roll_up_hour([]) == HourlyRollup()
    assert rollup_from_json(rollup_to_json(HourlyRollup())) == HourlyRollup()


def test_events_of_two_hours_are_refused() -> None:
    """A fold is of one hour."""
    with pytest.raises(ValueError, match="not of one hour"):
        roll_up_hour([event(0.5), event(1.5)])


def test_a_steady_hour_is_its_two_ends() -> None:
    """Of 3,600 reports that rise, the first and the last are kept."""
    fold = roll_up_hour(event(second / 3600, tokens=second, usd=second, step=second) for second in range(3600))
    assert [sample[2] for sample in fold.samples] == [0, 3599]


def test_turning_points_are_kept() -> None:
    """Both sides of a fall, of a mark, and the first and last of a total that is told later."""
    rows = [event(0.1, tokens=10), event(0.2, tokens=20), event(0.3, tokens=30), event(0.4, tokens=15), event(0.5, tokens=25)]
    rows += [event(0.6, tokens=35), event(0.7, "interruption", cause="gpu"), event(0.8, "restart"), event(0.9, tokens=45)]
    assert [sample[3] for sample in roll_up_hour(rows).samples] == [10, 30, 15, 35, None, None, 45]
    late = [event(0.1, tokens=1), event(0.2, tokens=2, usd=5.0), event(0.3, tokens=3, usd=6.0), event(0.4, tokens=4)]
    assert [sample[5] for sample in roll_up_hour(late).samples] == [None, 5_000_000, 6_000_000, None]


def test_losses_are_summed_up() -> None:
    """Count, those that are no numbers, last, least, median and most; the last is None where it is no number."""
    losses = roll_up_hour(event(place / 10, loss=loss) for place, loss in enumerate([3.0, 2.0, 9.0, math.inf])).losses
    assert losses is not None
    assert (losses.count, losses.not_finite, losses.last) == (4, 1, None)
    assert (losses.lowest, losses.median, losses.highest) == (2.0, 3.0, 9.0)


def test_checkpoints_and_money_are_summed_up() -> None:
    """Bytes, the longest gap, costs by line, bills by line and end."""
    rows = [event(0.1, "checkpoint", bytes=5), event(0.2, "checkpoint", bytes=6), event(0.5, "checkpoint", bytes=7)]
    rows += [cost(0.3, 2.0, "storage"), cost(0.4, 1.0, "storage"), cost(0.5, 7.0, until=0.25), cost(0.6, -1.0, until=0.25)]
    fold = roll_up_hour(rows)
    assert fold.checkpoints is not None
    assert (fold.checkpoints.count, fold.checkpoints.bytes, fold.checkpoints.longest_gap) == (3, 18, 1_080_000_000)
    assert fold.costs == (("storage", 3_000_000),)
    assert [bill[:2] for bill in fold.bills] == [("compute", 6_000_000)]


def test_a_correction_replaces_fields_and_keeps_the_time() -> None:
    """What it does not name stays, and so does the moment."""
    wrong = event(1, tokens=10, loss=3.0)
    assert apply_corrections([wrong], [correction(9, wrong, tokens=20)]) == [wrong._replace(tokens_done=20)]


def test_a_correction_without_fields_takes_back() -> None:
    """And one of that takes the taking back back."""
    wrong = event(1, tokens=10)
    void = correction(2, wrong)
    assert apply_corrections([wrong], [void]) == []
    assert apply_corrections([wrong], [correction(3, void), void]) == [wrong]


def test_a_correction_waits_for_its_event() -> None:
    """It may come first: alone it is nothing, and holds as soon as the event is there."""
    late = event(1, tokens=10)
    early = correction(0.5, late, tokens=12)
    assert apply_corrections([], [early]) == []
    assert apply_corrections([late], [early])[0].tokens_done == 12


def test_corrections_of_one_event_follow_each_other() -> None:
    """By their time, whichever came first; the last says whether the event is taken back."""
    wrong = event(1, tokens=10, loss=3.0)
    first, second = correction(2, wrong, tokens=20, loss=4.0), correction(3, wrong, tokens=30)
    found = apply_corrections([wrong], [second, first])[0]
    assert (found.tokens_done, found.loss) == (30, 4.0)
    assert apply_corrections([wrong], [correction(4, wrong), first]) == []


def test_a_correction_changes_only_what_the_type_takes() -> None:
    """A note has no tokens, corrected or not."""
    note = event(1, "note", text="x")
    assert apply_corrections([note], [correction(2, note, tokens=5)]) == [note]


def test_long_chains_of_corrections_hold() -> None:
    """Ten thousand corrections, each of the one before."""
    last = event(0, tokens=1)
    chain = [last]
    for number in range(10_000):
        chain.append(correction(number, chain[-1], tokens=number))
    assert apply_corrections([last], chain[1:])[0].tokens_done == 9_999


def test_hours_count_from_1970() -> None:
    """Whole hours, UTC."""
    assert hour_of(at(1.5)) - hour_of(at(0)) == 1
