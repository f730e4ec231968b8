"""Celery tasks: a job's id in, nothing out. The job's row holds its state."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING

from service.config import load_settings
from service.container import build_context
from service.context import AppContext
from service.job_kinds import JOB_KINDS
from service.queue import REQUEST_ID, RUN_JOB, publish
from service.runtime import logs
from service.usecases.delivery.deliver import deliver_due
from service.usecases.jobs import Worker, run_job, sweep
from service.usecases.monitoring.program_figures import compute_due_figures
from service.usecases.prices.prune import prune_prices
from service.usecases.prices.refresh import refresh_due
from service.usecases.results.keep import forget_results
from service.usecases.scenarios.scenarios import forget_scenarios
from service.usecases.scenarios.worker import maintain_scenarios
from service.usecases.tracking.alerts import evaluate_due
from service.usecases.tracking.import_jobs import forget_imports, import_in_turn
from service.usecases.tracking.projection import project_all
from workers.outages import without_database_errors
from workers.shutdown import stopping

if TYPE_CHECKING:
    from celery import Celery, Task

SWEEP = "outlay.sweep"
REFRESH = "outlay.refresh_due"
FOLD = "outlay.fold_log"
FORGET = "outlay.delete_old_responses"
PRUNE = "outlay.prune_prices"
JUDGE = "outlay.judge_programs"
DELIVER = "outlay.deliver_messages"
FIGURES = "outlay.compute_figures"
WORKER = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
"""This worker's name, the same in all its processes, which are forked later."""


@cache
def context() -> AppContext:
    """This process's context; `workers.app` resets it after a fork."""
    return build_context(load_settings(os.environ))


def this_process() -> Worker:
    """Owner name of this process's claims."""
    return Worker(f"{WORKER}/{os.getpid()}", stopping, is_dead)


def is_dead(owner: str) -> bool:
    """Whether `owner` was a process of this worker and has ended. Unknown for other workers' processes."""
    worker, _, pid = owner.rpartition("/")
    if worker != WORKER:
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    return False


def register(app: Celery) -> None:
    """Register the tasks on the application."""

    def sweep_once() -> None:
        if not stopping():
            sweep(context(), WORKER, partial(publish, app))
            maintain_scenarios(context())
            context().store.drop_import_files()

    app.task(without_database_errors(_run), name=RUN_JOB, bind=True)
    periodic: dict[str, Callable[[], None]] = {
        SWEEP: sweep_once,
        REFRESH: _refresh,
        FOLD: _fold,
        FORGET: _forget,
        PRUNE: _prune,
        JUDGE: _judge,
        DELIVER: _deliver,
        FIGURES: _figures,
    }
    for name, task in periodic.items():
        app.task(without_database_errors(task), name=name)


def _run(task: Task, job_id: str) -> None:
    with logs.bound(request_id=task.request.get(REQUEST_ID)):
        turn = import_in_turn(context(), job_id)
        if turn is not None:
            run_job(context(), turn, JOB_KINDS, this_process())


def _refresh() -> None:
    refresh_due(context())


def _fold() -> None:
    project_all(context(), stopping)


def _prune() -> None:
    prune_prices(context())


def _forget() -> None:
    context().store.delete_old_responses(context().clock())
    forget_scenarios(context())
    forget_imports(context())
    forget_results(context())


def _judge() -> None:
    evaluate_due(context(), stopping)


def _figures() -> None:
    compute_due_figures(context(), stopping)


def _deliver() -> None:
    if not stopping():
        deliver_due(context())
