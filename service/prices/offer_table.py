"""Offers of a price book as columns, for calculation over thousands of rows at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from providers.offer import UNREAD_SINCE, Offer

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
SECONDS_PER_DAY = 86_400.0
Key = TypeVar("Key", str, tuple[str, ...])
NAMED = ("accelerator", "provider", "region", "pricing", "market", "availability", "source")
"""Columns of names that are fields of an offer."""


@dataclass(frozen=True, slots=True)
class CodedColumn:
    """A column of names: each row's code is the position of its name in `names`."""

    codes: Ints
    names: tuple[str, ...]

    def among(self, wanted: Iterable[str]) -> Flags:
        """Mask of rows whose name is one of `wanted`, case-insensitive."""
        asked = {name.casefold() for name in wanted}
        found = np.array([name.casefold() in asked for name in self.names], dtype=bool)
        return found[self.codes] if len(self.names) else np.zeros(0, dtype=bool)

    def met(self, rows: Ints) -> list[int]:
        """Codes that occur in the rows, ascending."""
        found: list[int] = np.flatnonzero(np.bincount(self.codes[rows], minlength=len(self.names))).tolist()
        return found


@dataclass(frozen=True, slots=True)
class OfferColumns:
    """Columns with one position for each offer.

    Joined by tabs, `place` is provider and region, `instance` provider, instance type and accelerator. Times are seconds since 1970.
    `read_with`: first row of the same origin and read time; such rows become stale together. `newest`: read within a day of the latest
    price of the same accelerator, pricing and market in that place.
    """

    accelerator: CodedColumn
    provider: CodedColumn
    region: CodedColumn
    place: CodedColumn
    instance: CodedColumn
    pricing: CodedColumn
    market: CodedColumn
    availability: CodedColumn
    source: CodedColumn
    usd_per_accelerator_hour: Floats
    accelerator_count: Ints
    term_hours: Floats
    observed_s: Floats
    read_with: Ints
    newest: Flags

    def __len__(self) -> int:
        return len(self.accelerator_count)


def make_offer_columns(offers: Sequence[Offer]) -> OfferColumns:
    """Columns of the offers, in their order."""
    observed_s = np.array([offer.observed_at.timestamp() for offer in offers], dtype=np.float64)
    sold_as = _code_column(offers, lambda offer: (offer.accelerator, offer.provider, offer.region, offer.pricing, offer.market))
    names: dict[str, Any] = {name: _named(offers, attrgetter(name)) for name in NAMED}
    return OfferColumns(
        **names,
        place=_named(offers, lambda offer: f"{offer.provider}\t{offer.region}"),
        instance=_named(offers, lambda offer: f"{offer.provider}\t{offer.instance_type}\t{offer.accelerator}"),
        usd_per_accelerator_hour=np.array([float(offer.usd_per_accelerator_hour) for offer in offers], dtype=np.float64),
        accelerator_count=np.array([offer.accelerator_count for offer in offers], dtype=np.int64),
        term_hours=np.array([offer.term_hours for offer in offers], dtype=np.float64),
        observed_s=observed_s,
        read_with=_firsts(_code_column(offers, _read_time)[0]),
        newest=highest_of(observed_s, sold_as[0]) - observed_s < SECONDS_PER_DAY,
    )


def _read_time(offer: Offer) -> tuple[str, ...]:
    extras = offer.extras
    return offer.provider, offer.source, extras.get("team", ""), extras.get(UNREAD_SINCE, ""), offer.observed_at.isoformat()


def highest_of(values: Floats, group: Ints) -> Floats:
    """For each position the highest value of its group; groups are numbered from 0."""
    best = np.full(group.max(initial=-1) + 1, -np.inf)
    np.maximum.at(best, group, values)
    found: Floats = best[group]
    return found


def _firsts(codes: Ints) -> Ints:
    """For each position the first one with the same code."""
    found: Ints = np.unique(codes, return_index=True)[1][codes]
    return found


def _named(offers: Sequence[Offer], name: Callable[[Offer], str]) -> CodedColumn:
    return CodedColumn(*_code_column(offers, name))


def _code_column(offers: Sequence[Offer], key: Callable[[Offer], Key]) -> tuple[Ints, tuple[Key, ...]]:
    """Each offer's key as a position among the distinct keys, and these keys."""
    known: dict[Key, int] = {}
    codes = [known.setdefault(key(offer), len(known)) for offer in offers]
    return np.array(codes, dtype=np.int64), tuple(known)
