"""Events are read quickly where nothing is wrong with them, and mean the same as the slow way reads them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from marshmallow import ValidationError

from service.domain.tracking.events import API_NAMES, EVENT_FIELDS, Event
from service.schemas.tracking.events import EventSchema, EventsSchema
from service.store.tracking.event_rows import body_text, event_row

ONE, MANY = EventSchema(), EventsSchema()
AT = "2026-02-01T12:00:00.25+01:00"
TYPED = {
    "id": "step-1",
    "at": AT,
    "billed_until": AT,
    "verdict": "pivot",
    "supersedes": "step-0",
    "gate": "midpoint",
    "text": "two\nlines",
    "risk": "loss spike",
    "state": "occurred",
    "line": "storage",
    "cause": "hardware",
    "name": "wider",
    "metric": "mmlu",
    "mfu": 0.41,
    "share": 1,
    "loss": "nan",
}
GOOD = {name: TYPED.get(name, 7) for name in ONE.fields if name != "type"}
# Of every kind that JSON knows, those that a field may take by a hair and those that it may not.
ANYTHING: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(
        [None, True, 0, -1, 7.0, 7.5, 10**18, 10**19, 1e300, "", "7", "70B", "nan", "x\0", "x" * 300, AT, "2026-02-30T00:00:00Z", []]
    ),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
)


def names_no_type(changes: dict[str, Any]) -> bool:
    """Whether no other type is given as text: of an unknown one a batch rejects the event alone."""
    return not isinstance(changes.get("type"), str)


def given_as_good(kind: str, names: list[str]) -> dict[str, Any]:
    """An event of that type with those of its fields, and the fields it cannot do without."""
    rule = EVENT_FIELDS[kind]  # type: ignore[index]
    takes, needs = ([API_NAMES.get(name, name) for name in given] for given in (rule.takes, (*rule.required, *rule.any_of[:1])))
    return {"id": "e", "type": kind, "at": AT} | {name: GOOD[name] for name in takes if name in names or name in needs}


def alone(event: Any) -> Any:
    """What comes of an event, or what is wrong with it."""
    try:
        return ONE.load(event)
    except ValidationError as error:
        return error.messages


def in_a_batch(event: Any) -> Any:
    """The same of an event among others."""
    try:
        return MANY.load({"events": [event]})["events"][0]
    except ValidationError as error:
        messages: Any = error.messages
        return messages["events"][0]


@given(
    st.sampled_from(sorted(EVENT_FIELDS)),
    st.lists(st.sampled_from(sorted(GOOD))),
    st.dictionaries(st.sampled_from([*sorted(GOOD), "type", "unknown"]), ANYTHING, max_size=2).filter(names_no_type),
    st.sets(st.sampled_from(["id", "type", "at", "tokens_done", "cause"]), max_size=1),
)
def test_a_batch_reads_events_as_their_schema_does(kind: str, names: list[str], changes: dict[str, Any], left_out: set[str]) -> None:
    """The same event, or the same messages at the same fields, whatever is given."""
    event = {name: value for name, value in (given_as_good(kind, names) | changes).items() if name not in left_out}
    assert repr(in_a_batch(event)) == repr(alone(event))


@pytest.mark.parametrize("kind", sorted(EVENT_FIELDS))
def test_every_good_event_is_read_quickly(kind: str) -> None:
    """Without marshmallow's way through all fields of the schema: `load` is never asked."""
    event = given_as_good(kind, list(GOOD))
    part = MANY.fields["events"].inner  # type: ignore[attr-defined]
    part.schema.load = None
    try:
        assert isinstance(in_a_batch(event), Event)
    finally:
        del part.schema.load


@pytest.mark.parametrize("event", [None, 7, "event", [], {}])
def test_what_is_no_event_is_told_so(event: Any) -> None:
    """Each with the message that its schema has for it."""
    assert in_a_batch(event) in ({"_schema": ["must be an object"]}, alone({}), ["null is not taken here"])


def test_equal_events_make_equal_texts() -> None:
    """In whichever order their fields were given: a repeat is told from a conflict by the text."""
    event = given_as_good("progress", list(GOOD))
    backwards = dict(reversed(event.items()))
    assert event_row(in_a_batch(event)) == event_row(in_a_batch(backwards))
    assert body_text(in_a_batch(event)).startswith('{"accelerator_hours":7.0,"accelerators":7,"cost_micro_usd":7000000,"loss":"nan"')


def test_times_are_kept_in_utc_to_the_microsecond() -> None:
    """Whatever offset they were told with."""
    found = in_a_batch(given_as_good("note", []))
    assert found.at == datetime(2026, 2, 1, 11, tzinfo=UTC) + timedelta(microseconds=250_000)


@given(st.one_of(st.floats(-1e12, 1e12), st.integers(-(10**15), 10**15).map(lambda tenths: tenths / 1e7)))
@example(0.0000005)
@example(1234567.0000015)
@example(9_999_999.9999995)
def test_amounts_are_rounded_to_micro_dollars_as_they_are_written(usd: float) -> None:
    """Half to even, of the shortest text of the float: tenths of a micro-dollar too."""
    sent = {"id": "a", "type": "cost", "at": AT, "line": "storage", "usd": usd}
    assert in_a_batch(sent).micro_usd == round(Decimal(repr(usd)) * 10**6)
