"""Events on disk: what is written can be read after any end, what is dropped is progress alone."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from outlay_client.encode import PendingEvent, event_line
from outlay_client.spool import MAX_LINES, Spool, _thinned

ROOMY = 2**20


def line(number: int, kind: str = "progress") -> bytes:
    return event_line(PendingEvent(str(number), kind, 0.0, None, {"text": "x"} if kind == "note" else {"step": number}))[0]


def opened(folder: Path, max_bytes: int = ROOMY) -> Spool:
    segments = Spool(folder, max_bytes)
    segments.open()
    return segments


def all_lines(segments: Spool) -> list[bytes]:
    """Everything that waits, taken one after the other."""
    lines = []
    while segment := segments.take():
        lines += segment.read()
        segments.remove(segment)
    return lines


class TestFiles:
    def test_a_segment_is_what_the_service_takes_at_once(self, tmp_path: Path) -> None:
        """2,500 events are three files of at most a thousand."""
        segments = opened(tmp_path)
        told = [line(number) for number in range(2500)]
        segments.append(told)
        assert segments.count == 2500
        assert segments.size == sum(map(len, told))
        assert all(len(path.read_bytes().splitlines()) <= MAX_LINES for path in tmp_path.glob("*.jsonl"))
        assert all_lines(segments) == told

    def test_a_process_that_lives_keeps_its_files(self, tmp_path: Path) -> None:
        """Another process of the run does not take them over; once closed, it does, in their order."""
        first = opened(tmp_path)
        first.append([line(1)])
        assert opened(tmp_path).count == 0
        first.close()
        assert all_lines(opened(tmp_path)) == [line(1)]

    def test_files_without_a_lock_are_taken_over(self, tmp_path: Path) -> None:
        """Whoever removed the lock's file did not mean the events."""
        first = opened(tmp_path)
        first.append([line(1)])
        first.close()
        for path in tmp_path.glob("*.lock"):
            path.unlink()
        assert all_lines(opened(tmp_path)) == [line(1)]

    def test_nobody_else_can_read_them(self, tmp_path: Path) -> None:
        """Files and their folder are the user's own."""
        segments = opened(tmp_path / "run")
        segments.append([line(1)])
        assert (tmp_path / "run").stat().st_mode & 0o77 == 0
        assert all(path.stat().st_mode & 0o77 == 0 for path in (tmp_path / "run").iterdir())

    @given(st.integers(0, 400))
    def test_a_write_cut_off_anywhere_leaves_whole_events(self, kept_bytes: int) -> None:
        """Of a file cut at any byte the whole lines are read, and no others."""
        with tempfile.TemporaryDirectory() as name:
            first = opened(Path(name))
            told = [line(number) for number in range(5)]
            first.append(told)
            first.close()
            (path,) = Path(name).glob("*.jsonl")
            path.write_bytes(path.read_bytes()[:kept_bytes])
            left = all_lines(opened(Path(name)))
        assert left == told[: len(left)]
        assert len(b"".join(left)) <= kept_bytes < len(b"".join(told[: len(left) + 1])) or left == told


class TestThinning:
    @given(st.lists(st.sampled_from(["progress", "interruption", "cost", "checkpoint"]), max_size=50))
    def test_only_progress_is_dropped_and_the_order_stays(self, kinds: list[str]) -> None:
        """Of progress every other event stays, of anything else all."""
        told = [line(number, kind) for number, kind in enumerate(kinds)]
        kept = _thinned(told)
        assert kept == [each for each in told if each in kept]
        assert [each for each in kept if b"progress" not in each] == [each for each in told if b"progress" not in each]
        assert sum(b"progress" in each for each in kept) == kinds.count("progress") // 2

    def test_the_bound_holds_and_the_newest_stays_whole(self, tmp_path: Path) -> None:
        """Far above the bound the oldest progress is thin, the newest as it was told, and every failure is there."""
        size = len(line(100_000))
        segments = opened(tmp_path, 5000 * size)
        for begin in range(100_000, 120_000, 500):
            segments.append([line(begin, "interruption"), *(line(number) for number in range(begin + 1, begin + 500))])
            assert segments.size <= 5100 * size + 5000
        numbers = [int(each.split(b'"')[3]) for each in all_lines(segments)]
        assert numbers == sorted(numbers)
        assert set(range(100_000, 120_000, 500)) <= set(numbers)
        assert set(range(119_001, 120_000)) <= set(numbers)
        assert len([number for number in numbers if number < 110_000]) < len([number for number in numbers if number >= 110_000])

    def test_what_is_on_its_way_is_not_thinned(self, tmp_path: Path) -> None:
        """A batch that is being sent stays as it is, so that it can be removed whole."""
        segments = opened(tmp_path, 20_000)
        segments.append([line(number) for number in range(100)])
        taken = segments.take()
        assert taken is not None
        segments.append([line(number) for number in range(100, 3000)])
        assert taken.count == 100
        segments.remove(taken)
        assert taken not in segments.sealed
