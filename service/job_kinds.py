"""Background jobs: what a worker calls for each kind."""

from __future__ import annotations

from collections.abc import Mapping

from service.usecases.jobs import JobFunction
from service.usecases.prices import refresh
from service.usecases.scenarios import worker
from service.usecases.tracking import import_jobs

JOB_KINDS: Mapping[str, JobFunction] = {
    refresh.KIND: refresh.refresh_prices,
    worker.KIND: worker.run_chunks,
    import_jobs.KIND: import_jobs.run_import,
}
"""Functions of background jobs by kind."""
