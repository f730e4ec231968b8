"""What a compute-optimal plan is worked out with where the caller does not say. The data are in `data/optimal.toml`."""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path
from typing import Any

from service.domain.scaling.optimum import PublishedPlan
from service.presets.defaults import Default

_FILE = Path(__file__).parents[1] / "data" / "optimal.toml"


def optimal_default(name: str) -> Default:
    """A default by its name. KeyError where there is none."""
    return Default(**_document()["default"][name])


@functools.cache
def published_plans() -> tuple[PublishedPlan, ...]:
    """What others planned or trained, with its source."""
    return tuple(PublishedPlan(**row) for row in _document()["published"])


@functools.cache
def _document() -> dict[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))
