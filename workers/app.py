"""The Celery application: `celery -A workers.app worker` (and `beat`). Settings come from the environment, as everywhere."""

from __future__ import annotations

import logging.config
import os

from celery import signals

from service.config import load_settings
from service.queue import celery_app
from service.runtime import logs, process_guard
from workers import shutdown, tasks

NOISY_LOGGERS = ("celery.beat", "celery.worker.strategy", "celery.app.trace")
"""Celery's loggers with several lines for every sweep; silent at level `info`, not at `debug`."""
REDACTED_LOGGERS = "urllib3.connectionpool"
"""At `debug` it logs whole addresses, which hold secrets for webhooks."""

PERIODIC_TASKS = {
    "sweep": (tasks.SWEEP, 2),
    "fold": (tasks.FOLD, 5),
    "forget": (tasks.FORGET, 3600),
    "judge": (tasks.JUDGE, 30),
    "deliver": (tasks.DELIVER, 5),
    "refresh": (tasks.REFRESH, 60),
}
"""Name in the schedule, task, and time between two of them [s]."""

settings = load_settings(os.environ)
app = celery_app(settings)
tasks.register(app)
app.conf.beat_schedule_filename = str(settings.data_dir / "beat-schedule")
app.conf.beat_schedule = {
    # a task that found no free process in time is not worth running: the next one is on its way
    name: {"task": task, "schedule": every_s, "options": {"expires": every_s}}
    for name, (task, every_s) in PERIODIC_TASKS.items()
}


def _set_up_logging(**_signal: object) -> None:
    logging.config.dictConfig(logs.config(settings.log_level.upper()))
    logging.getLogger(REDACTED_LOGGERS).setLevel(logging.INFO)
    if settings.log_level == "info":
        for name in NOISY_LOGGERS:
            logging.getLogger(name).setLevel(logging.WARNING)


def _start_process(**_signal: object) -> None:
    """Set up a forked pool process: new connections, end with the parent."""
    tasks.context.cache_clear()
    shutdown.release_jobs_on_term()
    process_guard.follow_parent()


def _start_worker(**_signal: object) -> None:
    process_guard.follow_supervisor()


def _start_beat(**_signal: object) -> None:
    process_guard.follow_parent()


signals.setup_logging.connect(_set_up_logging)
signals.worker_init.connect(_start_worker)
signals.worker_process_init.connect(_start_process)
signals.beat_embedded_init.connect(_start_beat)
signals.worker_shutting_down.connect(shutdown.begin)
