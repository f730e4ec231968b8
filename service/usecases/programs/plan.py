"""The plan of a training program: budget, schedule, data and spend choices; docs/reference/programs.md and schedules.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from service.context import AppContext
from service.domain.answer_fields import HIDDEN, MERGED, Doc
from service.domain.errors import DomainError, UnpricedAccelerator
from service.domain.programs.branches import GateDecision
from service.domain.programs.evaluation import EvaluationPlan
from service.domain.programs.plan import CostVariance, ProgramPlan
from service.domain.programs.risks import RiskRegister
from service.domain.programs.schedule import GateDates, MidpointDate, ProgramSchedule, ReportingPlan
from service.domain.programs.spending import SpendChoices
from service.domain.programs.tokens import ProgramTokens
from service.domain.quantities import Assumption
from service.domain.schedule import BurnWeek, PlannedMonth
from service.domain.summary import Summary
from service.domain.tracking.feedback import LessonsReference
from service.engine.programs.branches import branch_into_pivots
from service.engine.programs.cost_variance import explain_difference
from service.engine.scheduling.burn_plan import burn_plan
from service.engine.scheduling.critical_path import schedule_network
from service.engine.scheduling.durations import draw_deviations
from service.engine.scheduling.monthly_spend import monthly_spend
from service.presets.version import engine_version
from service.usecases.programs.branches import decide_gates
from service.usecases.programs.estimates import Request, shared_estimates
from service.usecases.programs.lines import warn_of_low_development_share
from service.usecases.programs.network import plan_reports
from service.usecases.programs.pivots import gate_pivots, pivots_ahead
from service.usecases.programs.resolve import DRAWS_SEED, draw_durations, resolve_program
from service.usecases.programs.risks import describe_register
from service.usecases.programs.runs import collect_run_warnings, common_price_snapshot
from service.usecases.programs.schedule import date_gates, date_midpoint, plan_schedule, plan_spending
from service.usecases.programs.serving import ProgramServing, plan_serving
from service.usecases.programs.summary import summarise_program
from service.usecases.programs.tokens import plan_tokens, rank_spend_choices
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.training.estimate import EstimateAnswer

MAX_WEEKS = 100_000
MAX_MONTHS = 30_000
MONTH_DRAWS = 300
"""Draws of the calendar for months: their p10 and p90 are those of one time in ten give or take 1.7 %."""
UNPRICED_BUDGET = "the budget is not known, because no price is known for one of its accelerators: state price.usd_per_accelerator_hour"


@dataclass(frozen=True, slots=True)
class ProgramAnswer:
    """The whole budget: `lines` add up to `total_usd.p50` to the cent, and so do the envelope and the burn plan.

    `estimates`: of every run, by tier and name; `gates`: their dates by tier; `decisions`: by
    tier and `midpoint`.
    """

    summary: Annotated[Summary, Doc("The answer in a sentence, and what it rests on")]
    plan: Annotated[ProgramPlan, MERGED]
    request: Annotated[Request, HIDDEN]
    estimates: Annotated[Mapping[tuple[str, str], EstimateAnswer], HIDDEN]
    schedule: Annotated[ProgramSchedule, Doc("The program in time")]
    gates: Annotated[Mapping[str, GateDates], HIDDEN]
    decisions: Annotated[Mapping[str, GateDecision], HIDDEN]
    midpoint: Annotated[MidpointDate | None, HIDDEN]
    burn_plan: Annotated[tuple[BurnWeek, ...], Doc("Planned spend by week; adds up to the budget to the cent", max_items=MAX_WEEKS)]
    months: Annotated[
        tuple[PlannedMonth, ...], Doc("Planned spend by calendar month; adds up to the budget to the cent", max_items=MAX_MONTHS, older=())
    ]
    reporting: Annotated[ReportingPlan, Doc("How often the program reports")]
    risk_register: Annotated[
        RiskRegister | None, Doc("What all risks cost together; null: none are listed, or a price is not known", older=None)
    ]
    tokens: Annotated[ProgramTokens | None, Doc("The program's data; null: none is stated")]
    evaluation: Annotated[EvaluationPlan | None, Doc("How the program evaluates; null: it states no suite and no check", older=None)]
    spend_choices: Annotated[SpendChoices | None, Doc("Where money does most; null: none are stated")]
    price_snapshot: Annotated[str, Doc("Name of the price snapshot the answer is made with")]
    lessons: Annotated[LessonsReference | None, Doc("Lessons of the team's finished runs; null: it has none")]
    engine_version: Annotated[str, Doc("Version of the engine and its data")]
    assumptions: Annotated[tuple[Assumption, ...], Doc("Values the caller did not state, with the reason for each", max_items=2000)]
    warnings: Annotated[tuple[str, ...], Doc("What to check before relying on the answer", max_items=1000, max_length=5000)]
    serving: Annotated[
        ProgramServing | None, Doc("The model in service, not part of the budget; left out where none is stated", optional=True)
    ] = None


@dataclass(frozen=True, slots=True)
class ProgramComparison:
    """Two budgets [USD] and their difference by cause; `price_snapshot` is the later one's."""

    difference: Annotated[CostVariance, MERGED]
    before_usd: Annotated[float, Doc("Budget of the earlier program", "USD")]
    after_usd: Annotated[float, Doc("Budget of the later program", "USD")]
    before_price_snapshot: Annotated[str, Doc("Price snapshot of the earlier program")]
    price_snapshot: Annotated[str, Doc("Price snapshot of the later program")]
    lessons: Annotated[LessonsReference | None, Doc("Lessons of the team's finished runs; null: it has none")]
    engine_version: Annotated[str, Doc("Version of the engine and its data")]


def plan_program(context: AppContext, request: Request) -> ProgramAnswer:
    """The plan of a program's validated request. Raises DomainErrors, with pointers into it."""
    notes, estimates = AssumptionLog(), shared_estimates(context)
    resolved = resolve_program(estimates, request, context.clock().date(), notes)
    network, plan = resolved.network, resolved.plan
    draws = draw_durations(network)
    timed = schedule_network(resolved.ordered, network.activities, draws, request.get("deadline"))
    spendings = tuple(plan_spending(resolved, timed))
    weeks = burn_plan(network.start, spendings)
    schedule = plan_schedule(resolved, timed, draws, estimates, notes)
    tokens = plan_tokens(request, tuple(resolved.runs.values()), notes)
    choices = rank_spend_choices(request, plan, notes) if plan.priced else None
    reports = plan_reports(request, schedule.start, schedule.finish.p50, notes)
    snapshot = common_price_snapshot(resolved.runs, notes)
    serving = plan_serving(context, resolved, snapshot, notes)
    if plan.priced:
        warn_of_low_development_share(plan, notes)
    answers = {key: estimated.answer for key, estimated in resolved.runs.items()}
    gates, midpoint = date_gates(resolved, timed), date_midpoint(resolved, timed, weeks)
    pivots = gate_pivots(estimates, resolved, {tier: dates.date.p50 for tier, dates in gates.items()})
    decisions = decide_gates(estimates, resolved, schedule.finish, (gates, midpoint), pivots, notes)
    plan = branch_into_pivots(resolved.program, plan, pivots_ahead(pivots))
    return ProgramAnswer(
        summary=summarise_program(plan, schedule, answers),
        plan=plan,
        request=request,
        estimates=answers,
        schedule=schedule,
        gates=gates,
        decisions=decisions,
        midpoint=midpoint,
        burn_plan=weeks,
        months=monthly_spend(resolved.ordered, draw_deviations(network.activities, DRAWS_SEED, MONTH_DRAWS), spendings, plan.total_usd),
        reporting=reports,
        risk_register=describe_register(resolved.program, plan),
        tokens=tokens,
        evaluation=resolved.program.evaluation,
        spend_choices=choices,
        price_snapshot=snapshot,
        lessons=context.lessons_reference(),
        engine_version=engine_version(),
        assumptions=notes.assumptions,
        warnings=(*plan.warnings, *notes.warnings, *collect_run_warnings(resolved.runs)),
        serving=serving,
    )


def compare_programs(context: AppContext, request: Request) -> ProgramComparison:
    """The difference between two programs' budgets by cause. Raises DomainErrors, with pointers below /before or /after."""
    estimates, today = shared_estimates(context), context.clock().date()
    programs = []
    for name in ("before", "after"):
        try:
            programs.append(resolve_program(estimates, request[name], today, AssumptionLog()))
        except DomainError as problem:
            raise problem.below(f"/{name}") from problem
        if not programs[-1].plan.priced:
            raise UnpricedAccelerator(UNPRICED_BUDGET, f"/{name}")
    before, after = programs
    return ProgramComparison(
        before_usd=before.plan.total_usd.p50,
        after_usd=after.plan.total_usd.p50,
        difference=explain_difference(before.plan, after.plan),
        before_price_snapshot=common_price_snapshot(before.runs, AssumptionLog()),
        price_snapshot=common_price_snapshot(after.runs, AssumptionLog()),
        lessons=context.lessons_reference(),
        engine_version=engine_version(),
    )
