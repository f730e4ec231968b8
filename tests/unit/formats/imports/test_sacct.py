"""Slurm's accounting becomes launches: accelerator-hours once, failures as interruptions, overlapping jobs summed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import InvalidRequest
from service.domain.tracking.events import Event
from service.formats.imports.sacct import read_sacct
from tests.unit.formats.imports.track_data import assert_takable, data, of_run, reasons

HEADER = "JobID|JobName|State|Start|End|Elapsed|AllocTRES|Comment"
START = datetime(2027, 2, 1, tzinfo=UTC)


def job(number: int, begin: float, hours: float, gpus: int = 8, state: str = "COMPLETED") -> str:
    """A job by start [hours after midnight] and duration [hours]."""
    start = START + timedelta(hours=begin)
    end = start + timedelta(hours=hours)
    seconds = int(hours * 3600)
    elapsed = f"{seconds // 86400}-{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{number}|main|{state}|{start:%Y-%m-%dT%H:%M:%S}|{end:%Y-%m-%dT%H:%M:%S}|{elapsed}|gres/gpu={gpus}|"


def accounting(*jobs: str) -> bytes:
    return "\n".join([HEADER, *jobs, ""]).encode()


def relaunches_summed(events: list[Event]) -> float:
    """The run's accelerator-hours, as running totals are read: each fall begins anew."""
    total = before = 0.0
    for event in sorted(events, key=lambda event: event.at):
        hours = event.accelerator_hours or 0.0
        total += before if hours < before else 0.0
        before = hours
    return total + before


class TestJobs:
    def test_of_a_recorded_accounting(self) -> None:
        """A failed node, its requeued launch, a cancelled job: three launches, one interruption, 2,240 accelerator-hours."""
        imported = read_sacct(data("sacct.txt"))
        assert_takable(imported)
        events = of_run(imported, "main-7b")
        assert [event.type for event in events] == ["restart", "interruption", "restart", "progress", "restart", "progress"]
        assert [event.accelerator_hours for event in events] == [0, 640, 0, 1536, 0, 64]
        assert relaunches_summed(events) == 2240
        assert events[1].cause == "node_fail"
        assert {event.accelerators for event in events} == {64}

    def test_what_is_left_out_is_said(self) -> None:
        """Steps and waiting jobs are counted, and times without a zone are said to be taken as UTC."""
        notes = read_sacct(data("sacct.txt")).notes
        assert "left out: job steps, whose time their job's row has (2)" in notes
        assert "left out: jobs that have not started (1)" in notes
        assert any("UTC" in note for note in notes)

    def test_rows_that_are_refused(self) -> None:
        """Jobs without GPUs or with times that are none are named."""
        found = reasons(read_sacct(data("sacct.txt")))
        assert list(found) == [11, 12]
        assert "gres/gpu" in found[11]
        assert "ISO 8601" in found[12]

    def test_the_job_name_stands_for_the_run_without_a_tag(self) -> None:
        """Array jobs without a comment are of the run of their name."""
        events = of_run(read_sacct(data("sacct.txt")), "ablations")
        assert [event.cause for event in events if event.type == "interruption"] == ["out_of_memory"]

    def test_a_job_that_lasts_is_told_anew_at_each_look(self) -> None:
        """Half an hour so far is progress with an id of its own; an hour later it is another."""
        looks = [accounting(job(7, 5, hours, state="RUNNING")) for hours in (0.5, 1.5)]
        first, second = (read_sacct(look).events for look in looks)
        assert [each.event.accelerator_hours for each in first] == [0, 4]
        assert first[0].event == second[0].event
        assert first[1].event.id != second[1].event.id

    @pytest.mark.parametrize("state", ["NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "FAILED", "OUT_OF_MEMORY", "REQUEUED"])
    def test_failures_are_interruptions(self, state: str) -> None:
        """An unplanned end is an interruption, with Slurm's state as cause."""
        ended = read_sacct(accounting(job(1, 0, 1, state=state))).events[1].event
        assert (ended.type, ended.cause) == ("interruption", state.lower())

    @pytest.mark.parametrize("state", ["COMPLETED", "TIMEOUT", "CANCELLED by 1000", "DEADLINE"])
    def test_ends_that_were_wanted_are_none(self, state: str) -> None:
        """A time limit and a cancelled job are planned ends."""
        assert read_sacct(accounting(job(1, 0, 1, state=state))).events[1].event.type == "progress"

    def test_hours_in_which_a_job_was_suspended_do_not_count(self) -> None:
        """Elapsed time is what counts, not the time between start and end."""
        text = "1|main|COMPLETED|2027-02-01T00:00:00|2027-02-01T10:00:00|04:00:00|gres/gpu:h100=6,gres/gpu:a100=2|"
        assert read_sacct(accounting(text)).events[1].event.accelerator_hours == 32

    @given(st.lists(st.tuples(st.integers(0, 200), st.integers(1, 50), st.integers(1, 64)), min_size=1, max_size=8))
    def test_no_hour_is_lost_or_counted_twice(self, jobs: list[tuple[int, int, int]]) -> None:
        """However jobs overlap, the run's accelerator-hours are the sum of theirs."""
        imported = read_sacct(accounting(*(job(number, *each) for number, each in enumerate(jobs))))
        assert_takable(imported)
        expected = sum(hours * gpus for _, hours, gpus in jobs)
        assert relaunches_summed([each.event for each in imported.events]) == pytest.approx(expected, abs=1e-5)

    def test_a_part_of_an_accounting_tells_the_same_launches(self) -> None:
        """Imported week by week, jobs that do not overlap are the same events as imported at once."""
        rows = [job(1, 0, 5), job(2, 6, 5), job(3, 12, 5)]
        whole = {each.event for each in read_sacct(accounting(*rows)).events}
        parts = {each.event for row in rows for each in read_sacct(accounting(row)).events}
        assert whole == parts


class TestFiles:
    @pytest.mark.parametrize(
        ("row", "words"),
        [
            ("x|main|COMPLETED|2027-02-01T00:00:00|2027-02-01T01:00:00|01:00:00|gres/gpu=8|", "JobID"),
            ("1|main|COMPLETED|2027-02-01T00:00:00|2027-01-01T01:00:00|01:00:00|gres/gpu=8|", "before Start"),
            ("1|main|COMPLETED|2027-02-01T00:00:00|2027-02-01T01:00:00|an hour|gres/gpu=8|", "Elapsed"),
            ("1|a|b|COMPLETED|2027-02-01T00:00:00|2027-02-01T01:00:00|01:00:00|gres/gpu=8|", "cells"),
        ],
    )
    def test_rows_that_are_refused(self, row: str, words: str) -> None:
        """A row that cannot be read says why."""
        assert words in reasons(read_sacct(accounting(row)))[2]

    def test_without_its_header_line(self) -> None:
        """`--noheader` leaves the columns unknown."""
        with pytest.raises(InvalidRequest, match="no column JobID"):
            read_sacct(job(1, 0, 1).encode())

    def test_quotes_are_plain_characters(self) -> None:
        """sacct does not quote: a name may hold a lone quote."""
        row = job(1, 0, 1).replace("|main|", '|"main|')
        assert of_run(read_sacct(accounting(row)), '"main')

    def test_times_with_a_zone(self) -> None:
        """SLURM_TIME_FORMAT may add one; then nothing has to be taken for granted."""
        row = job(1, 0, 1).replace("T00:00:00|", "T01:00:00+0100|").replace("T01:00:00|", "T02:00:00+0100|")
        imported = read_sacct(accounting(row))
        assert imported.events[0].event.at == START
        assert not imported.notes


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 30), st.integers(1, 16)), min_size=1, max_size=12))
def test_hours_at_each_start_and_end_are_the_sum_over_all_overlapping_jobs(launches: list[tuple[int, int, int]]) -> None:
    """One pass over the times gives what summing every job's share at every time gives."""
    imported = read_sacct(accounting(job(0, 0, 80, 1), *(job(number, *launch) for number, launch in enumerate(launches, 1))))

    def expected(at: float) -> float:
        spans = [(0, 80, 1), *launches]
        return sum(gpus * (min(max(at - begin, 0), hours) if hours else 0) for begin, hours, gpus in spans)

    for event in of_run(imported, "main"):
        assert event.accelerator_hours == pytest.approx(expected((event.at - START).total_seconds() / 3600), abs=1e-5)


def test_many_overlapping_jobs_are_read_in_one_pass() -> None:
    """20,000 jobs that all overlap: summing over all of them at each start and end would take hours."""
    imported = read_sacct(accounting(*(job(number, number / 100, 400) for number in range(20_000))))
    assert len(imported.events) == 40_000
