"""Hourly rollups of the event log: a projection that follows from the events of each hour and can be deleted and rebuilt."""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, delete, or_, select, update

from service.domain.tracking.archive import ProgramArchived
from service.domain.tracking.events import Event
from service.domain.tracking.records import RunRecord
from service.store.database import Database, chunks, insert_into
from service.store.tracking.event_rows import HOUR_MICROS, event_of
from service.store.tracking.events import EVENT, PARAMETERS, check_not_archived, rows_of
from service.store.tracking.programs import RUN
from service.store.tracking.tables import track_events, track_hours, track_runs

RollUpHour = Callable[[Sequence[Event], Sequence[Event]], str]
"""Text of an hour, from its events and all corrections of the run."""


@dataclass(frozen=True, slots=True)
class RunLog:
    """A run at one moment: the text of every projected hour, the events of hours to project again, and the run's corrections."""

    run: RunRecord
    hours: Mapping[int, str]
    touched: Mapping[int, Sequence[Event]]
    corrections: Sequence[Event]


class _Stretch(NamedTuple):
    """A run's events after one position, up to another."""

    run: int
    after: int
    upto: int


class ProjectionRows(Database):
    """Storage of hourly rollups."""

    def run_logs(self, runs: Sequence[RunRecord]) -> list[RunLog]:
        """The runs with all that is known of them, in one snapshot."""
        keys = [run.key for run in runs]
        with self._snapshot() as connection:
            fresh = {
                row["key"]: RunRecord(**row)
                for chunk in chunks(keys, PARAMETERS)
                for row in connection.execute(select(*RUN).where(track_runs.c.key.in_(chunk))).mappings()
            }
            made = _made(connection, keys)
            waiting = [_Stretch(run.key, run.folded, run.position) for run in fresh.values() if run.position > run.folded]
            corrections = _corrections(connection, [stretch.run for stretch in waiting])
            touched = _events_of(connection, _touched(connection, waiting, corrections), made)
            return [RunLog(fresh[key], made[key], touched[key], corrections[key]) for key in keys]

    def events_of_hour(self, runs: Sequence[RunRecord], hour: int) -> list[tuple[list[Event], list[Event]]]:
        """Events of each run in one hour, and its corrections. Raises ProgramArchived."""
        keys = [run.key for run in runs]
        with self._snapshot() as connection:
            corrections = _corrections(connection, keys)
            found = _events_of(connection, {key: [hour] for key in keys}, {})
            check_not_archived(connection, keys)
        return [(found[key][hour], corrections[key]) for key in keys]

    def runs_to_project(self, limit: int) -> list[RunRecord]:
        """Runs with events that are not projected yet."""
        return self._list(RunRecord, select(*RUN).where(track_runs.c.position > track_runs.c.folded).limit(limit))

    def project_hours(self, run: RunRecord, fold: RollUpHour, most: int) -> int:
        """Project the hours that the next `most` events touch; returns the number of events left.

        The work is done outside any lock: where another process was faster nothing changes, and events that arrive meanwhile are projected
        later.
        """
        with self._snapshot() as connection:
            now = RunRecord(**connection.execute(select(*RUN).where(track_runs.c.key == run.key)).mappings().one())
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

    def _put_hours(self, run: RunRecord, upto: int, texts: list[dict[str, Any]]) -> None:
        unmoved = and_(track_runs.c.key == run.key, track_runs.c.folded == run.folded, track_runs.c.archived_at.is_(None))
        moved = update(track_runs).where(unmoved).values(folded=upto)
        with self._write() as connection:
            if connection.execute(moved).rowcount != 1 or not texts:
                return
            new = insert_into(connection, track_hours)
            put = new.on_conflict_do_update(index_elements=["run", "hour"], set_={"body": new.excluded.body})
            connection.execute(put, texts)

    def delete_hours(self, run: RunRecord) -> None:
        """Delete the run's hours; the log stays, and they are projected again. Raises ProgramArchived: its hours are all there is here."""
        with self._write() as connection:
            has_log = and_(track_runs.c.key == run.key, track_runs.c.archived_at.is_(None))
            if connection.execute(update(track_runs).where(has_log).values(folded=0)).rowcount != 1:
                raise ProgramArchived("the run's program is archived: its hours cannot be made anew without its events")
            connection.execute(delete(track_hours).where(track_hours.c.run == run.key))


def _made(connection: Connection, runs: Sequence[int]) -> dict[int, dict[int, str]]:
    """Texts of the projected hours, by run."""
    made: dict[int, dict[int, str]] = defaultdict(dict)
    for chunk in chunks(runs, PARAMETERS):
        query = select(track_hours.c.run, track_hours.c.hour, track_hours.c.body).where(track_hours.c.run.in_(chunk))
        for run, hour, body in connection.execute(query):
            made[run][hour] = body
    return made


def _corrections(connection: Connection, runs: Sequence[int]) -> dict[int, list[Event]]:
    """Corrections by run, in the order of arrival."""
    found: dict[int, list[Event]] = defaultdict(list)
    for chunk in chunks(runs, PARAMETERS):
        query = select(track_events.c.run, *EVENT).where(track_events.c.run.in_(chunk), track_events.c.supersedes.is_not(None))
        for row in connection.execute(query.order_by(track_events.c.run, track_events.c.position)):
            found[row.run].append(event_of(row))
    return found


def _touched(connection: Connection, stretches: Sequence[_Stretch], corrections: Mapping[int, Sequence[Event]]) -> dict[int, list[int]]:
    """Hours to project again for stretches of the log, by run: a correction touches the hour of the event it corrects."""
    hours: dict[int, set[int]] = defaultdict(set)
    corrected: dict[int, list[str]] = defaultdict(list)
    position = track_events.c.position
    for chunk in chunks(stretches, PARAMETERS // 3):
        places = (and_(track_events.c.run == run, position > after, position <= upto) for run, after, upto in chunk)
        query = select(track_events.c.run, track_events.c.event, track_events.c.at, track_events.c.supersedes).where(or_(*places))
        for run, event, at, supersedes in connection.execute(query):
            if supersedes is None:
                hours[run].add(at // HOUR_MICROS)
            else:
                corrected[run].append(event)
    for run, events in corrected.items():
        roots = _roots(events, {event.id: str(event.supersedes) for event in corrections[run]})
        hours[run].update(row.at // HOUR_MICROS for row in rows_of(connection, run, sorted(roots)) if row.supersedes is None)
    return {run: sorted(found) for run, found in hours.items()}


def _roots(corrected: Iterable[str], supersedes: Mapping[str, str]) -> set[str]:
    """The events that corrections, or corrections of corrections, apply to; a cycle applies to nothing."""
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
    """Events by run and hour, without corrections. `made`: projected hours by run."""
    found: dict[int, dict[int, list[Event]]] = defaultdict(dict)
    found.update({run: {hour: [] for hour in each} for run, each in hours.items()})
    places = (place for run, each in hours.items() for place in _in_hours(run, each, sorted(made.get(run, ()))))
    for chunk in chunks(places, PARAMETERS // 3):
        query = select(track_events.c.run, *EVENT).where(track_events.c.supersedes.is_(None), or_(*chunk))
        for row in connection.execute(query):
            in_hour = found[row.run].get(row.at // HOUR_MICROS)
            if in_hour is not None:
                in_hour.append(event_of(row))
    return found


def _in_hours(run: int, hours: Sequence[int], made: Iterable[int]) -> Iterator[ColumnElement[bool]]:
    """One condition for hours without a projected hour in between: the hours between have few events, or none."""
    at = track_events.c.at
    others = sorted({*made} - {*hours})
    for _, group in groupby(hours, lambda hour: bisect(others, hour)):
        stretch = list(group)
        yield and_(track_events.c.run == run, at >= stretch[0] * HOUR_MICROS, at < (stretch[-1] + 1) * HOUR_MICROS)
