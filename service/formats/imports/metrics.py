"""Logged metrics of experiment trackers as events: names of metrics, and the points of one training step."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import Any

from service.domain.tracking.events import Event
from service.domain.tracking.imports import digest
from service.formats.imports.rows import LARGEST, MAX_NAME_CHARACTERS

METRICS: Mapping[str, str] = {
    "loss": "loss train_loss training_loss train_loss_step lm_loss",
    "tokens_done": "tokens tokens_done tokens_seen train_tokens consumed_tokens time_token num_input_tokens_seen"
    " train_num_input_tokens_seen",
    "accelerator_hours": "accelerator_hours gpu_hours",
    "cost_micro_usd": "cost_usd",
    "accelerators": "accelerators",
    "mfu": "mfu train_mfu perf_mfu throughput_device_mfu",
}
"""Metrics of an event field, by their names with `_` between the parts. Beside plain names those that Hugging Face's Trainer
(num_input_tokens_seen), Lightning (train_loss_step), Megatron-LM (lm loss) and Composer (time/token, throughput/device/mfu) log."""
FIELDS = {name: target for target, names in METRICS.items() for name in names.split()}
"""The event field of a metric."""
EVALUATION = re.compile(r"(?:eval|evaluation|val|valid|validation|test)_.+")
SEPARATORS = re.compile(r"[/. -]")
WHOLE = frozenset({"tokens_done", "cost_micro_usd", "accelerators"})
MOST = {"mfu": 1.0, "accelerators": 1e7, "accelerator_hours": 1e12, "cost_micro_usd": 1e12}
"""Largest valid value of a field. An MFU above 1 is a percentage or an error, which cannot be distinguished."""


@dataclass(frozen=True, slots=True)
class Point:
    """A logged value: `name` as logged; `value` may not be finite."""

    at: datetime
    step: int | None
    name: str
    value: float


def events_of(points: Sequence[Point], key: str) -> Iterator[Event]:
    """Progress of the known metrics, and an evaluation for each metric named like one; other metrics are ignored.

    Points of one step make one progress event at the time of the first, until a metric repeats. Event ids follow from `key`, step and time,
    so that a longer history of the same run repeats the same events.
    """
    ordered = sorted(points, key=lambda point: (point.at, point.name))
    for point in ordered:
        if _metric(point) == "evaluation":
            name = point.name[:MAX_NAME_CHARACTERS]
            yield Event(f"{_id(key, point)}-{digest(name)}", "evaluation", point.at, step=point.step, metric=name, value=point.value)
    for first, fields in _moments(ordered):
        yield Event(_id(key, first), "progress", first.at, step=first.step, **fields)


def known(name: str) -> bool:
    """Whether a metric of this name becomes an event."""
    plain = _plain(name)
    return plain in FIELDS or EVALUATION.fullmatch(plain) is not None


def _plain(name: str) -> str:
    return SEPARATORS.sub("_", name.lower())


def _metric(point: Point) -> str:
    """The field of a point; `evaluation` for an evaluation, empty for unknown metrics and impossible values."""
    name = _plain(point.name)
    target = "evaluation" if EVALUATION.fullmatch(name) else FIELDS.get(name, "")
    if target == "evaluation":
        return target if isfinite(point.value) else ""
    return target if target == "loss" or 0 <= point.value <= MOST.get(target, LARGEST) else ""


def _moments(points: Sequence[Point]) -> list[tuple[Point, dict[str, Any]]]:
    """The first point and the fields of each progress event."""
    moments: list[tuple[Point, dict[str, Any]]] = []
    for point in points:
        target = _metric(point)
        if target in ("", "evaluation"):
            continue
        if not moments or moments[-1][0].step != point.step or target in moments[-1][1]:
            moments.append((point, {}))
        moments[-1][1][target] = _value(target, point.value)
    return moments


def _value(target: str, value: float) -> float | int:
    scaled = value * 10**6 if target == "cost_micro_usd" else value
    return round(scaled) if target in WHOLE else value


def _id(key: str, point: Point) -> str:
    step = "" if point.step is None else f"-{point.step}"
    return f"{key}{step}-{point.at:%Y%m%dT%H%M%S%f}"
