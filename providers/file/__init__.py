"""Price sheets and negotiated price books: CSV, JSON or YAML files of the operator, named in OUTLAY_PRICE_FILES.

A sheet is a list of rows; CSV files are sheets. A book is an object with `prices`, a list of such rows, and `discounts`, which come off
list prices in the order stated; a book that names a team is for that team only. Fields: docs/reference/providers.md.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from providers.base import Context
from providers.file.sheets import PriceSheet, file_id, filled_fields, list_files, load_sheet, parse_time
from providers.offer import FILE, PRICINGS, Discount, Fetched, OfferTerms, Pricing, Provider, ProviderError, Rejected
from providers.row_parsing import BadRow, OfferCollector, get_count, get_text, parse_decimal, parse_usd, snapshot_name
from providers.tables import read_table

VARIABLE = "OUTLAY_PRICE_FILES"
PRICE_FIELDS = (
    "provider",
    "region",
    "country",
    "instance_type",
    "accelerator",
    "accelerator_count",
    "pricing",
    "usd_per_hour",
    "usd_per_accelerator_hour",
    "observed_at",
    "source",
    "term_hours",
    "upfront_share",
    "valid_until",
    "minimum_accelerators",
    "committed_usd",
    "capacity",
)
FLAGS: Mapping[str, bool] = {"true": True, "false": False, "yes": True, "no": False}
DISCOUNT_FIELDS = ("name", "percent", "provider", "region", "pricing", "accelerator")


class PriceFiles(Provider):
    """The operator's own prices. They count as fresh for a year, the usual length of a contract."""

    name = "file"
    fresh_for = timedelta(days=365)
    credentials = (VARIABLE,)
    local = True

    def __init__(self, context: Context) -> None:
        self.context = context

    def fetch(self) -> Fetched:
        """All prices and discounts of all files. A file that is missing or invalid is recorded in `unread`; the others count.

        Returns
        -------
        Fetched

        Raises
        ------
        ProviderError
            No price is left, a folder cannot be read, or no file is named.
        """
        stated = [path for path in self.context.env.get(VARIABLE, "").split(os.pathsep) if path.strip()]
        if not stated:
            raise ProviderError(f"file needs the environment variable {VARIABLE}: files or folders, separated by {os.pathsep!r}")
        now, sheets, unread = self.context.clock(), list[PriceSheet](), list[Rejected]()
        for path in (path for place in stated for path in list_files(Path(place.strip()))):
            try:
                sheets.append(load_sheet(path, now))
            except ProviderError as error:
                unread.append(Rejected(file_id(path), str(error)))
        return parse(sheets, OfferCollector(self.name, VARIABLE, now, self.context.canonical), unread)


def parse(sheets: Iterable[PriceSheet], collector: OfferCollector, unread: Sequence[Rejected] = ()) -> Fetched:
    """Offers of all sheets, dated by row, else book, else file.

    Sheets of a team are parsed separately, into `Fetched.teams`; the same thing may have another price for another team.

    Parameters
    ----------
    sheets : iterable of PriceSheet
        Prices [USD per hour] and discounts.
    collector : OfferCollector
        Gets the offers that are not of a single team.
    unread : sequence of Rejected
        Files that could not be read, with the reason.

    Returns
    -------
    Fetched

    Raises
    ------
    ProviderError
        Nothing is understood.
    """
    by_team: dict[str | None, list[PriceSheet]] = {None: []}
    for sheet in sheets:
        by_team.setdefault(sheet.team, []).append(sheet)
    shared = _read(by_team.pop(None), collector)
    if not (shared.offers or shared.discounts) and (shared.rejected or not by_team):
        raise ProviderError(_nothing(shared.rejected, unread))
    teams = {str(team): _read(theirs, _anew(collector)) for team, theirs in by_team.items()}
    by_name = {team: read for team, read in teams.items() if read.offers or read.discounts or read.rejected}
    return replace(shared, teams=by_name, unread=tuple(unread))


def _read(sheets: Sequence[PriceSheet], collector: OfferCollector) -> Fetched:
    discounts: list[Discount] = []
    for sheet in sheets:
        for place, row in sheet.prices:
            with collector.row(place):
                collector.add(**_offer(row, sheet, collector))
        for place, row in sheet.discounts:
            with collector.row(place):
                discounts.append(_discount(row, sheet, collector))
    name = snapshot_name(collector.provider, collector.offers, collector.at)
    if discounts:
        name = f"{name}-{hashlib.sha256(repr(discounts).encode()).hexdigest()[:6]}"
    return Fetched(tuple(collector.offers), name, tuple(collector.rejected), discounts=tuple(discounts))


def _anew(collector: OfferCollector) -> OfferCollector:
    return OfferCollector(collector.provider, collector.source, collector.at, collector.canonical)


def _nothing(rejected: Sequence[Rejected], unread: Sequence[Rejected]) -> str:
    """Reason why there is no price at all."""
    said = [file.reason for file in unread]
    if rejected:
        said.append(f"none of {len(rejected)} rows was understood; the first: {rejected[0].row}: {rejected[0].reason}")
    return "; ".join(said) or "the price files hold no price"


def _offer(row: object, sheet: PriceSheet, collector: OfferCollector) -> dict[str, Any]:
    """The fields of an offer. Raises BadRow."""
    stated = filled_fields(row, PRICE_FIELDS)
    count = get_count(stated, "accelerator_count")
    at = parse_time(stated["observed_at"]) if "observed_at" in stated else sheet.at
    if at > collector.at:
        raise BadRow(f"observed_at is {at:%Y-%m-%d}, which is still to come")
    return {
        "provider": get_text(stated, "provider"),
        "region": get_text(stated, "region"),
        "instance_type": get_text(stated, "instance_type"),
        "accelerator": _accelerator(stated, collector),
        "accelerator_count": count,
        "pricing": _pricing(stated),
        "usd_per_hour": _usd_per_hour(stated, count),
        "observed_at": at,
        "source": get_text(stated, "source") if "source" in stated else sheet.source,
        "terms": _terms(stated, collector.at.date()),
        "extras": {FILE: sheet.file, **sheet.extras, **({"country": _country(stated)} if "country" in stated else {})},
    }


def _terms(stated: Mapping[str, Any], today: date) -> OfferTerms:
    """Stated terms. Raises BadRow, also for a price that ended before today."""
    until = _day(stated["valid_until"]) if "valid_until" in stated else None
    if until is not None and until < today:
        raise BadRow(f"valid_until is {until}: the price has ended")
    try:
        return OfferTerms(
            term_hours=float(parse_decimal(stated["term_hours"], "term_hours")) if "term_hours" in stated else None,
            upfront_share=float(parse_decimal(stated["upfront_share"], "upfront_share")) if "upfront_share" in stated else None,
            valid_until=until,
            minimum_accelerators=get_count(stated, "minimum_accelerators") if "minimum_accelerators" in stated else None,
            committed_usd=parse_decimal(stated["committed_usd"], "committed_usd") if "committed_usd" in stated else None,
            capacity=_flag(stated["capacity"]) if "capacity" in stated else None,
        )
    except ValueError as error:
        raise BadRow(str(error)) from error


def _day(value: object) -> date:
    try:
        if isinstance(value, date):
            return value.date() if isinstance(value, datetime) else value
        return date.fromisoformat(str(value))
    except ValueError as error:
        raise BadRow(f"valid_until is {str(value)[:40]!r} where a date was expected, as 2027-01-31") from error


def _flag(value: object) -> bool:
    """A truth value, as YAML and JSON have it or as text. Raises BadRow."""
    found = FLAGS.get(str(value).strip().casefold())
    if found is None:
        raise BadRow(f"capacity is {str(value)[:40]!r} where true or false was expected")
    return found


def _country(stated: Mapping[str, Any]) -> str:
    """ISO 3166-1 alpha-3 code of a code of two or three letters, case-insensitive. Raises BadRow."""
    code = get_text(stated, "country")
    if code.upper() not in _alpha_3():
        raise BadRow(f"country is {code[:40]!r} where a code of ISO 3166-1 was expected, as DE or DEU")
    return _alpha_3()[code.upper()]


@cache
def _alpha_3() -> Mapping[str, str]:
    rows = read_table("countries.csv")
    return {code: row["alpha_3"] for row in rows for code in row.values()}


def _usd_per_hour(stated: Mapping[str, Any], count: int) -> Decimal:
    whole_price, each = stated.get("usd_per_hour"), stated.get("usd_per_accelerator_hour")
    if (whole_price is None) == (each is None):
        raise BadRow("one of usd_per_hour and usd_per_accelerator_hour was expected")
    return parse_usd(whole_price, "usd_per_hour") if each is None else parse_usd(each, "usd_per_accelerator_hour") * count


def _accelerator(stated: Mapping[str, Any], collector: OfferCollector) -> str:
    """Canonical name. In the operator's own file an unknown accelerator is an error, not skipped."""
    label = get_text(stated, "accelerator")
    name = collector.canonical(label, None)
    if name is None:
        raise BadRow(f"accelerator {label!r} names none that is known, or more than one: write it like NVIDIA-H100-80GB-SXM")
    return name


def _pricing(stated: Mapping[str, Any]) -> Pricing:
    pricing = get_text(stated, "pricing")
    if pricing not in PRICINGS:
        raise BadRow(f"pricing is {stated['pricing']!r}; known: {', '.join(PRICINGS)}")
    return pricing


def _discount(row: object, sheet: PriceSheet, collector: OfferCollector) -> Discount:
    """Raises BadRow."""
    stated = filled_fields(row, DISCOUNT_FIELDS)
    try:
        return Discount(
            name=get_text(stated, "name"),
            share=parse_decimal(stated.get("percent"), "percent") / 100,
            provider=get_text(stated, "provider") if "provider" in stated else None,
            region=get_text(stated, "region") if "region" in stated else None,
            pricing=_pricing(stated) if "pricing" in stated else None,
            accelerator=_accelerator(stated, collector) if "accelerator" in stated else None,
            file=sheet.file,
        )
    except ValueError as error:
        raise BadRow(str(error)) from error
