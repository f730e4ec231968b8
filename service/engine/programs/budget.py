"""A program's budget, rolled up from runs that are estimated already: tiers, overheads, lines, envelope, reserves and gates.

Money is exact in cents: every amount is rounded once, and totals are sums. Formulas and definitions: docs/programs.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

from service.domain.programs.program import (
    EXPLORATION_TIERS,
    BudgetLine,
    Envelope,
    FailureBudget,
    MidpointBlock,
    MidpointGate,
    Outcome,
    OutcomeBlock,
    OverheadBlock,
    PlannedRun,
    Program,
    ProgramOverhead,
    ProgramPlan,
    RunBlock,
    Rung,
    RunRepetition,
    Tier,
    TierBlock,
)
from service.domain.quantities import Range
from service.engine.numerics.money import ZERO, allocate, share_usd, sum_usd
from service.engine.programs.contingency import assess_risks, combine_ranges, contingency_usd, total_range
from service.engine.programs.cost_variance import COMPUTE_LINE
from service.engine.programs.gates import expected_usd, gate_tree, price_gates, spending_by_tier
from service.engine.programs.validation import check_program, plan_warnings


def plan_budget(program: Program) -> ProgramPlan:
    """The whole budget of a program. Raises InvalidRequest, with pointers into the request, where it contradicts itself."""
    check_program(program)
    tiers = [_roll_up(tier, program) for tier in program.tiers]
    by_tier = [_overhead_by_tier(overhead, tiers) for overhead in program.overheads]
    tiers = [replace(tier, overhead_usd=sum_usd(row[at] for row in by_tier)) for at, tier in enumerate(tiers)]
    risks = assess_risks(program.risks, tiers)
    spread = combine_ranges([usd for tier in tiers for usd in _loaded_run_costs(tier)], program.correlation)
    spent = sum_usd(_usd(tier) for tier in tiers) + sum_usd(line.usd for line in program.other_lines)
    slice_usd = share_usd(program.reserves.evaluation_and_debugging, sum_usd(tier.cost_usd for tier in tiers))
    contingency = contingency_usd(program.reserves, spent, risks, spread)
    budget = spent + slice_usd + contingency
    ahead = spending_by_tier(program, tiers, slice_usd + contingency)
    tree = gate_tree(ahead)
    exploration = sum_usd(_usd(tier) for tier in tiers if tier.tier in EXPLORATION_TIERS)
    overhead = tuple(_overhead_block(*pair, tiers) for pair in zip(program.overheads, by_tier, strict=True))
    return ProgramPlan(
        name=program.name,
        outcome=None if program.outcome is None else _outcome(program.outcome, budget, tiers),
        total_usd=total_range(budget, spent + slice_usd, risks, spread),
        expected_usd=expected_usd(tree),
        completion_probability=math.prod(stage.pass_probability for stage in ahead),
        envelope=Envelope(exploration, spent - exploration, slice_usd + contingency),
        tiers=tuple(replace(tier, gate=gate) for tier, gate in zip(tiers, price_gates(program, ahead), strict=True)),
        overhead=overhead,
        reserves=program.reserves,
        lines=(*_lines(program, tiers, overhead), *_reserve_lines(program, slice_usd, contingency)),
        risks=risks,
        endings=tree,
        midpoint=None if program.midpoint_gate is None else _midpoint(program.midpoint_gate, budget),
        warnings=plan_warnings(program, contingency),
    )


def run_equivalents(repetition: RunRepetition) -> float:
    """Whole runs' worth of work: candidates that are stopped at a rung are paid for up to there, those kept go on from it.

    The rungs of successive halving (Jamieson & Talwalkar 2016, arXiv 1502.07943), with checkpoints kept as in Li et al. 2020
    (arXiv 1810.05934). One candidate at least goes on.
    """
    return sum(left * share for left, share in _rung_intervals(repetition)) * repetition.seeds


def relative_duration(repetition: RunRepetition) -> float:
    """How many times as long as one run the repeats take: between rungs as many turns as places side by side are filled again."""
    return sum(math.ceil(left * repetition.seeds / repetition.at_once) * share for left, share in _rung_intervals(repetition))


def repeated_wall_clock_hours(run: PlannedRun) -> Range:
    """Wall-clock hours of a run with its repeats."""
    return run.wall_clock_hours.scaled(relative_duration(run.repetition))


def successive_halving(candidates: int, factor: float, least_share: float) -> tuple[Rung, ...]:
    """Rungs that keep one in `factor` and let these train `factor` times as long, from `least_share` of a run on.

    Ends where one candidate is left or the run is whole (Jamieson & Talwalkar 2016, arXiv 1502.07943).
    """
    rungs, at, left = [], least_share, float(candidates)
    while at < 1 and left > 1:
        rungs.append(Rung(at, 1 / factor))
        at, left = at * factor, left / factor
    return tuple(rungs)


def default_point(baseline: float, target: float) -> float:
    """What one point of a metric is: a hundredth where both values are shares, else 1."""
    return 0.01 if min(baseline, target) >= 0 and max(baseline, target) <= 1 else 1.0


def _rung_intervals(repetition: RunRepetition) -> Iterator[tuple[int, float]]:
    """Candidates that are left, and the share of a run that they make until the next rung."""
    left, done = repetition.candidates, 0.0
    for rung in repetition.rungs:
        yield left, rung.at - done
        left, done = max(1, math.ceil(left * rung.keep - 1e-9)), rung.at
    yield left, 1 - done


def _roll_up(tier: Tier, program: Program) -> TierBlock:
    """The tier's runs added up; overheads and gate are put to it later."""
    runs = tuple(_run_block(run) for run in tier.runs)
    hours = combine_ranges([block.accelerator_hours for block in runs], program.correlation)
    return TierBlock(
        tier=tier.tier,
        cost_usd=sum_usd(block.cost_usd for block in runs),
        overhead_usd=ZERO,
        usd=combine_ranges([block.usd for block in runs], program.correlation),
        accelerator_hours=hours,
        wall_clock_hours=combine_ranges([block.wall_clock_hours for block in runs], program.correlation),
        flops=sum(block.flops for block in runs),
        tokens=sum(block.tokens for block in runs),
        tco2e=sum(block.tco2e for block in runs),
        runs=runs,
        failures=_failures(runs, hours.p50, program.rollback_share),
        gate=None,
    )


def _run_block(run: PlannedRun) -> RunBlock:
    """A run times its repeats."""
    work = run_equivalents(run.repetition)
    usd = share_usd(work, sum_usd(line.usd for line in run.lines))
    ends = run.usd.scaled(work)
    return RunBlock(
        run=run,
        equivalents=work,
        cost_usd=usd,
        usd=Range(min(ends.p10, float(usd)), float(usd), max(ends.p90, float(usd))),
        accelerator_hours=run.accelerator_hours.scaled(work),
        wall_clock_hours=repeated_wall_clock_hours(run),
        flops=run.flops * work,
        tokens=run.tokens * work,
        tco2e=run.tco2e * work,
    )


def _failures(runs: Sequence[RunBlock], accelerator_hours: float, rollback_share: float) -> FailureBudget:
    """What the runs' estimates expect of failures, by accelerator-hours; checkpoints as often as the run that makes most of them."""
    useful = sum(block.accelerator_hours.p50 * block.run.goodput for block in runs)
    lost = sum(block.accelerator_hours.p50 * block.run.lost_hours / block.run.wall_clock_hours.p50 for block in runs)
    return FailureBudget(
        expected_interruptions=sum(block.run.interruptions * block.equivalents for block in runs),
        lost_accelerator_hours=lost,
        goodput=useful / accelerator_hours,
        checkpoint_interval_minutes=min(block.run.checkpoint_interval_minutes for block in runs),
        rollback_allowance_accelerator_hours=rollback_share * accelerator_hours,
        rollback_allowance_usd=sum_usd(share_usd(rollback_share * block.equivalents, _compute_usd(block.run)) for block in runs),
    )


def _compute_usd(run: PlannedRun) -> Decimal:
    return sum_usd(line.usd for line in run.lines if line.line == COMPUTE_LINE)


def _overhead_by_tier(overhead: ProgramOverhead, tiers: Sequence[TierBlock]) -> list[Decimal]:
    """What the overhead adds to each tier: its share of the runs' cost, and its amount in proportion to that."""
    bases = [tier.cost_usd if overhead.tier in {None, tier.tier} else ZERO for tier in tiers]
    amounts = allocate(overhead.usd or ZERO, bases)
    return [share_usd(overhead.share or 0.0, base) + amount for base, amount in zip(bases, amounts, strict=True)]


def _loaded_run_costs(tier: TierBlock) -> list[Range]:
    """What each of a tier's runs costs with its part of the overheads."""
    factor = float(_usd(tier) / tier.cost_usd) if tier.cost_usd else 1.0
    return [block.usd.scaled(factor) for block in tier.runs]


def _overhead_block(overhead: ProgramOverhead, by_tier: Sequence[Decimal], tiers: Sequence[TierBlock]) -> OverheadBlock:
    base = sum_usd(tier.cost_usd for tier in tiers if overhead.tier in {None, tier.tier})
    usd = sum_usd(by_tier)
    share = overhead.share if overhead.usd is None and overhead.share is not None else float(usd / base) if base else 0.0
    return OverheadBlock(overhead.line, overhead.tier, usd, share, overhead.basis)


def _lines(program: Program, tiers: Sequence[TierBlock], overhead: Sequence[OverheadBlock]) -> list[BudgetLine]:
    """Every line but the reserves. Zero lines are left out, but for the tiers'."""
    around = [
        BudgetLine(f"overhead: {block.line}", block.usd, f"{block.share:.1%} of what the runs cost: {block.basis}") for block in overhead
    ]
    other = [BudgetLine(line.line, line.usd, line.basis) for line in program.other_lines]
    return [BudgetLine(tier.tier, tier.cost_usd, _tier_basis(tier)) for tier in tiers] + [line for line in around + other if line.usd]


def _reserve_lines(program: Program, slice_usd: Decimal, contingency: Decimal) -> list[BudgetLine]:
    reserves = program.reserves
    losses = f"expected loss of {_count_text(len(program.risks), 'risk')}"
    computed = f"{losses}, and the estimate's spread up to a probability of {reserves.confidence:.0%}"
    stated = "of everything that is not a reserve"
    lines = [
        BudgetLine("reserve: evaluation and debugging", slice_usd, f"{reserves.evaluation_and_debugging:.1%} of what the runs cost"),
        BudgetLine("contingency", contingency, computed if reserves.contingency is None else f"{reserves.contingency:.1%} {stated}"),
    ]
    return [line for line in lines if line.usd]


def _tier_basis(tier: TierBlock) -> str:
    runs = sum(block.run.repetition.runs for block in tier.runs)
    return f"{_count_text(runs, 'run')}, {tier.accelerator_hours.p50:,.0f} accelerator-hours"


def _count_text(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def _outcome(outcome: Outcome, budget: Decimal, tiers: Sequence[TierBlock]) -> OutcomeBlock:
    points = abs(outcome.target - outcome.baseline) / outcome.point
    return OutcomeBlock(points, float(budget) / points, sum(tier.flops for tier in tiers) / points)


def _midpoint(gate: MidpointGate, budget: Decimal) -> MidpointBlock:
    return MidpointBlock(gate, share_usd(gate.at_spend_share, budget))


def _usd(tier: TierBlock) -> Decimal:
    return tier.cost_usd + tier.overhead_usd
