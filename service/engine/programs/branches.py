"""The ways on from a gate of a plan, and what their figures and the agreed criteria recommend.

A pivot's figures are those of its own program. What is spent by the gate is sunk: it is in no branch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from service.domain.programs.branches import BranchName, GateBranch, GateDecision
from service.domain.programs.plan import PivotAhead, ProgramEnding, ProgramPlan, RiskBlock, TierBlock
from service.domain.programs.program import GateCriteria, Program
from service.domain.programs.tiers import TierName
from service.domain.quantities import Range
from service.domain.training.estimate import FinishDates
from service.engine.numerics.money import ZERO, share_usd, sum_usd
from service.engine.programs.budget import CONTINGENCY_LINE, loaded_run_costs
from service.engine.programs.contingency import budget_range, combine_ranges, cost_range
from service.engine.programs.gates import NO_PIVOTS, TierSpending, expected_usd, gate_tree, spending_by_tier, tier_repeats
from service.engine.programs.value import outcome_value_usd

STATE_WORTH = "state what the outcome is worth: outcome.value_usd_per_point or value_curve"
STATE_PRICE = "state price.usd_per_accelerator_hour of its runs: no price of their accelerator is known"
STATE_CHANCE = "state pass_probability of a later gate: without it the probability of reaching the target is not known"
NO_PIVOT = "No pivot is stated, so none is compared. To compare one, state pivot, a separate program, in the gate"


@dataclass(frozen=True, slots=True)
class GatePosition:
    """A gate in its plan: tiers that are over by then, spent by then and still to be paid where it stops [USD], days of the decision."""

    tiers_over: int
    sunk_usd: Decimal
    committed_usd: Decimal
    day: FinishDates


@dataclass(frozen=True, slots=True)
class BranchFigures:
    """A branch before it is described: costs [USD], end, probability [1] and worth [USD] of the outcome; None where unknown."""

    cost_usd: Range | None
    expected_cost_usd: float | None
    finish: FinishDates | None
    outcome_probability: float | None
    value_usd: float | None


def cost_ahead(program: Program, plan: ProgramPlan, sunk_usd: Decimal) -> Range:
    """Cost of the rest of a plan with every gate passed.

    Parameters
    ----------
    program : Program
        The planned program.
    plan : ProgramPlan
        Its budget.
    sunk_usd : Decimal
        Spent so far, of the first tiers first [USD].

    Returns
    -------
    Range
        p50 is the budget less `sunk_usd`; p10 and p90 as `budget_range` of what is left of each tier's runs, risks and reserves [USD].
    """
    budget = sum_usd(line.usd for line in plan.lines)
    left = max(ZERO, budget - sunk_usd)
    spending = spending_by_tier(program, plan.tiers, plan.envelope.reserve_usd)
    shares = _shares_left(spending, left)
    contingency = sum_usd(line.usd for line in plan.lines if line.line == CONTINGENCY_LINE)
    reserved = sum(share * float(tier.reserve_usd) for share, tier in zip(shares, spending, strict=True))
    held = share_usd(reserved / float(plan.envelope.reserve_usd), contingency) if plan.envelope.reserve_usd else ZERO
    runs = [usd.scaled(share) for share, tier in zip(shares, plan.tiers, strict=True) if share for usd in loaded_run_costs(tier)]
    risks = [_risk_left(risk, plan.tiers, shares) for risk in plan.risks]
    repeats = [
        replace(again, expected_usd=share_usd(share, again.expected_usd), deviation_usd=share * again.deviation_usd)
        for share, again in zip(shares, tier_repeats(program, plan.tiers), strict=True)
    ]
    cost = cost_range(left - held, risks, combine_ranges(runs, program.correlation), program.risk_correlation, repeats)
    return budget_range(left, cost)


def expected_cost_ahead(
    spending: Sequence[TierSpending], tiers_over: int, sunk_usd: Decimal, pivots: Mapping[TierName, PivotAhead] = NO_PIVOTS
) -> float:
    """Mean cost of the rest of a plan over the gates ahead [USD].

    Parameters
    ----------
    spending : sequence of TierSpending
        Of all tiers, in order [USD].
    tiers_over : int
        Tiers that are over, their gates passed.
    sunk_usd : Decimal
        Spent so far [USD].
    pivots : mapping of TierName to PivotAhead
        Programs that failed gates go on with.
    """
    before = sum_usd(tier.usd + tier.reserve_usd for tier in spending[:tiers_over])
    endings = gate_tree(spending[tiers_over:], pivots)
    return round(sum(ending.probability * float(max(ZERO, before + ending.usd - sunk_usd)) for ending in endings), 2)


def passing_probability(program: Program, tiers_over: int, stated: frozenset[TierName]) -> float | None:
    """Probability that every gate ahead is passed [1]; None where tiers are ahead and no gate of them is among those that state theirs."""
    ahead = program.tiers[tiers_over:]
    if ahead and not any(tier.tier in stated for tier in ahead):
        return None
    return math.prod(tier.pass_probability for tier in ahead)


def continue_figures(
    program: Program,
    plan: ProgramPlan,
    position: GatePosition,
    finish: FinishDates,
    stated: frozenset[TierName],
    pivots: Mapping[TierName, PivotAhead] = NO_PIVOTS,
) -> BranchFigures:
    """The rest of the plan, with the pivots that failed gates ahead go on with.

    Parameters
    ----------
    program : Program
        The planned program.
    plan : ProgramPlan
        Its budget.
    position : GatePosition
        The gate.
    finish : FinishDates
        End of the plan.
    stated : frozenset of TierName
        Tiers whose gates state their probability.
    pivots : mapping of TierName to PivotAhead
        Programs that failed gates go on with.
    """
    spending = spending_by_tier(program, plan.tiers, plan.envelope.reserve_usd)
    passed = passing_probability(program, position.tiers_over, stated)
    value = None if program.outcome is None else outcome_value_usd(program.outcome)
    chance, worth = outcome_ahead(gate_tree(spending[position.tiers_over :], pivots), pivots, passed, value)
    return BranchFigures(
        cost_usd=cost_ahead(program, plan, position.sunk_usd),
        expected_cost_usd=expected_cost_ahead(spending, position.tiers_over, position.sunk_usd, pivots),
        finish=finish if position.tiers_over < len(program.tiers) else position.day,
        outcome_probability=chance,
        value_usd=value if worth is None or not chance else worth / chance,
    )


def outcome_ahead(
    endings: Sequence[ProgramEnding], pivots: Mapping[TierName, PivotAhead], passed: float | None, value_usd: float | None
) -> tuple[float | None, float | None]:
    """How likely the target is reached, by the program itself or by a pivot, and what that is worth on average.

    Parameters
    ----------
    endings : sequence of ProgramEnding
        Of the gates ahead.
    pivots : mapping of TierName to PivotAhead
        Programs that failed gates go on with.
    passed : float or None
        Probability that every gate ahead is passed [1]; None: not stated.
    value_usd : float or None
        Worth of the outcome [USD].

    Returns
    -------
    tuple of float or None
        Probability [1], and probability times worth [USD]; None where one is not known.
    """
    taken = [(ending.probability, pivots[tier]) for ending in endings if (tier := ending.stopped_at) is not None and tier in pivots]
    chances = [passed, *(pivot.outcome_probability for _, pivot in taken)]
    values = [value_usd, *(pivot.value_usd for _, pivot in taken)]
    if any(chance is None for chance in chances):
        return None, None
    shares = [1.0, *(probability for probability, _ in taken)]
    reached = [share * (chance or 0.0) for share, chance in zip(shares, chances, strict=True)]
    worth = None if None in values else sum(share * (value or 0.0) for share, value in zip(reached, values, strict=True))
    return min(1.0, sum(reached)), worth


def branch_into_pivots(program: Program, plan: ProgramPlan, pivots: Mapping[TierName, PivotAhead]) -> ProgramPlan:
    """The plan whose failed gates go on with their pivots: endings, expected cost and expected worth.

    Parameters
    ----------
    program : Program
        The planned program.
    plan : ProgramPlan
        Its budget, in which failed gates end the program.
    pivots : mapping of TierName to PivotAhead
        Programs that failed gates go on with.
    """
    if not pivots:
        return plan
    endings = gate_tree(spending_by_tier(program, plan.tiers, plan.envelope.reserve_usd), pivots)
    expected, outcome = expected_usd(endings), plan.outcome
    if outcome is not None:
        worth = outcome_ahead(endings, pivots, plan.completion_probability, outcome.value_usd)[1]
        outcome = replace(outcome, expected_net_usd=None if worth is None else worth - float(expected))
    return replace(plan, endings=endings, expected_usd=expected, outcome=outcome)


def whole_figures(program: Program, plan: ProgramPlan, finish: FinishDates, stated: frozenset[TierName]) -> BranchFigures:
    """A whole program as a pivot goes on with it: its budget, expected cost, end, probability and worth; parameters as above."""
    start = GatePosition(0, ZERO, ZERO, finish)
    return replace(
        continue_figures(program, plan, start, finish, stated), cost_usd=plan.total_usd, expected_cost_usd=float(plan.expected_usd)
    )


def stop_figures(day: FinishDates, committed_usd: float) -> BranchFigures:
    """Stopping: what is committed is still paid [USD], and the target is not reached."""
    return BranchFigures(Range.exactly(committed_usd), committed_usd, day, 0.0, 0.0)


def describe_branch(branch: BranchName, figures: BranchFigures, program: str | None = None, cost_missing: str = STATE_PRICE) -> GateBranch:
    """A branch with its expected value, what is missing for it, and a sentence.

    Parameters
    ----------
    branch : BranchName
        Which way on.
    figures : BranchFigures
        Its figures.
    program : str, optional
        Name of the program that a pivot goes on with.
    cost_missing : str
        What to say where the cost is not known.
    """
    chance, value, cost = figures.outcome_probability, figures.value_usd, figures.expected_cost_usd
    net = None if chance is None or value is None or cost is None else round(chance * value - cost, 2)
    missing = tuple(text for text, known in ((cost_missing, cost), (STATE_CHANCE, chance), (STATE_WORTH, value)) if known is None)
    whole = GateBranch(branch, program, figures.cost_usd, cost, figures.finish, chance, net, missing, "")
    return replace(whole, statement=_sentence(whole))


def decide(
    sunk_usd: float | None, branches: Sequence[GateBranch], criteria: Sequence[str], by_criteria: BranchName | None, *, agreed: bool
) -> GateDecision:
    """What is recommended at a gate.

    Parameters
    ----------
    sunk_usd : float or None
        Spent by then [USD].
    branches : sequence of GateBranch
        The ways on, the first of them to continue.
    criteria : sequence of str
        The criteria in sentences.
    by_criteria : BranchName or None
        What they name; None where they are not measured yet.
    agreed : bool
        Whether the criteria were agreed up front: then they prevail over the figures, else the figures over them.

    Returns
    -------
    GateDecision
        The figures name the branch of the highest expected value, where all are known.
    """
    by_figures = _best(branches)
    first, second = (by_criteria, by_figures) if agreed else (by_figures, by_criteria)
    sentences = [_figures_sentence(branches, by_figures), *criteria]
    if by_criteria and by_figures and by_criteria != by_figures:
        prevails = "the criteria count: they were agreed up front" if agreed else "the figures count: no criteria were agreed up front"
        sentences.append(f"The two differ: the criteria say {by_criteria}, the figures {by_figures}; {prevails}")
    elif agreed and by_criteria is None and by_figures in ("pivot", "stop"):
        sentences.append(f"If the criteria to continue are met, the two differ: the figures say {by_figures}")
    if all(branch.branch != "pivot" for branch in branches):
        sentences.append(NO_PIVOT)
    return GateDecision(sunk_usd, tuple(branches), by_figures, by_criteria, first or second, ". ".join(sentences) + ".")


def criteria_sentences(continue_if: GateCriteria | None, stop_if: GateCriteria | None, metric: str) -> Iterator[str]:
    """The criteria agreed up front, a sentence each."""
    for verb, criteria in (("continue", continue_if), ("stop", stop_if)):
        if criteria is not None and (bounds := list(_bounds(criteria, metric))):
            yield f"Agreed up front: {verb} where {' and '.join(bounds)}"


def _bounds(criteria: GateCriteria, metric: str) -> Iterator[str]:
    if criteria.metric_at_least is not None:
        yield f"{metric} is at least {criteria.metric_at_least:g}"
    if criteria.cpi_at_least is not None:
        yield f"the CPI is at least {criteria.cpi_at_least:g}"
    if criteria.cpi_below is not None:
        yield f"the CPI is below {criteria.cpi_below:g}"


def _shares_left(spending: Sequence[TierSpending], left: Decimal) -> list[float]:
    """What of each tier is still to be spent [1]: the last tiers hold what is left."""
    shares: list[float] = []
    for tier in reversed(spending):
        whole = tier.usd + tier.reserve_usd
        part = min(left, whole)
        shares.append(float(part / whole) if whole else 0.0)
        left -= part
    return shares[::-1]


def _risk_left(risk: RiskBlock, tiers: Sequence[TierBlock], shares: Sequence[float]) -> RiskBlock:
    """A risk of what is left of its tiers' runs."""
    runs = [(share, float(tier.cost_usd)) for share, tier in zip(shares, tiers, strict=True) if risk.risk.tier in {None, tier.tier}]
    whole = sum(usd for _, usd in runs)
    left = sum(share * usd for share, usd in runs) / whole if whole else max((share for share, _ in runs), default=0.0)
    return replace(risk, loss_usd=share_usd(left, risk.loss_usd), expected_loss_usd=share_usd(left, risk.expected_loss_usd))


def _best(branches: Sequence[GateBranch]) -> BranchName | None:
    values = [branch.expected_value_usd for branch in branches]
    known = [value for value in values if value is not None]
    return branches[values.index(max(known))].branch if len(known) == len(values) else None


def _figures_sentence(branches: Sequence[GateBranch], best: BranchName | None) -> str:
    if best is None:
        missing = dict.fromkeys(text for branch in branches if branch.expected_value_usd is None for text in branch.missing)
        return "The figures recommend nothing: " + ("; ".join(missing) or "what is still to be spent is not known")
    ranked = sorted((branch.expected_value_usd or 0.0, branch.branch) for branch in branches)
    gain = ranked[-1][0] - ranked[-2][0]
    other = next(name for usd, name in reversed(ranked) if name != best)
    return f"The figures recommend to {best}: its expected value is {gain:,.0f} USD higher than that of {_gerund(other)}"


def _gerund(branch: str) -> str:
    return {"continue": "continuing", "pivot": "the pivot", "stop": "stopping"}[branch]


def _sentence(branch: GateBranch) -> str:
    head = {"continue": "Continue", "pivot": f"Pivot to {branch.program}", "stop": "Stop"}[branch.branch]
    return f"{head}: " + "; ".join(_clauses(branch)) + "."


def _clauses(branch: GateBranch) -> Iterator[str]:
    cost, end, chance = branch.cost_usd, branch.finish, branch.outcome_probability
    paid = "is still to be paid" if branch.branch == "stop" else "is spent from here"
    if cost is None:
        yield "further spending is not known"
    elif not cost.p90:
        yield "nothing more is spent"
    else:
        yield f"{cost.p50:,.0f} USD {f'({cost.p10:,.0f} to {cost.p90:,.0f}) ' if cost.p10 < cost.p90 else ''}{paid}"
    if end is not None:
        yield f"over on {end.p50}" + (f" ({end.p10} to {end.p90})" if end.p10 < end.p90 else "")
    if branch.branch == "stop":
        yield "the target is not reached"
    elif chance is not None:
        yield f"the target is reached with a probability of {chance:.0%}"
    if branch.branch != "stop" and branch.expected_value_usd is not None:
        yield f"its expected value less its cost is {branch.expected_value_usd:,.0f} USD"
    yield from branch.missing
