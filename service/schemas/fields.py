"""Strict fields for marshmallow, and the schema that holds them.

marshmallow's own accept more: Int takes "1_0" and 1.9, Boolean "on", Date "20270104", Decimal "1E-999999999" (seconds of CPU, gigabytes of
memory). These accept JSON numbers, booleans and short texts within bounds, and describe themselves in the specification.
"""

from __future__ import annotations

import decimal
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from marshmallow import RAISE, ValidationError, fields, missing
from marshmallow import Schema as MarshmallowSchema

from service.domain.counts import parse_count

MAX_COUNT = 10**18
MAX_NUMBER = 1e18
MAX_TEXT = 200
UNKNOWN = "unknown field"
EMPTY: Mapping[str, str] = MappingProxyType({})

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_CONTROL_IN_LINES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_NUMBER_TEXT = re.compile(r"-?\d{1,18}(?:\.\d{1,12})?(?:[eE][+-]?\d{1,2})?", re.ASCII)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?(?:Z|[+-]\d{2}:\d{2})", re.ASCII)

MESSAGES: dict[str, Any] = {
    "required": "this field is required",
    "null": "null is not taken here",
    "validator_failed": "not an accepted value",
}


class Schema(MarshmallowSchema):
    """Base of every schema: unknown fields are errors at every depth."""

    error_messages: dict[str, str] = {  # noqa: RUF012 - marshmallow declares it so
        "unknown": UNKNOWN,
        "type": "must be an object",
    }

    class Meta:
        """Options of marshmallow."""

        unknown = RAISE


class OwnField(fields.Field[Any]):
    """Base of the fields here: `description` goes to the specification, and a value is read without marshmallow's intermediate steps."""

    default_error_messages = MESSAGES

    def __init__(self, *, description: str = "", **options: Any) -> None:
        metadata = dict(options.pop("metadata", None) or {})
        if description:
            metadata["description"] = description
        super().__init__(metadata=metadata, **options)
        self._detours = bool(self.validators or self.pre_load or self.post_load)

    def deserialize(self, value: Any, attr: str | None = None, data: Any = None, **kwargs: Any) -> Any:
        """The value for the domain. Raises ValidationError with a message for the caller."""
        if value is missing and not self.required:
            return self.load_default() if callable(self.load_default) else self.load_default
        if value is missing or value is None or self._detours:
            return super().deserialize(value, attr, data, **kwargs)
        return self._deserialize(value, attr, data)

    def openapi(self) -> dict[str, Any]:
        """JSON schema of accepted values, without null."""
        return {}


class Count(OwnField):
    """A whole number: any JSON number with a whole value, and with `suffixes` also text such as "70B"."""

    def __init__(self, *, minimum: int = 1, maximum: int = MAX_COUNT, suffixes: bool = True, **options: Any) -> None:
        super().__init__(**options)
        self.minimum, self.maximum, self.suffixes = minimum, maximum, suffixes

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:  # noqa: ARG002
        if type(value) is int and self.minimum <= value <= self.maximum:  # nearly all are
            return value
        if isinstance(value, str) and not self.suffixes:
            raise ValidationError("write a plain number, not a text")
        try:
            number = parse_count(value)
        except ValueError as error:
            raise ValidationError(str(error)) from None
        if not self.minimum <= number <= self.maximum:
            raise ValidationError(f"must lie between {self.minimum:,} and {_readable(self.maximum)}")
        return number

    def openapi(self) -> dict[str, Any]:
        """An integer, or a text with a suffix for a power of 1000."""
        number = {"type": "integer", "minimum": self.minimum, "maximum": self.maximum}
        text = {"type": "string", "pattern": r"^\d{1,30}(\.\d{1,12})?([Ee]\+?\d{1,2}|[KMBTkmbt])?$", "examples": ["70B", "1.5M"]}
        return {"anyOf": [number, text]} if self.suffixes else number


class Number(OwnField):
    """A finite number within bounds; `above` and `below` are exclusive. `text` is for query parameters, which are always text."""

    def __init__(
        self,
        *,
        minimum: float | None = None,
        maximum: float | None = MAX_NUMBER,
        above: float | None = None,
        below: float | None = None,
        text: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.minimum, self.maximum, self.above, self.below, self.text = minimum, maximum, above, below, text
        self.low = -MAX_NUMBER if minimum is None else minimum
        self.high = MAX_NUMBER if maximum is None else maximum

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> float:  # noqa: ARG002
        if self.text and isinstance(value, str) and _NUMBER_TEXT.fullmatch(value):
            value = float(value)
        if type(value) is not float and type(value) is not int:
            raise ValidationError("must be a number")
        beyond = (self.above is not None and value <= self.above) or (self.below is not None and value >= self.below)
        if beyond or not self.low <= value <= self.high:
            raise ValidationError(f"must be {self._bounds()}")
        return float(value)

    def _bounds(self) -> str:
        if self.above is not None:
            return f"above {self.above:g} and at most {self.high:g}"
        if self.below is not None:
            return f"a number from {self.low:g} to below {self.below:g}"
        return f"a number from {self.low:g} to {self.high:g}"

    def openapi(self) -> dict[str, Any]:
        """A number with its bounds."""
        bounds = {
            "minimum": self.low if self.above is None else None,
            "exclusiveMinimum": self.above,
            "maximum": self.high if self.below is None else None,
            "exclusiveMaximum": self.below,
        }
        return {"type": "number"} | {name: bound for name, bound in bounds.items() if bound is not None}


class Positive(Number):
    """A number above zero."""

    def __init__(self, *, maximum: float = MAX_NUMBER, **options: Any) -> None:
        super().__init__(above=0.0, maximum=maximum, **options)


class NotNegative(Number):
    """Zero or more."""

    def __init__(self, *, maximum: float = MAX_NUMBER, **options: Any) -> None:
        super().__init__(minimum=0.0, maximum=maximum, **options)


class Share(Number):
    """A part of a whole, 0 to 1."""

    def __init__(self, *, maximum: float = 1.0, **options: Any) -> None:
        super().__init__(minimum=0.0, maximum=maximum, **options)


class Decimal(OwnField):
    """An exact amount, usually money: a JSON number or its text, with at most `places` decimal places and no exponent."""

    def __init__(self, *, places: int = 6, minimum: int = 0, maximum: int = 10**15, **options: Any) -> None:
        super().__init__(**options)
        self.places, self.minimum, self.maximum = places, minimum, maximum
        self._pattern = rf"-?\d{{1,18}}(?:\.\d{{1,{places}}})?"
        self._taken = re.compile(self._pattern, re.ASCII)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> decimal.Decimal:  # noqa: ARG002
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValidationError("must be a number")
        if isinstance(value, float):
            value = format(value, f".{self.places}f") if self._exact(value) else ""
        text = str(value)
        if self._taken.fullmatch(text) is None:
            raise ValidationError(f"must be a number with at most {self.places} decimal places")
        amount = decimal.Decimal(text)
        if not self.minimum <= amount <= self.maximum:
            raise ValidationError(f"must lie between {self.minimum:,} and {_readable(self.maximum)}")
        return amount

    def _exact(self, value: float) -> bool:
        """Whether the shortest text of `value` has at most `places` decimal places."""
        return math.isfinite(value) and abs(value) < 1e18 and round(value, self.places) == value

    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> float | None:  # noqa: ARG002
        return None if value is None else float(value)

    def openapi(self) -> dict[str, Any]:
        """A number, or the text of one."""
        number = {"type": "number", "minimum": self.minimum, "maximum": self.maximum}
        return {"anyOf": [number, {"type": "string", "pattern": f"^{self._pattern}$"}]}


class Flag(OwnField):
    """true or false only."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> bool:  # noqa: ARG002
        if value is True or value is False:
            return value
        raise ValidationError("must be true or false")

    def openapi(self) -> dict[str, Any]:
        """A boolean."""
        return {"type": "boolean"}


class Text(OwnField):
    """A short text without control characters; `lines` allows tabs and line breaks."""

    def __init__(self, *, max_length: int = MAX_TEXT, min_length: int = 1, lines: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.max_length, self.min_length = max_length, min_length
        self._refused = _CONTROL_IN_LINES if lines else _CONTROL

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:  # noqa: ARG002
        if not isinstance(value, str):
            raise ValidationError("must be a text")
        if not self.min_length <= len(value) <= self.max_length:
            raise ValidationError(f"must have {self.min_length} to {self.max_length} characters")
        if not value.isprintable() and self._refused.search(value) is not None:  # control characters are not printable
            raise ValidationError("holds control characters")
        return value

    def openapi(self) -> dict[str, Any]:
        """A string with its length."""
        return {"type": "string", "minLength": self.min_length, "maxLength": self.max_length}


class Choice(OwnField):
    """One of several names, as written; `synonyms` are names of them elsewhere, in lower case, which its error explains."""

    def __init__(self, names: Sequence[str], *, synonyms: Mapping[str, str] = EMPTY, **options: Any) -> None:
        super().__init__(**options)
        self.names, self.synonyms = tuple(names), synonyms
        self._known = frozenset(names)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:  # noqa: ARG002
        if isinstance(value, str) and value in self._known:
            return value
        raise ValidationError(f"must be one of {', '.join(self.names)}{self._hint(value)}")

    def _hint(self, value: Any) -> str:
        """The name that a value stands for elsewhere, else the most similar one."""
        if not isinstance(value, str):
            return ""
        asked = value[:64].lower()
        if asked in self.synonyms:
            return f"; {asked!r} is {self.synonyms[asked]!r} here"
        near = get_close_matches(asked, self.names, n=1)
        return f"; did you mean {near[0]!r}?" if near else ""

    def openapi(self) -> dict[str, Any]:
        """An enumeration."""
        return {"type": "string", "enum": list(self.names)}


class Day(OwnField):
    """A calendar date, YYYY-MM-DD."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> date:  # noqa: ARG002
        if isinstance(value, str) and _DAY.fullmatch(value):
            try:
                return date.fromisoformat(value)
            except ValueError:
                raise ValidationError("no such day") from None
        raise ValidationError("must be a date, YYYY-MM-DD")

    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> str | None:  # noqa: ARG002
        return value.isoformat() if isinstance(value, date) else value

    def openapi(self) -> dict[str, Any]:
        """A date of RFC 3339."""
        return {"type": "string", "format": "date"}


class Moment(OwnField):
    """A time of RFC 3339 with offset; returned in UTC."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> datetime:  # noqa: ARG002
        if isinstance(value, str) and _MOMENT.fullmatch(value):
            try:
                at = datetime.fromisoformat(value)
                return at if at.tzinfo is UTC else at.astimezone(UTC)
            except (ValueError, OverflowError):
                raise ValidationError("no such time") from None
        raise ValidationError("must be a time with its offset, such as 2027-01-04T00:00:00Z")

    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> str | None:  # noqa: ARG002
        return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value

    def openapi(self) -> dict[str, Any]:
        """A date-time of RFC 3339."""
        return {"type": "string", "format": "date-time"}


def _readable(number: int) -> str:
    return f"{number:,}" if number < 10**6 else f"{float(number):g}"
