"""The risk register of a program's request, and what it comes to."""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal

import numpy as np

from service.domain.programs.plan import ProgramPlan
from service.domain.programs.program import Program, Risk, RiskCorrelation
from service.domain.programs.risks import Mitigation, RiskPair, RiskRegister
from service.engine.numerics.money import sum_usd
from service.engine.programs.budget import plan_budget
from service.engine.programs.contingency import expected_loss_usd
from service.engine.programs.risk_register import SEED, TRIALS, independent_deviation_usd, simulate_losses
from service.engine.programs.risks import take_mitigations
from service.presets.programs import find_program_default
from service.usecases.programs.estimates import Request
from service.usecases.resolution.assumption_log import AssumptionLog


def resolve_risks(request: Request, notes: AssumptionLog) -> tuple[Risk, ...]:
    """The stated risks; a mitigation is not taken where nothing is said of it."""
    stated = request.get("risks", ())
    if any("taken" not in risk["mitigation"] for risk in stated if "mitigation" in risk):
        taken = find_program_default("taken")
        notes.assume("risks.mitigation.taken", taken.value, taken.source)
    return tuple(_risk(risk) for risk in stated)


def resolve_risk_correlation(request: Request) -> RiskCorrelation:
    """The stated correlation of all risks or of pairs; None where none is stated."""
    stated = request.get("risk_correlation")
    if isinstance(stated, list):
        return tuple(RiskPair(tuple(pair["risks"]), pair["correlation"]) for pair in stated)
    return None if stated is None else float(stated)


def describe_register(program: Program, plan: ProgramPlan) -> RiskRegister | None:
    """What all risks cost together, and the budget with and without mitigations; None without risks or without prices."""
    if not plan.risks or not plan.priced:
        return None
    losses = simulate_losses(plan.risks, program.risk_correlation)
    p50, p80, p90 = (float(usd) for usd in np.quantile(losses.usd, (0.5, 0.8, 0.9), method="inverted_cdf"))
    paying = {block.risk.name for block in plan.risks if block.effect is not None and block.effect.pays}
    taken = {risk.name for risk in program.risks if risk.mitigation is not None and risk.mitigation.taken}
    return RiskRegister(
        loss_p50_usd=p50,
        loss_p80_usd=p80,
        loss_p90_usd=p90,
        expected_loss_usd=float(expected_loss_usd(plan.risks)),
        deviation_usd=float(np.std(losses.usd)),
        independent_deviation_usd=independent_deviation_usd(plan.risks),
        none_probability=losses.none_probability,
        trials=TRIALS,
        seed=SEED,
        budget_usd=_budget_usd(plan),
        budget_without_mitigations_usd=_budget_usd(_with_mitigations(program, set()) if taken else plan),
        budget_with_paying_mitigations_usd=_budget_usd(_with_mitigations(program, paying) if taken != paying else plan),
    )


def _with_mitigations(program: Program, names: Collection[str]) -> ProgramPlan:
    return plan_budget(take_mitigations(program, lambda risk: risk.name in names))


def _budget_usd(plan: ProgramPlan) -> Decimal:
    return sum_usd(line.usd for line in plan.lines)


def _risk(stated: Request) -> Risk:
    given = dict(stated)
    if "mitigation" in given:
        given["mitigation"] = Mitigation(**given["mitigation"])
    return Risk(**given)
