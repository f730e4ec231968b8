"""The half-spend gate: whether it is due, and the recommendation by criteria decided up front."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from service.domain.programs.program import GateCriteria, MidpointGate
from service.domain.tracking.events import ProgramBaseline, Recommendation
from service.domain.tracking.status import EarnedValue, GateStatus, Spend
from service.engine.tracking.history import Decision, Evaluation

# Names of the half-spend gate in decision events.
NAMES = frozenset({"midpoint", "midpoint_gate", "half_spend", "half_spend_gate"})


@dataclass(frozen=True, slots=True)
class GateRules:
    """Default criteria of a program without criteria of its own: spend share [1] and CPI limits [1], with their source."""

    at_spend_share: float
    cpi_at_least: float
    cpi_below: float
    source: str


@dataclass(frozen=True, slots=True)
class GateInputs:
    """Figures by which the gate is assessed."""

    spend: Spend
    earned_value: EarnedValue
    evaluations: Sequence[Evaluation]
    decisions: Sequence[Decision]


@dataclass(frozen=True, slots=True)
class _CriterionResult:
    """Whether a criterion holds, None where it cannot be evaluated, and the figures as text."""

    holds: bool | None
    text: str


def assess_gate(program: ProgramBaseline, found: GateInputs, rules: GateRules) -> tuple[GateStatus, tuple[str, ...]]:
    """State and recommendation of the gate, and warnings (the use of default criteria).

    Parameters
    ----------
    program : ProgramBaseline
        Budget, criteria and outcome.
    found : GateInputs
        Spend, earned value, evaluations and decisions.
    rules : GateRules
        Default criteria.
    """
    gate = program.midpoint_gate or _default(rules)
    budget, spent, metric = program.budget_usd, found.spend.usd, _metric(program, found.evaluations)
    budget = found.earned_value.bac_usd if budget is None else budget
    due_usd = None if budget is None else gate.at_spend_share * budget
    closed = GateStatus(due=False, recommendation="not_due", reasons=(), due_usd=due_usd, metric=metric, pivot_to=gate.pivot_to)
    decided = max((one for one in found.decisions if _is_midpoint_gate(one.gate)), key=lambda one: one.at, default=None)
    if decided is not None:
        reason = f"decided on {decided.at:%Y-%m-%d}: {decided.verdict}"
        kept = replace(closed, reasons=(reason,), decided=decided.verdict, decided_at=decided.at)
        return replace(kept, recommendation="stop") if decided.verdict == "stop" else kept, ()
    if due_usd is None or spent is None:
        missing = "the spend is unknown" if spent is None else "no budget is stated"
        return replace(closed, reasons=(f"{missing}: it is unknown whether the gate is due",)), ()
    if spent < due_usd:
        share = f"{gate.at_spend_share:.0%} of the budget"
        return replace(closed, reasons=(f"{spent:,.0f} USD are spent, the gate is due at {due_usd:,.0f} ({share})",)), ()
    recommendation, reasons = _recommend(gate, metric, found.earned_value, _metric_name(program))
    warnings = () if program.midpoint_gate else (_default_criteria_warning(rules),)
    return replace(closed, due=True, recommendation=recommendation, reasons=reasons), warnings


def _default(rules: GateRules) -> MidpointGate:
    return MidpointGate(rules.at_spend_share, GateCriteria(cpi_at_least=rules.cpi_at_least), GateCriteria(cpi_below=rules.cpi_below))


def _default_criteria_warning(rules: GateRules) -> str:
    return (
        f"the half-spend gate is due and no criteria were decided up front: by default it is continue from a CPI of {rules.cpi_at_least:g} "
        f"on, stop below {rules.cpi_below:g} ({rules.source})"
    )


def _recommend(gate: MidpointGate, metric: float | None, earned: EarnedValue, name: str) -> tuple[Recommendation, tuple[str, ...]]:
    """Stop where all stop criteria hold, continue where all continue criteria hold, otherwise pivot; with reasons in figures."""
    stop, go = (list(_criteria(criteria, metric, earned.cpi, name)) for criteria in (gate.stop_if, gate.continue_if))
    if stop and all(each.holds for each in stop):
        return "stop", tuple(each.text for each in stop)
    if all(each.holds for each in go):
        return "continue", tuple(each.text for each in (*go, *stop))
    failed = tuple(each.text for each in go if not each.holds)
    return "pivot", (*failed, *((f"decided up front: pivot to {gate.pivot_to}",) if gate.pivot_to else ()))


def _criteria(criteria: GateCriteria, metric: float | None, cpi: float | None, name: str) -> Iterator[_CriterionResult]:
    if criteria.metric_at_least is not None:
        yield _least(name, metric, criteria.metric_at_least)
    if criteria.cpi_at_least is not None:
        yield _least("CPI", cpi, criteria.cpi_at_least)
    if criteria.cpi_below is not None:
        yield _below(cpi, criteria.cpi_below)


def _least(name: str, value: float | None, least: float) -> _CriterionResult:
    if value is None:
        return _CriterionResult(None, f"{name} is not known; at least {least:g} is required")
    holds = value >= least
    return _CriterionResult(holds, f"{name} {value:.4g} is {'at least' if holds else 'below'} {least:g}")


def _below(cpi: float | None, most: float) -> _CriterionResult:
    if cpi is None:
        return _CriterionResult(None, f"CPI is not known; the stop criterion is a CPI below {most:g}")
    return _CriterionResult(cpi < most, f"CPI {cpi:.4g} is {'below' if cpi < most else 'not below'} {most:g}")


def _metric(program: ProgramBaseline, evaluations: Sequence[Evaluation]) -> float | None:
    """Newest value of the outcome's metric, or of any metric where no outcome is stated."""
    wanted = None if program.outcome is None else program.outcome.metric
    asked = (one for one in evaluations if wanted in (None, one.metric))
    newest = max(asked, key=lambda one: one.at, default=None)
    return None if newest is None else newest.value


def _metric_name(program: ProgramBaseline) -> str:
    return "the metric" if program.outcome is None else program.outcome.metric


def _is_midpoint_gate(gate: str) -> bool:
    return gate.strip().casefold().replace("-", "_").replace(" ", "_") in NAMES
