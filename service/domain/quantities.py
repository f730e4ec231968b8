"""Ranges, assumptions and warnings: what every answer is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from service.domain.answer_fields import Doc


@dataclass(frozen=True, slots=True)
class Range:
    """An uncertain quantity by its 10th, 50th and 90th percentile, in the unit its field's name states."""

    p10: float
    p50: float
    p90: float

    def __post_init__(self) -> None:
        if not self.p10 <= self.p50 <= self.p90:
            raise ValueError(f"percentiles out of order: {self.p10}, {self.p50}, {self.p90}")

    @classmethod
    def exactly(cls, value: float) -> Range:
        return cls(value, value, value)

    def scaled(self, factor: float) -> Range:
        """The range times a factor that is certain and not negative."""
        return Range(self.p10 * factor, self.p50 * factor, self.p90 * factor)


@dataclass(frozen=True, slots=True)
class Assumption:
    """A value the caller did not choose: `field` is its path in the request, `source` says why this value."""

    field: Annotated[str, Doc("Path of the field in the request")]
    value: Annotated[object, Doc("Value that was taken")]
    source: Annotated[str, Doc("Why this value, with its source", max_length=50_000)]
