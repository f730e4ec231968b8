"""Rows of AWS's offer files: CSV of up to a million rows, of which a few thousand are wanted.

Five lines about the file precede the header.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter

from providers.offer import ProviderError, Rejected
from providers.row_parsing import OfferCollector

LINES_BEFORE_HEADER = 5


@dataclass(frozen=True, slots=True)
class OfferFile:
    """What is read of a kind of file: the values that columns must have, further columns, and words that are in every wanted line.

    Looking for words is ten times quicker than reading the line as CSV.
    """

    name: str
    kept: Mapping[str, Sequence[str]]
    others: Sequence[str]
    words: Sequence[str]


def read_rows(lines: Iterable[str], file: OfferFile, region: str, collector: OfferCollector) -> Iterator[dict[str, str]]:
    """The wanted rows of a region's file by column. Raises ProviderError where columns are missing or the file is no CSV."""
    columns, unread = (*file.kept, *file.others), iter(lines)
    header = next(_fields(islice(unread, LINES_BEFORE_HEADER, LINES_BEFORE_HEADER + 1), file), [])
    missing = [name for name in columns if name not in header]
    if missing:
        raise ProviderError(f"the {file.name} of {region} lacks the columns {', '.join(missing)}")
    pick = itemgetter(*(header.index(name) for name in columns))
    for row in _fields((line for line in unread if all(word in line for word in file.words)), file):
        if len(row) != len(header):
            collector.rejected.append(Rejected(f"{region} {row[0]}", f"{len(row)} fields where {len(header)} were expected"))
            continue
        named = dict(zip(columns, pick(row), strict=True))
        if all(named[name] in values for name, values in file.kept.items()):
            yield named


def _fields(lines: Iterator[str], file: OfferFile) -> Iterator[list[str]]:
    try:
        yield from csv.reader(lines)
    except csv.Error as error:
        raise ProviderError(f"the {file.name} is no CSV: {error}") from error
