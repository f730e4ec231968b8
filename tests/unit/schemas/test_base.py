"""Fields, the base schema, and pointers to what is wrong."""

from __future__ import annotations

import decimal
from datetime import UTC, date, datetime
from typing import Any

import pytest
from marshmallow import ValidationError

from service.schemas.base import RangeSchema, pointers
from service.schemas.compound_fields import FreeObject, Items, OrNumber, OrWord, Part
from service.schemas.fields import Choice, Count, Day, Decimal, Flag, Moment, NotNegative, Number, OwnField, Positive, Schema, Share, Text


class Inner(Schema):
    """Inside."""

    params = Count()


class Outer(Schema):
    """Outside."""

    model = Part(Inner)
    runs = Items(Part(Inner), max_items=2, min_items=1)
    layout = OrWord(Part(Inner), allow_none=True)
    range = Part(RangeSchema)


def wrong(data: Any) -> dict[str, str]:
    with pytest.raises(ValidationError) as caught:
        Outer().load(data)
    return {entry["pointer"]: entry["message"] for entry in pointers(caught.value.messages, Outer())}


@pytest.mark.parametrize(
    ("field", "given", "read"),
    [
        (Count(), "1.5M", 1_500_000),
        (Count(), 1e12, 10**12),
        (Count(suffixes=False), 4194304.0, 4194304),
        (Number(), -2, -2.0),
        (Number(text=True), "2.5e0", 2.5),
        (Positive(), 1e-9, 1e-9),
        (NotNegative(), 0, 0.0),
        (Share(), 1, 1.0),
        (Decimal(places=2), 2.5, decimal.Decimal("2.5")),
        (Decimal(places=2), "2.50", decimal.Decimal("2.50")),
        (Decimal(), 3, decimal.Decimal(3)),
        (Flag(), False, False),
        (Text(lines=True), "a\nb", "a\nb"),
        (Choice(("lora",)), "lora", "lora"),
        (OrWord(Count()), "auto", "auto"),
        (OrWord(Count()), "2K", 2000),
        (Day(), "2028-02-29", date(2028, 2, 29)),
        (Moment(), "2027-01-04T01:00:00+01:00", datetime(2027, 1, 4, tzinfo=UTC)),
        (FreeObject(), {"any": [1]}, {"any": [1]}),
        (Count(allow_none=True), None, None),
        (Count(load_default=5, validate=lambda count: None), 7, 7),
    ],
)
def test_what_is_taken(field: OwnField, given: Any, read: Any) -> None:
    """Each field reads what the contract says it takes."""
    assert field.deserialize(given) == read
    assert type(field.deserialize(given)) is type(read)


@pytest.mark.parametrize(
    ("field", "given"),
    [
        *((Count(), bad) for bad in (True, 1.9, "1_0", "12Q", -1, 0, 10**60, None, [], float("nan"), "٣")),
        (Count(suffixes=False), "8k"),
        *((Number(), bad) for bad in (True, "1", float("inf"), float("nan"), 10**30, [], None)),
        (Number(text=True), "1e999"),
        (Number(text=True), "nan"),
        *((Positive(), bad) for bad in (0, -1, 1e19)),
        (NotNegative(), -1e-9),
        *((Share(), bad) for bad in (-0.1, 1.0001)),
        *((Decimal(places=2), bad) for bad in ("1E-999999999", "1e5", 0.001, 1e300, True, "NaN", -1, 10**16, float("inf"), "1.234", [])),
        *((Flag(), bad) for bad in (1, "true", "on", None)),
        *((Text(max_length=3), bad) for bad in ("", "abcd", "a\x00", "\ud800", "a\n", 1, None)),
        *((Choice(("lora",)), bad) for bad in ("Lora", 1, ["lora"], "x" * 100_000)),
        *((Day(), bad) for bad in ("20270104", "2027-02-30", "2027-W01-1", 20270104)),
        *((Moment(), bad) for bad in ("2027-01-04", "2027-01-04T00:00:00", "2027-13-04T00:00:00Z", "0001-01-01T00:00:00+14:00", 1)),
        (FreeObject(max_members=1), {"a": 1, "b": 2}),
        (FreeObject(), []),
        (Items(Count(), max_items=2), [1, 2, 3]),
        (Items(Count(), max_items=2), "ab"),
    ],
)
def test_what_is_refused(field: OwnField, given: Any) -> None:
    """Nothing that merely resembles the right type gets in, and no input raises anything else."""
    with pytest.raises(ValidationError):
        field.deserialize(given)


def test_too_long_a_list_is_refused_before_its_items_are_looked_at() -> None:
    """A cap that is checked after the work would be no cap."""

    class Untouchable(OwnField):
        """Must not be reached."""

        def _deserialize(self, *_: Any, **__: Any) -> Any:
            pytest.fail("an item was looked at")

    with pytest.raises(ValidationError, match="not 1,000"):
        Items(Untouchable(), max_items=10).deserialize([1] * 1000)


def test_errors_point_into_the_request() -> None:
    """Keys, list indices and alternatives each become a pointer."""
    unordered = {"p10": 2, "p50": 1, "p90": 3}
    found = wrong({"model": {"params": 1.5}, "runs": [{}, {"params": "x"}], "layout": {"params": True}, "range": unordered})
    assert set(found) == {"/model/params", "/runs/1/params", "/layout/params", "/range"}


def test_an_unknown_field_is_told_its_nearest_known_name() -> None:
    """At every depth; where nothing is near, it is told those there are."""
    found = wrong({"model": {"parms": 1}, "runs": [{"param": 1}], "layout": {"zzz": 1}, "a/b~c": 1})
    assert found["/model/parms"].endswith("did you mean 'params'?")
    assert found["/runs/0/param"].endswith("did you mean 'params'?")
    assert found["/layout/zzz"] == "unknown field; known: params"
    assert found["/a~1b~0c"].startswith("unknown field; known: model, ")


def test_a_thousand_wrong_fields_make_a_short_answer() -> None:
    """What comes back is bounded whatever comes in."""
    with pytest.raises(ValidationError) as caught:
        Outer().load({f"{number}{'x' * 5000}": 1 for number in range(1000)})
    entries = pointers(caught.value.messages, Outer())
    assert len(entries) == 50
    assert all(len(entry["pointer"]) <= 300 for entry in entries)


def test_something_else_in_the_place_of_an_object_is_said_plainly() -> None:
    """Also at the top."""
    assert wrong([1]) == {"": "must be an object"}
    assert wrong({"model": 3}) == {"/model": "must be an object"}


def test_a_word_that_is_not_the_word_is_told_both_ways_to_say_it() -> None:
    """The word, and the object with its members; a number in its place as well."""
    for value in ("best", 3, [], True):
        assert wrong({"layout": value}) == {"/layout": 'must be an object with any of params, or "auto"'}
    with pytest.raises(ValidationError, match='must be a number, or "auto"'):
        OrWord(Number()).deserialize("best")


def test_a_number_or_an_object_is_read_as_it_is_written() -> None:
    """A mistake in the object points into it; anything else is told both ways."""
    field = OrNumber(Number(minimum=1), Part(Inner))
    assert field.deserialize(3) == 3.0
    assert field.deserialize({"params": "2K"}) == {"params": 2000}
    with pytest.raises(ValidationError, match="must be a number, or an object with any of params"):
        field.deserialize("best")
    with pytest.raises(ValidationError, match="must be a number from 1"):
        field.deserialize(0)
    with pytest.raises(ValidationError) as caught:
        field.deserialize({"more": 1})
    assert caught.value.messages == {"more": ["unknown field"]}


@pytest.mark.parametrize(
    ("field", "value", "shown"),
    [
        (Decimal(), decimal.Decimal("2.5"), 2.5),
        (Day(), date(2027, 1, 4), "2027-01-04"),
        (Moment(), datetime(2027, 1, 4, tzinfo=UTC), "2027-01-04T00:00:00Z"),
        (OrWord(Day()), "auto", "auto"),
        (OrWord(Day()), date(2027, 1, 4), "2027-01-04"),
    ],
)
def test_what_is_shown(field: OwnField, value: Any, shown: Any) -> None:
    """Amounts and times leave as plain JSON values."""
    assert field.serialize("it", {"it": value}) == shown
