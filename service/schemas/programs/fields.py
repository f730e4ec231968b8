"""Fields of a program's schemas: names, money, days, axes of a sweep, overheads."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError

from service.domain.programs.tiers import TIERS
from service.domain.quantities import Range
from service.schemas.base import RangeSchema
from service.schemas.compound_fields import Items
from service.schemas.fields import Choice, Decimal, Flag, Number, OwnField, Schema, Share, Text

MAX_AXES = 20
MAX_NAMES = 100
MAX_DAYS = 3650.0
MAX_USD = 10**13
MAX_NAME_LENGTH = 80
DAY_BOUNDS: dict[str, Any] = {"type": "number", "minimum": 0, "maximum": MAX_DAYS}


def short_name(**options: Any) -> Text:
    """A name on the calendar and in reports."""
    return Text(max_length=MAX_NAME_LENGTH, **options)


def usd_amount(**options: Any) -> Decimal:
    """An amount of money, in cents."""
    return Decimal(places=2, maximum=MAX_USD, **options)


def references(description: str) -> Items:
    """Names of runs, tiers and milestones."""
    return Items(Text(max_length=2 * MAX_NAME_LENGTH), max_items=MAX_NAMES, description=description)


class DaysField(OwnField):
    """A time in days: a number, or its percentiles."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Range:  # noqa: ARG002
        days = RangeSchema().load(value) if isinstance(value, dict) else dict.fromkeys(("p10", "p50", "p90"), Number().deserialize(value))
        if days["p10"] < 0 or days["p90"] > MAX_DAYS:
            raise ValidationError(f"must be between 0 and {MAX_DAYS:g} days")
        return Range(**days)

    def openapi(self) -> dict[str, Any]:
        """A number, or an object of percentiles."""
        percentiles = {
            name: DAY_BOUNDS | {"description": f"{text} [days]"}
            for name, text in (("p10", "10th percentile"), ("p50", "Median"), ("p90", "90th percentile"))
        }
        spread = {"type": "object", "properties": percentiles, "required": list(percentiles), "additionalProperties": False}
        return {"anyOf": [DAY_BOUNDS, spread]}


class GridField(OwnField):
    """The axes of a sweep with their numbers of values."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> dict[str, int]:  # noqa: ARG002
        if not isinstance(value, dict) or not 0 < len(value) <= MAX_AXES:
            raise ValidationError(f"must be an object with 1 to {MAX_AXES} axes")
        sizes = {name: len(axis) if isinstance(axis, list) else axis for name, axis in value.items()}
        wrong = {name: ["must be a list of values, or their number"] for name, size in sizes.items() if not _is_size(size)}
        if wrong:
            raise ValidationError(wrong)
        return sizes

    def openapi(self) -> dict[str, Any]:
        """An object of lists or numbers."""
        size = {"type": "integer", "minimum": 1, "maximum": 1000}
        values = {"type": "array", "items": {}, "minItems": 1, "maxItems": 1000}
        return {"type": "object", "minProperties": 1, "maxProperties": MAX_AXES, "additionalProperties": {"anyOf": [size, values]}}


def _is_size(size: object) -> bool:
    return type(size) is int and 1 <= size <= 1000


class OverheadEntrySchema(Schema):
    """Work around the runs: a share of their cost, or an amount."""

    share = Share(description="Part of what the runs cost [1]")
    usd = usd_amount(description="Fixed amount [USD]")
    tier = Choice(TIERS, description="Left out: around the runs of all tiers")
    basis = Text(max_length=500, description="Where the figure comes from")
    blocking = Flag(description="Whether it takes the tier's machine, before or after the runs, and so time; left out: true")


class OverheadField(OwnField):
    """A share of the cost of the runs, "published" for a published one, or an object."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.number, self.entry = Share(), OverheadEntrySchema()

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:  # noqa: ARG002
        if value == "published":
            return {"published": True}
        if not isinstance(value, dict):
            return {"share": self.number.deserialize(value)}
        entry = self.entry.load(value)
        if ("share" in entry) == ("usd" in entry):
            raise ValidationError("state either share or usd")
        return entry

    def openapi(self) -> dict[str, Any]:
        """A number, a word or an object."""
        fields: dict[str, Any] = self.entry.fields
        members = {name: field.openapi() | field.metadata for name, field in fields.items()}
        entry = {"type": "object", "properties": members, "additionalProperties": False}
        return {"anyOf": [self.number.openapi(), {"type": "string", "enum": ["published"]}, entry]}
