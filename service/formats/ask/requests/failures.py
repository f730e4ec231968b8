"""How a machine fails, as it is said of a whole run: its failures, checkpoints and restarts."""

from __future__ import annotations

from service.formats.ask.grammar.attributes import DETECTION, MTBF, MTTF, WRITE
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.durations import Duration
from service.formats.ask.requests.draft import Draft, Request, stated
from service.formats.ask.requests.fields import stated_fields

PATH = "failures.mttf_hours_per_accelerator"
HOURS_PER_DAY = 24
MINUTES_PER_DAY = 1440
MOST_MINUTES = 7 * MINUTES_PER_DAY
"""More than a restart, a detection or an interval between checkpoints takes."""


def failures_section(draft: Draft, count: int | None) -> Request:
    """Failures of the job as the time of one accelerator, and the times around them."""
    own: Duration | None = draft.one(MTTF, PATH)
    if own is not None:
        draft.note(PATH, _hours(own), "of one accelerator; MTBF is of the whole job")
    section = stated(
        mttf_hours_per_accelerator=_of_job(draft, count) if own is None else _hours(own),
        restart_minutes=_minutes(draft, "restart_minutes"),
        detection_minutes=_minutes(draft, DETECTION),
        checkpoint_interval_minutes=_minutes(draft, "checkpoint_interval_minutes"),
        checkpoint_write_minutes=_minutes(draft, WRITE),
    )
    return section | stated_fields(draft, "failures")


def _of_job(draft: Draft, count: int | None) -> float | None:
    """Failures of the whole job, as the time of one accelerator."""
    failures: Duration | None = draft.one(MTBF, PATH)
    if failures is None or count is None:
        return None
    hours = _hours(failures)
    draft.note(PATH, hours * count, f"a failure of the job every {hours:g} hours, times its {count:,} accelerators")
    return hours * count


def _hours(time: Duration) -> float:
    return round(time.days * HOURS_PER_DAY, 6)


def _minutes(draft: Draft, name: str) -> float | None:
    time: Duration | None = draft.one(name, f"failures.{name}")
    if time is None:
        return None
    minutes = round(time.days * MINUTES_PER_DAY, 4)
    if minutes > MOST_MINUTES:
        words = name.removesuffix("_minutes").replace("_", " ")
        draft.doubts.append(
            Doubt(f"{float(time.value):,g} {time.unit}", (), f"longer than {words} takes in any run: of what is this the time?")
        )
        return None
    if time.unit == "seconds":
        draft.note(f"failures.{name}", minutes, f"{float(time.value):g} seconds")
    return minutes
