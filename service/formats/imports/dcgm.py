"""GPU utilisation of NVIDIA's DCGM exporter, as Prometheus answers query_range, as hourly `utilisation` events.

`DCGM_FI_DEV_GPU_UTIL` is the percentage of time in which a kernel ran; `DCGM_FI_PROF_PIPE_TENSOR_ACTIVE` the share of cycles in which the
tensor cores were at work (NVIDIA DCGM 4, field identifiers).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import isnan
from typing import Any

from service.domain.errors import InvalidRequest
from service.domain.tracking.events import Event
from service.domain.tracking.imports import ImportedEvent, ImportedFile, RunReference, digest
from service.formats.imports.rows import Row, RowRefused, check_rows, json_value, measured, name_of, since_1970, take_rows
from service.formats.imports.tags import RUN, reference_of

WHOLE = {"DCGM_FI_DEV_GPU_UTIL": 100.0, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 1.0}
"""Reading of each metric on a fully busy accelerator. The first takes precedence where a run has both."""
METRICS = tuple(WHOLE)
JOB_LABELS = ("hpc_job", "slurm_job_name", "exported_pod", "pod")
GPU_LABELS = ("UUID", "Hostname", "instance", "gpu", "device", "GPU_I_ID")


@dataclass(slots=True)
class Hour:
    """Samples of one run, metric and clock hour; `row` is that of the first series."""

    row: int
    total: float = 0.0
    samples: int = 0
    gpus: set[tuple[str, ...]] = field(default_factory=set)


Key = tuple[RunReference, str, datetime]


def read_dcgm(content: bytes) -> ImportedFile:
    """For each run and clock hour the mean over all samples of its GPUs, and the number of these GPUs.

    The run is named by the label `outlay_run`, else by the Slurm job (`hpc_job`) or pod. Series are numbered as in `result`.
    Raises InvalidRequest for anything but an answer of query_range.
    """
    hours: dict[Key, Hour] = {}
    numbered = (Row(number, series) for number, series in enumerate(_series(json_value(content, "the document")), start=1))
    unmatched = take_rows(numbered, lambda row: _add(hours, row.number, row.cells))
    kept = {key: hour for key, hour in hours.items() if not _is_second(key, hours)}
    notes = () if len(kept) == len(hours) else (f"{METRICS[1]} is left out in the hours that have {METRICS[0]} as well",)
    return ImportedFile(tuple(_matched(key, hour) for key, hour in kept.items()), unmatched, notes)


def _series(document: Any) -> list[Any]:
    """The series of one answer, or of a list of answers to several queries."""
    found: list[Any] = []
    for answer in document if isinstance(document, list) else [document]:
        data = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(data, dict) or data.get("resultType") != "matrix" or not isinstance(data.get("result"), list):
            raise InvalidRequest(
                "the document is no answer of Prometheus to query_range: it needs data.resultType `matrix` and data.result"
            )
        found += data["result"]
    check_rows(sum(len(each["values"]) for each in found if isinstance(each, dict) and isinstance(each.get("values"), list)))
    return found


def _add(hours: dict[Key, Hour], number: int, series: Any) -> None:
    labels = series.get("metric") if isinstance(series, dict) else None
    if not isinstance(labels, dict) or not isinstance(series.get("values"), list):
        raise RowRefused("is no series with metric and values")
    name = str(labels.get("__name__"))
    if name not in WHOLE:
        raise RowRefused(f"metric is {name[:80]}; {' and '.join(METRICS)} are taken")
    reference = reference_of(labels, {RUN: next((job for label in JOB_LABELS if (job := name_of(labels.get(label)))), "")})
    gpu = tuple(str(labels.get(label, "")) for label in GPU_LABELS)
    for at, share in [_sample(sample, name) for sample in series["values"]]:
        if isnan(share):
            continue
        hour = hours.setdefault((reference, name, at.replace(minute=0, second=0, microsecond=0)), Hour(number))
        hour.total += share
        hour.samples += 1
        hour.gpus.add(gpu)


def _sample(sample: Any, name: str) -> tuple[datetime, float]:
    """Time and share of one value `[seconds since 1970, "text"]`; NaN where the exporter was down."""
    at, value = (measured(part) for part in sample) if isinstance(sample, list) and len(sample) == 2 else (None, None)
    if at is None or value is None or value < 0 or value > WHOLE[name]:
        raise RowRefused(f"a value is {str(sample)[:60]}; it has to be a time and a number from 0 to {WHOLE[name]:g}")
    return since_1970(at, "a value's time"), value / WHOLE[name]


def _is_second(key: Key, hours: Mapping[Key, Hour]) -> bool:
    reference, name, at = key
    return name != METRICS[0] and (reference, METRICS[0], at) in hours


def _matched(key: Key, hour: Hour) -> ImportedEvent:
    reference, name, at = key
    event = Event(
        id=f"dcgm-{digest(reference.run, reference.program, name)}-{at:%Y%m%dT%H}",
        type="utilisation",
        at=at,
        share=round(hour.total / hour.samples, 9),
        accelerators=len(hour.gpus),
        text=name,
    )
    return ImportedEvent(hour.row, reference, event)
