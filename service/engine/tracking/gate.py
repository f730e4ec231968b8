"""The half-spend gate and the gates of tiers: whether they are due, and the recommendation by criteria and by the ways on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from service.domain.programs.branches import MIDPOINT, BranchName, GateDecision
from service.domain.programs.program import GateCriteria, MidpointGate
from service.domain.programs.tiers import TierName
from service.domain.tracking.events import ProgramBaseline
from service.domain.tracking.gates import PlannedGate, TierGateStatus
from service.domain.tracking.status import EarnedValue, GateStatus, Spend
from service.engine.programs.branches import criteria_sentences
from service.engine.tracking.branches import GateActuals, decide_gate
from service.engine.tracking.runs.history import Decision, Evaluation

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
    """Figures by which the gates are assessed; `actual`: by which the ways on are weighed."""

    spend: Spend
    earned_value: EarnedValue
    evaluations: Sequence[Evaluation]
    decisions: Sequence[Decision]
    actual: GateActuals | None = None


@dataclass(frozen=True, slots=True)
class _CriterionResult:
    """Whether a criterion holds, None where it cannot be evaluated, and the figures as text."""

    holds: bool | None
    text: str


def assess_gate(program: ProgramBaseline, found: GateInputs, rules: GateRules) -> tuple[GateStatus, tuple[str, ...]]:
    """State and recommendation of the half-spend gate, and warnings (the use of default criteria).

    Criteria that were agreed up front prevail over the figures of the ways on, default ones give way to them.

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
    agreed = program.midpoint_gate is not None
    criteria = list(criteria_sentences(gate.continue_if, gate.stop_if, _metric_name(program))) if agreed else []
    closed = replace(closed, decision=_weigh(program, MIDPOINT, found, criteria, None, agreed=agreed))
    if due_usd is None or spent is None:
        missing = "the spend is unknown" if spent is None else "no budget is stated"
        return replace(closed, reasons=(f"{missing}: it is unknown whether the gate is due",)), ()
    if spent < due_usd:
        share = f"{gate.at_spend_share:.0%} of the budget"
        return replace(closed, reasons=(f"{spent:,.0f} USD are spent, the gate is due at {due_usd:,.0f} ({share})",)), ()
    by_criteria, reasons = _recommend(gate.continue_if, gate.stop_if, metric, found.earned_value, _metric_name(program), gate.pivot_to)
    warnings = () if agreed else (_default_criteria_warning(rules),)
    decision = _weigh(program, MIDPOINT, found, (), by_criteria, agreed=agreed)
    if decision is None:
        return replace(closed, due=True, recommendation=by_criteria, reasons=reasons), warnings
    recommendation = decision.recommendation or by_criteria
    return replace(closed, due=True, recommendation=recommendation, reasons=(*reasons, decision.statement), decision=decision), warnings


def assess_tier_gates(program: ProgramBaseline, found: GateInputs, over: Collection[str]) -> tuple[TierGateStatus, ...]:
    """State and recommendation of the gate after each tier.

    Parameters
    ----------
    program : ProgramBaseline
        Planned gates with their criteria and ways on.
    found : GateInputs
        Spend, earned value, evaluations, decisions and forecast.
    over : collection of str
        Tiers of which every planned run is done or closed.
    """
    return tuple(_tier_gate(program, gate, found, over) for gate in program.gates if gate.gate != MIDPOINT)


def _tier_gate(program: ProgramBaseline, gate: PlannedGate, found: GateInputs, over: Collection[str]) -> TierGateStatus:
    tier: TierName = gate.gate  # type: ignore[assignment]  # all other gates of a plan are those of its tiers
    named = [one for one in found.decisions if _is_tier_gate(one.gate, tier) and (gate.since is None or one.at > gate.since)]
    decided = max(named, key=lambda one: one.at, default=None)
    if decided is not None:
        closed = (f"decided on {decided.at:%Y-%m-%d}: {decided.verdict}",)
        return TierGateStatus(tier, due=False, recommendation=None, reasons=closed, decided=decided.verdict, decided_at=decided.at)
    name, go, stop = _metric_name(program), gate.continue_if, gate.stop_if
    agreed = list(criteria_sentences(go, stop, name))
    if tier not in over:
        decision = _weigh(program, tier, found, agreed, None, agreed=bool(agreed))
        return TierGateStatus(tier, due=False, recommendation=None, reasons=(f"runs of {tier} are still to be done",), decision=decision)
    by_criteria: BranchName | None = None
    reasons: tuple[str, ...] = ()
    if agreed:
        metric = _metric(program, found.evaluations)
        by_criteria, reasons = _recommend(go or GateCriteria(), stop or GateCriteria(), metric, found.earned_value, name, None)
    decision = _weigh(program, tier, found, (), by_criteria, agreed=bool(agreed))
    recommended = by_criteria if decision is None else decision.recommendation
    shown = (*reasons, *([] if decision is None else [decision.statement]))
    return TierGateStatus(tier, due=True, recommendation=recommended, reasons=shown, decision=decision)


def _weigh(
    program: ProgramBaseline, name: str, found: GateInputs, criteria: Sequence[str], by_criteria: BranchName | None, *, agreed: bool
) -> GateDecision | None:
    """The ways on from a gate with actual figures; None where the plan has none."""
    planned = next((gate for gate in program.gates if gate.gate == name), None)
    if planned is None or found.actual is None:
        return None
    return decide_gate(planned, found.actual, criteria, by_criteria, agreed=agreed)


def _default(rules: GateRules) -> MidpointGate:
    return MidpointGate(rules.at_spend_share, GateCriteria(cpi_at_least=rules.cpi_at_least), GateCriteria(cpi_below=rules.cpi_below))


def _default_criteria_warning(rules: GateRules) -> str:
    return (
        f"the half-spend gate is due, but no criteria were agreed up front. The defaults apply: continue from a CPI of"
        f" {rules.cpi_at_least:g}, stop below {rules.cpi_below:g} ({rules.source})"
    )


def _recommend(
    continue_if: GateCriteria, stop_if: GateCriteria, metric: float | None, earned: EarnedValue, name: str, pivot_to: str | None
) -> tuple[BranchName, tuple[str, ...]]:
    """Stop where all stop criteria hold, continue where all continue criteria hold, otherwise pivot; with reasons in figures."""
    stop, go = (list(_criteria(criteria, metric, earned.cpi, name)) for criteria in (stop_if, continue_if))
    if stop and all(each.holds for each in stop):
        return "stop", tuple(each.text for each in stop)
    if all(each.holds for each in go):
        return "continue", tuple(each.text for each in (*go, *stop))
    failed = tuple(each.text for each in go if not each.holds)
    return "pivot", (*failed, *((f"decided up front: pivot to {pivot_to}",) if pivot_to else ()))


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


def _is_tier_gate(gate: str, tier: str) -> bool:
    """Whether a decision names a tier's gate: "validation", "gate: validation", "validation gate"."""
    words = set(gate.casefold().replace("_", " ").replace("-", " ").replace(":", " ").split())
    return tier in words and words <= {tier, "gate"}


def _is_midpoint_gate(gate: str) -> bool:
    return gate.strip().casefold().replace("-", "_").replace(" ", "_") in NAMES
