"""Single changes that may be worth making to a run: texts, figures and sources. The data are in `data/levers.toml`."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

_FILE = Path(__file__).parents[1] / "data" / "levers.toml"
AIMS = ("usd", "days", "tco2e")


@dataclass(frozen=True, slots=True)
class LeverKind:
    """A kind of change.

    Attributes
    ----------
    name, title, risk, source : str
        Texts of the answer.
    aims : tuple of str
        Which of `AIMS` it is judged by.
    modelled : bool
        It changes the throughput, which is unknown where the caller states a measured one.
    figures : mapping of str to any
        Numbers that it is made with.
    """

    name: str
    title: str
    risk: str
    source: str
    aims: tuple[str, ...]
    modelled: bool
    figures: Mapping[str, Any]


@functools.cache
def load_levers() -> Mapping[str, LeverKind]:
    """Every kind by its name, in the order of the data file."""
    rows = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return MappingProxyType({name: _kind(name, row) for name, row in rows.items()})


def _kind(name: str, row: dict[str, Any]) -> LeverKind:
    words = {key: row.pop(key) for key in ("title", "risk", "source")}
    aims, modelled = tuple(row.pop("aims", AIMS)), row.pop("modelled", False)
    return LeverKind(name, aims=aims, modelled=modelled, figures=MappingProxyType(row), **words)
