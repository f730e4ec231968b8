"""The log of events: append-only, each event once, and the hours made of it.

A run's events are numbered without gaps under a lock on the run, so that whoever reads up to a position has seen everything before it. The
hours are a projection: each follows from the events that happened in it alone, so they can be thrown away and made again.
"""

from __future__ import annotations

import json
from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, islice
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import ARRAY, ColumnElement, Connection, Row, String, and_, any_, bindparam, delete, literal, or_, select, text, update

from service.domain.tracking import Event
from service.store.database import Database, insert_into
from service.store.event_rows import HOUR_MICROS, EventRow, event_of, event_row, micros, moment, takes_back
from service.store.tables import track_events, track_hours, track_runs
from service.store.tracking import RunRow

Fold = Callable[[Sequence[Event], Sequence[Event]], str]
"""An hour's text of the events that happened in it and all corrections of the run."""
_T = TypeVar("_T")
_PARAMETERS = 500
_EVENT = tuple(track_events.c[name] for name in EventRow._fields)
_LOCK = select(track_runs.c.key).where(track_runs.c.key == bindparam("run_key")).with_for_update()
_NUMBERS = (
    update(track_runs)
    .where(track_runs.c.key == bindparam("run_key"))
    .values(position=track_runs.c.position + bindparam("count"))
    .returning(track_runs.c.position)
)
# Only an event that is kept already is passed over: a number that is given already is a log whose run was set back, and no duplicate.
_IN_SQLITE = (
    "INSERT INTO track_events (run, position, received_at, event, type, at, body, supersedes)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run, event) DO NOTHING"
)
# A batch as one document costs PostgreSQL's driver a third of what its rows do.
_IN_POSTGRESQL = text(
    "INSERT INTO track_events (run, position, received_at, event, type, at, body, supersedes)"
    " SELECT :run, :last + number, :received_at, row->>0, row->>1, CAST(row->>2 AS bigint), row->>3, row->>4"
    " FROM json_array_elements(CAST(:rows AS json)) WITH ORDINALITY AS sent(row, number) ON CONFLICT (run, event) DO NOTHING"
)


@dataclass(frozen=True, slots=True)
class Added:
    """What became of a batch: which ids are new, which were there already, and which are there with another content."""

    accepted: tuple[str, ...]
    duplicates: tuple[str, ...]
    conflicts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event in its place in the log."""

    position: int
    event: Event
    received_at: datetime


@dataclass(frozen=True, slots=True)
class RunLog:
    """A run at one moment: the text of every hour that is made, the events of those that are to be made again, and its corrections."""

    run: RunRow
    hours: Mapping[int, str]
    touched: Mapping[int, Sequence[Event]]
    corrections: Sequence[Event]


class _Stretch(NamedTuple):
    """A run's events after one position, up to another."""

    run: int
    after: int
    upto: int


class EventRows(Database):
    """The part of the store that keeps events."""

    def add_events(self, run: RunRow, events: Sequence[Event], now: datetime) -> Added:
        """Keep those that are not there yet, all in one commit: what is accepted or a duplicate is durable when this returns.

        Raises IntegrityError, and keeps nothing, where the log holds events beyond the run's last number, as after a mixed restore.
        """
        rows = [event_row(event) for event in events]
        received = micros(now)
        if self._all_added(run.key, rows, received):
            return Added(tuple(row.event for row in rows), (), ())
        with self._write() as connection:
            connection.execute(_LOCK, {"run_key": run.key})
            added, new = _sorted_out(rows, _kept(connection, run.key, [row.event for row in rows]))
            appended = _append(connection, run.key, new, received)
            if appended != len(new):
                raise RuntimeError(f"{appended} of {len(new)} new events of run {run.id} were appended under its lock")
        return added

    def _all_added(self, run: int, rows: Sequence[EventRow], received: int) -> bool:
        """Keep the rows if none is there yet, as is usual, without a look at what is there; if one is, nothing is done."""
        with self._write() as connection:
            whole = _append(connection, run, rows, received) == len(rows)
            if not whole:
                connection.rollback()
        return whole

    def events(self, run: RunRow, after: int, limit: int) -> list[LoggedEvent]:
        """A run's events in the order in which they were kept, those after a position."""
        columns = (*_EVENT, track_events.c.position, track_events.c.received_at)
        query = select(*columns).where(track_events.c.run == run.key, track_events.c.position > after)
        with self._read() as connection:
            rows = connection.execute(query.order_by(track_events.c.position).limit(limit))
            return [LoggedEvent(row.position, event_of(row), moment(row.received_at)) for row in rows]

    def known_events(self, run: RunRow, ids: Sequence[str]) -> dict[str, Event]:
        """Those of the ids that the log holds, with their events."""
        with self._read() as connection:
            return {row.event: event_of(row) for row in _rows_of(connection, run.key, ids)}

    def newest_words(self, run: RunRow, ids: Sequence[str]) -> dict[str, Event]:
        """By the id of each event that is kept: the event itself, or the newest kept correction of it."""
        with self._snapshot() as connection:
            newest = {row.event: event_of(row) for row in _rows_of(connection, run.key, ids)}
            words = dict(newest)
            while words:
                asked = {word.id: event for event, word in words.items()}
                corrections = _corrections_of(connection, run.key, list(asked))
                words = {asked[str(word.supersedes)]: word for word in corrections}
                newest |= words
            return newest

    def newest_words_elsewhere(self, runs: Sequence[RunRow], ids: Sequence[str]) -> list[tuple[RunRow, Event]]:
        """Of the events of these ids, those that other runs hold and have not taken back."""
        by_key = {run.key: run for run in runs}
        held: dict[int, list[str]] = defaultdict(list)
        with self._read() as connection:
            for keys in _chunks(by_key, _PARAMETERS):
                for chunk in _chunks(ids, _PARAMETERS):
                    where = (track_events.c.run.in_(keys), track_events.c.event.in_(chunk))
                    for key, event in connection.execute(select(track_events.c.run, track_events.c.event).where(*where)):
                        held[key].append(event)
        found = [(by_key[key], word) for key, events in held.items() for word in self.newest_words(by_key[key], events).values()]
        return [(run, word) for run, word in found if not takes_back(word)]

    def logs(self, runs: Sequence[RunRow]) -> list[RunLog]:
        """The runs with all that is known of them, all of one moment."""
        keys = [run.key for run in runs]
        with self._snapshot() as connection:
            fresh = {
                row["key"]: RunRow(**row)
                for chunk in _chunks(keys, _PARAMETERS)
                for row in connection.execute(_run_rows().where(track_runs.c.key.in_(chunk))).mappings()
            }
            made = _made(connection, keys)
            waiting = [_Stretch(run.key, run.folded, run.position) for run in fresh.values() if run.position > run.folded]
            corrections = _corrections(connection, [stretch.run for stretch in waiting])
            touched = _events_of(connection, _touched(connection, waiting, corrections), made)
            return [RunLog(fresh[key], made[key], touched[key], corrections[key]) for key in keys]

    def events_of_hour(self, runs: Sequence[RunRow], hour: int) -> list[tuple[list[Event], list[Event]]]:
        """The events of each run that happened in one hour, and its corrections."""
        keys = [run.key for run in runs]
        with self._snapshot() as connection:
            corrections = _corrections(connection, keys)
            found = _events_of(connection, {key: [hour] for key in keys}, {})
        return [(found[key][hour], corrections[key]) for key in keys]

    def unfolded_runs(self, limit: int) -> list[RunRow]:
        """Runs with events that no hour is made of yet."""
        with self._read() as connection:
            query = _run_rows().where(track_runs.c.position > track_runs.c.folded).limit(limit)
            return [RunRow(**row) for row in connection.execute(query).mappings()]

    def fold(self, run: RunRow, fold: Fold, most: int) -> int:
        """Make the hours that the next `most` unfolded events touch; returns how many of them are left.

        The work is done outside any lock: where another process was faster nothing is changed, and events that came meanwhile stay
        unfolded and touch their hours again.
        """
        with self._snapshot() as connection:
            now = RunRow(**connection.execute(_run_rows().where(track_runs.c.key == run.key)).mappings().one())
            upto = min(now.position, now.folded + most)
            corrections = _corrections(connection, [run.key])
            hours = _touched(connection, [_Stretch(run.key, now.folded, upto)], corrections)
            made = connection.scalars(select(track_hours.c.hour).where(track_hours.c.run == run.key)).all()
            texts = [
                {"run": run.key, "hour": hour, "body": fold(events, corrections[run.key])}
                for hour, events in _events_of(connection, hours, {run.key: made})[run.key].items()
            ]
        if upto > now.folded:
            self._put_hours(now, upto, texts)
        return now.position - upto

    def _put_hours(self, run: RunRow, upto: int, texts: list[dict[str, Any]]) -> None:
        moved = update(track_runs).where(track_runs.c.key == run.key, track_runs.c.folded == run.folded).values(folded=upto)
        with self._write() as connection:
            if connection.execute(moved).rowcount != 1 or not texts:
                return
            new = insert_into(connection, track_hours)
            put = new.on_conflict_do_update(index_elements=["run", "hour"], set_={"body": new.excluded.body})
            connection.execute(put, texts)

    def forget_hours(self, run: RunRow) -> None:
        """Throw the run's hours away; the log stays, and they are made again."""
        with self._write() as connection:
            connection.execute(update(track_runs).where(track_runs.c.key == run.key).values(folded=0))
            connection.execute(delete(track_hours).where(track_hours.c.run == run.key))


def _append(connection: Connection, run: int, rows: Sequence[EventRow], received: int) -> int:
    """Number the rows on from the run's last, whose lock this takes, and keep them; returns how many were not there yet."""
    if not rows:
        return 0
    last = connection.execute(_NUMBERS, {"run_key": run, "count": len(rows)}).scalar_one() - len(rows)
    if connection.dialect.name == "postgresql":
        sent = {"run": run, "last": last, "received_at": received, "rows": json.dumps(rows, ensure_ascii=False)}
        return connection.execute(_IN_POSTGRESQL, sent).rowcount
    numbered = [(run, position, received, *row) for position, row in enumerate(rows, last + 1)]
    return connection.exec_driver_sql(_IN_SQLITE, numbered).rowcount


def _kept(connection: Connection, run: int, ids: Sequence[str]) -> dict[str, EventRow]:
    return {row.event: EventRow._make(row) for row in _rows_of(connection, run, ids)}


def _rows_of(connection: Connection, run: int, ids: Sequence[str]) -> Iterator[Row[Any]]:
    for chunk in _chunks(ids, _PARAMETERS):
        query = select(*_EVENT).where(track_events.c.run == run, _one_of(connection, track_events.c.event, chunk))
        yield from connection.execute(query)


def _one_of(connection: Connection, column: ColumnElement[str], names: Sequence[str]) -> ColumnElement[bool]:
    """PostgreSQL gets the names as one array: the statement is the same however many there are, and is prepared once."""
    if connection.dialect.name == "postgresql":
        return column == any_(literal(names, ARRAY(String)))
    return column.in_(names)


def _sorted_out(rows: Sequence[EventRow], kept: dict[str, EventRow]) -> tuple[Added, list[EventRow]]:
    new: list[EventRow] = []
    duplicates: list[str] = []
    conflicts: list[str] = []
    for row in rows:
        known = kept.get(row.event)
        if known is None:
            kept[row.event] = row
            new.append(row)
        else:
            (duplicates if known == row else conflicts).append(row.event)
    return Added(tuple(row.event for row in new), tuple(duplicates), tuple(conflicts)), new


def _run_rows() -> Any:
    return select(*(track_runs.c[name] for name in RunRow.__dataclass_fields__))


def _made(connection: Connection, runs: Sequence[int]) -> dict[int, dict[int, str]]:
    """By run the texts of its hours."""
    made: dict[int, dict[int, str]] = defaultdict(dict)
    for chunk in _chunks(runs, _PARAMETERS):
        query = select(track_hours.c.run, track_hours.c.hour, track_hours.c.body).where(track_hours.c.run.in_(chunk))
        for run, hour, body in connection.execute(query):
            made[run][hour] = body
    return made


def _corrections(connection: Connection, runs: Sequence[int]) -> dict[int, list[Event]]:
    """By run its corrections, in the order in which they were kept."""
    found: dict[int, list[Event]] = defaultdict(list)
    for chunk in _chunks(runs, _PARAMETERS):
        query = select(track_events.c.run, *_EVENT).where(track_events.c.run.in_(chunk), track_events.c.supersedes.is_not(None))
        for row in connection.execute(query.order_by(track_events.c.run, track_events.c.position)):
            found[row.run].append(event_of(row))
    return found


def _corrections_of(connection: Connection, run: int, ids: Sequence[str]) -> list[Event]:
    """Corrections that supersede one of the ids, the oldest first."""
    found: list[Event] = []
    for chunk in _chunks(ids, _PARAMETERS):
        query = select(*_EVENT).where(track_events.c.run == run, _one_of(connection, track_events.c.supersedes, chunk))
        found += [event_of(row) for row in connection.execute(query.order_by(track_events.c.at, track_events.c.event))]
    return found


def _touched(connection: Connection, stretches: Sequence[_Stretch], corrections: Mapping[int, Sequence[Event]]) -> dict[int, list[int]]:
    """By run the hours that must be made again for stretches of the log: a correction's is that of what it corrects."""
    hours: dict[int, set[int]] = defaultdict(set)
    corrected: dict[int, list[str]] = defaultdict(list)
    position = track_events.c.position
    for chunk in _chunks(stretches, _PARAMETERS // 3):
        places = (and_(track_events.c.run == run, position > after, position <= upto) for run, after, upto in chunk)
        query = select(track_events.c.run, track_events.c.event, track_events.c.at, track_events.c.supersedes).where(or_(*places))
        for run, event, at, supersedes in connection.execute(query):
            if supersedes is None:
                hours[run].add(at // HOUR_MICROS)
            else:
                corrected[run].append(event)
    for run, events in corrected.items():
        roots = _roots(events, {event.id: str(event.supersedes) for event in corrections[run]})
        hours[run].update(row.at // HOUR_MICROS for row in _rows_of(connection, run, sorted(roots)) if row.supersedes is None)
    return {run: sorted(found) for run, found in hours.items()}


def _roots(corrected: Iterable[str], supersedes: Mapping[str, str]) -> set[str]:
    """What the corrections, or the corrections they correct, are about in the end; a circle is about nothing."""
    roots = set()
    for event in corrected:
        seen, root = set(), event
        while root in supersedes and root not in seen:
            seen.add(root)
            root = supersedes[root]
        roots.add(root)
    return roots


def _events_of(
    connection: Connection, hours: Mapping[int, Sequence[int]], made: Mapping[int, Iterable[int]]
) -> dict[int, dict[int, list[Event]]]:
    """By run and hour the events that happened in it, corrections aside. `made`: by run the hours that were made before."""
    found: dict[int, dict[int, list[Event]]] = defaultdict(dict)
    found.update({run: {hour: [] for hour in each} for run, each in hours.items()})
    places = (place for run, each in hours.items() for place in _in_hours(run, each, sorted(made.get(run, ()))))
    for chunk in _chunks(places, _PARAMETERS // 3):
        query = select(track_events.c.run, *_EVENT).where(track_events.c.supersedes.is_(None), or_(*chunk))
        for row in connection.execute(query):
            in_hour = found[row.run].get(row.at // HOUR_MICROS)
            if in_hour is not None:
                in_hour.append(event_of(row))
    return found


def _in_hours(run: int, hours: Sequence[int], made: Iterable[int]) -> Iterator[ColumnElement[bool]]:
    """Hours with none between them that was made before are one condition: those between them have few events, or none."""
    at = track_events.c.at
    others = sorted({*made} - {*hours})
    for _, group in groupby(hours, lambda hour: bisect(others, hour)):
        stretch = list(group)
        yield and_(track_events.c.run == run, at >= stretch[0] * HOUR_MICROS, at < (stretch[-1] + 1) * HOUR_MICROS)


def _chunks(values: Iterable[_T], size: int) -> Iterator[list[_T]]:
    rest = iter(values)
    while chunk := list(islice(rest, size)):
        yield chunk
