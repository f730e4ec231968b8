"""Evaluation of alert rules against a program's status, and the difference to the alerts that were sent before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from service.domain.tracking.alerts import AlertChanges, AlertFinding, AlertKind, AlertRule, Figure, PreviousAlert, RuleInputs
from service.domain.tracking.quality import MetricQuality
from service.domain.tracking.status import Drift, LossFinding, Spend

HOUR = timedelta(hours=1)
# A forecast or drift that ends and returns within a day is the same alert; the loss is evaluated by whole hours.
REARM_AFTER = timedelta(days=1)
REARM_AFTER_OF: Mapping[AlertKind, timedelta] = {"loss": HOUR}
LOSS_TITLES: Mapping[LossFinding, str] = {
    "spike": "the loss has spiked",
    "not_a_number": "the loss is not a number",
    "plateau": "the loss stands still",
    "diverging": "the loss diverges",
}


def evaluate_rule(rule: AlertRule, inputs: RuleInputs) -> tuple[AlertFinding, ...]:
    """Findings of a rule. An unknown figure gives no finding."""
    return tuple(_EVALUATORS[rule.kind](rule, inputs))


def diff_alerts(kind: AlertKind, found: Sequence[AlertFinding], previous: Sequence[PreviousAlert], now: datetime) -> AlertChanges:
    """What the findings change: new alerts, alerts that resume, and alerts that end.

    Parameters
    ----------
    kind : AlertKind
        Decides how long an alert has to be over before it is sent again (`REARM_AFTER_OF`).
    found : sequence of AlertFinding
        Findings of this evaluation.
    previous : sequence of PreviousAlert
        Alerts of the rule that are active, or ended a short time ago.
    now : datetime
        Time of this evaluation, UTC.
    """
    quiet = REARM_AFTER_OF.get(kind, REARM_AFTER)
    known = {one.subject: one.ended_at for one in previous if one.ended_at is None or now - one.ended_at < quiet}
    holds = {finding.subject: finding for finding in found}
    return AlertChanges(
        new=tuple(finding for subject, finding in holds.items() if subject not in known),
        resumed=tuple(subject for subject in holds if known.get(subject) is not None),
        ended=tuple(subject for subject, ended_at in known.items() if ended_at is None and subject not in holds),
    )


def _budget(rule: AlertRule, inputs: RuleInputs) -> Iterator[AlertFinding]:
    """Only the highest share that is reached is reported."""
    status, budget = inputs.status, inputs.budget_usd
    spent = status.spend.usd
    if not budget or spent is None:
        return
    reached = [share for share in rule.shares if spent >= share * budget]
    if reached:
        share = max(reached)
        text = f"{status.name}: {_spent(status.spend)} of {_usd(budget)} are spent ({spent / budget:.0%}){_rest(inputs)}"
        figures = {"share": share, "spent_usd": spent, "budget_usd": budget}
        yield AlertFinding(f"budget {share:g} of {budget:.2f}", f"{share:.0%} of the budget is spent", text, figures)


def _forecast_over_budget(rule: AlertRule, inputs: RuleInputs) -> Iterator[AlertFinding]:
    status, budget = inputs.status, inputs.budget_usd
    percentile = rule.percentile or "p50"
    if not budget or status.forecast.cost_usd is None:
        return
    predicted = getattr(status.forecast.cost_usd, percentile)
    if predicted > budget:
        over = f"{predicted / budget - 1:.0%} above the budget of {_usd(budget)}"
        text = f"{status.name}: forecast cost {_usd(predicted)} ({percentile}), {over}"
        figures = {f"cost_{percentile}_usd": predicted, "budget_usd": budget, "spent_usd": status.spend.usd}
        yield AlertFinding(f"forecast {percentile} over {budget:.2f} USD", "the forecast is over the budget", text, figures)


def _forecast_over_deadline(rule: AlertRule, inputs: RuleInputs) -> Iterator[AlertFinding]:
    status, deadline = inputs.status, inputs.deadline
    percentile = rule.percentile or "p50"
    if deadline is None or status.forecast.finish is None:
        return
    predicted = getattr(status.forecast.finish, percentile)
    if predicted > deadline:
        late = (predicted - deadline).days
        text = f"{status.name}: forecast finish {predicted} ({percentile}), {late} days after the deadline, {deadline}"
        figures = {f"finish_{percentile}": str(predicted), "deadline": str(deadline), "days_late": late}
        yield AlertFinding(f"forecast {percentile} after {deadline}", "the forecast is over the deadline", text, figures)


def _drift(_rule: AlertRule, inputs: RuleInputs) -> Iterator[AlertFinding]:
    for run, status in zip(inputs.runs, inputs.status.runs, strict=True):
        for drift in status.drift:
            way = "up" if drift.change > 0 else "down"
            figures: dict[str, Figure] = {"run": run.id, "quantity": drift.quantity, "change": drift.change, "confidence": drift.confidence}
            title = f"{drift.quantity} has gone {way}"
            against = " against the plan" if drift.against == "plan" else ""
            yield AlertFinding(
                f"run {run.id} {drift.quantity} {way}{against}", title + against, _drifted(inputs.status.name, drift), figures
            )


def _drifted(program: str, drift: Drift) -> str:
    against = " against the plan" if drift.against == "plan" else ""
    change = f"{drift.change:+.0%}{against} since {drift.since:%Y-%m-%d} (confidence {drift.confidence:.1%})"
    return f"{program}: {drift.quantity} of run {drift.run} {change}"


def _stalled(rule: AlertRule, inputs: RuleInputs) -> Iterator[AlertFinding]:
    most = (rule.hours or 0.0) * HOUR
    for run, status in zip(inputs.runs, inputs.status.runs, strict=True):
        last = status.last_event_at
        if not run.is_open or status.state not in ("running", "silent", "interrupted") or last is None:
            continue
        silent = inputs.status.as_of - last
        if silent >= most:
            hours = silent / HOUR
            stopped = "it was interrupted" if status.state == "interrupted" else "it was running"
            text = f"{inputs.status.name}: no event of run {status.name} for {hours:.1f} hours; {stopped} then"
            figures: dict[str, Figure] = {"run": run.id, "hours": hours, "last_event_at": last.isoformat(), "state": status.state}
            yield AlertFinding(f"run {run.id} silent since {last.isoformat()}", "a run is stalled", text, figures)


def _loss(_rule: AlertRule, inputs: RuleInputs) -> Iterator[AlertFinding]:
    for run, status in zip(inputs.runs, inputs.status.runs, strict=True):
        for alarm in status.loss.alarms if run.is_open else ():
            text = f"{inputs.status.name}: run {status.name} at {alarm.at:%Y-%m-%d %H:%M} UTC: {alarm.text}"
            figures = {"run": run.id, "finding": alarm.finding, "at": alarm.at.isoformat(), "last_loss": _number(status.loss.last)}
            yield AlertFinding(f"run {run.id} {alarm.finding}", LOSS_TITLES[alarm.finding], text, figures)


def _regression(_rule: AlertRule, inputs: RuleInputs) -> Iterator[AlertFinding]:
    for run, status in zip(inputs.runs, inputs.status.runs, strict=True):
        for metric in status.quality if run.is_open else ():
            if metric.state == "regressed":
                text = f"{inputs.status.name}: run {status.name}: {_fallen(metric)}{_way_back(metric)}"
                yield AlertFinding(
                    f"run {run.id} {metric.metric} since {metric.since.isoformat()}",
                    "a metric has regressed",
                    text,
                    _fallen_figures(run.id, metric),
                )


def _fallen(metric: MetricQuality) -> str:
    fall = f"from {metric.level:.4g} to {metric.last:.4g} since {metric.since:%Y-%m-%d %H:%M} UTC"
    return f"{metric.metric} has dropped {fall} (confidence {metric.confidence or 0.0:.1%})"


def _way_back(metric: MetricQuality) -> str:
    """The last good evaluation, and what going back to it costs and saves."""
    good, back = metric.last_good, metric.going_back
    if good is None or back is None:
        return ""
    step = "" if good.step is None else f" of step {good.step:,}"
    cost = f"{back.hours:,.1f} hours" if back.usd is None else f"{back.hours:,.1f} hours and {_usd(back.usd)}"
    saved = "" if back.saved_usd is None else f", and saves {_usd(back.saved_usd)} against training on"
    return f"; the last good evaluation is that{step} of {good.at:%Y-%m-%d %H:%M} UTC: going back redoes {cost}{saved}"


def _fallen_figures(run: str, metric: MetricQuality) -> dict[str, Figure]:
    back = metric.going_back
    return {
        "run": run,
        "metric": metric.metric,
        "last": metric.last,
        "level": metric.level,
        "confidence": metric.confidence,
        "since": metric.since.isoformat(),
        "last_good_step": None if metric.last_good is None else metric.last_good.step,
        "redone_usd": None if back is None else back.usd,
        "saved_usd": None if back is None else back.saved_usd,
    }


def _guardrail(_rule: AlertRule, inputs: RuleInputs) -> Iterator[AlertFinding]:
    for one in inputs.status.guardrails:
        if one.breached and one.last is not None and one.at is not None:
            side = "below" if one.direction == "up" else "above"
            text = f"{inputs.status.name}: {one.metric} of run {one.run} is {one.last:.4g}, {side} its guardrail, {one.floor:.4g}"
            figures: dict[str, Figure] = {"metric": one.metric, "last": one.last, "floor": one.floor, "confidence": one.confidence}
            yield AlertFinding(f"{one.metric} floor {one.floor!r}", "a guardrail is breached", text, {**figures, "at": one.at.isoformat()})


def _gate_missed(rule: AlertRule, inputs: RuleInputs) -> Iterator[AlertFinding]:
    gate = inputs.status.gate
    if not gate.due or not inputs.gate_overdue:
        return
    since = f"for {rule.days:g} days" if rule.days else "now"
    assessment = f"by its criteria: {gate.recommendation} ({'; '.join(gate.reasons)})"
    text = f"{inputs.status.name}: the half-spend gate is due {since} and undecided; {assessment}"
    figures = {"recommendation": gate.recommendation, "due_usd": gate.due_usd, "spent_usd": inputs.status.spend.usd}
    yield AlertFinding("half-spend gate", "the half-spend gate is missed", text, figures)


def _cap(_rule: AlertRule, inputs: RuleInputs) -> Iterator[AlertFinding]:
    status, caps = inputs.status, inputs.caps
    yield from _capped("program", status.name, status.spend.usd, caps.program_usd)
    for run, each in zip(inputs.runs, status.runs, strict=True):
        yield from _capped(f"run {run.id}", f"{status.name}: run {each.name}", each.spend.usd, caps.run_usd)
    yield from _capped("team", f"{status.name}: all programs of the team together", inputs.team_usd, caps.team_usd)


def _capped(subject: str, name: str, spent: float | None, cap: float | None) -> Iterator[AlertFinding]:
    if cap is not None and spent is not None and spent >= cap:
        text = f"{name}: {_usd(spent)} spent, the cap is {_usd(cap)}: stop, or raise the cap"
        yield AlertFinding(f"{subject} cap {cap:.2f}", "a cap is reached", text, {"of": subject, "spent_usd": spent, "cap_usd": cap})


def _rest(inputs: RuleInputs) -> str:
    """How long the rest of the budget lasts at the current burn rate."""
    left, per_day = inputs.status.spend.remaining_usd, inputs.status.burn_rate.usd_per_day
    if left is None or left <= 0 or not per_day:
        return ""
    return f"; at {_usd(per_day)} a day the rest lasts {left / per_day:,.1f} days"


def _spent(spend: Spend) -> str:
    return f"{'' if spend.complete else 'at least '}{_usd(spend.usd or 0.0)}"


def _usd(usd: float) -> str:
    return f"{usd:,.0f} USD"


def _number(value: float | None) -> float | str | None:
    """JSON has no literal for NaN and infinity: these are texts."""
    return value if value is None or abs(value) < float("inf") else str(value)


_EVALUATORS: Mapping[AlertKind, Callable[[AlertRule, RuleInputs], Iterator[AlertFinding]]] = {
    "budget": _budget,
    "forecast_over_budget": _forecast_over_budget,
    "forecast_over_deadline": _forecast_over_deadline,
    "drift": _drift,
    "stalled": _stalled,
    "loss": _loss,
    "gate_missed": _gate_missed,
    "cap": _cap,
    "regression": _regression,
    "guardrail": _guardrail,
}
