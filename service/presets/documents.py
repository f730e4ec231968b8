"""The TOML files of `data`, read once, and dataclasses made of their rows."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

DATA = Path(__file__).parent / "data"
_Record = TypeVar("_Record", bound="DataclassInstance")


@functools.cache
def load_document(name: str) -> dict[str, Any]:
    """Content of `data/<name>.toml`."""
    return tomllib.loads((DATA / f"{name}.toml").read_text(encoding="utf-8"))


def build(kind: type[_Record], row: Mapping[str, Any], /, **values: Any) -> _Record:
    """A dataclass of the members of a row that it has, lists as tuples; `values` come before them."""
    stated = {field.name: row[field.name] for field in fields(kind) if field.name in row}
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in stated.items()} | values)


def dated_source(row: Mapping[str, Any]) -> str:
    """Source of a row with its date."""
    return f"{row['source']}, {row['date']}"
