"""Defaults of compute-optimal requests and published plans, from `data/optimal.toml`."""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path
from typing import Any

from service.domain.scaling.optimum import PublishedPlan
from service.presets.defaults import Default

_FILE = Path(__file__).parents[1] / "data" / "optimal.toml"


def optimal_default(name: str) -> Default:
    """Default of a request field. Raises KeyError for a field without one."""
    return Default(**_document()["default"][name])


@functools.cache
def published_plans() -> tuple[PublishedPlan, ...]:
    """Published plans and training runs, with sources."""
    return tuple(PublishedPlan(**row) for row in _document()["published"])


@functools.cache
def _document() -> dict[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))
