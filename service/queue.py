"""Messages that point workers at jobs. The job's row is authoritative; the sweeper resends a lost message."""

from __future__ import annotations

import logging
import queue
import threading
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any, Protocol

from service.config import Settings
from service.runtime import logs

if TYPE_CHECKING:
    from celery import Celery

log = logging.getLogger(__name__)

RUN_JOB = "outlay.run_job"
JOBS_QUEUE = "jobs"
REQUEST_ID = "request_id"
"""Header of messages, and field of log lines."""
HARD_TIME_LIMIT_S = 3600
POLL_S = 0.05
PING_S = 0.2
_BACKLOG = 1000

_REDIS_TRANSPORT = {
    # kombu gives a killed worker's messages back after this; a job that may run longer would be run twice
    "visibility_timeout": 2 * HARD_TIME_LIMIT_S,
    "global_keyprefix": "outlay:",
    "unacked_restore_interval": 5,
    "unacked_restore_throttle": 1,
    "socket_timeout": 2,
    "socket_connect_timeout": 1,
}


class Queue(Protocol):
    """Interface of a queue."""

    def send(self, job_id: str) -> None:
        """Send a message for the job. Never raises and never waits for the broker."""

    def ping(self) -> bool:
        """Whether a message could be sent now; jobs are accepted either way."""


def celery_app(settings: Settings) -> Celery:
    """A Celery application for these settings: Redis when configured, else files in the data directory."""
    from celery import Celery

    app = Celery("outlay", set_as_current=False)
    app.conf.update(**_COMMON, **(_redis(settings) if settings.redis_url else _files(settings)))
    return app


_COMMON: dict[str, Any] = {
    "task_ignore_result": True,
    "task_publish_retry": False,
    "task_acks_late": True,
    "task_reject_on_worker_lost": True,
    "task_default_queue": JOBS_QUEUE,
    "task_time_limit": HARD_TIME_LIMIT_S,
    "task_serializer": "json",
    "accept_content": ["json"],
    "worker_prefetch_multiplier": 1,
    "worker_enable_remote_control": False,
    # how long the pool looks for the result of a process that died; until then its job waits
    "worker_lost_wait": 1.0,
    "worker_hijack_root_logger": False,
    "worker_cancel_long_running_tasks_on_connection_loss": False,
    # workers.shutdown has a soft shutdown of its own that ends with the last job; Celery's always sleeps its whole time
    "worker_soft_shutdown_timeout": 0.0,
    "worker_enable_soft_shutdown_on_idle": False,
    "broker_connection_retry_on_startup": True,
    "broker_connection_max_retries": None,
    "broker_connection_timeout": 1,
    "enable_utc": True,
    "timezone": "UTC",
}


def _redis(settings: Settings) -> dict[str, Any]:
    return {"broker_url": settings.redis_url, "broker_transport_options": _REDIS_TRANSPORT}


def _files(settings: Settings) -> dict[str, Any]:
    messages, control = settings.data_dir / "queue" / "messages", settings.data_dir / "queue" / "control"
    for folder in (messages, control):
        folder.mkdir(parents=True, exist_ok=True)
    folders = {"data_folder_in": str(messages), "data_folder_out": str(messages), "control_folder": str(control)}
    options = {**folders, "polling_interval": POLL_S}
    return {
        "broker_transport": "service.runtime.filesystem_broker:Transport",
        "broker_url": "filesystem://localhost//",
        "broker_transport_options": options,
    }


def publish(app: Celery, job_id: str) -> bool:
    """Send one message, with the id of the present request, and wait for the broker; False, logged, where that failed."""
    from kombu.exceptions import ChannelError, KombuError
    from redis.exceptions import RedisError

    headers = {REQUEST_ID: logs.bound_fields().get(REQUEST_ID)}
    try:
        app.send_task(RUN_JOB, args=[job_id], queue=JOBS_QUEUE, retry=False, ignore_result=True, headers=headers)
    except (KombuError, ChannelError, RedisError, OSError) as error:
        log.warning("job %s not sent, the sweeper will: %s", job_id, error)
        return False
    return True


class CeleryQueue:
    """Sends from a thread, so that a hung broker does not delay requests."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._waiting: queue.Queue[tuple[Context, str]] = queue.Queue(_BACKLOG)
        self._lock = threading.Lock()
        self._sender: threading.Thread | None = None

    def send(self, job_id: str) -> None:
        """Pass the job to the sending thread; with a full backlog it is left to the sweeper."""
        try:
            # the sender's log lines, and its part of a trace, belong to the request
            self._waiting.put_nowait((copy_context(), job_id))
        except queue.Full:
            log.warning("job %s not sent, the broker is too far behind; the sweeper will", job_id)
            return
        with self._lock:
            if self._sender is None or not self._sender.is_alive():
                self._sender = threading.Thread(target=self._send_all, name="queue-sender", daemon=True)
                self._sender.start()

    def ping(self) -> bool:
        """Whether Redis answers within `PING_S` seconds; the embedded queue is always available."""
        if self._settings.redis_url is None:
            return True
        from redis import Redis, RedisError
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        limits: dict[str, Any] = {"socket_timeout": PING_S, "socket_connect_timeout": PING_S, "retry": Retry(NoBackoff(), 0)}
        try:
            with Redis.from_url(self._settings.redis_url, **limits) as client:
                return bool(client.ping())
        except (RedisError, OSError):
            return False

    def flush(self) -> None:
        """Wait until every message so far was tried."""
        self._waiting.join()

    def _send_all(self) -> None:
        app = celery_app(self._settings)
        while True:
            context, job_id = self._waiting.get()
            context.run(publish, app, job_id)
            self._waiting.task_done()
