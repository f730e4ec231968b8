"""Jobs of the background workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

JobState = Literal["queued", "running", "succeeded", "failed", "cancelled"]
OPEN_STATES: tuple[JobState, ...] = ("queued", "running")
"""States of a job or scenario that has not ended."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job. Times are UTC.

    `attempt` counts claims; `handed_back` those that another worker continued, as after a shutdown; `dedup_key`: only one open job has it.
    """

    id: str
    kind: str
    payload: Mapping[str, Any]
    state: JobState
    attempt: int
    handed_back: int
    lease_owner: str | None
    lease_expires_at: datetime | None
    cancel_requested: bool
    progress_done: int
    progress_total: int
    result: Mapping[str, Any] | None
    error: str | None
    sent_at: datetime | None
    created_at: datetime
    updated_at: datetime
    dedup_key: str | None

    def is_waiting(self, now: datetime) -> bool:
        """Whether it is open and no worker has it."""
        expired = self.lease_expires_at is not None and self.lease_expires_at <= now
        return self.state == "queued" or (self.state == "running" and expired)


@dataclass(frozen=True, slots=True)
class LeaseStatus:
    """Result of extending a lease: whether the owner still holds the job, and whether it must stop."""

    held: bool
    cancel: bool


ReportProgress = Callable[[int, int], None]


def ignore_progress(done: int, total: int) -> None:
    """Ignore the progress."""
    del done, total
