"""Every reader takes CPU in proportion to its input, also where all rows meet in one place."""

from __future__ import annotations

import gc
import json
import math
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from service.domain.tracking.imports import ImportedFile
from service.formats.imports.dcgm import read_dcgm
from service.formats.imports.focus import read_focus
from service.formats.imports.mlflow import read_mlflow
from service.formats.imports.sacct import read_sacct
from service.formats.imports.wandb import read_wandb

START = datetime(2026, 1, 1, tzinfo=UTC)
ROWS = 250
TIMES = 16
MOST_TIMES_CPU = 64
"""Sixteen times the rows take 16 to 25 times the CPU in n log n, 256 times in n^2; the rest is room for a busy machine."""
RUNS = 10


def overlapping_jobs(rows: int) -> bytes:
    """Jobs of one run that all last at the same time, and each begins and ends by itself."""
    lines = ["JobID|JobName|State|Start|End|ElapsedRaw|AllocTRES|Comment|WCKey"]
    for number in range(rows):
        begin, end = START + timedelta(seconds=number), START + timedelta(days=30, seconds=number)
        lines.append(f"{number}|main|COMPLETED|{begin:%Y-%m-%dT%H:%M:%S}|{end:%Y-%m-%dT%H:%M:%S}|{30 * 86400}|gres/gpu=8||")
    return "\n".join(lines).encode()


def equal_jobs(rows: int) -> bytes:
    """One job, stated again and again."""
    line = f"1|main|COMPLETED|{START:%Y-%m-%dT%H:%M:%S}|{START:%Y-%m-%dT%H:%M:%S}|0|gres/gpu=8||"
    return "\n".join(["JobID|JobName|State|Start|End|ElapsedRaw|AllocTRES|Comment|WCKey", *[line] * rows]).encode()


def equal_charges(rows: int) -> bytes:
    """One charge, stated again and again: each is another of the same identity."""
    header = "BillingCurrency,ChargePeriodStart,ChargePeriodEnd,EffectiveCost,ServiceCategory,Tags"
    line = 'USD,2026-01-01T00:00:00Z,2026-01-02T00:00:00Z,1.5,Compute,"{""outlay_run"":""main""}"'
    return "\n".join([header, *[line] * rows]).encode()


def equal_steps(rows: int) -> bytes:
    """One step of a run, logged again and again at the same time."""
    return "\n".join(["_step,_timestamp,loss,run", *["1,1767225600,2.5,main"] * rows]).encode()


def long_history(rows: int) -> bytes:
    """Two metrics of one MLflow run at ever the same step."""
    points = [{"key": ("loss", "tokens_done")[n % 2], "value": n, "timestamp": 1767225600000 + n, "step": 1} for n in range(rows)]
    run = {"info": {"run_id": "a" * 32, "run_name": "main", "start_time": 1767225600000, "status": "FINISHED"}, "data": {}}
    return json.dumps({"runs": [run], "histories": {"a" * 32: points}}).encode()


def many_series(rows: int) -> bytes:
    """A series of two samples for each of many accelerators, all in one hour of one run."""
    series = [
        {
            "metric": {"__name__": "DCGM_FI_DEV_GPU_UTIL", "outlay_run": "main", "UUID": f"GPU-{number}"},
            "values": [[1767225600 + 60 * minute, "97"] for minute in range(2)],
        }
        for number in range(rows)
    ]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": series}}).encode()


def cpu_s(read: Callable[[bytes], ImportedFile], content: bytes) -> float:
    """CPU of this thread for reading it [s]."""
    begun = time.thread_time()
    read(content)
    return time.thread_time() - begun


@pytest.mark.parametrize(
    ("read", "make"),
    [
        (read_sacct, overlapping_jobs),
        (read_sacct, equal_jobs),
        (read_focus, equal_charges),
        (read_wandb, equal_steps),
        (read_mlflow, long_history),
        (read_dcgm, many_series),
    ],
)
def test_it_grows_no_faster_than_the_rows(read: Callable[[bytes], ImportedFile], make: Callable[[int], bytes]) -> None:
    """At n, 4n and 16n rows, the least of one measurement, or of several where others on the machine have added to it."""
    contents = [make(rows) for rows in (ROWS, 4 * ROWS, TIMES * ROWS)]
    few = more = many = math.inf
    gc.disable()
    try:
        for _ in range(RUNS):
            few, more, many = map(min, (few, more, many), (cpu_s(read, content) for content in contents))
            if many < MOST_TIMES_CPU * few and many < MOST_TIMES_CPU / 6 * more:
                return
    finally:
        gc.enable()
    pytest.fail(f"{few:.3f}, {more:.3f} and {many:.3f} s of CPU")


@pytest.mark.parametrize(
    ("read", "make"),
    [
        (read_sacct, overlapping_jobs),
        (read_focus, equal_charges),
        (read_wandb, equal_steps),
        (read_mlflow, long_history),
        (read_dcgm, many_series),
    ],
)
def test_what_is_measured_is_read(read: Callable[[bytes], ImportedFile], make: Callable[[int], bytes]) -> None:
    """The rows become events and are not refused at first sight."""
    found = read(make(10))
    assert (bool(found.events), found.unmatched) == (True, ())
