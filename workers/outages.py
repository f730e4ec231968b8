"""An outage of the database or of the message broker is one line of the log, however often tasks and connections are tried meanwhile."""

from __future__ import annotations

import logging
import mmap
import time
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

from celery.beat import PersistentScheduler, ScheduleEntry, SchedulingError
from kombu.exceptions import ChannelError, OperationalError
from redis.exceptions import RedisError

from service.domain.errors import SecretsUnavailable, StoreFull, StoreReadOnly, StoreUnavailable

log = logging.getLogger(__name__)

BROKER = "broker"
QUIET_S = 120.0
"""An outage is over when it was not met for so long: longer than the pause between two attempts to reach the broker [s]."""

_OUTAGES = (BROKER, StoreUnavailable, StoreFull, StoreReadOnly, SecretsUnavailable)
_CONSUMER_LINES = ("consumer: Connection to broker lost", "consumer: Cannot connect")
_last_met_s = memoryview(mmap.mmap(-1, 8 * len(_OUTAGES))).cast("d")  # shared with every process forked from the worker

_Arguments = ParamSpec("_Arguments")


def is_new(outage: str | type[StoreUnavailable]) -> bool:
    """Note that an outage was met; whether no process of this worker has met it in the last `QUIET_S`."""
    slot, now_s = _OUTAGES.index(outage), time.monotonic()
    last_s, _last_met_s[slot] = _last_met_s[slot], now_s
    return last_s == 0 or now_s - last_s > QUIET_S


def without_database_errors(task: Callable[_Arguments, None]) -> Callable[_Arguments, None]:
    """The task, which a database that cannot be used ends without a traceback: its next turn, or the sweeper, does its work."""

    @wraps(task)
    def run(*arguments: _Arguments.args, **options: _Arguments.kwargs) -> None:
        try:
            task(*arguments, **options)
        except StoreUnavailable as error:
            if is_new(type(error)):
                fields = {"error": type(error).__name__, "reason": str(error).partition("\n")[0]}
                log.error("the database cannot be used; tasks are tried again, without further lines", extra={"fields": fields})  # noqa: TRY400

    return run


class Scheduler(PersistentScheduler):  # type: ignore[misc]
    """Beat's clock. What cannot be sent because the broker is away is due again at its next time."""

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        """Send the entry's task."""
        try:
            self.apply_async(entry, producer=producer, advance=False)
        except SchedulingError as error:
            if not isinstance(error.__context__, ChannelError | OperationalError | RedisError | OSError):
                log.exception("periodic task %s was not sent", entry.name)
            elif is_new(BROKER):
                log.error("the message broker cannot be reached; periodic tasks wait, without further lines: %s", error.__context__)  # noqa: TRY400


def is_no_repeat(record: logging.LogRecord) -> bool:
    """Whether a line of Celery's consumer is no further one about the same outage of the broker; for its logger, as a filter."""
    return not record.getMessage().startswith(_CONSUMER_LINES) or is_new(BROKER)
