"""gunicorn's configuration of the service where a test is not about its time limits: requests wait for threads, clients and parts as long
as a busy machine takes."""

from __future__ import annotations

from typing import Any

from service.runtime import gunicorn_conf
from service.runtime.gunicorn_conf import *  # noqa: F403  # all of it but for what stands below
from tests.support.patience import ANSWER_WAITS, CLIENT_WAITS, PATIENCE_S, STORE_WAITS, wait_for_up_to

timeout = round(PATIENCE_S)


def post_fork(server: Any, worker: Any) -> None:
    """As in production, with the longer waits."""
    gunicorn_conf.post_fork(server, worker)
    worker.wait_s = PATIENCE_S
    wait_for_up_to(dict.fromkeys((*STORE_WAITS, *ANSWER_WAITS, *CLIENT_WAITS), PATIENCE_S))
