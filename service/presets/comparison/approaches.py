"""Approaches to a task, from `data/approaches.toml`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType

from service.domain.comparison.approaches import Approach
from service.presets.defaults import Default
from service.presets.documents import load_document


@functools.cache
def load_approaches() -> Mapping[str, Approach]:
    """Every approach by its name, from the least to the most training."""
    return MappingProxyType({name: Approach(name=name, **row) for name, row in load_document("approaches")["approach"].items()})


def approach_default(name: str) -> Default:
    """Default of a request field. Raises KeyError for a field without one."""
    return Default(**load_document("approaches")["default"][name])
