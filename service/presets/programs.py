"""What stands around a program's runs where the caller does not say. The data are in `data/program.toml`."""

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
from service.domain.quantities import Range
from service.domain.scaling.laws import ParametricLaw
from service.engine.programs.spend_allocation import PublishedEffect
from service.engine.programs.tokens import PublishedModel, TokenTarget, suggest_token_target
from service.presets.defaults import Default

_FILE = Path(__file__).parent / "data" / "program.toml"
_Level = TypeVar("_Level")


@dataclass(frozen=True, slots=True)
class PublishedShare:
    """A share and whose experience it is."""

    name: str
    share: float
    source: str
    date: str


@dataclass(frozen=True, slots=True)
class DomainComplexity:
    """What share of a general model's tokens a domain takes. `continued`: on top of a general model."""

    name: str
    share: float
    continued: bool
    source: str


@dataclass(frozen=True, slots=True)
class GeneralisationLevel:
    """How far a model is trained beyond what a scaling law asks for, by published models."""

    name: str
    title: str
    anchors: tuple[PublishedModel, ...]
    source: str


def find_program_default(name: str) -> Default:
    """A default by its name. KeyError where there is none."""
    return Default(**_document()["default"][name])


@functools.cache
def overhead_shares() -> Mapping[str, PublishedShare]:
    """Published shares of the work around runs, of what the runs cost, by the overhead's name."""
    rows = _document()["overhead"].items()
    return MappingProxyType({name: PublishedShare(name, row["share"], row["source"], row["date"]) for name, row in rows})


@functools.cache
def development_shares() -> tuple[PublishedShare, ...]:
    """What published programs spent beside their final runs, over those runs."""
    return tuple(PublishedShare(**row) for row in _document()["development"])


@functools.cache
def filter_yield() -> tuple[Range, str]:
    """What is left of web text after filters, and the source."""
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


def suggested_tokens(params: float, complexity: str, generalisation: str, law: ParametricLaw) -> tuple[TokenTarget, str]:
    """A first token target for a model, and its basis. Raises UnknownName for a level there is none of."""
    domain = _level(complexities(), complexity, "/data/complexity")
    level = _level(generalisations(), generalisation, "/data/generalisation")
    target = suggest_token_target(params, level.anchors, domain.share, law)
    share = "" if domain.share == 1 else f"{domain.share:.1%} of that, as {domain.source}; "
    return target, f"{share}trained as far as {', '.join(target.anchors)} ({level.source})"


@functools.cache
def published_spending() -> Mapping[str, PublishedEffect]:
    """Published figures of each spend choice, in the order of the file."""
    return MappingProxyType({name: _spending(name, row) for name, row in _document()["spend"].items()})


def _spending(name: str, row: Mapping[str, Any]) -> PublishedEffect:
    basis = f"{row['source']}, {row['date']}"
    return PublishedEffect(name, row.get("compute_multiplier"), row["risk_reduction"], row["full_at_share"], basis)


def _generalisation(name: str, row: Mapping[str, Any]) -> GeneralisationLevel:
    return GeneralisationLevel(
        name, row["title"], tuple(PublishedModel(**anchor) for anchor in row["anchors"]), f"{row['source']}, {row['date']}"
    )


def _level(levels: Mapping[str, _Level], name: str, pointer: str) -> _Level:
    if name in levels:
        return levels[name]
    raise UnknownName(f"no level is called {name[:100]!r}; there are {', '.join(levels)}", pointer, get_close_matches(name[:100], levels))


@functools.cache
def _document() -> dict[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))
