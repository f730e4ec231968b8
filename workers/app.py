"""The Celery application: `celery -A workers.app worker` (and `beat`). Settings come from the environment, as everywhere."""

from __future__ import annotations

import logging.config
import os
import tempfile
import warnings

from celery import signals
from celery.exceptions import CPendingDeprecationWarning

from service.config import load_settings, secrets_of
from service.job_kinds import JOB_KINDS
from service.queue import celery_app
from service.runtime import logs, metrics, process_guard, traces
from service.runtime.memory_files import memory_dir
from workers import outages, shutdown, tasks

CONSUMER_LOGGER = "celery.worker.consumer.consumer"
NOISY_LOGGERS = ("celery.beat", "celery.worker.strategy", "celery.app.trace", CONSUMER_LOGGER)
"""Celery's loggers with several lines for every sweep; silent at level `info`, not at `debug`."""

PERIODIC_TASKS = {
    "sweep": (tasks.SWEEP, 2),
    "fold": (tasks.FOLD, 5),
    "forget": (tasks.FORGET, 3600),
    "prune": (tasks.PRUNE, 6 * 3600),
    "judge": (tasks.JUDGE, 30),
    "deliver": (tasks.DELIVER, 5),
    "refresh": (tasks.REFRESH, 60),
    "figures": (tasks.FIGURES, 15),
}
"""Name in the schedule, task, and time between two of them [s]."""

settings = load_settings(os.environ)
_shared: list[tempfile.TemporaryDirectory[str]] = []  # deleted when this process ends
CLOCK_DIFFERENCE_S = 300
"""How far the clocks of two hosts may differ before one throws the other's periodic tasks away [s]."""
app = celery_app(settings)
tasks.register(app)
app.conf.beat_scheduler = outages.Scheduler
app.conf.beat_schedule_filename = str(settings.data_dir / "beat-schedule")
app.conf.beat_schedule = {
    # A task that found no free process for long is not worth running: the next one is on its way. Both hosts' clocks decide when that is.
    name: {"task": task, "schedule": every_s, "options": {"expires": every_s + CLOCK_DIFFERENCE_S}}
    for name, (task, every_s) in PERIODIC_TASKS.items()
}


def _set_up_logging(**_signal: object) -> None:
    logging.config.dictConfig(logs.config(settings.log_level.upper()))
    logs.hide(secrets_of(settings, os.environ))
    logging.getLogger(CONSUMER_LOGGER).addFilter(outages.is_no_repeat)
    if settings.log_level == "info":
        for name in NOISY_LOGGERS:
            logging.getLogger(name).setLevel(logging.WARNING)


def _start_process(**_signal: object) -> None:
    """Set up a forked pool process: new connections, end with the parent."""
    tasks.context.cache_clear()
    shutdown.release_jobs_on_term()
    process_guard.follow_parent()
    metrics.start_jobs(JOB_KINDS)
    traces.start("outlay-worker")


def _start_worker(**_signal: object) -> None:
    """Before the pool is forked: what its processes count goes to a directory, and to the worker's own port where one is set."""
    process_guard.follow_supervisor()
    if settings.worker_metrics_port is None:
        return
    if metrics.DIRECTORY not in os.environ:
        _shared.append(tempfile.TemporaryDirectory(prefix="outlay-metrics-", dir=memory_dir()))
        os.environ[metrics.DIRECTORY] = _shared[0].name
    metrics.serve(settings.host, settings.worker_metrics_port)


def _silence_notice(**_signal: object) -> None:
    """Celery has just asked for it: at each loss of the broker a notice about a setting, which ours sets on purpose."""
    warnings.filterwarnings("ignore", category=CPendingDeprecationWarning)


def _start_beat(**_signal: object) -> None:
    process_guard.follow_parent()


signals.setup_logging.connect(_set_up_logging)
signals.celeryd_after_setup.connect(_silence_notice)
signals.worker_init.connect(_start_worker)
signals.worker_process_init.connect(_start_process)
signals.beat_embedded_init.connect(_start_beat)
signals.worker_shutting_down.connect(shutdown.begin)
