"""What to tell those whose candidates nobody sells: names that are near, and which filter leaves nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Any

import numpy as np

from service.domain.errors import NoOffer, UnknownName
from service.prices.book import PriceBook
from service.prices.offer_table import SECONDS_PER_DAY, CodedColumn, Ints
from service.usecases.comparison.offer_selection import filter_columns, matching_rows
from service.usecases.resolution.assumption_log import AssumptionLog

Given = Mapping[str, Any]
AGE = "max_age_days"
NAMED = ("providers", "regions")
MOST_SHOWN = 8


def check_names_known(given: Given, book: PriceBook, notes: AssumptionLog) -> None:
    """Warns of providers and regions that nobody here is called. Raises UnknownName, with names that are near, where that leaves none."""
    columns = filter_columns(book.columns)
    for name in NAMED:
        asked = given.get(name) or ()
        unknown = [index for index, each in enumerate(asked) if not columns[name].among([each]).any()]
        if not unknown:
            continue
        if len(unknown) == len(asked):
            near = _near(asked[unknown[0]], columns[name])
            message = f"no offer has the {name[:-1]} {asked[unknown[0]]!r}{_meant(near)}: GET /v1/offers lists what there is"
            raise UnknownName(message, f"/candidates/{name}/{unknown[0]}", near)
        told = (f"{asked[index]}{_meant(_near(asked[index], columns[name]))}" for index in unknown)
        notes.warn(f"no offer has the {name} {', '.join(told)}: GET /v1/offers lists what there is")


def recent_rows(rows: Ints, given: Given, book: PriceBook, now: datetime) -> Ints:
    """The rows whose prices were read within the days asked for."""
    days = given.get(AGE)
    return rows if days is None else rows[now.timestamp() - book.columns.observed_s[rows] <= days * SECONDS_PER_DAY]


def explain_no_offer(given: Given, accelerators: Sequence[str], book: PriceBook, now: datetime) -> NoOffer:
    """What is wrong where nothing answers the candidates: each filter without which something would, and what that is."""
    found = list(_without_one(given, accelerators, book, now))
    told = "; ".join(found) or "no single filter is to blame: widen accelerators, providers, regions or pricing"
    return NoOffer(f"no offer in {book.name} answers these candidates: {told}", "/candidates")


def _without_one(given: Given, accelerators: Sequence[str], book: PriceBook, now: datetime) -> Iterator[str]:
    names = _shown(accelerators) if given.get("accelerators") else "what is asked for"
    for name, column in filter_columns(book.columns).items():
        rows = recent_rows(matching_rows({**given, name: None}, accelerators, book), given, book, now)
        if given.get(name) is not None and len(rows):
            known = sorted({column.names[code] for code in np.unique(column.codes[rows])})
            yield f"{names} has no {name} {_shown(given[name])} here, known are {_shown(known)} (candidates.{name})"
    rows = matching_rows(given, accelerators, book)
    if given.get(AGE) is not None and len(rows):
        days = (now.timestamp() - book.columns.observed_s[rows].max()) / SECONDS_PER_DAY
        yield f"the newest price that does was read {days:,.0f} days ago (candidates.{AGE})"
    every = tuple(sorted(book.columns.accelerator.names))
    rows = recent_rows(matching_rows(given, every, book), given, book, now)
    if given.get("accelerators") and len(rows):
        sold = sorted({book.columns.accelerator.names[code] for code in np.unique(book.columns.accelerator.codes[rows])})
        yield f"sold there are {_shown(sold)}, not {names} (candidates.accelerators)"


def _near(name: str, column: CodedColumn) -> tuple[str, ...]:
    """Known names most like the unknown one, or that hold it."""
    known = {each.casefold(): each for each in column.names}
    asked = name[:100].casefold()
    like = get_close_matches(asked, list(known), n=3) or [each for each in sorted(known) if asked in each][:3]
    return tuple(known[each] for each in like)


def _meant(near: Sequence[str]) -> str:
    return f" (did you mean {', '.join(near)}?)" if near else ""


def _shown(names: Sequence[str]) -> str:
    more = len(names) - MOST_SHOWN
    return ", ".join(names[:MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")
