"""The log of events: append-only, each event once, and the hours made of it.

A run's events are numbered without gaps under a lock on the run, so that whoever reads up to a position has seen everything before it. The
hours are a projection: each follows from the events that happened in it alone, so they can be thrown away and made again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, islice
from typing import Any, TypeVar

from sqlalchemy import ARRAY, ColumnElement, Connection, RowMapping, String, and_, any_, delete, insert, literal, or_, select, update

from service.domain.tracking import Event
from service.store.database import Database, insert_into
from service.store.event_rows import HOUR_MICROS, event_of, event_row, micros, moment, takes_back
from service.store.tables import track_events, track_hours, track_runs
from service.store.tracking import RunRow

Fold = Callable[[Sequence[Event], Sequence[Event]], str]
"""An hour's text of the events that happened in it and all corrections of the run."""
_T = TypeVar("_T")
_PARAMETERS = 500
_EVENT = (track_events.c.event, track_events.c.type, track_events.c.at, track_events.c.body, track_events.c.supersedes)


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


class EventRows(Database):
    """The part of the store that keeps events."""

    def add_events(self, run: RunRow, events: Sequence[Event], now: datetime) -> Added:
        """Keep those that are not there yet, all in one commit: what is accepted or a duplicate is durable when this returns."""
        rows = [event_row(event) for event in events]
        received = micros(now)
        with self._write() as connection:
            lock = select(track_runs.c.position).where(track_runs.c.key == run.key).with_for_update()
            position = connection.execute(lock).scalar_one()
            added, new = _sorted_out(rows, _kept(connection, run.key, [row["event"] for row in rows]))
            if new:
                for number, row in enumerate(new, position + 1):
                    row.update(run=run.key, position=number, received_at=received)
                connection.execute(insert(track_events), new)
                connection.execute(update(track_runs).where(track_runs.c.key == run.key).values(position=position + len(new)))
        return added

    def events(self, run: RunRow, after: int, limit: int) -> list[LoggedEvent]:
        """A run's events in the order in which they were kept, those after a position."""
        columns = (*_EVENT, track_events.c.position, track_events.c.received_at)
        query = select(*columns).where(track_events.c.run == run.key, track_events.c.position > after)
        with self._read() as connection:
            rows = connection.execute(query.order_by(track_events.c.position).limit(limit)).mappings()
            return [LoggedEvent(row["position"], event_of(row), moment(row["received_at"])) for row in rows]

    def known_events(self, run: RunRow, ids: Sequence[str]) -> dict[str, Event]:
        """Those of the ids that the log holds, with their events."""
        with self._read() as connection:
            return {row["event"]: event_of(row) for row in _rows_of(connection, run.key, ids)}

    def newest_words(self, run: RunRow, ids: Sequence[str]) -> dict[str, Event]:
        """By the id of each event that is kept: the event itself, or the newest kept correction of it."""
        with self._snapshot() as connection:
            newest = {row["event"]: event_of(row) for row in _rows_of(connection, run.key, ids)}
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
            return [_log(connection, fresh[key]) for key in keys]

    def events_of_hour(self, run: RunRow, hour: int) -> tuple[list[Event], list[Event]]:
        """The events that happened in one hour, and the run's corrections."""
        with self._snapshot() as connection:
            corrections = _corrections(connection, run.key)
            return _events_of(connection, run.key, [hour])[hour], corrections

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
            corrections = _corrections(connection, run.key)
            hours = _touched(connection, run.key, now.folded, upto, corrections)
            texts = [
                {"run": run.key, "hour": hour, "body": fold(events, corrections)}
                for hour, events in _events_of(connection, run.key, hours).items()
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


def _kept(connection: Connection, run: int, ids: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    return {row["event"]: _content(row) for row in _rows_of(connection, run, ids)}


def _rows_of(connection: Connection, run: int, ids: Sequence[str]) -> Iterator[RowMapping]:
    for chunk in _chunks(ids, _PARAMETERS):
        query = select(*_EVENT).where(track_events.c.run == run, _one_of(connection, track_events.c.event, chunk))
        yield from connection.execute(query).mappings()


def _one_of(connection: Connection, column: ColumnElement[str], names: Sequence[str]) -> ColumnElement[bool]:
    """PostgreSQL gets the names as one array: the statement is the same however many there are, and is prepared once."""
    if connection.dialect.name == "postgresql":
        return column == any_(literal(names, ARRAY(String)))
    return column.in_(names)


def _content(row: Mapping[str, Any] | RowMapping) -> tuple[Any, ...]:
    return row["type"], row["at"], row["body"], row["supersedes"]


def _sorted_out(rows: Sequence[dict[str, Any]], kept: dict[str, tuple[Any, ...]]) -> tuple[Added, list[dict[str, Any]]]:
    new: list[dict[str, Any]] = []
    duplicates: list[str] = []
    conflicts: list[str] = []
    for row in rows:
        known = kept.get(row["event"])
        if known is None:
            kept[row["event"]] = _content(row)
            new.append(row)
        else:
            (duplicates if known == _content(row) else conflicts).append(row["event"])
    return Added(tuple(row["event"] for row in new), tuple(duplicates), tuple(conflicts)), new


def _run_rows() -> Any:
    return select(*(track_runs.c[name] for name in RunRow.__dataclass_fields__))


def _log(connection: Connection, run: RunRow) -> RunLog:
    query = select(track_hours.c.hour, track_hours.c.body).where(track_hours.c.run == run.key).order_by(track_hours.c.hour)
    made = {hour: body for hour, body in connection.execute(query).all()}  # noqa: C416  # a Row is no pair to dict()
    if run.position == run.folded:
        return RunLog(run, made, {}, ())
    corrections = _corrections(connection, run.key)
    hours = _touched(connection, run.key, run.folded, run.position, corrections)
    return RunLog(run, made, _events_of(connection, run.key, hours), corrections)


def _corrections(connection: Connection, run: int) -> list[Event]:
    query = select(*_EVENT).where(track_events.c.run == run, track_events.c.supersedes.is_not(None))
    return [event_of(row) for row in connection.execute(query.order_by(track_events.c.position)).mappings()]


def _corrections_of(connection: Connection, run: int, ids: Sequence[str]) -> list[Event]:
    """Corrections that supersede one of the ids, the oldest first."""
    found: list[Event] = []
    for chunk in _chunks(ids, _PARAMETERS):
        query = select(*_EVENT).where(track_events.c.run == run, _one_of(connection, track_events.c.supersedes, chunk))
        found += [event_of(row) for row in connection.execute(query.order_by(track_events.c.at, track_events.c.event)).mappings()]
    return found


def _touched(connection: Connection, run: int, after: int, upto: int, corrections: Sequence[Event]) -> list[int]:
    """The hours that must be made again for the events after one position, up to another: a correction's is that of what it corrects."""
    place = (track_events.c.run == run, track_events.c.position > after, track_events.c.position <= upto)
    query = select(track_events.c.event, track_events.c.at, track_events.c.supersedes).where(*place)
    hours, corrected = set(), []
    for event, at, supersedes in connection.execute(query):
        if supersedes is None:
            hours.add(at // HOUR_MICROS)
        else:
            corrected.append(event)
    roots = _roots(corrected, {event.id: str(event.supersedes) for event in corrections})
    hours.update(row["at"] // HOUR_MICROS for row in _rows_of(connection, run, sorted(roots)) if row["supersedes"] is None)
    return sorted(hours)


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


def _events_of(connection: Connection, run: int, hours: Sequence[int]) -> dict[int, list[Event]]:
    found: dict[int, list[Event]] = defaultdict(list)
    for chunk in _chunks(_stretches(hours), _PARAMETERS // 2):
        query = select(*_EVENT).where(track_events.c.run == run, track_events.c.supersedes.is_(None), or_(*chunk))
        for row in connection.execute(query).mappings():
            found[row["at"] // HOUR_MICROS].append(event_of(row))
    return {hour: found[hour] for hour in hours}


def _stretches(hours: Sequence[int]) -> list[ColumnElement[bool]]:
    """Hours in a row are one condition."""
    at = track_events.c.at
    stretches = []
    for _, group in groupby(enumerate(hours), lambda pair: pair[1] - pair[0]):
        stretch = [hour for _, hour in group]
        stretches.append(and_(at >= stretch[0] * HOUR_MICROS, at < (stretch[-1] + 1) * HOUR_MICROS))
    return stretches


def _chunks(values: Iterable[_T], size: int) -> Iterator[list[_T]]:
    rest = iter(values)
    while chunk := list(islice(rest, size)):
        yield chunk
