"""Risks as they are planned for, and whether what is done against them pays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

from service.domain.programs.plan import RiskBlock, TierBlock
from service.domain.programs.program import OtherLine, Program, Risk
from service.domain.programs.risks import Mitigation, MitigationEffect
from service.engine.numerics.money import share_usd, sum_usd

HOURS_PER_DAY = 24.0


def planned_risk(risk: Risk) -> Risk:
    """A risk with the probability and the cost that are planned with: after a mitigation that is taken, and by its state."""
    mitigation = risk.mitigation
    after = _mitigated(risk, mitigation) if mitigation is not None and mitigation.taken else risk
    if risk.state == "open":
        return after
    return replace(after, probability=1.0 if risk.state == "occurred" else 0.0)


def take_mitigations(program: Program, takes: Callable[[Risk], bool]) -> Program:
    """The program with some of its mitigations taken, their lines included, and no others."""
    before = mitigation_lines(program)
    risks = tuple(
        risk if risk.mitigation is None else replace(risk, mitigation=replace(risk.mitigation, taken=takes(risk))) for risk in program.risks
    )
    chosen = replace(program, risks=risks)
    lines = tuple(line for line in program.other_lines if line not in before)
    return replace(chosen, other_lines=(*lines, *mitigation_lines(chosen)))


def mitigation_lines(program: Program) -> tuple[OtherLine, ...]:
    """A line for each mitigation that is taken and costs something, spent with its risk's tier, or the first."""
    return tuple(
        OtherLine(f"mitigation: {risk.name}", risk.mitigation.usd, "stated", risk.tier or program.tiers[0].tier)
        for risk in program.risks
        if risk.mitigation is not None and risk.mitigation.taken and risk.mitigation.usd
    )


def risk_block(risk: Risk, tiers: Sequence[TierBlock], delay_usd_per_day: float | None) -> RiskBlock:
    """Loss and expected loss of a risk as planned, and what its mitigation does.

    Parameters
    ----------
    risk : Risk
        Probability [1], share of its tier's runs [1], own amount [USD], days, mitigation and state.
    tiers : sequence of TierBlock
        Tiers with the cost of their runs [USD].
    delay_usd_per_day : float or None
        What a day's delay costs [USD]; None: not stated.

    Returns
    -------
    RiskBlock
        Amounts in whole cents [USD].
    """
    planned = planned_risk(risk)
    loss = _loss_usd(planned, tiers)
    return RiskBlock(
        risk=risk,
        planned_probability=planned.probability,
        planned_cost_share=planned.cost_share_of_tier,
        loss_usd=loss,
        expected_loss_usd=share_usd(planned.probability, loss),
        effect=None if risk.mitigation is None else _effect(risk, risk.mitigation, tiers, delay_usd_per_day),
    )


def _effect(risk: Risk, mitigation: Mitigation, tiers: Sequence[TierBlock], delay_usd_per_day: float | None) -> MitigationEffect:
    """Expected losses and delays without the mitigation less those with it."""
    before, after = (planned_risk(replace(risk, mitigation=replace(mitigation, taken=taken))) for taken in (False, True))
    avoided = float(share_usd(before.probability, _loss_usd(before, tiers)) - share_usd(after.probability, _loss_usd(after, tiers)))
    own_days = 0.0 if mitigation.days is None else mitigation.days.p50
    days = _expected_days(before, tiers) - _expected_days(after, tiers) - own_days
    delay = None if delay_usd_per_day is None else round(days * delay_usd_per_day, 2)
    net = round(avoided + (delay or 0.0) - float(mitigation.usd), 2)
    text = ", ".join(_reasons(risk, mitigation.usd, avoided, days, delay))
    return MitigationEffect(avoided, days, delay, net, net > 0, f"{'pays' if net > 0 else 'does not pay'}: {text}")


def _reasons(risk: Risk, usd: Decimal, avoided: float, days: float, delay: float | None) -> Iterator[str]:
    if risk.state != "open":
        yield f"the risk is {risk.state}"
    yield f"it avoids {avoided:,.0f} USD of expected loss and costs {usd:,.0f} USD"
    if abs(days) >= 0.05:
        counted = "not counted: state outcome.delay_usd_per_day" if delay is None else f"{abs(delay):,.0f} USD"
        yield f"it {'saves' if days > 0 else 'takes'} {abs(days):,.1f} days, {counted}"


def _mitigated(risk: Risk, mitigation: Mitigation) -> Risk:
    probability, share = mitigation.probability_after, mitigation.cost_share_after
    return replace(
        risk,
        probability=risk.probability if probability is None else probability,
        cost_share_of_tier=risk.cost_share_of_tier if share is None else share,
    )


def _loss_usd(risk: Risk, tiers: Sequence[TierBlock]) -> Decimal:
    base = sum_usd(tier.cost_usd for tier in tiers if risk.tier in {None, tier.tier})
    return share_usd(risk.cost_share_of_tier, base) + risk.cost_usd


def _expected_days(risk: Risk, tiers: Sequence[TierBlock]) -> float:
    """Expected days of a risk: those stated, else its share of the accelerator-hours of its tiers on the last one's machine."""
    concerned = [tier for tier in tiers if risk.tier in {None, tier.tier}]
    if risk.days is not None:
        return risk.probability * risk.days.p50
    if not concerned:
        return 0.0
    machine = max(block.run.occupied for block in concerned[-1].runs)
    hours = sum(tier.use.accelerator_hours.p50 for tier in concerned) / machine
    return risk.probability * risk.cost_share_of_tier * hours / HOURS_PER_DAY
