"""Defaults of compute-optimal requests, thresholds of warnings and published plans, from `data/optimal.toml`."""

from __future__ import annotations

import functools

from service.domain.scaling.optimum import PublishedPlan
from service.presets.defaults import Default
from service.presets.documents import load_document


def optimal_default(name: str) -> Default:
    """Default of a request field. Raises KeyError for a field without one."""
    return Default(**load_document("optimal")["default"][name])


def warning_threshold(name: str) -> float:
    """Threshold of a warning about the size and the data of a run. Raises KeyError for an unknown one."""
    return float(load_document("optimal")["threshold"][name]["value"])


@functools.cache
def published_plans() -> tuple[PublishedPlan, ...]:
    """Published plans and training runs, with sources."""
    return tuple(PublishedPlan(**row) for row in load_document("optimal")["published"])
