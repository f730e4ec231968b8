"""A run's own evaluation: its suites and checks, by the functions that programs use, and the estimate with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.domain.programs.evaluation import EvaluationPlan
from service.domain.programs.runs import RunRepetition
from service.domain.quantities import Range
from service.domain.training.estimate import Estimate, LineBlock
from service.domain.training.run import Run
from service.engine.numerics.money import sum_usd
from service.engine.training.evaluation import EvaluationHours, add_evaluation
from service.usecases.evaluation.evaluated_runs import EvaluatedRun, EvaluatedTier
from service.usecases.evaluation.plan import elapsed_hours, evaluation_lines, plan_evaluation, suites_usd, waited_hours
from service.usecases.resolution.assumption_log import AssumptionLog


def evaluate_run(request: Mapping[str, Any], run: Run, found: Estimate, notes: AssumptionLog) -> tuple[Estimate, EvaluationPlan | None]:
    """The estimate of a run with the evaluation that it states, and that evaluation; a run in phases is evaluated on the longest's machine.

    Raises InvalidRequest and DoesNotFit, with pointers into the request.
    """
    judged = EvaluatedRun("the run", run, found, RunRepetition(), run.cluster.count)
    plan = plan_evaluation(request, (EvaluatedTier(None, (judged,)),), None, notes)
    if plan is None:
        return found, None
    lines = [LineBlock(line.line, line.usd, line.basis) for line in evaluation_lines(plan) if line.usd]
    fixed, machine = float(sum_usd(line.usd for line in lines)), suites_usd(plan)
    usd = Range(*(fixed + at - machine.p50 for at in (machine.p10, machine.p50, machine.p90)))
    return add_evaluation(run, found, EvaluationHours(waited_hours(plan), elapsed_hours(plan)), lines, usd), plan
