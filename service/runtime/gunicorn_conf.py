"""gunicorn's configuration: `gunicorn -c python:service.runtime.gunicorn_conf "service:create_app()"`. The names are gunicorn's."""

from __future__ import annotations

import ctypes
import gc
import os
import shutil
import sys
import tempfile
from typing import Any

from service import load_modules
from service.cache import COUNTERS_DIR
from service.config import load_settings, secrets_of
from service.domain.errors import StoreUnavailable
from service.runtime import bind_guard, logs, process_guard
from service.runtime.memory_files import memory_dir
from service.store import Store
from service.usecases.ask.vocabulary import vocabulary_of

_settings = load_settings(os.environ)
logs.hide(secrets_of(_settings, os.environ))

bind = f"[{_settings.host}]:{_settings.port}" if ":" in _settings.host else f"{_settings.host}:{_settings.port}"
workers = _settings.web_workers
worker_class = "service.api.http.web_worker.gunicorn_worker.ProblemWorker"  # gthread, with our answers to what is no request
logger_class = "service.api.http.web_worker.gunicorn_log.ErrorLog"
threads = 4
worker_connections = 1000  # most of them kept alive or still sending, which takes no thread
keepalive = 10  # longer than clients wait between two looks at a job: a connection that ends as it is used again is an error there
timeout = 30
graceful_timeout = 25 + _settings.drain_seconds
max_requests = 100_000  # a process that grew ends; a flood reaches the thousands in seconds, and in all processes at once
max_requests_jitter = 100_000
preload_app = False  # no connection exists before the fork, so none has to be given up after it; modules do
limit_request_field_size = 16380
limit_request_line = 8190  # forms of pages stand in their address, which nginx bounds likewise
control_socket_disable = True
proc_name = "gunicorn"
worker_tmp_dir = memory_dir()  # gunicorn's heartbeat files, off the disk
logconfig_dict = logs.config(_settings.log_level.upper())

_PR_SET_NAME = 15


def on_starting(server: Any) -> None:
    """Name the process `gunicorn` in the process list, and end with the supervisor if there is one.

    Ends the process where it would be reachable from elsewhere without API keys.
    """
    _refuse_exposure([place[0] for place in server.cfg.address if isinstance(place, tuple)])
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_NAME, b"gunicorn", 0, 0, 0)
    process_guard.follow_supervisor()
    load_modules()
    if COUNTERS_DIR not in os.environ:  # no supervisor has made one for all processes
        os.environ[COUNTERS_DIR] = server.own_counters = tempfile.mkdtemp(prefix="outlay-counters-", dir=memory_dir())


def on_exit(server: Any) -> None:
    """Remove the counters that `on_starting` made."""
    if directory := getattr(server, "own_counters", None):
        shutil.rmtree(directory, ignore_errors=True)


def post_fork(_server: Any, worker: Any) -> None:
    """Tell the worker how long it takes connections after SIGTERM."""
    worker.drain_s = _settings.drain_seconds


def post_worker_init(worker: Any) -> None:
    """Read what the first scrape and the first question need, and exclude loaded objects from garbage collection.

    The latter saves a twentieth of a request.
    """
    worker.wsgi.extensions["metrics"].refresh()
    vocabulary_of(worker.wsgi.extensions["context"])
    gc.collect()
    gc.freeze()


def _refuse_exposure(hosts: list[str]) -> None:
    store = Store(_settings.database_url)
    try:
        bind_guard.check(store, hosts)
    except (bind_guard.ExposedWithoutKeys, StoreUnavailable) as error:
        raise SystemExit(f"Outlay does not start: {error}") from error
    finally:
        store.close()
