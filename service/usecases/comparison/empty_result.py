"""Errors for candidates without an offer: similar names, and the filters that leave nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from providers.offer import BY_THE_HOUR
from service.domain.errors import NoOffer, UnknownName
from service.domain.prices import NO_SYNONYMS, PROVIDER_SYNONYMS, near_names
from service.prices.book import PriceBook
from service.prices.offer_table import SECONDS_PER_DAY, CodedColumn, Ints
from service.usecases.comparison.offer_selection import filter_columns, matching_rows
from service.usecases.prices.commitments import describe_missing_commitments
from service.usecases.resolution.assumption_log import AssumptionLog

Request = Mapping[str, Any]
AGE = "max_age_days"
NAMED = ("providers", "regions")
MAX_SHOWN = 8


def check_names_known(candidates: Request, book: PriceBook, notes: AssumptionLog) -> None:
    """Warns of unknown providers and regions. Raises UnknownName with similar names where no known one remains."""
    columns = filter_columns(book.columns)
    for name in NAMED:
        stated = candidates.get(name) or ()
        unknown = [index for index, each in enumerate(stated) if not columns[name].among([each]).any()]
        if not unknown:
            continue
        if len(unknown) == len(stated):
            near = _near(name, stated[unknown[0]], columns[name])
            message = f"no offer has the {name[:-1]} {stated[unknown[0]]!r}{_did_you_mean(near)}: GET /v1/offers lists what there is"
            raise UnknownName(message, f"/candidates/{name}/{unknown[0]}", near)
        suggestions = (f"{stated[index]}{_did_you_mean(_near(name, stated[index], columns[name]))}" for index in unknown)
        notes.warn(f"no offer has the {name} {', '.join(suggestions)}: GET /v1/offers lists what there is")


def recent_rows(rows: Ints, candidates: Request, book: PriceBook, now: datetime) -> Ints:
    """Rows whose prices were read within the stated number of days."""
    days = candidates.get(AGE)
    return rows if days is None else rows[now.timestamp() - book.columns.observed_s[rows] <= days * SECONDS_PER_DAY]


def explain_no_offer(candidates: Request, accelerators: Sequence[str], book: PriceBook, now: datetime) -> NoOffer:
    """Error for candidates without an offer: each filter whose removal leaves offers, and what those are."""
    filters = list(_without_one(candidates, accelerators, book, now))
    reasons = "; ".join(filters) or "no single filter rules out all offers: widen accelerators, providers, regions or pricing"
    lacks = "".join(f"; {text}" for text in _lacking_commitments(candidates, accelerators, book))
    return NoOffer(f"no offer in {book.name} matches these candidates: {reasons}{_advice(accelerators, book)}{lacks}", "/candidates")


def describe_unpriced(candidates: Request, accelerators: Sequence[str], offered: Collection[str], book: PriceBook) -> list[str]:
    """Warnings of the stated accelerators without an offer, and of how commitments are brought where those are missing."""
    missing = [name for name in accelerators if name not in offered] if candidates.get("accelerators") else []
    if not missing:
        return []
    return [f"no offer among these candidates: {', '.join(missing)}", *_lacking_commitments(candidates, missing, book)]


def _lacking_commitments(candidates: Request, accelerators: Sequence[str], book: PriceBook) -> list[str]:
    """What the book lacks of commitments, where commitments alone are asked for."""
    pricings = candidates.get("pricing") or BY_THE_HOUR
    lacks = None if any(pricing in BY_THE_HOUR for pricing in pricings) else describe_missing_commitments(book, accelerators)
    return [lacks] if lacks else []


def _advice(accelerators: Sequence[str], book: PriceBook) -> str:
    """What to do about accelerators that nobody sells."""
    if book.columns.accelerator.among(accelerators).any():
        return ""
    return "; no provider sells them: state your own hardware in on_prem, or estimate with the price.usd_per_accelerator_hour of your quote"


def _without_one(candidates: Request, accelerators: Sequence[str], book: PriceBook, now: datetime) -> Iterator[str]:
    names = _shorten(accelerators) if candidates.get("accelerators") else "the selection"
    for name, column in filter_columns(book.columns).items():
        rows = recent_rows(matching_rows({**candidates, name: None}, accelerators, book), candidates, book, now)
        if candidates.get(name) is not None and len(rows):
            known = sorted({column.names[code] for code in np.unique(column.codes[rows])})
            yield f"{names} has no {name} {_shorten(candidates[name])} here, known are {_shorten(known)} (candidates.{name})"
    rows = matching_rows(candidates, accelerators, book)
    if candidates.get(AGE) is not None and len(rows):
        days = (now.timestamp() - book.columns.observed_s[rows].max()) / SECONDS_PER_DAY
        yield f"the newest matching price was read {days:,.0f} days ago (candidates.{AGE})"
    every = tuple(sorted(book.columns.accelerator.names))
    rows = recent_rows(matching_rows(candidates, every, book), candidates, book, now)
    if candidates.get("accelerators") and len(rows):
        available = sorted({book.columns.accelerator.names[code] for code in np.unique(book.columns.accelerator.codes[rows])})
        yield f"there are offers of {_shorten(available)}, but none of {names} (candidates.accelerators)"


def _near(filter_name: str, wanted: str, column: CodedColumn) -> tuple[str, ...]:
    return near_names(wanted, column.names, PROVIDER_SYNONYMS if filter_name == "providers" else NO_SYNONYMS)


def _did_you_mean(near: Sequence[str]) -> str:
    return f" (did you mean {', '.join(near)}?)" if near else ""


def _shorten(names: Sequence[str]) -> str:
    more = len(names) - MAX_SHOWN
    return ", ".join(names[:MAX_SHOWN]) + (f" and {more} more" if more > 0 else "")
