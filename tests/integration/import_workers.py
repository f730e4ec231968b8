"""Imports that real workers do."""

from __future__ import annotations

from service.context import AppContext
from service.domain.jobs import Job
from service.domain.teams import EVERYBODY, Principal
from service.domain.tracking.records import RunRecord
from service.usecases.tracking import import_jobs
from service.usecases.tracking.imports import ImportScope
from service.usecases.tracking.programs import start_program, start_run
from tests.support.servers import wait_for

BILL_HEADER = "BillingCurrency,ChargePeriodStart,ChargePeriodEnd,EffectiveCost,BilledCost,ChargeCategory,ServiceCategory,ResourceId\n"


def begin_import(context: AppContext, rows: int) -> tuple[RunRecord, Job]:
    """A run, and the job that imports its bill of so many charges; it is being stored."""
    program = start_program(context, EVERYBODY, {"name": "imported"}, None, None)
    run = start_run(context, program, {"name": "main"}, None)
    job = submit_bill(context, EVERYBODY, rows, run)
    wait_for(lambda: stored_parts(context, job.id) > 0, "the first part of the import to be stored")
    return run, job


def submit_bill(context: AppContext, who: Principal, rows: int, run: RunRecord | None = None) -> Job:
    """The job that imports a bill of so many charges, all of them of a run, or of none."""
    line = "USD,2026-02-01T00:00:00Z,2026-02-02T00:00:00Z,2.0,2.0,Usage,Compute,i-{}\n"
    content = (BILL_HEADER + "".join(map(line.format, range(rows)))).encode()
    made = import_jobs.submit_import(context, who, "focus", content, ImportScope(run=run), "effective")
    job = context.store.job(made.id)
    assert job is not None
    return job


def stored_parts(context: AppContext, import_id: str) -> int:
    """Number of parts of an import that are stored and counted."""
    found = context.store.stored_parts(import_id)
    assert found is not None
    return found.parts


def event_count(context: AppContext, run: RunRecord) -> int:
    """Number of events in a run's log."""
    found = context.store.run(run.team, run.id)
    assert found is not None
    return found.position
