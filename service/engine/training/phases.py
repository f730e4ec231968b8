"""A run in phases, such as context extension and annealing: each is estimated as a run of its own, and the run is their sum.

Phases of one run share its speed model's error, its software and its failure rate. They are slow together: percentiles of hours and cost
add, as of quantities with a rank correlation of 1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from service.domain.quantities import Range
from service.domain.training.estimate import (
    CauseOfSpread,
    CostBlock,
    EnergyBlock,
    Estimate,
    FlopsBlock,
    LineBlock,
    ReliabilityBlock,
    SpreadCause,
    ThroughputBlock,
    TimeBlock,
    TrainingPhase,
)
from service.domain.training.run import Billing, Cluster, Run
from service.engine.numerics.money import sum_usd
from service.engine.numerics.ranges import comonotone_sum
from service.engine.training.cost import unused_commitment, with_overhead
from service.engine.training.estimate import deadline_probability, finish_dates, tokens_block
from service.engine.training.flops import FLOPS_PER_PETAFLOP_S_DAY

PERCENTILES = ("p10", "p50", "p90")


@dataclass(frozen=True, slots=True)
class EstimatedPhase:
    """A phase by name, as a run of its own, and its estimate, billed as `bill_phases` says."""

    name: str
    run: Run
    found: Estimate


def bill_phases(runs: Sequence[Run]) -> tuple[Run, ...]:
    """Phases as they are billed: what a run has once is in the last phase, and terms of a reservation are those of the whole run.

    Parameters
    ----------
    runs : sequence of Run
        Phases in their order, each with the settings of the whole run.

    Returns
    -------
    tuple of Run
        A single phase is billed as it is.
    """
    if len(runs) == 1:
        return tuple(runs)
    whole = [replace(run, billing=replace(run.billing, term_hours=0.0)) for run in runs]
    return (*(_without_what_is_paid_once(run) for run in whole[:-1]), whole[-1])


def combine_phases(whole: Run, phases: Sequence[EstimatedPhase]) -> Estimate:
    """The estimate of a run from those of its phases; that of the only phase where there is one.

    Parameters
    ----------
    whole : Run
        The run on the machine of its longest phase, with all of its data and its billing.
    phases : sequence of EstimatedPhase
        In their order.

    Returns
    -------
    Estimate
        Amounts are sums, rates are total work over total time, the layout is that of the phase that takes most accelerator-hours, and the
        memory that of the fullest.
    """
    if len(phases) == 1:
        return replace(phases[0].found, phases=(_phase_block(phases[0]),))
    found = [phase.found for phase in phases]
    longest = max(found, key=lambda each: each.time.accelerator_hours.p50)
    return Estimate(
        flops=_flops(found),
        tokens=tokens_block(whole),
        throughput=_throughput(found, longest.throughput),
        memory=max((each.memory for each in found), key=lambda memory: memory.per_accelerator_gb / memory.capacity_gb),
        reliability=_reliability(found, longest.reliability),
        time=_time(whole, found),
        cost=_cost(whole, phases),
        energy=_energy(found),
        batch_sequences=longest.batch_sequences,
        spread_causes=_spread_causes(found),
        warnings=(),
        phases=tuple(_phase_block(phase) for phase in phases),
    )


def _without_what_is_paid_once(run: Run) -> Run:
    """The run without people, network traffic and retention."""
    people = replace(run.personnel, evaluation_hours=0.0, analysis_hours=0.0, oncall_hours=0.0)
    return replace(run, personnel=people, network=replace(run.network, egress_tb=0.0), storage=replace(run.storage, retention_months=0.0))


def _phase_block(phase: EstimatedPhase) -> TrainingPhase:
    run, found = phase.run, phase.found
    return TrainingPhase(
        name=phase.name,
        tokens=run.data.trained_tokens,
        seq_len=run.training.seq_len,
        global_batch_tokens=found.batch_sequences * run.training.seq_len,
        precision=run.training.precision,
        accelerator=run.cluster.accelerator.name,
        accelerators=run.cluster.count,
        usd_per_accelerator_hour=run.billing.usd_per_accelerator_hour,
        throughput=found.throughput,
        memory=found.memory,
        reliability=found.reliability,
        time=replace(found.time, finish=None, deadline_probability=None),
        cost=found.cost,
    )


def _rate(amounts: Sequence[float], rates: Sequence[float]) -> float:
    """All amounts over the time that each takes at its own rate."""
    return sum(amounts) / sum(amount / rate for amount, rate in zip(amounts, rates, strict=True))


def _rates(amounts: Sequence[float], rates: Sequence[Range]) -> Range:
    """As `_rate`, at each percentile."""
    return Range(*(_rate(amounts, [getattr(rate, name) for rate in rates]) for name in PERCENTILES))


def _flops(found: Sequence[Estimate]) -> FlopsBlock:
    blocks = [each.flops for each in found]
    total = sum(block.total for block in blocks)
    return FlopsBlock(
        per_token=total / sum(each.tokens.trained for each in found),
        total=total,
        petaflop_s_days=total / FLOPS_PER_PETAFLOP_S_DAY,
        forward=sum(block.forward for block in blocks),
        backward=sum(block.backward for block in blocks),
        recompute=sum(block.recompute for block in blocks),
        attention_share=sum(block.attention_share * block.total for block in blocks) / total,
    )


def _throughput(found: Sequence[Estimate], longest: ThroughputBlock) -> ThroughputBlock:
    """Speeds are tokens over time, utilisations FLOPs over what the machines could compute in it."""
    blocks = [each.throughput for each in found]
    tokens, flops, steps = zip(*((each.tokens.trained, each.flops.total, each.time.steps) for each in found), strict=True)
    executed = [each.flops.total + each.flops.recompute for each in found]
    best = [block.best_tokens_per_s_per_accelerator or block.tokens_per_s_per_accelerator.p50 for block in blocks]
    faster = any(block.best_tokens_per_s_per_accelerator is not None for block in blocks)
    sources = {block.source for block in blocks}
    per_accelerator = _rates(tokens, [block.tokens_per_s_per_accelerator for block in blocks])
    return replace(
        longest,
        tokens_per_s=_rate(tokens, [block.tokens_per_s for block in blocks]),
        tokens_per_s_per_accelerator=per_accelerator,
        tflops_per_accelerator=per_accelerator.p50 * sum(flops) / sum(tokens) / 1e12,
        mfu=_rates(flops, [block.mfu for block in blocks]),
        hfu=_rate(executed, [block.hfu for block in blocks]),
        step_time_s=sum(count * block.step_time_s for count, block in zip(steps, blocks, strict=True)) / sum(steps),
        effective_tokens_per_s=_rate(tokens, [block.effective_tokens_per_s for block in blocks]),
        effective_mfu=_rate(flops, [block.effective_mfu for block in blocks]),
        source=longest.source if len(sources) == 1 else "modelled",
        best_tokens_per_s_per_accelerator=_rate(tokens, best) if faster else None,
        split=None,
    )


def _reliability(found: Sequence[Estimate], longest: ReliabilityBlock) -> ReliabilityBlock:
    hours, blocks = [each.time.wall_clock_hours.p50 for each in found], [each.reliability for each in found]
    interruptions = sum(block.expected_interruptions for block in blocks)
    return replace(
        longest,
        mttf_hours=_rate(hours, [block.mttf_hours for block in blocks]),
        expected_interruptions=interruptions,
        checkpoint_tb=max(block.checkpoint_tb for block in blocks),
        goodput=sum(block.goodput * held for block, held in zip(blocks, hours, strict=True)) / sum(hours),
    )


def _time(whole: Run, found: Sequence[Estimate]) -> TimeBlock:
    hours = comonotone_sum(each.time.wall_clock_hours for each in found)
    return TimeBlock(
        accelerator_hours=comonotone_sum(each.time.accelerator_hours for each in found),
        wall_clock_hours=hours,
        steps=sum(each.time.steps for each in found),
        finish=finish_dates(whole, with_overhead(whole, hours)),
        deadline_probability=deadline_probability(whole, with_overhead(whole, hours)),
    )


def _cost(whole: Run, phases: Sequence[EstimatedPhase]) -> CostBlock:
    """Sums of the phases' lines in cents, and the unused rest of the terms that all phases on a machine use together."""
    lines = [line for phase in phases for line in phase.found.cost.lines]
    names = dict.fromkeys(line.line for line in lines)
    summed = [_summed_line(name, [line for line in lines if line.line == name]) for name in names]
    unused = [_commitments(phases, percentile) for percentile in PERCENTILES]
    bill = (*summed, *unused[1])
    total = _total(phases, float(sum_usd(line.usd for line in bill)), [float(sum_usd(line.usd for line in each)) for each in unused])
    return CostBlock(
        total_usd=total,
        lines=bill,
        usd_per_million_tokens=None if total is None else total.p50 / whole.data.trained_tokens * 1e6,
    )


def _total(phases: Sequence[EstimatedPhase], median: float, unused: Sequence[float]) -> Range | None:
    """Range of the whole bill [USD], with what is unused of terms at the p10, p50 and p90 of hours; None without a price."""
    totals = [phase.found.cost.total_usd for phase in phases]
    priced = [total for total in totals if total is not None]
    if len(priced) < len(totals):
        return None
    whole = comonotone_sum(priced)
    return Range(min(whole.p10 + unused[0], median), median, max(whole.p90 + unused[2], median))


def _summed_line(name: str, parts: Sequence[LineBlock]) -> LineBlock:
    basis = parts[0].basis if len(parts) == 1 else f"{len(parts)} phases, each by its own hours and machine"
    return LineBlock(name, sum_usd(part.usd for part in parts), basis)


def _commitments(phases: Sequence[EstimatedPhase], percentile: str) -> list[LineBlock]:
    """Unused rest of the terms of each machine, at a percentile of the hours of all phases on it."""
    runs: dict[tuple[Cluster, Billing], Run] = {}
    held: dict[tuple[Cluster, Billing], float] = defaultdict(float)
    for phase in phases:
        machine = phase.run.cluster, phase.run.billing
        runs[machine] = phase.run
        held[machine] += getattr(phase.found.time.accelerator_hours, percentile) / phase.run.cluster.count
    lines = (unused_commitment(runs[machine], hours) for machine, hours in held.items())
    return [line for line in lines if line is not None]


def _energy(found: Sequence[Estimate]) -> EnergyBlock:
    blocks, hours = [each.energy for each in found], [each.time.accelerator_hours.p50 for each in found]
    mwh = sum(block.mwh for block in blocks)
    meter = sum(block.mwh / block.pue for block in blocks)
    return EnergyBlock(
        mwh=mwh,
        tco2e=sum(block.tco2e for block in blocks),
        pue=mwh / meter,
        grid_gco2_per_kwh=sum(block.mwh * block.grid_gco2_per_kwh for block in blocks) / mwh,
        watts_per_accelerator=sum(block.watts_per_accelerator * time for block, time in zip(blocks, hours, strict=True)) / sum(hours),
    )


def _spread_causes(found: Sequence[Estimate]) -> tuple[CauseOfSpread, ...]:
    """Each cause in all phases at once; a phase without it keeps its medians."""
    causes = dict.fromkeys(cause.cause for each in found for cause in each.spread_causes)
    return tuple(
        CauseOfSpread(
            cause,
            comonotone_sum(_hours_under(each, cause) for each in found),
            None if any(each.cost.total_usd is None for each in found) else comonotone_sum(_usd_under(each, cause) for each in found),
        )
        for cause in causes
    )


def _hours_under(found: Estimate, cause: SpreadCause) -> Range:
    return next(
        (each.wall_clock_hours for each in found.spread_causes if each.cause == cause), Range.exactly(found.time.wall_clock_hours.p50)
    )


def _usd_under(found: Estimate, cause: SpreadCause) -> Range:
    """Cost as one cause spreads it [USD], of a phase with a price."""
    spread = next((each.total_usd for each in found.spread_causes if each.cause == cause), None)
    if spread is not None:
        return spread
    return Range.exactly(0.0 if found.cost.total_usd is None else found.cost.total_usd.p50)
