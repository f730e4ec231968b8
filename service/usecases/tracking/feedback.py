"""Record the outcome of a finished run when it is closed, for the team's later estimates."""

from __future__ import annotations

from service.context import AppContext
from service.domain.tracking.feedback import RunOutcome
from service.domain.tracking.records import ProgramRecord, RunRecord
from service.domain.tracking.status import RunStatus
from service.presets.tracking.feedback import feedback_rules
from service.usecases.tracking.status import program_status

OVERHEADS = ("evaluation", "debugging", "reruns")


def record_outcome(context: AppContext, program: ProgramRecord, run: RunRecord) -> None:
    """Store the outcome of a closed run; a run without a plan, or a short one, has none."""
    tracked = program_status(context, program)
    status = next(one for row, one in zip(tracked.runs, tracked.status.runs, strict=True) if row.id == run.id)
    outcome = measure_outcome(run, status)
    if outcome is not None:
        context.store.save_run_outcome(run.team, outcome, context.clock())


def measure_outcome(run: RunRecord, status: RunStatus) -> RunOutcome | None:
    """Outcome of a run, None where its accelerator is unknown or it ran for too short a time."""
    accelerator, hours = run.body["planned"].get("accelerator"), status.spend.accelerator_hours
    count = run.body["planned"].get("accelerators") or 1
    if accelerator is None or not hours or hours / count < feedback_rules().min_hours:
        return None
    utilisation = status.utilisation
    ratio = utilisation.mfu / utilisation.planned_mfu if utilisation.mfu and utilisation.planned_mfu else None
    learned_ratio = run.body["planned"].get("learned_ratio") or 1.0
    lines = {line.line: line.usd for line in status.spend.lines}
    compute = lines.get("compute", 0.0)
    overhead = {name: lines[name] / compute for name in OVERHEADS if name in lines and compute > 0}
    return RunOutcome(run.id, accelerator, ratio * learned_ratio if ratio else None, hours, status.interruptions.count, overhead)
