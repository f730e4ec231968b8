"""Strict parsing of a source's rows into offers. A row that cannot be parsed is rejected with its reason; the others stay.

Money is parsed to exact decimal dollars by `parse_usd` or `parse_usd_cents`.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from providers.offer import Fetched, Offer, ProviderError, Rejected

CONTROL_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
MAX_EXPONENT = 30
MAX_USD = 10**7
"""Upper bound of a price [USD], per hour or for a whole term."""


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

    def add(self, **offer: Any) -> None:
        """Add an offer; provider, source and time are this collector's unless given.

        Raises
        ------
        BadRow
            The fields make no offer, or the same offer was added before.
        """
        try:
            found = Offer(**{"provider": self.provider, "source": self.source, "observed_at": self.at, **offer})
        except ValueError as error:
            raise BadRow(str(error)) from error
        if found.identity in self._priced:
            raise BadRow(f"the same thing is listed twice, at {self._priced[found.identity]} and at {found.usd_per_hour}")
        self._priced[found.identity] = found.usd_per_hour
        self.offers.append(found)

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
    sold = (offer.provider, offer.region, offer.instance_type, offer.accelerator, offer.accelerator_count, offer.pricing, offer.market)
    return repr((*sold, f"{offer.usd_per_hour.normalize():f}", offer.availability, sorted(offer.extras.items())))


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
    return {
        type(None): "null",
        bool: "a truth value",
        int: "a number",
        float: "a number",
        str: "a text",
        list: "a list",
        dict: "an object",
    }.get(type(value), type(value).__name__)
