"""Reading single values of a JSON object: each comes back of the wanted type, or as an error that points at it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any

from service.domain.errors import InvalidRequest

LARGEST = 10**9
Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A JSON object and the JSON pointer it stands at.

    A value is asked for by all names it goes by, the usual one first; `a.b` is the member `b` of the object `a`.
    null counts as left out. Every method raises `InvalidRequest` for a value of the wrong type or size.
    """

    values: Mapping[str, object]
    pointer: str

    def find(self, names: Names) -> tuple[str, object] | None:
        """The first of the names that has a value, and that value."""
        found = ((name, self._value(name)) for name in names)
        return next(((name, value) for name, value in found if value is not None), None)

    def has(self, names: Names) -> bool:
        """Whether one of the names has a value."""
        return self.find(names) is not None

    def count(self, names: Names, least: int = 1, most: int = LARGEST) -> int | None:
        """A whole number from `least` to `most`; None where it is left out."""
        found = self.find(names)
        if found is None:
            return None
        name, value = found
        whole = whole_number(value)
        if whole is None or not least <= whole <= most:
            raise self.problem(name, f"expected a whole number from {least} to {most:,}")
        return whole

    def need(self, names: Names, most: int = LARGEST) -> int:
        """A whole number above zero that has to be there."""
        value = self.count(names, most=most)
        if value is None:
            others = f" (or {', '.join(f'`{name}`' for name in names[1:])})" if len(names) > 1 else ""
            raise self.problem(names[0], f"the model's shape needs `{names[0]}`{others}")
        return value

    def ratio(self, name: str) -> float | None:
        """A number above 0, up to 1,000; None where it is left out."""
        value = self._value(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1000:
            raise self.problem(name, "expected a number above 0, up to 1,000")
        return float(value)

    def flag(self, name: str, *, default: bool) -> bool:
        """A boolean, `default` where it is left out."""
        value: bool | None = self._typed(name, bool, "true or false")
        return default if value is None else value

    def text(self, name: str) -> str:
        """A string, empty where it is left out."""
        value: str | None = self._typed(name, str, "a string")
        return value or ""

    def items(self, name: str) -> Sequence[object]:
        """A list, empty where it is left out."""
        value: Sequence[object] | None = self._typed(name, list | tuple, "a list")
        return value or ()

    def section(self, name: str) -> Section | None:
        """The object that is a member of this one; None where it is left out."""
        value = self._typed(name, Mapping, "an object")
        return None if value is None else Section(value, f"{self.pointer}/{name}")

    def problem(self, name: str, message: str) -> InvalidRequest:
        """What is wrong with the value of that name."""
        return InvalidRequest(message, f"{self.pointer}/{name.replace('.', '/')}")

    def _typed(self, name: str, kind: type | UnionType, expected: str) -> Any:
        """The value of that name; None where it is left out."""
        value = self._value(name)
        if value is not None and not isinstance(value, kind):
            raise self.problem(name, f"expected {expected}")
        return value

    def _value(self, name: str) -> object:
        outer, _, inner = name.partition(".")
        value = self.values.get(outer)
        if not inner:
            return value
        return value.get(inner) if isinstance(value, Mapping) else None


def whole_number(value: object) -> int | None:
    """The whole number a JSON number stands for (4096 and 4096.0 alike); None for everything else, booleans included."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not (math.isfinite(value) and value.is_integer()):
        return None
    return int(value)
