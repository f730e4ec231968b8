"""Domain objects as plain JSON values."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, get_origin

from service.domain.answer_fields import HIDDEN, MERGED, Doc, annotated_fields

if TYPE_CHECKING:
    from cattrs import Converter


_ENCODER = json.JSONEncoder(allow_nan=False, ensure_ascii=False, check_circular=False, separators=(",", ":"))


def to_json(value: Any) -> str:
    """Compact RFC 8259 text of plain values, keys in the given order. Raises ValueError on NaN and infinities, which are bugs."""
    return _ENCODER.encode(value)


def to_builtins(value: Any) -> Any:
    """Dataclasses as objects, decimals as numbers, dates and times as text of RFC 3339; everything below likewise."""
    return _converter().unstructure(value)


@cache
def _converter() -> Converter:
    """Made when it is first needed: the library takes longer to import than short commands run."""
    from cattrs import Converter

    converter = Converter(
        unstruct_collection_overrides={Sequence: list, tuple: list},
        unstructure_fallback_factory=lambda kind: _leaf_hook(kind, converter),
    )
    converter.register_unstructure_hook(Decimal, float)
    converter.register_unstructure_hook(date, _rfc3339)
    converter.register_unstructure_hook(datetime, _rfc3339)
    for kind in (bytes, set, frozenset):
        converter.register_unstructure_hook(kind, _refuse)
    converter.register_unstructure_hook_factory(is_dataclass, lambda kind: _object_hook(kind, converter))
    return converter


def _leaf_hook(kind: Any, converter: Converter) -> Callable[[Any], Any]:
    """Numbers and null as they are, what is of any type by the type of the value; everything else has no form."""
    from cattrs.fns import identity

    if kind in (object, Any):
        return lambda value: _refuse(value) if type(value) is object else converter.unstructure(value)
    atom = get_origin(kind) is Literal or (isinstance(kind, type) and issubclass(kind, int | float | NoneType))
    return identity if atom else _refuse


def _refuse(value: Any) -> NoReturn:
    raise TypeError(f"no plain form for {type(value).__name__}")


def _rfc3339(value: date) -> str:
    return value.isoformat().replace("+00:00", "Z")


def _doc(marks: Sequence[object]) -> Doc:
    return next((mark for mark in marks if isinstance(mark, Doc)), Doc(""))


def _object_hook(kind: type, converter: Converter) -> Callable[[Any], dict[str, Any]]:
    """The function that makes JSON objects of a dataclass, laid out as its fields say."""
    from cattrs.gen import make_dict_unstructure_fn, override

    marks = {name: below for name, (_, below) in annotated_fields(kind).items()}
    overrides: dict[str, Any] = {
        name: override(omit=HIDDEN in below or None, omit_if_default=doc.optional or HIDDEN in below, rename=doc.name or None)
        for name, below, doc in ((name, below, _doc(below)) for name, below in marks.items())
        if HIDDEN in below or doc.optional or doc.name
    }
    write: Callable[[Any], dict[str, Any]] = make_dict_unstructure_fn(kind, converter, **overrides)
    merged = frozenset(name for name, below in marks.items() if MERGED in below)
    if not merged:
        return write

    def write_merged(value: Any) -> dict[str, Any]:
        body: dict[str, Any] = {}
        for name, below in write(value).items():
            body.update(below if name in merged else {name: below})
        return body

    return write_merged
