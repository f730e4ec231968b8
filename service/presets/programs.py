"""Published figures and defaults of what a program has around its runs. The data are in `data/program.toml`."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from service.domain.errors import UnknownName
from service.domain.programs.spending import PublishedEffect
from service.domain.programs.tokens import PublishedModel
from service.domain.quantities import Range
from service.presets.defaults import Default

_FILE = Path(__file__).parent / "data" / "program.toml"
_Level = TypeVar("_Level")


@dataclass(frozen=True, slots=True)
class PublishedShare:
    """A share that was published, with its source and date."""

    name: str
    share: float
    source: str
    date: str


@dataclass(frozen=True, slots=True)
class DomainComplexity:
    """Share of a general model's tokens that a domain needs. `continued`: on top of a general model."""

    name: str
    share: float
    continued: bool
    source: str


@dataclass(frozen=True, slots=True)
class GeneralisationLevel:
    """How far beyond a scaling law's optimum a model is trained, by published models."""

    name: str
    title: str
    anchors: tuple[PublishedModel, ...]
    source: str


def find_program_default(name: str) -> Default:
    """A default by its name. Raises KeyError where there is none."""
    return Default(**_document()["default"][name])


@functools.cache
def overhead_shares() -> Mapping[str, PublishedShare]:
    """Published overheads by name, relative to the cost of the runs [1]."""
    rows = _document()["overhead"].items()
    return MappingProxyType({name: PublishedShare(name, row["share"], row["source"], row["date"]) for name, row in rows})


@functools.cache
def development_shares() -> tuple[PublishedShare, ...]:
    """Published programs' spending around their final runs, relative to those runs [1]."""
    return tuple(PublishedShare(**row) for row in _document()["development"])


@functools.cache
def filter_yield() -> tuple[Range, str]:
    """Share of web text left after filtering [1], and its source."""
    row = _document()["yields"]["filter_yield"]
    return Range(row["low"], row["value"], row["high"]), f"{row['source']}, {row['date']}"


@functools.cache
def complexities() -> Mapping[str, DomainComplexity]:
    """Levels of domain complexity, simplest first."""
    rows = _document()["complexity"].items()
    return MappingProxyType({name: DomainComplexity(name, row["share"], row["continued"], row["source"]) for name, row in rows})


@functools.cache
def generalisations() -> Mapping[str, GeneralisationLevel]:
    """Levels of generalisation, least first."""
    return MappingProxyType({name: _generalisation(name, row) for name, row in _document()["generalisation"].items()})


def find_complexity(name: str) -> DomainComplexity:
    """A level of domain complexity. Raises UnknownName."""
    return _find_level(complexities(), name, "/data/complexity")


def find_generalisation(name: str) -> GeneralisationLevel:
    """A level of generalisation. Raises UnknownName."""
    return _find_level(generalisations(), name, "/data/generalisation")


@functools.cache
def published_spending() -> Mapping[str, PublishedEffect]:
    """Published effect of each spend choice, in the order of the file."""
    return MappingProxyType({name: _effect(name, row) for name, row in _document()["spend"].items()})


def _effect(name: str, row: Mapping[str, Any]) -> PublishedEffect:
    basis = f"{row['source']}, {row['date']}"
    return PublishedEffect(name, row.get("compute_multiplier"), row["risk_reduction"], row["full_at_share"], basis)


def _generalisation(name: str, row: Mapping[str, Any]) -> GeneralisationLevel:
    anchors = tuple(PublishedModel(**anchor) for anchor in row["anchors"])
    return GeneralisationLevel(name, row["title"], anchors, f"{row['source']}, {row['date']}")


def _find_level(levels: Mapping[str, _Level], name: str, pointer: str) -> _Level:
    if name in levels:
        return levels[name]
    raise UnknownName(f"no level is called {name[:100]!r}; there are {', '.join(levels)}", pointer, get_close_matches(name[:100], levels))


@functools.cache
def _document() -> dict[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))
