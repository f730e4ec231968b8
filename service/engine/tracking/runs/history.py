"""History of a run from its hourly rollups: progress, downtime, cost events, checkpoints, losses, evaluations and decisions.

The surviving line is the work that leads to the present position; work abandoned by a rollback or branch is no part of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.domain.tracking.events import Verdict
from service.domain.tracking.risks import RiskNote
from service.domain.training.estimate import COMPUTE_LINE
from service.engine.tracking.runs.hourly_rollup import (
    BRANCH,
    EPOCH,
    HOUR_US,
    INTERRUPTION,
    RESTART,
    STEADY,
    HourColumns,
    hour_of,
    read_rollups,
)
from service.engine.tracking.runs.lineage import Lineage, RunSamples, trace_lineage

Floats = NDArray[np.float64]
MICRO = 1_000_000


@dataclass(frozen=True, slots=True)
class CumulativeSeries:
    """A running total at elapsed hours, relaunches summed."""

    at_hours: Floats
    value: Floats

    def interpolate(self, hours: Floats) -> Floats:
        """The total at elapsed hours, linear between reports."""
        return np.interp(hours, self.at_hours, self.value)

    def step_at(self, hours: Floats) -> Floats:
        """The total at elapsed hours as a step function: each amount counts at once."""
        if not self.value.size:
            return np.zeros_like(hours)
        return np.append(0.0, self.value)[np.searchsorted(self.at_hours, hours, side="right")]


@dataclass(frozen=True, slots=True)
class Interruption:
    """An interruption: elapsed hours, cause and downtime [hours]; `ended` is False where the run is still down."""

    at_hours: float
    cause: str
    downtime_hours: float
    ended: bool


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A value of a metric, with its step, standard error and number of samples where these are stated."""

    at: datetime
    metric: str
    value: float
    step: int | None = None
    standard_error: float | None = None
    samples: int | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision on a gate."""

    at: datetime
    gate: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class HourlyLosses:
    """Hourly losses [nats per token], NaN where there is none: elapsed hours of the hour's last loss, and the tokens trained by then.

    `surviving` is False where the hour is not on the surviving line.
    """

    at_hours: Floats
    tokens: Floats
    not_finite: Floats
    last: Floats
    lowest: Floats
    median: Floats
    highest: Floats
    surviving: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class HourlyCheckpoints:
    """Hourly checkpoints: count, bytes, elapsed hours of first and last, and the longest gap within the hour [hours]."""

    count: Floats
    bytes: Floats
    first: Floats
    last: Floats
    longest_gap: Floats


@dataclass(frozen=True, slots=True)
class CostEvents:
    """`cost` events [micro-USD]: all but compute invoices by line and over time (`unbilled`); compute invoices by the end of what they pay
    for."""

    lines: Mapping[str, int]
    unbilled: CumulativeSeries
    billed: CumulativeSeries


@dataclass(frozen=True, slots=True)
class Downtime:
    """Disjoint intervals of downtime, in order [elapsed hours]."""

    begin: Floats
    end: Floats

    def until(self, hours: Floats) -> Floats:
        """Hours of downtime until elapsed hours."""
        if not self.begin.size:
            return np.zeros_like(hours)
        lasts = np.cumsum(self.end - self.begin)
        at = np.column_stack([self.begin, self.end]).ravel()
        total = np.column_stack([lasts - (self.end - self.begin), lasts]).ravel()
        return np.interp(hours, at, total)


@dataclass(frozen=True, slots=True)
class RunHistory:
    """A run until `until`. Elapsed hours count from `started_at`, its first event; None before.

    `micro_usd` and `accelerator_hours` are self-reported totals, `mfu` and `share` (of the accelerators' time in use) means of the reported
    values, None where nothing was reported.
    """

    started_at: datetime | None
    last_at: datetime | None
    until: datetime
    events: int
    lineage: Lineage
    downtime: Downtime
    accelerator_hours: CumulativeSeries | None
    micro_usd: CumulativeSeries | None
    accelerators: int | None
    interruptions: tuple[Interruption, ...]
    costs: CostEvents
    checkpoints: HourlyCheckpoints
    losses: HourlyLosses
    evaluations: tuple[Evaluation, ...]
    decisions: tuple[Decision, ...]
    risks: tuple[RiskNote, ...]
    mfu: float | None
    share: float | None
    warnings: tuple[str, ...]

    def elapsed(self, at: datetime) -> float:
        """Hours from the start to a time; 0 before the first event."""
        return 0.0 if self.started_at is None else (at - self.started_at) / timedelta(hours=1)

    def moment(self, hours: float) -> datetime:
        """The time at elapsed hours."""
        return (self.started_at or self.until) + timedelta(hours=hours)

    def uptime(self, hours: Floats) -> Floats:
        """Hours without downtime until elapsed hours."""
        return hours - self.downtime.until(hours)


def history(hours: Sequence[tuple[int, str]], until: datetime) -> RunHistory:
    """History of a run from its hourly rollups.

    Parameters
    ----------
    hours : sequence of (int, str)
        Hours since 1970 with their rollups, as `rollup_to_json` writes them, in any order. The hour of `until` holds events until then
        only.
    until : datetime
        End of the history, UTC; later hours are left out.
    """
    last = hour_of(until)
    return _history(read_rollups(sorted(row for row in hours if row[0] <= last)), until)


def _history(columns: HourColumns, until: datetime) -> RunHistory:
    kinds, steps, tokens, reported_hours, reported_micro_usd, accelerators = columns.samples[1:]
    at = (columns.samples[0] - columns.started_us) / HOUR_US
    started = EPOCH + timedelta(microseconds=columns.started_us)
    marks = list(_marks(columns))
    causes = [given["cause"] for _, kind, given in marks if kind == "interruption"]
    stops, down = _stops(at, kinds, causes, (until - started) / timedelta(hours=1))
    breaks = at[(kinds == RESTART) | (kinds == BRANCH)]
    hours, hours_warnings = _total(at, reported_hours, breaks, "accelerator_hours")
    micro, micro_warnings = _total(at, reported_micro_usd, breaks, "cost_usd")
    line = trace_lineage(
        RunSamples(at, kinds, steps, tokens, [(given["from_step"], given["name"]) for _, kind, given in marks if kind == "branch"])
    )
    shares, share_sum, mfus, mfu_sum = (float(each.sum()) for each in columns.block("utilised")[1])
    return RunHistory(
        started_at=started if columns.hours.size else None,
        last_at=started + timedelta(hours=float(at[-1])) if at.size else None,
        until=until,
        events=columns.events,
        lineage=line,
        downtime=down,
        accelerator_hours=hours,
        micro_usd=micro,
        accelerators=_newest(accelerators),
        interruptions=stops,
        costs=_costs(columns),
        checkpoints=_checkpoints(columns),
        losses=_losses(columns, line),
        evaluations=tuple(_evaluation(when, one) for when, one in _moments(marks, "evaluation") if "value" in one),
        decisions=tuple(Decision(when, one["gate"], one["verdict"]) for when, one in _moments(marks, "decision")),
        risks=tuple(_risk_note(when, one) for when, one in _moments(marks, "note") if "risk" in one),
        mfu=mfu_sum / mfus if mfus else None,
        share=share_sum / shares if shares else None,
        warnings=(*line.warnings, *hours_warnings, *micro_warnings),
    )


def _marks(columns: HourColumns) -> Iterator[tuple[float, str, Mapping[str, Any]]]:
    """Rare events with their microseconds since 1970, in order."""
    for hour, (marks, _, _) in columns.rest:
        for us, kind, given in marks:
            yield hour * HOUR_US + us, kind, given


def _risk_note(when: datetime, given: Mapping[str, Any]) -> RiskNote:
    micro = given.get("micro_usd")
    return RiskNote(when, given["risk"], given.get("state", "occurred"), None if micro is None else micro / MICRO, given.get("days"))


def _moments(marks: Sequence[tuple[float, str, Mapping[str, Any]]], kind: str) -> Iterator[tuple[datetime, Mapping[str, Any]]]:
    """Times and fields of the rare events of a kind."""
    for us, name, given in marks:
        if name == kind:
            yield EPOCH + timedelta(microseconds=us), given


def _evaluation(when: datetime, given: Mapping[str, Any]) -> Evaluation:
    return Evaluation(when, given["metric"], given["value"], given.get("step"), given.get("standard_error"), given.get("samples"))


def _stops(at: Floats, kinds: Floats, causes: Sequence[str], now: float) -> tuple[tuple[Interruption, ...], Downtime]:
    """Interruptions and downtime: until the restart, or the next sign of work where none is reported before the next interruption.

    A restart without an interruption has been down since the sample before it.
    """
    stop, restart, steady = (np.flatnonzero(kinds == kind) for kind in (INTERRUPTION, RESTART, STEADY))
    nothing, times = len(kinds), np.append(at, now)
    following = np.append(stop[1:], nothing)[: len(stop)]
    restarted, seen = (np.append(rows, nothing)[np.searchsorted(rows, stop)] for rows in (restart, steady))
    end = np.where(restarted < following, restarted, np.minimum(seen, following))
    reported = np.append(-1, stop)[np.searchsorted(stop, restart)] > np.append(-1, restart)[: len(restart)]
    alone = restart[~reported & (restart > 0)]
    begin, until = np.append(at[stop], at[alone - 1]), np.append(times[end], at[alone])
    order = np.argsort(begin, kind="stable")
    hours = zip(at[stop].tolist(), causes, (times[end] - at[stop]).tolist(), (end < nothing).tolist(), strict=True)
    return tuple(Interruption(*each) for each in hours), Downtime(begin[order], np.maximum(until, begin)[order])


def _total(at: Floats, values: Floats, breaks: Floats, name: str) -> tuple[CumulativeSeries | None, tuple[str, ...]]:
    """A running total with relaunches summed: a fall with a restart or branch in between is a new counter.

    Any other fall is an error of the source: the maximum is kept, with a warning.
    """
    known = ~np.isnan(values)
    reported, times = values[known], at[known]
    if not reported.size:
        return None, ()
    falls = np.diff(reported) < 0
    broken = np.searchsorted(breaks, times[1:], side="right") > np.searchsorted(breaks, times[:-1], side="left")
    total, before = np.empty_like(reported), 0.0
    for begin, end in pairwise([0, *(np.flatnonzero(falls & broken) + 1), len(reported)]):
        total[begin:end] = before + np.maximum.accumulate(reported[begin:end])
        before = total[end - 1]
    odd = int((falls & ~broken).sum())
    warnings = (f"{name} falls {odd} times without a restart or branch: the highest value is used",) if odd else ()
    return CumulativeSeries(times, total), warnings


def _newest(values: Floats) -> int | None:
    known = values[~np.isnan(values)]
    return int(known[-1]) if known.size else None


def _costs(columns: HourColumns) -> CostEvents:
    """Cost events by line, compute invoices apart. An amount counts from the end of its hour, or from the run's last event in that hour."""
    last = columns.samples[0, -1] if columns.samples.size else 0.0
    lines: dict[str, int] = defaultdict(int)
    reported: dict[float, int] = defaultdict(int)
    billed: dict[float, int] = defaultdict(int)
    for hour, (_, costs, bills) in columns.rest:
        for line, micro in (*costs, *((line, micro) for line, micro, _ in bills if line != COMPUTE_LINE)):
            lines[line] += micro
            reported[min((hour + 1) * HOUR_US, max(hour * HOUR_US, last))] += micro
        for _, micro, until in (bill for bill in bills if bill[0] == COMPUTE_LINE):
            billed[until] += micro
    return CostEvents(dict(sorted(lines.items())), _summed(reported, columns.started_us), _summed(billed, columns.started_us))


def _summed(amounts: Mapping[float, int], started_us: float) -> CumulativeSeries:
    """Cumulative sums of amounts at microseconds since 1970."""
    if not amounts:
        return CumulativeSeries(np.zeros(0), np.zeros(0))
    at, values = np.array(sorted(amounts.items()), dtype=np.float64).reshape(-1, 2).T
    return CumulativeSeries((at - started_us) / HOUR_US, np.cumsum(values))


def _checkpoints(columns: HourColumns) -> HourlyCheckpoints:
    rows, (count, size, first, last, gap) = columns.block("checkpoints")
    return HourlyCheckpoints(count, size, columns.elapsed(first, rows), columns.elapsed(last, rows), gap / HOUR_US)


def _losses(columns: HourColumns, line: Lineage) -> HourlyLosses:
    rows, (at, _, not_finite, last, least, middle, most) = columns.block("losses")
    hours = columns.elapsed(at, rows)
    holding = line.index(hours)
    tokens, surviving = np.full(len(hours), np.nan), holding >= 0
    if line.tokens.size:
        tokens, surviving = np.where(surviving, line.tokens[holding], 0.0), surviving & line.surviving[holding]
    return HourlyLosses(hours, tokens, not_finite, last, least, middle, most, surviving)
