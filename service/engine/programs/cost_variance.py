"""Why one plan costs more than another: the difference by cause, which add up to it to the cent.

A run costs work [FLOPs] x machine time for it [accelerator-hours a FLOP] / goodput x price [USD an accelerator-hour]. What each factor
changes is its part by the logarithmic mean Divisia index (Ang 2005, Energy Policy 33(7), LMDI-I): complete, and the same in any order.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from service.domain.programs.answer import CAUSES
from service.domain.programs.program import ProgramPlan, RunBlock, TierBlock, TierName
from service.engine.numerics.money import round_to_total, sum_usd

# The line of a run's bill that its factors make; its other lines, and those of the program, are `other lines`.
COMPUTE_LINE = "compute"


@dataclass(frozen=True, slots=True)
class VarianceCause:
    """What one cause adds to the cost, or saves."""

    cause: str
    usd: Decimal


@dataclass(frozen=True, slots=True)
class CostVariance:
    """The later plan's budget less the earlier one's, and why: `causes`, the largest first, add up to it."""

    usd: Decimal
    causes: tuple[VarianceCause, ...]
    headline: str


def explain_difference(before: ProgramPlan, after: ProgramPlan) -> CostVariance:
    """The difference between two plans by cause. Runs are the same where tier and name are; others are scope."""
    parts: dict[str, float] = defaultdict(float)
    tiers = {tier.tier for plan in (before, after) for tier in plan.tiers}
    for tier in tiers:
        _add_tier(parts, _tier(before, tier), _tier(after, tier))
    parts["reserves"] += float(after.envelope.reserve_usd - before.envelope.reserve_usd)
    parts["other lines"] += float(_other_lines(after) - _other_lines(before))
    usd = _budget(after) - _budget(before)
    return round_causes(usd, parts)


def round_causes(usd: Decimal, parts: Mapping[str, float]) -> CostVariance:
    """Causes in whole cents; what floats lose in rounding goes to the largest."""
    exact = [Decimal(repr(parts.get(cause, 0.0))) for cause in CAUSES]
    largest = max(range(len(exact)), key=lambda at: abs(exact[at]))
    exact[largest] += usd - sum_usd(exact)
    found = [VarianceCause(cause, part) for cause, part in zip(CAUSES, round_to_total(exact, usd), strict=True) if part]
    causes = tuple(sorted(found, key=lambda cause: abs(cause.usd), reverse=True))
    return CostVariance(usd, causes, _headline(usd, causes))


def _add_tier(parts: dict[str, float], before: TierBlock | None, after: TierBlock | None) -> None:
    """A tier's runs by cause, and its overheads: their share's change is theirs, what they follow the runs in is the runs' causes'."""
    runs: dict[str, float] = defaultdict(float)
    for name in dict.fromkeys(block.run.name for tier in (before, after) if tier for block in tier.runs):
        _add_run(runs, _run(before, name), _run(after, name))
    old, new = _overhead_share(before, after), _overhead_share(after, before)
    followed = (old + new) / 2
    for cause, usd in runs.items():
        parts[cause] += usd * (1 + followed)
    parts["overheads"] += (_cost(before) + _cost(after)) / 2 * (new - old) + _without_runs(after) - _without_runs(before)


def _add_run(parts: dict[str, float], before: RunBlock | None, after: RunBlock | None) -> None:
    if before is None or after is None:
        parts["scope"] += _usd(after) - _usd(before)
        return
    old, new = _factors(before), _factors(after)
    was, becomes = _compute(before), _compute(after)
    parts["other lines"] += _usd(after) - becomes - (_usd(before) - was)
    if not (was and becomes):
        parts["scope"] += becomes - was
        return
    weight = logarithmic_mean(becomes, was)
    same_machine = before.run.accelerator == after.run.accelerator
    for cause, factor in new.items():
        named = cause if same_machine or cause not in {"utilisation", "price"} else "hardware"
        parts[named] += weight * math.log(factor / old[cause])


def _factors(block: RunBlock) -> dict[str, float]:
    """What the run's compute is the product of. `price` is of an accelerator-hour, `utilisation` useful hours for a FLOP."""
    hours, goodput = block.accelerator_hours.p50, block.run.goodput
    return {
        "scope": block.flops,
        "utilisation": hours * goodput / block.flops,
        "failures": 1 / goodput,
        "price": _compute(block) / hours,
    }


def logarithmic_mean(one: float, other: float) -> float:
    """(a - b) / ln(a / b), a where both are the same."""
    return one if math.isclose(one, other, rel_tol=1e-12) else (one - other) / math.log(one / other)


def _headline(usd: Decimal, causes: tuple[VarianceCause, ...]) -> str:
    """A line that says it all: +212k USD: 140k utilisation, 50k price, 22k failures. Cents are not told."""
    if not usd and not causes:
        return "no difference"
    told = [cause for cause in causes if round(cause.usd)] or causes[:1]
    reasons = ", ".join(f"{_short(cause.usd)} {cause.cause}" for cause in told)
    return f"{'+' if usd > 0 else ''}{_short(usd)} USD: {reasons}"


def _short(usd: Decimal) -> str:
    size = abs(usd)
    return f"{usd / 1_000_000:.1f}M" if size >= 1_000_000 else f"{usd / 1000:.0f}k" if size >= 1000 else f"{usd:.0f}"


def _compute(block: RunBlock) -> float:
    """The compute line of a run's bill with its repeats [USD]."""
    return float(sum_usd(line.usd for line in block.run.lines if line.line == COMPUTE_LINE)) * block.equivalents


def _overhead_share(tier: TierBlock | None, other: TierBlock | None) -> float:
    """Overheads over the runs' cost; the other plan's where there are no runs to take it of."""
    for one in (tier, other):
        if one is not None and one.cost_usd:
            return float(one.overhead_usd / one.cost_usd)
    return 0.0


def _without_runs(tier: TierBlock | None) -> float:
    return float(tier.overhead_usd) if tier is not None and not tier.cost_usd else 0.0


def _cost(tier: TierBlock | None) -> float:
    return 0.0 if tier is None else float(tier.cost_usd)


def _usd(block: RunBlock | None) -> float:
    return 0.0 if block is None else float(block.cost_usd)


def _tier(plan: ProgramPlan, name: TierName) -> TierBlock | None:
    return next((tier for tier in plan.tiers if tier.tier == name), None)


def _run(tier: TierBlock | None, name: str) -> RunBlock | None:
    return None if tier is None else next((block for block in tier.runs if block.run.name == name), None)


def _budget(plan: ProgramPlan) -> Decimal:
    return sum_usd(line.usd for line in plan.lines)


def _other_lines(plan: ProgramPlan) -> Decimal:
    return _budget(plan) - plan.envelope.reserve_usd - sum_usd(tier.cost_usd + tier.overhead_usd for tier in plan.tiers)
