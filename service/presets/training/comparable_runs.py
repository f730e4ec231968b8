"""Published training runs that an estimate is compared with. The data are in `data/comparable_runs.toml`."""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from service.domain.summary import ComparableRun
from service.domain.training.model import GenericNetwork, Model
from service.presets.documents import build, load_document

# Runs further away than these factors are not like it. Another family of accelerators counts as this factor more.
MAX_LOG_PARAMS = math.log(4)
MAX_LOG_TOKENS = math.log(10)
LOG_OTHER_FAMILY = math.log(3)


@dataclass(frozen=True, slots=True)
class PublishedRun:
    """A run as it was published, and the hours that are planned for it.

    Attributes
    ----------
    kind : str
        As `model_kind` says.
    params, tokens : float
        Parameters, and tokens (or samples) trained on.
    family : str
        Of the accelerator.
    planned_accelerator_hours : float
        Planned from its goal, by parameters fitted without its publication.
    """

    name: str
    kind: str
    params: float
    tokens: float
    family: str
    reported_accelerator_hours: float
    planned_accelerator_hours: float
    source: str


def model_kind(model: Model) -> str:
    """Kind of a network: only runs of the same kind are compared."""
    if isinstance(model, GenericNetwork):
        return f"samples: {model.sample_unit}"
    return "mixture" if model.experts else model.kind


@functools.cache
def load_comparable_runs() -> tuple[PublishedRun, ...]:
    """Every run of the data file."""
    return tuple(build(PublishedRun, row) for row in load_document("comparable_runs")["run"])


@functools.cache
def _runs_by_kind() -> Mapping[str, list[tuple[PublishedRun, float, float]]]:
    """By kind, the runs with the logarithms of their parameters and tokens."""
    by_kind: dict[str, list[tuple[PublishedRun, float, float]]] = defaultdict(list)
    for run in load_comparable_runs():
        by_kind[run.kind].append((run, math.log(run.params), math.log(run.tokens)))
    return dict(by_kind)


def find_comparable_run(kind: str, params: float, tokens: float, family: str) -> ComparableRun | None:
    """The published run nearest in logarithms of parameters, tokens and in family of the accelerator; None where none is near."""
    log_params, log_tokens = math.log(params), math.log(tokens)
    near: list[tuple[float, PublishedRun]] = []
    for run, run_params, run_tokens in _runs_by_kind().get(kind, ()):
        further, longer = abs(run_params - log_params), abs(run_tokens - log_tokens)
        if further <= MAX_LOG_PARAMS and longer <= MAX_LOG_TOKENS:
            near.append((math.hypot(further, longer, 0.0 if run.family == family else LOG_OTHER_FAMILY), run))
    if not near:
        return None
    _, nearest = min(near, key=lambda pair: pair[0])
    ratio = nearest.planned_accelerator_hours / nearest.reported_accelerator_hours
    return ComparableRun(nearest.name, nearest.reported_accelerator_hours, ratio, nearest.source)
