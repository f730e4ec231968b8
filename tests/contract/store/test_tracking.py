"""Programs, runs and the log of events, on every database: what is kept, once, in an order that stays, and nothing of another team's."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update
from sqlalchemy.exc import IntegrityError

from service.domain.errors import VersionConflictError
from service.domain.tracking.events import Event
from service.domain.tracking.records import ProgramRecord, RunRecord
from service.store import Store
from service.store.tracking.event_rows import HOUR_MICROS, micros
from service.store.tracking.tables import track_runs

NOW = datetime(2027, 2, 1, 12, tzinfo=UTC)
OPEN = {"name": "7B", "state": "open"}


@pytest.fixture
def program(store: Store) -> ProgramRecord:
    """A program of the default team."""
    return store.create_program("default", OPEN, None, NOW)


@pytest.fixture
def run(store: Store, program: ProgramRecord) -> RunRecord:
    """A run of the program."""
    return store.create_run(program, "main", {"name": "main", "state": "open"}, NOW)


def progress(number: int, **changes: object) -> Event:
    """The number-th of a run's minutes."""
    return Event(f"step-{number}", "progress", NOW + timedelta(minutes=number), step=number, tokens_done=number * 1000)._replace(**changes)


def texts(events: Sequence[Event], corrections: Sequence[Event]) -> str:
    """A fold that shows what it was given, whatever the order."""
    return ",".join(sorted(event.id for event in events)) + "|" + ",".join(sorted(event.id for event in corrections))


class TestProgramsAndRuns:
    """What is tracked, by team."""

    def test_a_program_is_read_back_as_it_was_made(self, store: Store, program: ProgramRecord) -> None:
        """Nothing changes on the way to the database and back."""
        assert store.program("default", program.id) == program
        assert store.programs("default", 0, 10) == [program]

    def test_another_team_has_no_such_program_or_run(self, store: Store, program: ProgramRecord, run: RunRecord) -> None:
        """To another team it is as unknown as an id that was never given."""
        assert store.program("other", program.id) is None
        assert store.programs("other", 0, 10) == []
        assert store.run("other", run.id) is None

    def test_programs_are_numbered_within_their_team(self, store: Store, program: ProgramRecord) -> None:
        """A team cannot tell from its own numbers how many programs others have."""
        other = store.team("other", NOW)
        assert store.create_program(other.id, OPEN, None, NOW).number == 1
        assert store.create_program("default", OPEN, None, NOW).number == program.number + 1

    def test_a_change_makes_a_new_version_and_keeps_the_first(self, store: Store, program: ProgramRecord) -> None:
        """What was planned at first can still be read."""
        changed = store.change_program(program, OPEN | {"budget_usd": 5.0}, NOW + timedelta(hours=1), None)
        assert (changed.version, changed.body["budget_usd"]) == (2, 5.0)
        assert store.program("default", program.id) == changed
        assert store.first_body(program.id) == OPEN

    def test_the_second_of_two_writers_of_a_version_is_told(self, store: Store, program: ProgramRecord, run: RunRecord) -> None:
        """Neither overwrites what the other has just written."""
        store.change_program(program, OPEN | {"budget_usd": 5.0}, NOW, None)
        store.change_run(run, {"name": "main", "state": "closed"}, NOW, None)
        with pytest.raises(VersionConflictError):
            store.change_program(program, OPEN | {"budget_usd": 6.0}, NOW, None)
        with pytest.raises(VersionConflictError):
            store.change_run(run, {"name": "main", "state": "open"}, NOW, None)

    def test_runs_made_at_once_get_different_numbers(self, store: Store, program: ProgramRecord) -> None:
        """Pages are cut by these numbers."""
        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(lambda n: store.create_run(program, f"r{n}", {"name": f"r{n}", "state": "open"}, NOW), range(16)))
        assert sorted(run.number for run in made) == list(range(1, 17))


class TestLog:
    """Events: each once, in an order that stays."""

    def test_an_event_comes_back_as_it_was_sent(self, store: Store, run: RunRecord) -> None:
        """Every field, a loss that is no number and the end of a bill's time included."""
        sent = [
            progress(1, accelerator_hours=0.1, cost_micro_usd=1_234_567, loss=float("inf"), mfu=0.4, accelerators=8),
            Event("bill", "cost", NOW, micro_usd=-5, line="compute", billed_until=NOW + timedelta(hours=1)),
            Event("fix", "correction", NOW, supersedes="bill", micro_usd=7),
        ]
        store.append_events(run, sent, NOW)
        assert [logged.event for logged in store.events(run, 0, 10)] == sent
        assert store.find_events(run, ["bill", "never"]) == {"bill": sent[1]}

    def test_the_same_event_counts_once_and_another_under_its_id_is_a_conflict(self, store: Store, run: RunRecord) -> None:
        """Within a batch as between batches."""
        first = store.append_events(run, [progress(1), progress(1), progress(2), progress(2, step=9)], NOW)
        assert (first.accepted, first.duplicates, first.conflicts) == (("step-1", "step-2"), ("step-1",), ("step-2",))
        again = store.append_events(run, [progress(1), progress(2, step=9), progress(3)], NOW)
        assert (again.accepted, again.duplicates, again.conflicts) == (("step-3",), ("step-1",), ("step-2",))
        assert [logged.position for logged in store.events(run, 0, 10)] == [1, 2, 3]

    @pytest.mark.parametrize("sent", [[3], [1, 3], [3, 4, 5]], ids=["new", "new beside a duplicate", "several"])
    def test_a_run_set_back_behind_its_log_loses_no_event_silently(self, store: Store, run: RunRecord, sent: list[int]) -> None:
        """After a mixed restore its numbers are given already: that is an error, and no event that was there before."""
        store.append_events(run, [progress(1), progress(2)], NOW)
        with store.engine.begin() as connection:
            connection.execute(update(track_runs).where(track_runs.c.key == run.key).values(position=1))
        with pytest.raises((IntegrityError, sqlite3.IntegrityError)):
            store.append_events(run, [progress(number) for number in sent], NOW)
        assert [logged.event.id for logged in store.events(run, 0, 10)] == ["step-1", "step-2"]

    def test_senders_at_once_leave_each_event_once_and_no_gap(self, store: Store, run: RunRecord) -> None:
        """Eight threads send overlapping batches of the same 200 events."""
        batches = [[progress(n) for n in range(start, start + 50)] for start in range(0, 200, 10)]
        with ThreadPoolExecutor(8) as pool:
            added = list(pool.map(lambda batch: store.append_events(run, batch, NOW), batches))
        accepted = [event for one in added for event in one.accepted]
        kept = store.events(run, 0, 1000)
        assert len(accepted) == len(set(accepted)) == len(kept)
        assert [logged.position for logged in kept] == list(range(1, len(kept) + 1))
        assert not any(one.conflicts for one in added)

    def test_no_page_misses_or_doubles_what_is_written_meanwhile(self, store: Store, run: RunRecord) -> None:
        """1,000 events come, out of order in time, while the log is read in pages."""
        numbers = list(range(1000))
        random.Random(7).shuffle(numbers)
        seen: list[str] = []
        position = 0
        for start in range(0, 1000, 50):
            store.append_events(run, [progress(n) for n in numbers[start : start + 50]], NOW)
            page = store.events(run, position, 40)
            seen += [logged.event.id for logged in page]
            position = page[-1].position
        while page := store.events(run, position, 40):
            seen += [logged.event.id for logged in page]
            position = page[-1].position
        assert sorted(seen) == sorted(f"step-{n}" for n in range(1000))


class TestHours:
    """The projection: hours made of the log."""

    def test_only_the_hours_that_new_events_touch_are_made_again(self, store: Store, run: RunRecord) -> None:
        """The others stay as they are."""
        store.append_events(run, [progress(0), progress(70)], NOW)
        assert store.project_hours(run, texts, 100) == 0
        store.append_events(run, [progress(71)], NOW)
        log = store.run_logs([run])[0]
        first = micros(NOW) // HOUR_MICROS
        assert log.hours == {first: "step-0|", first + 1: "step-70|"}
        assert {hour: [event.id for event in events] for hour, events in log.touched.items()} == {first + 1: ["step-70", "step-71"]}

    def test_a_correction_touches_the_hour_of_what_it_corrects(self, store: Store, run: RunRecord) -> None:
        """Also through a correction of the correction, and wherever its own time lies."""
        store.append_events(run, [progress(0), progress(70)], NOW)
        store.project_hours(run, texts, 100)
        store.append_events(run, [Event("c1", "correction", NOW + timedelta(days=9), supersedes="step-0")], NOW)
        store.project_hours(run, texts, 100)
        store.append_events(run, [Event("c2", "correction", NOW + timedelta(days=9), supersedes="c1")], NOW)
        log = store.run_logs([run])[0]
        assert list(log.touched) == [micros(NOW) // HOUR_MICROS]
        assert {event.id for event in log.corrections} == {"c1", "c2"}

    def test_corrections_in_a_circle_or_of_nothing_touch_nothing(self, store: Store, run: RunRecord) -> None:
        """They are kept, and wait for what they correct."""
        circle = [Event("a", "correction", NOW, supersedes="b"), Event("b", "correction", NOW, supersedes="a")]
        store.append_events(run, [*circle, Event("c", "correction", NOW, supersedes="never")], NOW)
        assert store.run_logs([run])[0].touched == {}
        assert store.project_hours(run, texts, 100) == 0

    def test_hours_do_not_depend_on_the_order_and_batches_of_arrival(self, store: Store, program: ProgramRecord) -> None:
        """Shuffled, repeated and folded in steps of any size, the same hours come out."""
        events = [progress(n * 7) for n in range(120)] + [Event("c", "correction", NOW, supersedes="step-14")]
        made: list[object] = []
        for seed, step in ((1, 5), (2, 40), (3, 1000)):
            run = store.create_run(program, f"r{seed}", {"name": f"r{seed}", "state": "open"}, NOW)
            shuffled = events + events[:30]
            random.Random(seed).shuffle(shuffled)
            for start in range(0, len(shuffled), 17):
                store.append_events(run, shuffled[start : start + 17], NOW)
                store.project_hours(run, texts, step)
            while store.project_hours(run, texts, step):
                continue
            made.append({hour: body.partition("|")[0] for hour, body in store.run_logs([run])[0].hours.items()})
        assert made[0] == made[1] == made[2]

    def test_hours_thrown_away_come_back_the_same(self, store: Store, run: RunRecord) -> None:
        """They are a projection of the log and nothing else."""
        store.append_events(run, [progress(n * 13) for n in range(40)], NOW)
        while store.project_hours(run, texts, 7):
            continue
        before = store.run_logs([run])[0].hours
        store.delete_hours(run)
        assert store.run_logs([run])[0].hours == {}
        store.project_hours(run, texts, 1000)
        assert store.run_logs([run])[0].hours == before

    def test_of_two_that_make_the_same_hours_one_does(self, store: Store, run: RunRecord) -> None:
        """The slower one finds the run folded further and changes nothing; no event is left out."""
        store.append_events(run, [progress(n) for n in range(10)], NOW)

        def interrupted(events: Sequence[Event], corrections: Sequence[Event]) -> str:
            once.pop()(run, texts, 100) if once else None
            return "too late"

        once: list[Callable[..., int]] = [store.project_hours]
        store.project_hours(run, interrupted, 100)
        assert set(store.run_logs([run])[0].hours.values()) == {texts([progress(n) for n in range(10)], [])}
        assert store.runs_to_project(10) == []
