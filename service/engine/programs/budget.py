"""A program's budget, rolled up from estimated runs: tiers, overheads, lines, envelope, reserves and gates.

Money is exact in cents: every amount is rounded once, and totals are sums. Formulas and definitions: docs/reference/programs.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

from service.domain.errors import InvalidRequest
from service.domain.programs.outcome import Outcome
from service.domain.programs.plan import (
    BudgetLine,
    Envelope,
    FailureBudget,
    GateBlock,
    MidpointBlock,
    OutcomeBlock,
    OverheadBlock,
    ProgramEnding,
    ProgramPlan,
    RunBlock,
    TierBlock,
)
from service.domain.programs.program import Program, ProgramOverhead, Tier
from service.domain.programs.runs import PlannedRun, ResourceUse, Rung, RunRepetition
from service.domain.programs.tiers import EXPLORATION_TIERS
from service.domain.quantities import Range
from service.engine.numerics.money import ZERO, allocate, share_usd, sum_usd
from service.engine.numerics.ranges import comonotone_sum
from service.engine.programs.contingency import assess_risks, budget_range, combine_ranges, contingency_usd, cost_range
from service.engine.programs.gates import TierRepeats, TierSpending, expected_usd, gate_tree, price_gates, spending_by_tier, tier_repeats
from service.engine.programs.information import gate_information
from service.engine.programs.validation import check_program, plan_warnings
from service.engine.programs.value import outcome_value_usd, outcome_values, points_between

# Without this a count that is whole but for rounding would be rounded up to the next.
COUNT_TOLERANCE = 1e-9
CONTINGENCY_LINE = "contingency"
LEAST_HALVING_FACTOR = 1.05
"""Usual factors are 2 to 4; from here on there are fewer than 200 rungs, and nearer to 1 rungs without end."""


def plan_budget(program: Program) -> ProgramPlan:
    """The whole budget of a program.

    Parameters
    ----------
    program : Program
        Tiers of estimated runs with gates, overheads, other lines, risks and reserves.

    Returns
    -------
    ProgramPlan
        Amounts [USD] in whole cents; `total_usd.p50` is the sum of the lines.

    Raises
    ------
    InvalidRequest
        Where the program contradicts itself, with a pointer into the request.
    """
    check_program(program)
    tiers = [_roll_up(tier, program) for tier in program.tiers]
    overhead_usd = [_overhead_by_tier(overhead, tiers) for overhead in program.overheads]
    tiers = [replace(tier, overhead_usd=sum_usd(row[index] for row in overhead_usd)) for index, tier in enumerate(tiers)]
    overheads = tuple(_overhead_block(*pair, tiers) for pair in zip(program.overheads, overhead_usd, strict=True))
    risks = assess_risks(program.risks, tiers, None if program.outcome is None else program.outcome.delay_usd_per_day)
    spread = combine_ranges([usd for tier in tiers for usd in loaded_run_costs(tier)], program.correlation)
    repeats = tier_repeats(program, tiers)
    repeated = sum_usd(again.expected_usd for again in repeats)
    spent = sum_usd(tier.loaded_usd for tier in tiers) + sum_usd(line.usd for line in program.other_lines) + repeated
    debugging = share_usd(program.reserves.evaluation_and_debugging, sum_usd(tier.cost_usd for tier in tiers))
    contingency = contingency_usd(program.reserves, spent, risks, spread, program.risk_correlation)
    budget = spent + debugging + contingency
    cost = cost_range(spent + debugging, risks, spread, program.risk_correlation, repeats)
    spending = spending_by_tier(program, tiers, debugging + contingency)
    endings = gate_tree(spending)
    loaded = zip(tiers, repeats, strict=True)
    exploration = sum_usd(tier.loaded_usd + again.expected_usd for tier, again in loaded if tier.tier in EXPLORATION_TIERS)
    midpoint = program.midpoint_gate
    return ProgramPlan(
        name=program.name,
        outcome=None if program.outcome is None else _outcome(program.outcome, budget, tiers, endings),
        total_usd=budget_range(budget, cost),
        without_contingency_usd=cost,
        expected_usd=expected_usd(endings),
        completion_probability=math.prod(tier.pass_probability for tier in spending),
        envelope=Envelope(exploration, spent - exploration, debugging + contingency),
        tiers=tuple(replace(tier, gate=gate) for tier, gate in zip(tiers, _gates(program, spending), strict=True)),
        overhead=overheads,
        reserves=program.reserves,
        lines=(*_lines(program, tiers, overheads), *_repeat_lines(tiers, repeats), *_reserve_lines(program, debugging, contingency)),
        risks=risks,
        endings=endings,
        midpoint=None if midpoint is None else MidpointBlock(midpoint, share_usd(midpoint.at_spend_share, budget)),
        warnings=plan_warnings(program, contingency),
    )


def run_equivalents(repetition: RunRepetition) -> float:
    """Work of a run's repeats in whole runs.

    Parameters
    ----------
    repetition : RunRepetition
        Candidates, seeds and rungs of early stopping.

    Returns
    -------
    float
        seeds x sum over rungs of candidates left x share of the run until the next rung [runs]. A candidate that is stopped is paid for
        up to its rung, one that goes on continues from its checkpoint; at least one goes on.

    References
    ----------
    Successive halving: Jamieson & Talwalkar 2016 (arXiv 1502.07943). Kept checkpoints: Li et al. 2020 (arXiv 1810.05934).
    """
    return sum(candidates * share for candidates, share in _rung_intervals(repetition)) * repetition.seeds


def relative_duration(repetition: RunRepetition) -> float:
    """Time that a run's repeats take, relative to one run.

    Parameters
    ----------
    repetition : RunRepetition
        Candidates, seeds, rungs and runs side by side.

    Returns
    -------
    float
        Sum over rungs of ceil(runs left / concurrency) x share of the run until the next rung [1].
    """
    return sum(math.ceil(left * repetition.seeds / repetition.concurrency) * share for left, share in _rung_intervals(repetition))


def completed_runs(repetition: RunRepetition) -> int:
    """Runs that are trained to their end: candidates left after the last rung, with every seed."""
    *_, (left, _) = _rung_intervals(repetition)
    return left * repetition.seeds


def repeated_wall_clock_hours(run: PlannedRun) -> Range:
    """Wall-clock hours of a run with its repeats [h]."""
    return run.use.wall_clock_hours.scaled(relative_duration(run.repetition))


def calendar_hours(run: PlannedRun) -> Range:
    """Hours of a run with its repeats, and the work around it and the evaluation that its own request states [h]."""
    evaluated = run.evaluation_hours.scaled(relative_duration(run.repetition))
    return comonotone_sum((repeated_wall_clock_hours(run).scaled(1 + run.overhead_share), evaluated))


def successive_halving(candidates: int, factor: float, least_share: float, pointer: str = "/early_stopping") -> tuple[Rung, ...]:
    """Rungs of successive halving.

    Parameters
    ----------
    candidates : int
        Configurations at the start.
    factor : float
        One in `factor` goes on, and trains `factor` times as long. At least LEAST_HALVING_FACTOR.
    least_share : float
        Share of a whole run at the first rung [1].
    pointer : str
        Where the request states them.

    Returns
    -------
    tuple of Rung
        Up to where one candidate is left or the run is whole.

    Raises
    ------
    InvalidRequest
        For a smaller factor.

    References
    ----------
    Jamieson & Talwalkar 2016 (arXiv 1502.07943).
    """
    if factor < LEAST_HALVING_FACTOR:
        raise InvalidRequest(
            f"state a factor of at least {LEAST_HALVING_FACTOR}, such as 3: near 1 hardly anything stops", f"{pointer}/factor"
        )
    rungs, at, left = [], least_share, float(candidates)
    while at < 1 and left > 1:
        rungs.append(Rung(at, 1 / factor))
        at, left = at * factor, left / factor
    return tuple(rungs)


def default_point(baseline: float, target: float) -> float:
    """Size of one point of a metric: 0.01 where both values are shares, else 1, in the metric's unit."""
    return 0.01 if min(baseline, target) >= 0 and max(baseline, target) <= 1 else 1.0


def _rung_intervals(repetition: RunRepetition) -> Iterator[tuple[int, float]]:
    """Candidates left, and the share of a run that they train until the next rung."""
    left, done = repetition.candidates, 0.0
    for rung in repetition.rungs:
        yield left, rung.at - done
        left, done = max(1, math.ceil(left * rung.keep - COUNT_TOLERANCE)), rung.at
    yield left, 1 - done


def _roll_up(tier: Tier, program: Program) -> TierBlock:
    """The sum of the tier's runs; overheads and gate are added later."""
    runs = tuple(_run_block(run) for run in tier.runs)
    use = ResourceUse(
        usd=combine_ranges([run.use.usd for run in runs], program.correlation),
        accelerator_hours=combine_ranges([run.use.accelerator_hours for run in runs], program.correlation),
        wall_clock_hours=combine_ranges([run.use.wall_clock_hours for run in runs], program.correlation),
        flops=sum(run.use.flops for run in runs),
        tokens=sum(run.use.tokens for run in runs),
        tco2e=sum(run.use.tco2e for run in runs),
    )
    failures = _failures(runs, use.accelerator_hours.p50, program.rollback_share)
    return TierBlock(tier.tier, sum_usd(run.cost_usd for run in runs), ZERO, use, runs, failures, gate=None)


def _run_block(run: PlannedRun) -> RunBlock:
    """A run times its repeats."""
    work = run_equivalents(run.repetition)
    cost = share_usd(work, sum_usd(line.usd for line in run.lines))
    use = run.use.scaled(work)
    usd = Range(min(use.usd.p10, float(cost)), float(cost), max(use.usd.p90, float(cost)))
    return RunBlock(run, work, cost, replace(use, usd=usd, wall_clock_hours=repeated_wall_clock_hours(run)))


def _failures(runs: Sequence[RunBlock], accelerator_hours: float, rollback_share: float) -> FailureBudget:
    """Expected failures of the runs, weighted by accelerator-hours; the checkpoint interval is the shortest of any run."""
    useful = sum(block.use.accelerator_hours.p50 * block.run.reliability.goodput for block in runs)
    lost = sum(block.use.accelerator_hours.p50 * block.run.reliability.lost_hours / block.run.use.wall_clock_hours.p50 for block in runs)
    return FailureBudget(
        expected_interruptions=sum(block.run.reliability.interruptions * block.run_equivalents for block in runs),
        lost_accelerator_hours=lost,
        goodput=useful / accelerator_hours,
        checkpoint_interval_minutes=min(block.run.reliability.checkpoint_interval_minutes for block in runs),
        rollback_allowance_accelerator_hours=rollback_share * accelerator_hours,
        rollback_allowance_usd=sum_usd(share_usd(rollback_share * block.run_equivalents, block.run.compute_usd) for block in runs),
    )


def _overhead_by_tier(overhead: ProgramOverhead, tiers: Sequence[TierBlock]) -> list[Decimal]:
    """Amount of the overhead in each tier [USD]: its share of the runs' cost, and its amount in proportion to that cost."""
    bases = [tier.cost_usd if overhead.tier in {None, tier.tier} else ZERO for tier in tiers]
    amounts = allocate(overhead.usd or ZERO, bases)
    return [share_usd(overhead.share or 0.0, base) + amount for base, amount in zip(bases, amounts, strict=True)]


def loaded_run_costs(tier: TierBlock) -> list[Range]:
    """Cost of each of a tier's runs with its part of the overheads [USD]."""
    factor = float(tier.loaded_usd / tier.cost_usd) if tier.cost_usd else 1.0
    return [block.use.usd.scaled(factor) for block in tier.runs]


def _overhead_block(overhead: ProgramOverhead, by_tier: Sequence[Decimal], tiers: Sequence[TierBlock]) -> OverheadBlock:
    base = sum_usd(tier.cost_usd for tier in tiers if overhead.tier in {None, tier.tier})
    usd = sum_usd(by_tier)
    share = overhead.share if overhead.usd is None and overhead.share is not None else float(usd / base) if base else 0.0
    return OverheadBlock(overhead.line, overhead.tier, usd, share, overhead.basis)


def _gates(program: Program, spending: Sequence[TierSpending]) -> list[GateBlock | None]:
    """Each tier's gate with its cost and what it is worth; None for a tier without a gate."""
    rows = zip(price_gates(program, spending), gate_information(program, spending), strict=True)
    return [None if gate is None else replace(gate, information=information) for gate, information in rows]


def _lines(program: Program, tiers: Sequence[TierBlock], overheads: Sequence[OverheadBlock]) -> list[BudgetLine]:
    """Every line except the reserves. Lines of 0 USD are left out, except the tiers'."""
    share_basis = "{:.1%} of what the runs cost: {}"
    lines = [
        *(BudgetLine(f"overhead: {block.line}", block.usd, share_basis.format(block.share, block.basis)) for block in overheads),
        *(BudgetLine(line.line, line.usd, line.basis) for line in program.other_lines),
    ]
    return [BudgetLine(tier.tier, tier.cost_usd, _tier_basis(tier)) for tier in tiers] + [line for line in lines if line.usd]


def _repeat_lines(tiers: Sequence[TierBlock], repeats: Sequence[TierRepeats]) -> Iterator[BudgetLine]:
    """What is expected to be spent on repeating tiers whose gates are failed at first."""
    for tier, again in zip(tiers, repeats, strict=True):
        if again.expected_usd:
            mean = sum(again.probabilities)
            yield BudgetLine(f"repeats: {tier.tier}", again.expected_usd, f"{mean:.3g} repeats expected, each {again.once_usd:,.2f} USD")


def _reserve_lines(program: Program, debugging: Decimal, contingency: Decimal) -> list[BudgetLine]:
    reserves = program.reserves
    losses = f"expected loss of {_count_text(len(program.risks), 'risk')}"
    computed = f"{losses}, and the estimate's spread up to a probability of {reserves.confidence:.0%}"
    if program.risk_correlation is not None:
        covered = f"{_count_text(len(program.risks), 'risk')} with the stated correlations and the estimate's spread"
        computed = f"covers {covered} together with a probability of {reserves.confidence:.0%}, simulated"
    stated = "of everything that is not a reserve"
    lines = [
        BudgetLine("reserve: evaluation and debugging", debugging, f"{reserves.evaluation_and_debugging:.1%} of what the runs cost"),
        BudgetLine(CONTINGENCY_LINE, contingency, computed if reserves.contingency is None else f"{reserves.contingency:.1%} {stated}"),
    ]
    return [line for line in lines if line.usd]


def _tier_basis(tier: TierBlock) -> str:
    runs = sum(block.run.repetition.runs for block in tier.runs)
    return f"{_count_text(runs, 'run')}, {tier.use.accelerator_hours.p50:,.0f} accelerator-hours"


def _count_text(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _outcome(outcome: Outcome, budget: Decimal, tiers: Sequence[TierBlock], endings: Sequence[ProgramEnding]) -> OutcomeBlock:
    points, value_usd = points_between(outcome), outcome_value_usd(outcome)
    completed = sum(ending.probability for ending in endings if ending.stopped_at is None)
    return OutcomeBlock(
        outcome=outcome,
        points=points,
        usd_per_point=float(budget) / points if points else None,
        flops_per_point=sum(tier.use.flops for tier in tiers) / points if points else 0.0,
        values=outcome_values(outcome),
        value_usd=value_usd,
        expected_net_usd=None if value_usd is None else completed * value_usd - float(expected_usd(endings)),
    )
