"""Published runs as the events that would have been told of them: facts of tests/data/tracking, what lies between made up from a seed."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from service.domain.tracking.events import Event

DATA = Path(__file__).parents[1] / "data" / "tracking"
SEED = 7
NAMES = ("llama-3-405b", "opt-175b", "bloom-176b")
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PublishedRun:
    """A run as published: hours since its start at which positions are known, and what stopped it in between."""

    name: str
    accelerators: int
    tokens_per_hour: float
    mfu: float | None
    start: datetime
    hours: Floats
    tokens: Floats
    interruptions: Floats
    outages: tuple[tuple[float, float, str], ...]
    causes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stop:
    """The job does not run from `begin` to `end`, in hours since the start."""

    begin: float
    end: float
    cause: str


@cache
def published(name: str) -> PublishedRun:
    """The facts of one of NAMES."""
    facts = _rows("runs", name)[0]
    points = _rows("progress", name)
    start = _time(points[0]["at"])
    hours = np.array([_hours(row["at"], start) for row in points])
    return PublishedRun(
        name=name,
        accelerators=int(facts["accelerators"]),
        tokens_per_hour=float(facts["tokens_per_day"]) / 24,
        mfu=float(facts["mfu"]) if facts["mfu"] else None,
        start=start,
        hours=hours,
        tokens=np.array([float(row["tokens"]) for row in points]),
        interruptions=_interruptions([row["interruptions_before"] for row in points[1:]], int(facts["interruptions"]), np.diff(hours)),
        outages=tuple((_hours(row["at"], start), float(row["hours"]), row["cause"]) for row in _rows("outages", name)),
        causes=tuple(row["cause"] for row in _rows("causes", name) for _ in range(int(row["interruptions"]))),
    )


def events(name: str, seed: int = SEED) -> tuple[Event, ...]:
    """The run told as it went: a progress event every hour, every interruption with its cause, and the restart after it."""
    run = published(name)
    stops = find_stops(run, seed)
    return tuple(sorted((*_progress(run, stops), *_stopping(run, stops)), key=lambda event: (event.at, event.id)))


def find_stops(run: PublishedRun, seed: int = SEED) -> list[Stop]:
    """What stopped the run, in order: as much standing still between two positions as their tokens leave over."""
    rng = np.random.default_rng(seed)
    causes = iter(rng.permutation(run.causes).tolist())
    stops = []
    for begin, end, tokens, count in zip(run.hours[:-1], run.hours[1:], np.diff(run.tokens), run.interruptions, strict=True):
        told = [Stop(at, at + hours, cause) for at, hours, cause in run.outages if begin <= at < end]
        idle = end - begin - tokens / run.tokens_per_hour - sum(stop.end - stop.begin for stop in told)
        stops += _placed(begin, end, told, _shares(rng, int(count), max(idle, 0.0)), rng, causes)
    return stops


def position(run: PublishedRun, stops: Sequence[Stop], hours: Floats) -> Floats:
    """Tokens at elapsed hours: even progress between known positions while the job runs."""
    running = running_hours(stops, hours)
    return np.interp(running, running_hours(stops, run.hours), run.tokens)


def running_hours(stops: Sequence[Stop], hours: Floats) -> Floats:
    """Hours that the job has run by each elapsed hour."""
    return hours - sum((np.clip(hours - stop.begin, 0, stop.end - stop.begin) for stop in stops), np.zeros_like(hours))


def _placed(begin: float, end: float, told: list[Stop], lengths: Floats, rng: np.random.Generator, causes: Iterator[str]) -> list[Stop]:
    """Stops of these lengths at random in the span, told ones where they were, none overlapping: all are laid out in the time left."""
    free = end - begin - lengths.sum() - sum(stop.end - stop.begin for stop in told)
    starts = np.sort(rng.uniform(0, free, len(lengths)))
    at, placed = begin, []
    waiting = sorted(told, key=lambda stop: stop.begin)
    clock = 0.0
    for start, length in zip(starts, lengths, strict=True):
        at, clock = at + start - clock, start
        placed.append(Stop(at, at + length, next(causes, "hardware")))
        at += length
    return _with_told(placed, waiting)


def _with_told(placed: list[Stop], told: list[Stop]) -> list[Stop]:
    """A told stop pushes those that would begin within it or after it back by its length."""
    for stop in told:
        length = stop.end - stop.begin
        before = [other for other in placed if other.begin < stop.begin]
        at = max([stop.begin, *(other.end for other in before)])
        after = [Stop(other.begin + length, other.end + length, other.cause) for other in placed if other.begin >= stop.begin]
        placed = [*before, Stop(at, at + length, stop.cause), *after]
    return placed


def _shares(rng: np.random.Generator, count: int, total: float) -> Floats:
    lengths = rng.exponential(1.0, count)
    return lengths * (total / lengths.sum()) if count else lengths


def _interruptions(told: list[str], total: int, spans: Floats) -> Floats:
    """How many fell between two positions: as told, or by time what the told ones leave of all."""
    known = np.array([float(value or "nan") for value in told])
    silent = np.isnan(known)
    left = total - np.nansum(known)
    spread = np.round(np.cumsum(np.where(silent, spans, 0)) / max(spans[silent].sum(), 1e-9) * left)
    return np.where(silent, np.diff(spread, prepend=0), known)


def _progress(run: PublishedRun, stops: Sequence[Stop]) -> Iterator[Event]:
    hours = np.append(np.arange(0, run.hours[-1]), run.hours[-1])
    for hour, tokens in zip(hours.tolist(), position(run, stops, hours).tolist(), strict=True):
        yield Event(
            id=f"{run.name}-progress-{hour:07.2f}",
            type="progress",
            at=run.start + timedelta(hours=hour),
            tokens_done=round(tokens),
            accelerator_hours=run.accelerators * hour,
            accelerators=run.accelerators,
            mfu=run.mfu,
        )


def _stopping(run: PublishedRun, stops: Sequence[Stop]) -> Iterator[Event]:
    for number, stop in enumerate(stops):
        at, again = (run.start + timedelta(hours=float(hours)) for hours in (stop.begin, stop.end))
        yield Event(id=f"{run.name}-interruption-{number:03}", type="interruption", at=at, cause=stop.cause)
        yield Event(id=f"{run.name}-restart-{number:03}", type="restart", at=again)


def _rows(file: str, name: str) -> list[dict[str, str]]:
    with (DATA / f"{file}.csv").open(encoding="utf-8", newline="") as lines:
        return [row for row in csv.DictReader(lines) if row["run"] == name]


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _hours(text: str, start: datetime) -> float:
    return (_time(text) - start) / timedelta(hours=1)
