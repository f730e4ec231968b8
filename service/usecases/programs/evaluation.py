"""A program's tiers as its evaluation sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from service.domain.programs.program import Tier
from service.usecases.evaluation.evaluated_runs import EvaluatedRun, EvaluatedTier
from service.usecases.programs.runs import EstimatedRun


def evaluated_tiers(tiers: Sequence[Tier], runs: Mapping[tuple[str, str], EstimatedRun]) -> tuple[EvaluatedTier, ...]:
    """Each tier with its runs as they are planned, their estimates and their resolved requests."""
    return tuple(_evaluated_tier(tier, runs) for tier in tiers)


def _evaluated_tier(tier: Tier, runs: Mapping[tuple[str, str], EstimatedRun]) -> EvaluatedTier:
    estimated = [(run, runs[tier.tier, run.name]) for run in tier.runs]
    return EvaluatedTier(
        tier.tier,
        tuple(EvaluatedRun(run.name, each.trained, each.answer.estimate, run.repetition, run.occupied) for run, each in estimated),
        tier.gate is not None and bool(tier.gate.sign_off_days),
    )
