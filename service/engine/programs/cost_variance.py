"""Cost variance of two plans by cause; the causes add up to it to the cent.

A run's compute is work [FLOPs] x machine time for it [accelerator-hours a FLOP] / goodput x price [USD an accelerator-hour]. Each factor's
part of the change is that of the logarithmic mean Divisia index (Ang 2005, Energy Policy 33(7), LMDI-I): complete, and the same in any
order.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from decimal import Decimal

from service.domain.programs.plan import CAUSES, CostVariance, ProgramPlan, RunBlock, TierBlock, VarianceCause
from service.engine.numerics.money import round_to_total, sum_usd


def explain_difference(before: ProgramPlan, after: ProgramPlan) -> CostVariance:
    """Difference of two budgets by cause.

    Parameters
    ----------
    before, after : ProgramPlan
        The earlier and the later plan. Runs are matched by tier and name; runs of only one plan are scope.

    Returns
    -------
    CostVariance
        Later less earlier budget, and its causes [USD, whole cents].
    """
    parts: dict[str, float] = defaultdict(float)
    old, new = ({tier.tier: tier for tier in plan.tiers} for plan in (before, after))
    for name in old | new:
        _add_tier(parts, old.get(name), new.get(name))
    parts["reserves"] += float(after.envelope.reserve_usd - before.envelope.reserve_usd)
    parts["other lines"] += float(_other_lines_usd(after) - _other_lines_usd(before))
    return round_causes(_budget_usd(after) - _budget_usd(before), parts)


def round_causes(usd: Decimal, parts: Mapping[str, float]) -> CostVariance:
    """A cost variance with its causes in whole cents.

    Parameters
    ----------
    usd : Decimal
        The whole difference [USD].
    parts : mapping of cause to float
        Parts of it [USD]; the largest takes the rounding error of their sum.

    Returns
    -------
    CostVariance
        Causes that are not 0, the largest first.
    """
    exact = [Decimal(repr(parts.get(cause, 0.0))) for cause in CAUSES]
    largest = max(range(len(exact)), key=lambda index: abs(exact[index]))
    exact[largest] += usd - sum_usd(exact)
    rounded = [VarianceCause(cause, part) for cause, part in zip(CAUSES, round_to_total(exact, usd), strict=True) if part]
    causes = tuple(sorted(rounded, key=lambda cause: abs(cause.usd), reverse=True))
    return CostVariance(usd, causes, _headline(usd, causes))


def logarithmic_mean(one: float, other: float) -> float:
    """Logarithmic mean (a - b) / ln(a / b) of two positive amounts, in their unit; a where both are equal."""
    return one if math.isclose(one, other, rel_tol=1e-12) else (one - other) / math.log(one / other)


def _add_tier(parts: dict[str, float], before: TierBlock | None, after: TierBlock | None) -> None:
    """Add a tier's runs by cause, with the overheads that follow them; a change of the overheads' share is a cause of its own."""
    runs: dict[str, float] = defaultdict(float)
    old_runs, new_runs = ({block.run.name: block for block in tier.runs} if tier else {} for tier in (before, after))
    for name in old_runs | new_runs:
        _add_run(runs, old_runs.get(name), new_runs.get(name))
    old, new = _overhead_share(before, after), _overhead_share(after, before)
    mean_share = (old + new) / 2
    for cause, usd in runs.items():
        parts[cause] += usd * (1 + mean_share)
    parts["overheads"] += (_cost_usd(before) + _cost_usd(after)) / 2 * (new - old) + _unshared_usd(after) - _unshared_usd(before)


def _add_run(parts: dict[str, float], before: RunBlock | None, after: RunBlock | None) -> None:
    if before is None or after is None:
        parts["scope"] += _cost_usd(after) - _cost_usd(before)
        return
    old, new = _factors(before), _factors(after)
    old_usd, new_usd = _compute_usd(before), _compute_usd(after)
    parts["other lines"] += _cost_usd(after) - new_usd - (_cost_usd(before) - old_usd)
    if not (old_usd and new_usd):
        parts["scope"] += new_usd - old_usd
        return
    weight = logarithmic_mean(new_usd, old_usd)
    same_machine = before.run.accelerator == after.run.accelerator
    for cause, factor in new.items():
        named = cause if same_machine or cause not in {"utilisation", "price"} else "hardware"
        parts[named] += weight * math.log(factor / old[cause])


def _factors(block: RunBlock) -> dict[str, float]:
    """Factors of the run's compute cost: `price` [USD an accelerator-hour], `utilisation` [useful hours a FLOP]."""
    hours, goodput = block.use.accelerator_hours.p50, block.run.reliability.goodput
    return {
        "scope": block.use.flops,
        "utilisation": hours * goodput / block.use.flops,
        "failures": 1 / goodput,
        "price": _compute_usd(block) / hours,
    }


def _headline(usd: Decimal, causes: tuple[VarianceCause, ...]) -> str:
    """One line, such as "+$212,000: $140,000 utilisation, $50,000 price, $22,000 failures"; causes below a dollar are left out."""
    if not usd and not causes:
        return "no difference"
    named = [cause for cause in causes if round(cause.usd)] or causes[:1]
    reasons = ", ".join(f"{_dollars(cause.usd)} {cause.cause}" for cause in named)
    return f"{'+' if usd > 0 else ''}{_dollars(usd)}: {reasons}"


def _dollars(usd: Decimal) -> str:
    """An amount of dollars with three figures, without cents."""
    size = abs(float(f"{usd:.3g}"))
    return f"{'-' if usd < 0 else ''}$" + (f"{size / 1_000_000:#.3g}M" if size >= 1_000_000 else f"{size:,.0f}")


def _compute_usd(block: RunBlock) -> float:
    """Compute cost of a run with its repeats [USD]."""
    return float(block.run.compute_usd) * block.run_equivalents


def _overhead_share(tier: TierBlock | None, other: TierBlock | None) -> float:
    """Overheads over the runs' cost; the other plan's where this one has no runs to relate them to."""
    for block in (tier, other):
        if block is not None and block.cost_usd:
            return float(block.overhead_usd / block.cost_usd)
    return 0.0


def _unshared_usd(tier: TierBlock | None) -> float:
    """Overheads of a tier whose runs cost nothing [USD]."""
    return float(tier.overhead_usd) if tier is not None and not tier.cost_usd else 0.0


def _cost_usd(block: TierBlock | RunBlock | None) -> float:
    """Cost of a tier's runs, or of a run with its repeats [USD]; 0 where a plan has no such."""
    return 0.0 if block is None else float(block.cost_usd)


def _budget_usd(plan: ProgramPlan) -> Decimal:
    return sum_usd(line.usd for line in plan.lines)


def _other_lines_usd(plan: ProgramPlan) -> Decimal:
    return _budget_usd(plan) - plan.envelope.reserve_usd - sum_usd(tier.loaded_usd for tier in plan.tiers)
