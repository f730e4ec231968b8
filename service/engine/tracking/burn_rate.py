"""Burn rates of a program: USD, accelerator-hours, tokens and checkpoints a day, over its whole life and over recent windows.

Running totals are interpolated linearly between reports. Tokens are those that still count (surviving line).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from service.domain.tracking.status import BurnRate, BurnWindow, WindowName
from service.engine.tracking.cost import CostedRun

Floats = NDArray[np.float64]
Span = tuple[datetime, datetime]
WINDOWS: tuple[tuple[WindowName, float], ...] = (("28d", 672.0), ("7d", 168.0), ("24h", 24.0))
HOURS_PER_DAY = 24.0


def burn_rate(runs: Sequence[CostedRun], now: datetime) -> BurnRate:
    """Burn rates of runs together, over the whole life and over the windows of `WINDOWS`.

    Parameters
    ----------
    runs : sequence of CostedRun
        Runs of the program.
    now : datetime
        End of the recent windows, UTC. The whole life ends with the last event.

    Returns
    -------
    BurnRate
        Rates a day; None where no time has passed or a total is unknown.
    """
    alive = [run for run in runs if run.history.last_at is not None]
    first = min((run.history.moment(0.0) for run in alive), default=now)
    last = max((run.history.last_at or now for run in alive), default=now)
    spans = [(first, last), *((now - min(now - first, timedelta(hours=hours)), now) for _, hours in WINDOWS)]
    run_hours = [(run, np.array([run.history.elapsed(moment) for span in spans for moment in span])) for run in alive]
    gains = [_gains(run_hours, total) or (None,) * len(spans) for total in (CostedRun.usd_at, _accelerator_hours, _tokens, _checkpoints)]
    names: tuple[WindowName, ...] = ("whole", *(name for name, _ in WINDOWS))
    whole, *windows = (_window(name, span, each) for name, span, each in zip(names, spans, zip(*gains, strict=True), strict=True))
    return BurnRate(whole.usd_per_day, whole.accelerator_hours_per_day, whole.tokens_per_day, whole.checkpoints_per_day, (whole, *windows))


def _window(name: WindowName, span: Span, gains: Sequence[float | None]) -> BurnWindow:
    hours = (span[1] - span[0]) / timedelta(hours=1)
    return BurnWindow(name, hours, *(None if gain is None or hours <= 0 else gain / hours * HOURS_PER_DAY for gain in gains))


def _gains(run_hours: Sequence[tuple[CostedRun, Floats]], total: Callable[[CostedRun, Floats], Floats | None]) -> list[float]:
    """Growth of a total over all runs in each span, given the elapsed hours of the spans' ends; empty where the total of one run is
    unknown."""
    gains = []
    for run, hours in run_hours:
        totals = total(run, hours)
        if totals is None:
            return []
        gains.append((totals[1::2] - totals[::2]).tolist())
    return [math.fsum(each) for each in zip(*gains, strict=True)]


def _accelerator_hours(run: CostedRun, hours: Floats) -> Floats | None:
    accelerator_hours = run.history.accelerator_hours
    return None if accelerator_hours is None else accelerator_hours.interpolate(hours)


def _tokens(run: CostedRun, hours: Floats) -> Floats:
    line = run.history.lineage
    return np.interp(hours, line.at_hours, line.earned) if line.earned.size else np.zeros_like(hours)


def _checkpoints(run: CostedRun, hours: Floats) -> Floats:
    checkpoints = run.history.checkpoints
    if not checkpoints.count.size:
        return np.zeros_like(hours)
    return np.append(0.0, np.cumsum(checkpoints.count))[np.searchsorted(checkpoints.last, hours, side="right")]
