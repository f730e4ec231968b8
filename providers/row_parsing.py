"""Strict parsing of a source's rows into offers. A row that cannot be parsed is rejected with its reason; the others stay.

Money is parsed to exact decimal dollars by `parse_usd` or `parse_usd_cents`.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from providers.offer import Availability, Fetched, Offer, Pricing, ProviderError, Rejected

ANY_REGION = "any"
"""Region of a price that is valid in all regions, or whose region is not stated."""
CONTROL_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
MAX_EXPONENT = 30
MAX_USD = 10**7
"""Upper bound of a price [USD], per hour or for a whole term."""

JSON_TYPES = {type(None): "null", bool: "a truth value", str: "a text", list: "a list", dict: "an object"}


class BadRow(ValueError):
    """A row or field that cannot be used; the message is the reason."""


class SkippedRow(Exception):
    """A row that is understood and not wanted; the message is the reason."""


@dataclass
class OfferCollector:
    """Offers parsed so far, rejected rows and counts of skipped rows. Each offer gets `source` and `at`.

    `partial`: a part of the source could not be read (see `Fetched`); `failed_parts` counts such parts.
    """

    provider: str
    source: str
    at: datetime
    canonical: Callable[[str, float | None], str | None]
    offers: list[Offer] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    partial: bool = False
    failed_parts: int = 0
    _priced: dict[tuple[object, ...], Decimal] = field(default_factory=dict)

    def read_each(self, rows: Iterable[Any], read: Callable[[Any, OfferCollector], None], name: str = "") -> None:
        """Read rows one by one with `read(row, self)`; an error rejects one row only, under its field `name` or the whole row."""
        for row in rows:
            with self.row(row.get(name) if name and isinstance(row, dict) else row):
                read(row, self)

    @contextmanager
    def row(self, name: object) -> Iterator[None]:
        """Context of one row's parsing: an error rejects this row only."""
        try:
            yield
        except SkippedRow as reason:
            self.skipped[str(reason)] += 1
        except BadRow as error:
            self.rejected.append(Rejected(str(name)[:200], str(error)))

    def accelerator(self, label: str, memory_gb: float | None = None) -> str:
        """Canonical name of a vendor's label.

        Parameters
        ----------
        label : str
            Vendor's label.
        memory_gb : float, optional
            Memory of one device [GB or GiB].

        Returns
        -------
        str
            Canonical name.

        Raises
        ------
        SkippedRow
            The label has no canonical name.
        """
        name = self.canonical(label, memory_gb)
        if name is None:
            raise SkippedRow(f"no canonical name: {label}")
        return name

    def add(
        self,
        region: str,
        instance_type: str,
        accelerator: str,
        accelerator_count: int,
        pricing: Pricing,
        usd_per_hour: Decimal,
        **more: Any,
    ) -> None:
        """Add an offer; provider, source and time are this collector's unless given.

        Parameters
        ----------
        region, instance_type, accelerator, accelerator_count, pricing
            As in an offer.
        usd_per_hour : Decimal
            Price of the whole instance [USD per hour].
        **more : Any
            Further fields of the offer.

        Raises
        ------
        BadRow
            The fields make no offer, or the same offer was added before.
        """
        try:
            read = {"provider": self.provider, "observed_at": self.at, "source": self.source, **more}
            sold = (read.pop("provider"), region, instance_type, accelerator, accelerator_count, pricing, usd_per_hour)
            found = Offer(*sold, **read)
        except ValueError as error:
            raise BadRow(str(error)) from error
        if found.identity in self._priced:
            raise BadRow(f"the same thing is listed twice, at {self._priced[found.identity]} and at {found.usd_per_hour}")
        self._priced[found.identity] = found.usd_per_hour
        self.offers.append(found)

    def add_in_regions(self, regions: Sequence[str], *offer: Any, availability: Availability) -> None:
        """Add an offer for each region, which has this availability; where there is none, one offer without region, listed only."""
        for region in regions:
            self.add(region, *offer, availability=availability)
        if not regions:
            self.add(ANY_REGION, *offer, availability="listed")

    def fetched(self) -> Fetched:
        """Everything collected.

        Returns
        -------
        Fetched

        Raises
        ------
        ProviderError
            No part could be fetched, or rows came and none was understood.
        """
        if not self.offers and self.rejected:
            first = self.rejected[0]
            reached = self.failed_parts < len(self.rejected)
            failed = "rows was understood" if reached else "parts could be reached"
            raise ProviderError(f"{self.provider}: none of {len(self.rejected)} {failed}; the first: {first.row}: {first.reason}")
        offers = tuple(self.offers)
        name = snapshot_name(self.provider, offers, self.at)
        return Fetched(offers, name, tuple(self.rejected), dict(self.skipped), partial=self.partial)


def snapshot_name(provider: str, offers: Sequence[Offer], at: datetime) -> str:
    """Name of a state of prices: equal for equal prices and availability read on the same day.

    Parameters
    ----------
    provider : str
        Provider that was fetched.
    offers : sequence of Offer
        Offers in any order.
    at : datetime
        When they were read; the name holds its date.

    Returns
    -------
    str
        Provider, date and digest.
    """
    digest = hashlib.sha256()
    for line in sorted(_digest_line(offer) for offer in offers):
        digest.update(line.encode())
    return f"{provider}-{at:%Y-%m-%d}-{digest.hexdigest()[:10]}"


def _digest_line(offer: Offer) -> str:
    return repr((*offer.identity, f"{offer.usd_per_hour.normalize():f}", offer.availability, sorted(offer.extras.items())))


def expect_object(value: object, what: str) -> Mapping[str, Any]:
    """The value as a JSON object. Raises ProviderError otherwise: for a whole answer, not for a row."""
    if not isinstance(value, dict):
        raise ProviderError(f"{what} is {_json_type(value)} where an object was expected")
    return value


def expect_list(value: object, what: str) -> list[Any]:
    """The value as a JSON list. Raises ProviderError otherwise: for a whole answer, not for a row."""
    if not isinstance(value, list):
        raise ProviderError(f"{what} is {_json_type(value)} where a list was expected")
    return value


def list_at(answer: object, *path: str) -> list[Any]:
    """The list below these names of an answer. Raises ProviderError where something else is there."""
    for above, name in zip(("the answer", *path), path, strict=False):
        answer = expect_object(answer, above).get(name)
    return expect_list(answer, path[-1])


def get_object(row: object, name: str) -> Mapping[str, Any]:
    """A row's object under `name`. Raises BadRow."""
    value = _get_field(row, name)
    if not isinstance(value, dict):
        raise BadRow(f"{name} is {_json_type(value)} where an object was expected")
    return value


def get_list(row: object, name: str) -> list[Any]:
    """A row's list under `name`. Raises BadRow."""
    value = _get_field(row, name)
    if not isinstance(value, list):
        raise BadRow(f"{name} is {_json_type(value)} where a list was expected")
    return value


def get_first(row: object, name: str) -> object:
    """First item of a row's list under `name`. Raises BadRow, also where it is empty."""
    values = get_list(row, name)
    if not values:
        raise BadRow(f"{name} is empty")
    return values[0]


def get_texts(row: object, name: str) -> list[str]:
    """Distinct non-empty texts of a row's list. Raises BadRow where an item is not text."""
    values = get_list(row, name)
    if not all(isinstance(value, str) for value in values):
        raise BadRow(f"{name} holds something that is no text")
    return [value for value in dict.fromkeys(values) if value.strip()]


def get_text(row: object, name: str) -> str:
    """A row's non-empty text under `name`, without control characters. Raises BadRow."""
    value = _get_field(row, name)
    if not isinstance(value, str) or not value.strip():
        raise BadRow(f"{name} is {_json_type(value)} where a text was expected")
    if CONTROL_CHARACTERS.search(value):
        raise BadRow(f"{name} holds a character that no text may have: {value[:40]!a}")
    return value.strip()


def get_count(row: object, name: str) -> int:
    """A row's whole number of at least 1 under `name`, also written as text. Raises BadRow."""
    number = parse_decimal(_get_field(row, name), name)
    if number < 1 or number != int(number):
        raise BadRow(f"{name} is {number} where a whole number above zero was expected")
    return int(number)


def get_decimal(row: Mapping[str, Any], name: str) -> Decimal:
    """A row's finite number under `name`, exact. Raises BadRow."""
    return parse_decimal(row.get(name), name)


def get_memory_gb(row: Mapping[str, Any], name: str) -> float | None:
    """A row's memory of one device under `name` [GB or GiB]; None where it is not stated. Raises BadRow."""
    return None if row.get(name) is None else float(get_decimal(row, name))


def get_usd(row: Mapping[str, Any], name: str, on_demand: Decimal | None = None) -> Decimal:
    """A row's price under `name` [USD], which an on-demand price bounds where one is given. Raises BadRow."""
    price = parse_usd(row.get(name), name)
    if on_demand is not None and price > on_demand:
        raise BadRow(f"{name} is {price}, above {on_demand} on demand")
    return price


def parse_usd(value: object, name: str = "price") -> Decimal:
    """A price.

    Parameters
    ----------
    value : object
        Price [USD], a number or a text.
    name : str
        Field name for error messages.

    Returns
    -------
    Decimal
        Price [USD], exact, above 0 and below MAX_USD.

    Raises
    ------
    BadRow
        Not a number, or not a possible price: 0 means unknown, not free.
    """
    price = parse_decimal(value, name)
    if price <= 0:
        raise BadRow(f"{name} is {price}: unknown, not free")
    if price >= MAX_USD:
        raise BadRow(f"{name} is {price}: no price of an hour")
    return price


def parse_usd_cents(value: object, name: str = "price") -> Decimal:
    """A price stated in cents.

    Parameters
    ----------
    value : object
        Price [US cents], a number or a text.
    name : str
        Field name for error messages.

    Returns
    -------
    Decimal
        Price [USD], exact.

    Raises
    ------
    BadRow
        As `parse_usd`.
    """
    return parse_usd(value, name) / 100


def parse_decimal(value: object, name: str) -> Decimal:
    """A finite number, exact as written in JSON or as text.

    Parameters
    ----------
    value : object
        Number or text.
    name : str
        Field name for error messages.

    Returns
    -------
    Decimal
        The number, in the unit of `value`.

    Raises
    ------
    BadRow
        Not a finite number, or with an exponent beyond MAX_EXPONENT.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise BadRow(f"{name} is {_json_type(value)} where a number was expected")
    written = repr(value) if isinstance(value, float) else str(value).strip()
    try:
        number = Decimal(written if "_" not in written and written.isascii() else "")
    except InvalidOperation as error:
        raise BadRow(f"{name} is {written[:40]!r} where a number was expected") from error
    if not number.is_finite() or abs(number.adjusted()) > MAX_EXPONENT:
        raise BadRow(f"{name} is {written[:40]}: no amount")
    return number


def _get_field(row: object, name: str) -> object:
    if not isinstance(row, Mapping):
        raise BadRow(f"the row is {_json_type(row)} where an object was expected")
    if name not in row:
        raise BadRow(f"{name} is missing")
    return row[name]


def _json_type(value: object) -> str:
    if type(value) in (int, float):
        return "a number"
    return JSON_TYPES.get(type(value), type(value).__name__)
