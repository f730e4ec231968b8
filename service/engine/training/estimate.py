"""One training run from end to end: arithmetic, layout, time, failures, cost, energy. Composes the other modules."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

from service.domain.quantities import Range
from service.domain.training.estimate import (
    CauseOfSpread,
    CostBlock,
    EnergyBlock,
    Estimate,
    FinishDates,
    FlopsBlock,
    MemoryBlock,
    PhaseBlock,
    ReliabilityBlock,
    SpreadCause,
    ThroughputBlock,
    TimeBlock,
    TokensBlock,
)
from service.domain.training.model import GenericNetwork, Transformer
from service.domain.training.run import FROZEN_BASE, Run
from service.domain.training.utilisation import PlanCalibration, Utilisation
from service.engine.numerics.ranges import comonotone_probability_below, inverse, product
from service.engine.training.adapters import adapter_parameters
from service.engine.training.cost import cost_lines, total_usd, with_overhead
from service.engine.training.dtypes import element_bytes, optimizer_bytes
from service.engine.training.energy import carbon_tco2e, energy_mwh
from service.engine.training.flops import FLOPS_PER_PETAFLOP_S_DAY, TrainingFlops, recomputed_flops
from service.engine.training.parameters import total_parameters
from service.engine.training.rl.phases import phases_of, sampler_fits
from service.engine.training.run_time import RunTime, failure_spread, loss_spread, predict_run_time
from service.engine.training.search.fit_advice import what_would_fit
from service.engine.training.search.layout_search import LayoutChoice
from service.engine.training.step.workload import peak_flops
from service.engine.training.time_split import time_split

SAMPLER_DOES_NOT_FIT = "no replica of training.rl.generation holds the sampled model's weights and one sequence: it does not fit"
# Below this a plan is one of failures, not of training.
LOW_GOODPUT = 0.5


def estimate(run: Run, utilisation: Utilisation, planning: PlanCalibration) -> Estimate:
    """What the run takes, how long, and what it costs.

    What published runs lose beyond their steps and failures is in hours and cost, with its range, unless the caller states an efficiency.
    A layout of the caller's that does not fit is reported, not refused. Without a price the cost is None.

    Parameters
    ----------
    run : Run
        Resolved request.
    utilisation : Utilisation
        What the accelerator achieves.
    planning : PlanCalibration
        What whole published runs lose.

    Returns
    -------
    Estimate
        Every block of the answer.

    Raises
    ------
    DoesNotFit
        No layout that is searched fits.
    InvalidRequest
        The request contradicts itself.
    """
    timed = predict_run_time(run, utilisation, planning)
    flops, choice, reliable, hours = timed.flops, timed.choice, timed.reliable, timed.held_hours
    accelerator_hours = hours.scaled(run.cluster.count)
    mwh = energy_mwh(accelerator_hours.p50, run.energy)
    checkpoint = checkpoint_tb(run)
    interval_hours = reliable.checkpoint_interval_minutes / 60
    lines = cost_lines(run, hours.p50, mwh, checkpoint, interval_hours)
    priced = run.billing.usd_per_accelerator_hour is not None
    total = total_usd(run, hours, mwh, checkpoint, interval_hours) if priced else None
    useful_hours = hours.p50 * reliable.goodput * timed.run_over_step_speed
    executed = flops.total + recomputed_flops(run.model, run.training)[int(choice.layouts.recompute[0])]
    return Estimate(
        flops=_flops_block(run, flops, executed),
        tokens=tokens_block(run),
        throughput=replace(
            _throughput_block(run, timed, executed),
            phases=_phases(run, timed, utilisation),
            split=time_split(run, timed, utilisation, step_time_s(run, timed), mfu(run, timed).p50, executed),
        ),
        memory=_memory_block(run, choice),
        reliability=ReliabilityBlock(
            mttf_hours=reliable.mttf_hours,
            expected_interruptions=hours.p50 / reliable.mttf_hours,
            checkpoint_interval_minutes=reliable.checkpoint_interval_minutes,
            checkpoint_tb=checkpoint,
            goodput=reliable.goodput,
        ),
        time=TimeBlock(
            accelerator_hours=accelerator_hours,
            wall_clock_hours=timed.wall_clock_hours,
            steps=run.data.trained_tokens / (run.training.seq_len * float(choice.steps.batch[0])),
            finish=finish_dates(run, with_overhead(run, timed.wall_clock_hours)),
            deadline_probability=deadline_probability(run, with_overhead(run, timed.wall_clock_hours)),
        ),
        cost=CostBlock(
            total_usd=total,
            lines=tuple(lines),
            usd_per_million_tokens=None if total is None else total.p50 / run.data.trained_tokens * 1e6,
        ),
        energy=EnergyBlock(
            mwh=mwh,
            tco2e=carbon_tco2e(accelerator_hours.p50, run.energy),
            pue=run.energy.pue,
            grid_gco2_per_kwh=run.energy.grid_gco2_per_kwh,
            watts_per_accelerator=run.energy.watts_per_accelerator,
        ),
        batch_sequences=int(choice.steps.batch[0]),
        spread_causes=_spread_causes(run, timed, planning, total),
        warnings=_warnings(run, timed, useful_hours),
    )


def _spread_causes(run: Run, timed: RunTime, planning: PlanCalibration, total: Range | None) -> tuple[CauseOfSpread, ...]:
    """Hours and cost under each uncertain factor of the hours alone; without those that are certain."""
    factors: dict[SpreadCause, Range] = {
        "speed": inverse(timed.speed.tokens_per_s_per_accelerator),
        "planning": loss_spread(run, planning),
        "failures": failure_spread(run, timed.reliable),
    }
    whole = timed.held_hours
    alone = {cause: product(whole.p50, (factor,)) for cause, factor in factors.items() if factor.p10 < factor.p90}
    return tuple(
        CauseOfSpread(cause, hours.scaled(1 / timed.capacity_share), None if total is None else _cost_in(hours, whole, total))
        for cause, hours in alone.items()
    )


def _cost_in(hours: Range, whole: Range, total: Range) -> Range:
    """Cost of fewer and of more hours [USD], linear between the p10, p50 and p90 of the run's hours and cost."""
    low = _share(whole.p50 - hours.p10, whole.p50 - whole.p10)
    high = _share(hours.p90 - whole.p50, whole.p90 - whole.p50)
    return Range(total.p50 - low * (total.p50 - total.p10), total.p50, total.p50 + high * (total.p90 - total.p50))


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def checkpoint_tb(run: Run) -> float:
    """Size of one checkpoint: weights (16 bit, or fp32) and the optimizer's states; only the adapters where the base is frozen.

    Returns
    -------
    float
        [TB].
    """
    frozen = run.training.method in FROZEN_BASE
    trained = adapter_parameters(run.model, run.training) if frozen else total_parameters(run.model)
    return trained * (element_bytes(run.training) + optimizer_bytes(run.training)) / 1e12


def tokens_block(run: Run) -> TokensBlock:
    """Data of a run as it is answered."""
    data = run.data
    part = [None if share is None else share * data.effective_tokens for share in (data.quality_share, data.robustness_share)]
    return TokensBlock(data.raw_tokens, data.effective_tokens, data.trained_tokens, _unit(run), *part)


def _unit(run: Run) -> str:
    return run.model.sample_unit if isinstance(run.model, GenericNetwork) else "token"


def _flops_block(run: Run, flops: TrainingFlops, executed: float) -> FlopsBlock:
    trained = run.data.trained_tokens
    recompute = executed - flops.total
    return FlopsBlock(
        per_token=flops.total,
        total=flops.total * trained,
        petaflop_s_days=flops.total * trained / FLOPS_PER_PETAFLOP_S_DAY,
        forward=flops.forward * trained,
        backward=flops.backward * trained,
        recompute=recompute * trained,
        attention_share=flops.attention / flops.total,
    )


def _throughput_block(run: Run, timed: RunTime, executed: float) -> ThroughputBlock:
    """How fast a timed run is, and where its time goes; `executed` FLOPs a token are those with recomputation."""
    flops, choice, speed = timed.flops, timed.choice, timed.speed
    rate = speed.tokens_per_s_per_accelerator
    return ThroughputBlock(
        tokens_per_s=rate.p50 * run.cluster.count,
        tokens_per_s_per_accelerator=rate,
        tflops_per_accelerator=rate.p50 * flops.total / 1e12,
        mfu=mfu(run, timed),
        hfu=rate.p50 * executed / peak_flops(run.cluster.accelerator, run.training.precision),
        step_time_s=step_time_s(run, timed),
        effective_tokens_per_s=effective_tokens_per_s(run, timed),
        effective_mfu=effective_mfu(run, timed),
        bound_by=choice.steps.bound_by(0),
        parallelism=choice.layouts.named(0),
        # The model's rates of other layouts do not compare with a speed that was measured.
        alternatives=() if run.efficiency.stated else choice.alternatives,
        source=speed.source,
        best_tokens_per_s_per_accelerator=speed.best_tokens_per_s_per_accelerator,
    )


def _phases(run: Run, timed: RunTime, utilisation: Utilisation) -> tuple[PhaseBlock, ...] | None:
    """Phases of a step of reinforcement learning, at the median throughput; None for other methods."""
    if run.training.rl is None:
        return None
    found = phases_of(run.model, run.training, run.cluster, utilisation, timed.choice.layouts)
    scale = step_time_s(run, timed) / found.step_s
    return tuple(replace(phase, seconds=scale * phase.seconds) for phase in found.phases)


def effective_tokens_per_s(run: Run, timed: RunTime) -> float:
    """Speed of the whole run: trained tokens over wall-clock time, at the median [tokens/s]."""
    return timed.speed.tokens_per_s_per_accelerator.p50 * run.cluster.count * timed.run_over_wall_clock


def effective_mfu(run: Run, timed: RunTime) -> float:
    """MFU of the whole run, over wall-clock time, at the median [1]."""
    return mfu(run, timed).p50 * timed.run_over_wall_clock


def mfu(run: Run, timed: RunTime) -> Range:
    """Model FLOPs utilisation: share of the dense peak that the model's own arithmetic takes.

    Returns
    -------
    Range
        [1].
    """
    return timed.speed.tokens_per_s_per_accelerator.scaled(timed.flops.total / peak_flops(run.cluster.accelerator, run.training.precision))


def step_time_s(run: Run, timed: RunTime) -> float:
    """Duration of an optimizer step at the median throughput.

    Returns
    -------
    float
        [s].
    """
    return float(timed.choice.steps.batch[0]) * run.training.seq_len / (timed.speed.tokens_per_s_per_accelerator.p50 * run.cluster.count)


def _memory_block(run: Run, choice: LayoutChoice) -> MemoryBlock:
    return MemoryBlock(
        per_accelerator_gb=choice.total_bytes / 1e9,
        capacity_gb=run.cluster.accelerator.usable_memory_bytes / 1e9,
        fits=choice.fits,
        breakdown_gb={name: value / 1e9 for name, value in choice.memory_bytes.items()},
        would_fit=() if choice.fits else what_would_fit(run.model, run.training, run.cluster),
    )


def finish_dates(run: Run, hours: Range) -> FinishDates | None:
    """Days on which a run of those hours ends, its queue included; None without a start."""
    start = run.schedule.start
    if start is None:
        return None
    return FinishDates(*(date_after(start, run.schedule.queue_hours + h) for h in (hours.p10, hours.p50, hours.p90)))


def date_after(start: date, hours: float) -> date:
    """The day a number of hours after the start of `start`; the calendar's last day where that is beyond it.

    Parameters
    ----------
    start : date
        First day.
    hours : float
        [h].

    Returns
    -------
    date
        Day of the end.
    """
    return start + timedelta(days=min(hours / 24, (date.max - start).days))


def deadline_probability(run: Run, *hours: Range) -> float | None:
    """Probability that the run, and what follows it on its machine, ends by the end of the deadline's day."""
    if run.schedule.start is None or run.schedule.deadline is None:
        return None
    available = ((run.schedule.deadline - run.schedule.start).days + 1) * 24 - run.schedule.queue_hours
    return comonotone_probability_below(available, hours)


def _attention_overstates(run: Run, flops: TrainingFlops) -> bool:
    """Whether counting the whole square of causal attention makes most of the total."""
    causal = isinstance(run.model, Transformer) and run.model.kind == "transformer" and run.training.count_full_attention
    return causal and flops.attention > flops.total / 2


def _warnings(run: Run, timed: RunTime, useful_hours: float) -> tuple[str, ...]:
    choice, reliable = timed.choice, timed.reliable
    warnings = []
    sampled = sampler_fits(run.model, run.training, run.cluster)
    if sampled and not choice.fits:
        warnings.append(
            f"the layout needs {choice.total_bytes / 1e9:,.1f} GB on an accelerator of"
            f" {run.cluster.accelerator.usable_memory_bytes / 1e9:,.1f} GB usable: it does not fit"
        )
    if choice.fused and choice.fits:
        warnings.append(
            "it fits only with a loss that never holds the logits, as Liger Kernel and Unsloth compute it: training.kernel_fusion"
            " fused_linear_cross_entropy"
        )
    if not sampled:
        warnings.append(SAMPLER_DOES_NOT_FIT)
    if isinstance(run.model, GenericNetwork) and run.model.activation_bytes_per_sample is None:
        warnings.append("memory leaves out activations: they are not known for this network")
    if _attention_overstates(run, timed.flops):
        warnings.append(
            "more than half of the FLOPs are attention's, counted as the whole square of which causal kernels execute half: mfu and hfu"
            " are higher than the machine's load; training.count_full_attention false counts the half"
        )
    if reliable.goodput < LOW_GOODPUT:
        warnings.append(f"only {reliable.goodput:.0%} of the time is useful: failures and checkpoints take the rest; see reliability")
    if useful_hours * 3600 < float(choice.steps.total[0]):
        warnings.append("the run is shorter than one optimizer step: check tokens against global_batch_tokens")
    return tuple(warnings)
