"""Valid events, read in one pass by a plan for their type. Where a member is not taken, their schema says what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from marshmallow import fields

from service.schemas.fields import Count, Number

Check = Callable[..., Any]
_NUMBERS = frozenset({int, float})


class Member(NamedTuple):
    """How a member is read: numbers of some types between two bounds at once, anything else by its field.

    `make` makes of a number what the domain has as `name`; None leaves it as it is.
    """

    name: str
    types: frozenset[type]
    low: float
    high: float
    make: Check | None
    check: Check


Plan = Mapping[str, Member]


def plan_of(members: Mapping[str, fields.Field[Any]], names: frozenset[str], domain: Mapping[str, tuple[str, Check]]) -> Plan:
    """How to read each of those members; `domain` has the name and the making of those that the domain has otherwise."""
    return {name: _member(members[name], *domain.get(name, (name, None))) for name in names}


def read(given: Mapping[str, Any], plan: Plan) -> dict[str, Any]:
    """The members by the domain's names. Raises KeyError for one that is not planned, ValidationError for one that is not taken."""
    found: dict[str, Any] = {}
    for key, value in given.items():
        name, types, low, high, make, check = plan[key]
        if type(value) not in types or not low <= value <= high:
            value = check(value, key, given)  # noqa: PLW2901 - read
        found[name] = value if make is None else make(value)
    return found


def _member(field: fields.Field[Any], name: str, make: Check | None) -> Member:
    check = field._deserialize  # noqa: SLF001 - as marshmallow's List does
    if isinstance(field, Count):
        return Member(name, frozenset({int}), field.minimum, field.maximum, make, check)
    if isinstance(field, Number) and field.above is None and field.below is None:
        return Member(name, _NUMBERS, field.low, field.high, make or float, check)
    return Member(name, frozenset(), 0, 0, make, check)
