"""Tags and labels that name the run or program of a row."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from service.domain.tracking.imports import RunReference
from service.formats.imports.rows import RowRefused, cell_text, name_of

RUN, PROGRAM = "outlay_run", "outlay_program"
PREFIX = re.compile(r"^.*[/:](?=outlay)")
SEPARATORS = re.compile(r"[-.:/ ]")


def reference_of(*tags: object) -> RunReference:
    """The run and program that tags name; of several sets of tags the first that names one.

    Tags are an object, a list of pairs, or JSON text of either. Keys are case-insensitive, with or without a provider's prefix (`user:`),
    and with any of `_ - . : /` between the words.
    """
    for given in tags:
        named = {_key(key): value for key, value in _pairs(given)}
        run, program = name_of(named.get(RUN)), name_of(named.get(PROGRAM))
        if run or program:
            return RunReference(run, program)
    return RunReference()


def _key(key: object) -> str:
    return SEPARATORS.sub("_", PREFIX.sub("", str(key).lower()))


def _pairs(tags: object) -> Sequence[tuple[Any, Any]]:
    value = _json(tags) if isinstance(tags, str) else tags
    if value is None:
        return ()
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, list):
        return [_pair(entry) for entry in value]
    raise RowRefused("Tags are no object of names and values")


def _pair(entry: object) -> tuple[Any, Any]:
    """One tag of a list: Parquet's maps are pairs, some exports are `{"key": …, "value": …}`."""
    if isinstance(entry, Mapping):
        lower = {str(key).lower(): value for key, value in entry.items()}
        return lower.get("key"), lower.get("value")
    if isinstance(entry, tuple | list) and len(entry) == 2:
        return entry[0], entry[1]
    raise RowRefused("Tags hold an entry that is no pair of name and value")


def _json(text: str) -> Any:
    if not cell_text(text):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise RowRefused("Tags are not valid JSON, so that the row's run is unknown") from None
