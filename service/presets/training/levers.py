"""Single changes that may be worth making to a run: texts, figures and sources. The data are in `data/levers.toml`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from service.presets.documents import build, load_document

AIMS = ("usd", "days", "tco2e")


@dataclass(frozen=True, slots=True)
class LeverKind:
    """A kind of change.

    Attributes
    ----------
    name, title, risk, source : str
        Texts of the answer.
    figures : mapping of str to any
        Numbers that it is made with.
    aims : tuple of str
        Which of `AIMS` it is judged by.
    modelled : bool
        It changes the throughput, which is unknown where the caller states a measured one.
    """

    name: str
    title: str
    risk: str
    source: str
    figures: Mapping[str, Any]
    aims: tuple[str, ...] = AIMS
    modelled: bool = False


@functools.cache
def load_levers() -> Mapping[str, LeverKind]:
    """Every kind by its name, in the order of the data file."""
    rows = load_document("levers")
    return MappingProxyType({name: _kind(name, row) for name, row in rows.items()})


def _kind(name: str, row: dict[str, Any]) -> LeverKind:
    figures = {key: value for key, value in row.items() if key not in LeverKind.__dataclass_fields__}
    return build(LeverKind, row, name=name, figures=MappingProxyType(figures))
