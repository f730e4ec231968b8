"""Rollup of an hour of a run's events: a pure function of the set of events, independent of order and repetition.

Running values are kept at their turning points, rare events in full; everything else is counted and summed.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from service.domain.tracking.events import EVENT_FIELDS, Event, EventType, stated_fields

Floats = NDArray[np.float64]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOUR_US = 3_600_000_000
TYPES: tuple[EventType, ...] = get_args(EventType)
"""Event types, in the order of `HourlyRollup.counts`."""

# Order of simultaneous events: progress first, then interruptions, then events that set the position.
RANK = {name: rank for rank, name in enumerate(TYPES)} | {"progress": -3, "checkpoint": -2}
STEADY, INTERRUPTION, RESTART, ROLLBACK, BRANCH = range(5)
"""Kinds of samples: a report, or an event that interrupts the run or may move the position."""
KINDS = {"interruption": INTERRUPTION, "restart": RESTART, "rollback": ROLLBACK, "branch": BRANCH}
MARKED = frozenset({*KINDS, "evaluation", "decision", "note"})
SAMPLED = frozenset({*KINDS, "progress", "checkpoint"})
TOTALS = (3, 4, 5)
MARK_FIELDS = (
    "id",
    "cause",
    "to_step",
    "from_step",
    "name",
    "metric",
    "value",
    "step",
    "tokens_done",
    "gate",
    "verdict",
    "text",
    "standard_error",
    "samples",
    "risk",
    "state",
    "micro_usd",
    "days",
)

DOUBLES = np.dtype("<f8")
BLOCKS = (("checkpoints", 5), ("losses", 7), ("utilised", 4))
"""Blocks of an hour, at most one each, and their number of values."""
SAMPLE_WIDTH = 7
HEAD = 1 + len(TYPES) + sum(width for _, width in BLOCKS)
"""Numbers of a rollup before its samples: number of samples, counts and blocks."""
OPENING, CLOSING = '["', '",[],[],[]]'
"""First characters of a rollup's text, and its last ones where the hour has no marks, costs and bills."""

Sample = tuple[int, int, int | None, int | None, float | None, int | None, int | None]
"""Microseconds of the hour, kind, step, tokens_done, accelerator_hours, cost_micro_usd, accelerators."""
Mark = tuple[int, EventType, tuple[tuple[str, Any], ...]]
"""Microseconds of the hour, type, and the fields that were given."""
Bill = tuple[str, int, int]
"""Line, micro-USD, and microseconds since 1970 until which it pays."""


@dataclass(frozen=True, slots=True)
class CheckpointRollup:
    """Checkpoints of an hour: microseconds within the hour of the first and the last, and the longest time between two."""

    count: int
    bytes: int
    first: int
    last: int
    longest_gap: int


@dataclass(frozen=True, slots=True)
class LossRollup:
    """Losses of an hour [nats per token]; `not_finite` counts NaN and infinities, `last` is None where the last one is not finite.

    `at`: microseconds within the hour of the last loss. `lowest`, `median` and `highest` are of the finite ones, None without any.
    """

    at: int
    count: int
    not_finite: int
    last: float | None
    lowest: float | None
    median: float | None
    highest: float | None


@dataclass(frozen=True, slots=True)
class UtilisationSums:
    """Sums and counts of utilisation events' shares and of reported MFU."""

    shares: int
    share_sum: float
    mfus: int
    mfu_sum: float


@dataclass(frozen=True, slots=True)
class HourlyRollup:
    """Rollup of an hour. `counts` are by type, in the order of TYPES; `costs` are micro-USD by line, `bills` those with a
    `billed_until`."""

    samples: tuple[Sample, ...] = ()
    marks: tuple[Mark, ...] = ()
    counts: tuple[int, ...] = (0,) * len(TYPES)
    checkpoints: CheckpointRollup | None = None
    costs: tuple[tuple[str, int], ...] = ()
    bills: tuple[Bill, ...] = ()
    losses: LossRollup | None = None
    utilised: UtilisationSums | None = None


def apply_corrections(events: Iterable[Event], corrections: Iterable[Event]) -> list[Event]:
    """Events as corrected, in order, without the corrections and the events that they retract. The input's order does not matter.

    A correction without fields retracts the event it names; with fields it replaces them, at the event's time. A correction may be
    corrected. Several corrections of one event apply in order of time, then id; the last decides whether the event is retracted. A
    correction of an unknown event has no effect until the event arrives. The time of a correction does not matter otherwise.
    """
    named: dict[str, list[Event]] = defaultdict(list)
    for each in {each.id: each for each in corrections}.values():
        named[each.supersedes or ""].append(each)
    unique = {each.id: each for each in events if each.type != "correction"}
    found = (_corrected(each, named) if each.id in named else each for each in unique.values())
    return sorted((each for each in found if each is not None), key=_order)


def hour_of(at: datetime) -> int:
    """Whole hours since 1970, UTC."""
    return (at - EPOCH) // timedelta(hours=1)


def roll_up_hour(events: Iterable[Event]) -> HourlyRollup:
    """Rollup of an hour's corrected events. A repeated id counts once.

    Raises
    ------
    ValueError
        Events of several hours.
    """
    ordered = sorted({each.id: each for each in events}.values(), key=_order)
    if not ordered:
        return HourlyRollup()
    hour = hour_of(ordered[0].at)
    if hour_of(ordered[-1].at) != hour:
        raise ValueError(f"events from {ordered[0].at} to {ordered[-1].at} are not of one hour")
    start = EPOCH + timedelta(hours=hour)
    timed = [(_microseconds(each.at - start), each) for each in ordered]
    reported = [(at, each) for at, each in timed if each.type in SAMPLED]
    counted = Counter(each.type for each in ordered)
    return HourlyRollup(
        samples=_turning_points([_sample(at, each) for at, each in reported]),
        marks=tuple((at, each.type, _mark(each)) for at, each in timed if each.type in MARKED),
        counts=tuple(counted[name] for name in TYPES),
        checkpoints=_checkpoints([(at, each.bytes or 0) for at, each in reported if each.type == "checkpoint"]),
        costs=_costs(ordered),
        bills=_bills(ordered),
        losses=_losses([(at, each.loss) for at, each in reported if each.loss is not None]),
        utilised=_utilised(ordered),
    )


def rollup_to_json(rollup: HourlyRollup) -> str:
    """The rollup as a compact JSON list: its numbers as one text of little-endian doubles in hexadecimal, then marks, costs and bills.

    A status reads thousands of rollups: this text is decoded in a tenth of the time of JSON numbers.
    """
    blocks = (getattr(rollup, name) for name, _ in BLOCKS)
    summaries = (_values(block) if block else (None,) * width for block, (_, width) in zip(blocks, BLOCKS, strict=True))
    numbers = [len(rollup.samples), *rollup.counts, *itertools.chain(*summaries), *itertools.chain(*rollup.samples)]
    text = np.array(numbers, dtype=DOUBLES).tobytes().hex()
    marks = [(at, name, dict(given)) for at, name, given in rollup.marks]
    return json.dumps([text, marks, rollup.costs, rollup.bills], separators=(",", ":"), allow_nan=False)


def _values(block: CheckpointRollup | LossRollup | UtilisationSums) -> list[float | None]:
    """As `dataclasses.astuple`, without copies."""
    return [getattr(block, name) for name in block.__slots__]


def rollup_from_json(text: str) -> HourlyRollup:
    """The rollup that `rollup_to_json` wrote; exact, but for counts beyond 2**53, which doubles round."""
    reported, marks, costs, bills = json.loads(text)
    numbers = np.frombuffer(bytes.fromhex(reported), dtype=DOUBLES)
    ends = np.cumsum([1, len(TYPES), *(width for _, width in BLOCKS)])
    (kept,), counts, *blocks = (_exact(part) for part in np.split(numbers[:HEAD], ends[:-1]))
    samples = numbers[HEAD : HEAD + kept * SAMPLE_WIDTH].reshape(kept, SAMPLE_WIDTH)
    checkpoints, losses, utilised = (block if any(each is not None for each in block) else None for block in blocks)
    return HourlyRollup(
        samples=tuple(_exact(sample) for sample in samples),
        marks=tuple((at, name, tuple(given.items())) for at, name, given in marks),
        counts=counts,
        checkpoints=CheckpointRollup(*checkpoints) if checkpoints else None,
        costs=tuple(tuple(cost) for cost in costs),
        bills=tuple(tuple(bill) for bill in bills),
        losses=LossRollup(*losses) if losses else None,
        utilised=UtilisationSums(*utilised) if utilised else None,
    )


@dataclass(frozen=True, slots=True)
class HourColumns:
    """Rollups column by column: hours since 1970, the fixed numbers of each hour, and all samples [microseconds since 1970].

    `rest`: marks, costs and invoices of the hours that have any. `started_us`: the first sample, else the first hour, else 0.
    """

    hours: Floats
    heads: Floats
    samples: Floats
    rest: Sequence[tuple[int, Sequence[Any]]]
    started_us: float

    @property
    def events(self) -> int:
        """Number of events, as corrected."""
        return int(self.heads[1 : 1 + len(TYPES)].sum())

    def elapsed(self, microseconds: Floats, rows: NDArray[np.bool_]) -> Floats:
        """Elapsed hours of microseconds within the hours of some rows."""
        return self.hours[rows] + (microseconds - self.started_us) / HOUR_US

    def block(self, name: str) -> tuple[NDArray[np.bool_], Floats]:
        """Hours that have a block, and the block's columns there."""
        widths = dict(BLOCKS)
        begin = 1 + len(TYPES) + sum(widths[each] for each in list(widths)[: list(widths).index(name)])
        rows = ~np.isnan(self.heads[begin])
        return rows, self.heads[begin : begin + widths[name], rows]


def read_rollups(known: Sequence[tuple[int, str]]) -> HourColumns:
    """Rollups in the order of their hours as columns.

    All numbers are decoded in one piece; JSON is parsed only for hours that have marks, costs or invoices.
    """
    hours = np.array([hour for hour, _ in known], dtype=np.float64)
    ends = [text.index('"', len(OPENING)) for _, text in known]
    texts = [text[len(OPENING) : end] for (_, text), end in zip(known, ends, strict=True)]
    rest = {hour: f"[{text[end + 2 :]}" for (hour, text), end in zip(known, ends, strict=True) if not text.endswith(CLOSING)}
    numbers = np.frombuffer(bytes.fromhex("".join(texts)), dtype=DOUBLES)
    lengths = np.array([len(text) for text in texts], dtype=np.int64) // (2 * DOUBLES.itemsize)
    begin = np.cumsum(lengths) - lengths
    heads = numbers[begin[:, None] + np.arange(HEAD)].T
    kept = heads[0].astype(np.int64)
    rows = np.repeat(begin + HEAD - SAMPLE_WIDTH * (np.cumsum(kept) - kept), kept) + SAMPLE_WIDTH * np.arange(kept.sum())
    samples = numbers[rows[:, None] + np.arange(SAMPLE_WIDTH)].T
    samples[0] += np.repeat(hours * HOUR_US, kept)
    moments = samples[0] if samples.size else hours * HOUR_US
    parsed = tuple(zip(rest, json.loads(f"[{','.join(rest.values())}]"), strict=True))
    return HourColumns(hours, heads, samples, parsed, float(moments[0]) if moments.size else 0.0)


def _exact(numbers: Floats) -> tuple[Any, ...]:
    """Whole numbers as integers, None for NaN."""
    return tuple(None if math.isnan(each) else int(each) if each.is_integer() else each for each in numbers.tolist())


def _order(event: Event) -> tuple[datetime, int, int, str]:
    return event.at, RANK[event.type], -1 if event.step is None else event.step, event.id


def _corrected(event: Event, named: Mapping[str, Sequence[Event]]) -> Event | None:
    """The event with its corrections, and theirs, applied from the end of the chain."""
    tree = [event]
    for each in tree:
        tree.extend(named.get(each.id, ()))
    found: dict[str, Event | None] = {}
    for each in reversed(tree):
        holding = [found[one.id] for one in named.get(each.id, ())]
        found[each.id] = _applied(each, [one for one in holding if one is not None])
    return found[event.id]


def _applied(event: Event, corrections: Sequence[Event]) -> Event | None:
    changes: dict[str, Any] = {}
    for correction in sorted(corrections, key=lambda each: (each.at, each.id)):
        given = stated_fields(correction)
        changes = {**changes, **given} if given else {}
    if corrections and not changes:
        return None
    taken = EVENT_FIELDS[event.type].takes
    return event._replace(**{name: value for name, value in changes.items() if name in taken})


def _microseconds(span: timedelta) -> int:
    return span.seconds * 1_000_000 + span.microseconds


def _sample(at: int, event: Event) -> Sample:
    kind = KINDS.get(event.type, STEADY)
    return at, kind, event.step, event.tokens_done, event.accelerator_hours, event.cost_micro_usd, event.accelerators


def _turning_points(rows: Sequence[Sample]) -> tuple[Sample, ...]:
    """First and last sample, neighbours of marks, and of each total its first, its last, and both sides of each fall."""
    if not rows:
        return ()
    kept = {0, len(rows) - 1}
    for column in TOTALS:
        kept |= _falls([(row, sample[column]) for row, sample in enumerate(rows) if sample[column] is not None])
    for row, sample in enumerate(rows):
        if sample[1] != STEADY:
            kept |= {row - 1, row, row + 1}
    return tuple(rows[row] for row in sorted(kept) if 0 <= row < len(rows))


def _falls(reported: Sequence[tuple[int, Any]]) -> set[int]:
    """First row, last row, and both sides of each fall."""
    if not reported:
        return set()
    kept = {reported[0][0], reported[-1][0]}
    for (row, value), (later, less) in itertools.pairwise(reported):
        if less < value:
            kept |= {row, later}
    return kept


def _mark(event: Event) -> tuple[tuple[str, Any], ...]:
    """Stated fields of a rare event; values that are not finite are left out."""
    given = ((name, getattr(event, name)) for name in MARK_FIELDS)
    return tuple(
        (name, value) for name, value in given if value is not None and not (isinstance(value, float) and not math.isfinite(value))
    )


def _checkpoints(kept: Sequence[tuple[int, int]]) -> CheckpointRollup | None:
    if not kept:
        return None
    times = [at for at, _ in kept]
    gap = max((later - at for at, later in itertools.pairwise(times)), default=0)
    return CheckpointRollup(len(kept), sum(size for _, size in kept), times[0], times[-1], gap)


def _costs(events: Sequence[Event]) -> tuple[tuple[str, int], ...]:
    """Micro-USD by line, invoices apart."""
    found: dict[str, int] = defaultdict(int)
    for each in events:
        if each.type == "cost" and each.billed_until is None:
            found[each.line or ""] += each.micro_usd or 0
    return tuple(sorted(found.items()))


def _bills(events: Sequence[Event]) -> tuple[Bill, ...]:
    """Micro-USD by line and end of the invoiced period."""
    found: dict[tuple[str, int], int] = defaultdict(int)
    for each in events:
        if each.type == "cost" and each.billed_until is not None:
            until = (each.billed_until - EPOCH) // timedelta(microseconds=1)
            found[each.line or "", until] += each.micro_usd or 0
    return tuple((line, micro, until) for (line, until), micro in sorted(found.items()))


def _losses(reported: Sequence[tuple[int, float]]) -> LossRollup | None:
    if not reported:
        return None
    at, last = reported[-1]
    finite = sorted(loss for _, loss in reported if math.isfinite(loss))
    least, middle, most = (finite[0], median(finite), finite[-1]) if finite else (None, None, None)
    return LossRollup(at, len(reported), len(reported) - len(finite), last if math.isfinite(last) else None, least, middle, most)


def _utilised(events: Sequence[Event]) -> UtilisationSums | None:
    shares = [each.share for each in events if each.share is not None]
    reported = [each.mfu for each in events if each.mfu is not None]
    if not shares and not reported:
        return None
    return UtilisationSums(len(shares), math.fsum(shares), len(reported), math.fsum(reported))
