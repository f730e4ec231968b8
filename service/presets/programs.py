"""Published figures and defaults of what a program has around its runs. The data are in `data/program.toml`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, TypeVar

from service.domain.errors import UnknownName
from service.domain.programs.spending import PublishedEffect
from service.domain.programs.tokens import PublishedModel
from service.domain.quantities import Range
from service.presets.defaults import Default
from service.presets.documents import build, dated_source, load_document

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
    return Default(**load_document("program")["default"][name])


@functools.cache
def overhead_shares() -> Mapping[str, PublishedShare]:
    """Published overheads by name, relative to the cost of the runs [1]."""
    rows = load_document("program")["overhead"].items()
    return MappingProxyType({name: build(PublishedShare, row, name=name) for name, row in rows})


@functools.cache
def development_shares() -> tuple[PublishedShare, ...]:
    """Published programs' spending around their final runs, relative to those runs [1]."""
    return tuple(PublishedShare(**row) for row in load_document("program")["development"])


@functools.cache
def filter_yield() -> tuple[Range, str]:
    """Share of web text left after filtering [1], and its source."""
    row = load_document("program")["yields"]["filter_yield"]
    return Range(row["low"], row["value"], row["high"]), dated_source(row)


@functools.cache
def complexities() -> Mapping[str, DomainComplexity]:
    """Levels of domain complexity, simplest first."""
    rows = load_document("program")["complexity"].items()
    return MappingProxyType({name: build(DomainComplexity, row, name=name) for name, row in rows})


@functools.cache
def generalisations() -> Mapping[str, GeneralisationLevel]:
    """Levels of generalisation, least first."""
    return MappingProxyType({name: _generalisation(name, row) for name, row in load_document("program")["generalisation"].items()})


def find_complexity(name: str) -> DomainComplexity:
    """A level of domain complexity. Raises UnknownName."""
    return _find_level(complexities(), name, "/data/complexity")


def find_generalisation(name: str) -> GeneralisationLevel:
    """A level of generalisation. Raises UnknownName."""
    return _find_level(generalisations(), name, "/data/generalisation")


@functools.cache
def published_spending() -> Mapping[str, PublishedEffect]:
    """Published effect of each spend choice, in the order of the file."""
    rows = load_document("program")["spend"].items()
    return MappingProxyType(
        {
            name: build(PublishedEffect, row, choice=name, compute_multiplier=row.get("compute_multiplier"), basis=dated_source(row))
            for name, row in rows
        }
    )


def _generalisation(name: str, row: Mapping[str, Any]) -> GeneralisationLevel:
    anchors = tuple(PublishedModel(**anchor) for anchor in row["anchors"])
    return GeneralisationLevel(name, row["title"], anchors, dated_source(row))


def _find_level(levels: Mapping[str, _Level], name: str, pointer: str) -> _Level:
    if name in levels:
        return levels[name]
    raise UnknownName(f"no level is called {name[:100]!r}; there are {', '.join(levels)}", pointer, get_close_matches(name[:100], levels))
