"""Status of a program: figures of its runs and of the whole against the plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain

from service.domain.programs.budget_parts import RESERVE, BudgetPart
from service.domain.quantities import Range
from service.domain.tracking.events import ProgramBaseline, RunBaseline
from service.domain.tracking.quality import GuardrailStatus, MetricQuality
from service.domain.tracking.risks import ReserveStatus
from service.domain.tracking.status import CompletionForecast, Drift, LossProjection, ProgramStatus, RunStatus
from service.engine.tracking.branches import GateActuals
from service.engine.tracking.costs.budget_bridge import Outlook, budget_bridge
from service.engine.tracking.costs.cost import burn_rate, cost_run, spend
from service.engine.tracking.costs.cost_drivers import drivers_at_completion, drivers_to_date
from service.engine.tracking.costs.energy_use import energy_use
from service.engine.tracking.earned_value import earned_value, run_earned_value
from service.engine.tracking.forecasting.beside_runs import NOTHING
from service.engine.tracking.forecasting.forecast import ForecastRules
from service.engine.tracking.forecasting.outlook import (
    beside_change_usd,
    beside_runs,
    is_complete,
    program_forecast,
    run_forecast,
    unspent_plan_warnings,
)
from service.engine.tracking.forecasting.plan_calendar import overdue_runs
from service.engine.tracking.forecasting.planned_burn import planned_burn_rate, planned_run_burn_rate
from service.engine.tracking.gate import GateInputs, GateRules, assess_gate, assess_tier_gates
from service.engine.tracking.monitoring.drift import DriftRules
from service.engine.tracking.monitoring.loss_monitor import LossRules, losses
from service.engine.tracking.monitoring.plan_drift import PlanDriftRules
from service.engine.tracking.monitoring.quality import watch_guardrails, watch_quality
from service.engine.tracking.monitoring.quality_drops import QualityRules
from service.engine.tracking.risks import forecast_change_usd, reserve_status, track_risks, with_risks
from service.engine.tracking.runs.history import RunHistory
from service.engine.tracking.runs.run_metrics import (
    SilenceRules,
    checkpoint_cadence,
    goodput,
    interruptions,
    run_drifts,
    run_state,
    silence_warning,
    utilisation,
)
from service.engine.tracking.runs.targets import RunTarget, find_targets


@dataclass(frozen=True, slots=True)
class StatusRules:
    """Rules of a status. `cadence_tolerance`: relative excess of the checkpoint interval that is accepted [1]."""

    forecast: ForecastRules
    drift: DriftRules
    gate: GateRules
    losses: LossRules
    cadence_tolerance: float
    silence: SilenceRules
    quality: QualityRules
    plan_drift: PlanDriftRules


def status(
    baseline: ProgramBaseline,
    runs: Sequence[tuple[RunBaseline, RunHistory]],
    now: datetime,
    rules: StatusRules,
    loss_projections: Mapping[int, LossProjection] | None = None,
) -> ProgramStatus:
    """Status of a program as of `now` (inclusive).

    Parameters
    ----------
    baseline : ProgramBaseline
        Plan of the program.
    runs : sequence of (RunBaseline, RunHistory)
        Runs with plan and history.
    now : datetime
        Status date, UTC.
    rules : StatusRules
        Rules and thresholds.
    loss_projections : mapping of int to LossProjection, optional
        Projected final losses by the index of the run.
    """
    if _is_stopped([history for _, history in runs]):
        baseline, runs = replace(baseline, closed=True), [(replace(planned, closed=True), history) for planned, history in runs]
    found = find_targets(baseline, [cost_run(planned, history) for planned, history in runs])
    all_runs = [target.run for target in found]
    forecasts = [run_forecast(target, now, rules.forecast) for target in found]
    watched = watch_quality(all_runs, [forecast.remaining_usd for forecast in forecasts], baseline.outcome, rules.quality)
    blocks = tuple(
        _run(target, now, rules, (forecasts[place], watched[place], (loss_projections or {}).get(place)))
        for place, target in enumerate(found)
    )
    spent, earned = spend(all_runs, baseline.budget_usd), earned_value(baseline, all_runs, now)
    guarded = watch_guardrails(baseline.guardrails, chain(*watched), baseline.outcome, rules.quality)
    risks = track_risks(baseline.risks, chain(*(run.history.risks for run in all_runs)))
    reserve = reserve_status(baseline, risks)
    risk_usd, left = _around_runs(baseline, found, reserve, now)
    completion = with_risks(program_forecast(baseline, found, forecasts, now), () if baseline.closed else risks, risk_usd)
    evaluations, decisions = ([*chain(*(getattr(run.history, name) for run in all_runs))] for name in ("evaluations", "decisions"))
    inputs = GateInputs(spent, earned, evaluations, decisions, GateActuals(spent.usd, completion, now))
    gate, gate_warnings = assess_gate(baseline, inputs, rules.gate)
    missed = _deadline_missed(baseline, found, now)
    return ProgramStatus(
        name=baseline.name,
        as_of=now,
        spend=spent,
        burn_rate=replace(burn_rate(all_runs, now), planned=planned_burn_rate(baseline, now)),
        earned_value=earned,
        forecast=completion,
        budget=budget_bridge(baseline, found, Outlook(completion, forecasts, left), earned),
        energy=energy_use(baseline, found, forecasts),
        goodput=goodput([run.history for run in all_runs]),
        quality=tuple(chain(*watched)),
        guardrails=guarded,
        drift=tuple(chain(*(block.drift for block in blocks))),
        interruptions=interruptions(all_runs),
        gate=gate,
        tier_gates=assess_tier_gates(baseline, inputs, _tiers_over(baseline, found)),
        risks=risks,
        reserve=reserve,
        cost_drivers=drivers_at_completion(
            baseline,
            all_runs,
            forecasts,
            [block.utilisation.goodput for block in blocks],
            beside_change_usd(baseline, found, now) + risk_usd,
        ),
        overdue=overdue_runs(baseline, found, now),
        deadline_missed=missed,
        runs=blocks,
        warnings=(
            *_warnings(baseline, completion, missed, spent.remaining_usd),
            *unspent_plan_warnings(baseline, found, now),
            *gate_warnings,
            *_overdrawn(reserve),
            *(_breached(one) for one in guarded if one.breached),
            *chain(*(block.warnings for block in blocks)),
        ),
    )


def _around_runs(
    baseline: ProgramBaseline, found: Sequence[RunTarget], reserve: ReserveStatus | None, now: datetime
) -> tuple[float, Mapping[BudgetPart, Range] | None]:
    """What risks change in the forecast [USD], and what is left to spend around the runs with it; None where no plan says."""
    left = beside_runs(baseline, found, now)
    held_usd = NOTHING.p50 if left is None else left.get(RESERVE, NOTHING).p50
    risk_usd = 0.0 if is_complete(baseline, found, now) else max(forecast_change_usd(reserve), -held_usd)
    if left is not None and risk_usd:
        left = {**left, RESERVE: Range.exactly(held_usd + risk_usd)}
    return risk_usd, left


def _is_stopped(histories: Sequence[RunHistory]) -> bool:
    """Whether the newest decision on any gate is to stop: what is left of the program is then not spent."""
    newest = max(chain(*(history.decisions for history in histories)), key=lambda one: one.at, default=None)
    return newest is not None and newest.verdict == "stop"


def _run(
    target: RunTarget,
    now: datetime,
    rules: StatusRules,
    known: tuple[CompletionForecast, tuple[MetricQuality, ...], LossProjection | None],
) -> RunStatus:
    (forecast, quality, end), run, history = known, target.run, target.run.history
    used, found = utilisation(run), run_drifts(run, rules.drift, rules.plan_drift)
    watched = losses(history, rules.losses, end)
    kept = checkpoint_cadence(run, rules.cadence_tolerance)
    state = run_state(target, rules.silence)
    silent = silence_warning(run.baseline.name, state, history)
    return RunStatus(
        name=run.baseline.name,
        tier=run.baseline.tier,
        state=state,
        started_at=history.started_at,
        last_event_at=history.last_at,
        events=history.events,
        planned_tokens=run.baseline.tokens,
        spend=spend([run], run.baseline.usd),
        burn_rate=replace(burn_rate([run], now), planned=planned_run_burn_rate(run.baseline, now)),
        earned_value=run_earned_value(run, now),
        forecast=forecast,
        utilisation=used,
        drift=found,
        interruptions=interruptions([run]),
        checkpoints=kept,
        loss=watched,
        quality=quality,
        cost_drivers=drivers_to_date(run, used.goodput),
        warnings=(
            *([silent] if silent else []),
            *history.warnings,
            *run.warnings,
            *([run.unknown_reason] if run.unknown_reason else []),
            *(_drifted(one) for one in found),
            *(_regressed(one) for one in quality if one.state == "regressed"),
        ),
    )


def _drifted(drift: Drift) -> str:
    against = " against the plan" if drift.against == "plan" else ""
    return f"{drift.run}: {drift.quantity} {drift.change:+.0%}{against} since {drift.since:%Y-%m-%d} (confidence {drift.confidence:.1%})"


def _regressed(metric: MetricQuality) -> str:
    back = f"; last good evaluation {metric.last_good.at:%Y-%m-%d %H:%M} UTC" if metric.last_good else ""
    fallen = f"{metric.metric} has dropped from {metric.level:.4g} to {metric.last:.4g}"
    return f"{metric.run}: {fallen} since {metric.since:%Y-%m-%d} (confidence {metric.confidence or 0.0:.1%}){back}"


def _breached(guardrail: GuardrailStatus) -> str:
    side = "below" if guardrail.direction == "up" else "above"
    return f"{guardrail.run}: {guardrail.metric} is {guardrail.last or 0.0:.4g}, {side} its guardrail, {guardrail.floor:.4g}"


def _overdrawn(reserve: ReserveStatus | None) -> Iterator[str]:
    if reserve is not None and reserve.left_usd < 0:
        yield f"risks that occurred cost {-reserve.left_usd:,.0f} USD more than the reserve of {reserve.planned_usd:,.0f} USD"


def _tiers_over(baseline: ProgramBaseline, found: Sequence[RunTarget]) -> frozenset[str]:
    """Tiers of which every planned run is tracked, and done or closed."""
    over = {(target.run.baseline.tier, target.run.baseline.name) for target in found if target.is_over}
    waiting = {run.tier for run in baseline.runs if (run.tier, run.name) not in over}
    return frozenset(run.tier for run in baseline.runs if run.tier and run.tier not in waiting)


def _deadline_missed(baseline: ProgramBaseline, found: Sequence[RunTarget], now: datetime) -> bool | None:
    """Whether the deadline has passed while a run is neither done nor closed; None without a deadline."""
    if baseline.deadline is None:
        return None
    over = baseline.closed or (bool(found) and all(target.is_over for target in found))
    return now.date() > baseline.deadline and not over


def _warnings(baseline: ProgramBaseline, completion: CompletionForecast, missed: bool | None, left_usd: float | None) -> Iterator[str]:
    if missed:
        yield f"the deadline, {baseline.deadline}, has passed and the program is not finished"
    elif baseline.deadline and completion.finish and completion.finish.p50 > baseline.deadline:
        yield f"the forecast finish is {completion.finish.p50}, the deadline is {baseline.deadline}"
    if left_usd is not None and left_usd < 0:
        yield f"the budget is overspent by {-left_usd:,.0f} USD"
    elif baseline.budget_usd and completion.cost_usd and round(completion.cost_usd.p50 - baseline.budget_usd, 2) > 0:
        yield f"the forecast cost is {completion.cost_usd.p50:,.0f} USD, the budget is {baseline.budget_usd:,.0f} USD"
