"""Approaches to a task, from `data/approaches.toml`."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from service.domain.comparison.approaches import Approach
from service.presets.defaults import Default

_FILE = Path(__file__).parents[1] / "data" / "approaches.toml"


@functools.cache
def load_approaches() -> Mapping[str, Approach]:
    """Every approach by its name, from the least to the most training."""
    return MappingProxyType({name: Approach(name=name, **row) for name, row in _document()["approach"].items()})


def approach_default(name: str) -> Default:
    """Default of a request field. Raises KeyError for a field without one."""
    return Default(**_document()["default"][name])


@functools.cache
def _document() -> dict[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))
