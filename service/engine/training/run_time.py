"""Throughput and duration of a run: its layout, its throughput there, and the hours with its interruptions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from service.domain.errors import InvalidRequest
from service.domain.quantities import Range
from service.domain.training.model import Model, Transformer
from service.domain.training.run import Cluster, Run
from service.domain.training.utilisation import LossRange, LossTerms, PlanCalibration, Utilisation
from service.engine.numerics.ranges import inverse, product
from service.engine.training.flops import TrainingFlops, training_flops
from service.engine.training.measured_step import measured_tokens_per_s
from service.engine.training.reliability import Reliability, reliability
from service.engine.training.search.fit_advice import does_not_fit
from service.engine.training.search.layout_search import LayoutChoice, choose_layout
from service.engine.training.step.step_time import slowed, typical_share
from service.engine.training.step.workload import peak_flops


@dataclass(frozen=True, slots=True)
class Throughput:
    """Throughput of one accelerator, with the model's own error.

    Attributes
    ----------
    tokens_per_s_per_accelerator : Range
        [tokens (or samples) per s].
    source : str
        "caller", "modelled" or "carried" from a measured step.
    best_tokens_per_s_per_accelerator : float, optional
        Median in the fastest layout that is found, where teams are expected to run slower ones [tokens (or samples) per s].
    """

    tokens_per_s_per_accelerator: Range
    source: str
    best_tokens_per_s_per_accelerator: float | None = None


@dataclass(frozen=True, slots=True)
class RunTime:
    """A run in time.

    Attributes
    ----------
    flops : TrainingFlops
        Arithmetic of one token.
    choice : LayoutChoice
        Layout, with its step and memory.
    speed : Throughput
        Throughput of the steps.
    run_over_step_speed : float
        Throughput of the whole run over that of its steps, interruptions apart [1].
    reliable : Reliability
        Failures, checkpoints and goodput.
    held_hours : Range
        Time in which the accelerators are held, and paid [h].
    capacity_share : float
        Share of the time in which they can be had [1].
    """

    flops: TrainingFlops
    choice: LayoutChoice
    speed: Throughput
    run_over_step_speed: float
    reliable: Reliability
    held_hours: Range
    capacity_share: float

    @property
    def wall_clock_hours(self) -> Range:
        """Duration [h]: the hours held, and the wait for capacity."""
        return self.held_hours.scaled(1 / self.capacity_share)

    @property
    def run_over_wall_clock(self) -> float:
        """Speed of the whole run over that of its steps, interruptions and the wait for capacity included [1]."""
        return self.run_over_step_speed * self.reliable.goodput * self.capacity_share


def predict_run_time(run: Run, utilisation: Utilisation, planning: PlanCalibration) -> RunTime:
    """Duration of a run in the fastest layout that fits. Raises DoesNotFit, InvalidRequest."""
    choice = choose_layout(run.model, run.training, run.cluster, utilisation)
    if infeasible(run, choice):
        raise does_not_fit(run.model, run.training, run.cluster, choice)
    return predict_run_time_in(run, choice, utilisation, planning)


def infeasible(run: Run, choice: LayoutChoice) -> bool:
    """Whether nothing that is searched fits; a layout that the caller states is timed as it is."""
    return not choice.fits and not run.training.axes.mesh_stated


def predict_run_time_in(run: Run, choice: LayoutChoice, utilisation: Utilisation, planning: PlanCalibration) -> RunTime:
    """Duration of a run in one layout. Raises InvalidRequest."""
    return predict_run_times_in(run, (choice,), utilisation, planning)[0]


def predict_run_times_in(run: Run, choices: Sequence[LayoutChoice], utilisation: Utilisation, planning: PlanCalibration) -> list[RunTime]:
    """Duration of a run in each of several layouts. Raises InvalidRequest."""
    flops = training_flops(run.model, run.training)
    return _interrupted(run, flops, [(choice, _speed(run, utilisation, flops, choice)) for choice in choices], planning)


def run_times_with_failures(run: Run, timed: Sequence[RunTime], planning: PlanCalibration) -> list[RunTime]:
    """Durations of a timed run with the failures of `run`; layouts and their throughput stay. Raises InvalidRequest."""
    return _interrupted(run, timed[0].flops, [(each.choice, each.speed) for each in timed], planning)


def _interrupted(
    run: Run, flops: TrainingFlops, timed_layouts: Sequence[tuple[LayoutChoice, Throughput]], planning: PlanCalibration
) -> list[RunTime]:
    """Layouts and their throughput with the run's interruptions, which are the same in all. Raises InvalidRequest."""
    weekly = run.schedule.maintenance_hours_per_week
    reliable = reliability(run.failures, run.cluster, weekly, run.failures.mttf_hours_per_accelerator.p50)
    _check_goodput(reliable)
    ratio = run_over_step_speed(run, planning)
    spreads = [failure_spread(run, reliable), loss_spread(run, planning)]
    return [
        RunTime(
            flops, choice, speed, ratio, reliable, _held_hours(run, speed, ratio * reliable.goodput, spreads), run.failures.capacity_share
        )
        for choice, speed in timed_layouts
    ]


def run_over_step_speed(run: Run, planning: PlanCalibration) -> float:
    """Throughput of a whole run over that of its steps, interruptions apart; 1 where the caller states an efficiency, a whole run's.

    Returns
    -------
    float
        From 0 to 1 [1].
    """
    if run.efficiency.stated:
        return 1.0
    terms = loss_terms(run.model, run.cluster, run.training.software_year, planning.measured)
    return math.exp(-log_loss(planning.coefficients, terms))


def loss_terms(model: Model, cluster: Cluster, software_year: int, measured: LossRange) -> LossTerms:
    """Terms of what a whole run loses beyond its steps and failures.

    Whole runs take longer than their steps: evaluation within the run and logging, slow nodes and links that all the others wait for,
    and in earlier years slower software. Published runs on one node of recent software took no longer
    (tools/calibration/whole_runs/losses.py).

    Returns
    -------
    LossTerms
        At the end of the measured range for a run beyond it.
    """
    off_node = cluster.off_node_fraction
    count = min(max(cluster.count, measured.from_count), measured.to_count)
    return LossTerms(
        off_node=off_node,
        scale=off_node * math.log2(count / measured.from_count),
        age=float(measured.last_year - min(max(software_year, measured.first_year), measured.last_year)),
        mixture=float(isinstance(model, Transformer) and model.experts is not None),
    )


def log_loss(coefficients: LossTerms, terms: LossTerms) -> float:
    """Logarithm of a whole run's hours over those of its steps and failures; never below 0, since no run is faster than its steps.

    Returns
    -------
    float
        0 or more [1].
    """
    return max(
        0.0,
        coefficients.off_node * terms.off_node
        + coefficients.scale * terms.scale
        + coefficients.age * terms.age
        + coefficients.mixture * terms.mixture,
    )


def loss_spread(run: Run, planning: PlanCalibration) -> Range:
    """Hours of a whole run over those with the loss that is planned: from none of it to twice as much, as a logarithm.

    Returns
    -------
    Range
        [1].
    """
    ratio = run_over_step_speed(run, planning)
    return Range(ratio, 1.0, 1 / ratio)


def _speed(run: Run, utilisation: Utilisation, flops: TrainingFlops, choice: LayoutChoice) -> Throughput:
    """The caller's measured throughput, else that of the step model. Raises InvalidRequest for a measurement above the dense peak."""
    accelerator, precision = run.cluster.accelerator, run.training.precision
    if run.efficiency.stated:
        return Throughput(Range.exactly(measured_tokens_per_s(run.efficiency, accelerator, precision, flops)), "caller")
    tokens = float(choice.steps.batch[0]) * run.training.seq_len / run.cluster.count
    median, ceiling = tokens / float(choice.steps.total[0]), peak_flops(accelerator, precision) / flops.total
    carried = utilisation.measured_over_modelled
    # A step faster than modelled elsewhere is no reason to expect more than the peak here.
    median = min(median, max(ceiling, median / carried)) if carried > 1 else median
    spread = product(median, (utilisation.spread,))
    share = typical_share(utilisation, run.cluster)
    found = slowed(choice.steps, share)
    # A step is never shorter than its matrix work alone.
    fastest = min(spread.p90, ceiling, tokens / float(found.compute[0]))
    source = "modelled" if run.efficiency.measured_on is None else "carried"
    best = tokens / float(found.total[0]) if share < 1 else None
    return Throughput(Range(spread.p10, spread.p50, max(spread.p50, fastest)), source, best)


def failure_spread(run: Run, reliable: Reliability) -> Range:
    """Hours at the p10 and p90 of the time to failure, and of the rate of preemptions, over those at their medians.

    Returns
    -------
    Range
        [1].
    """
    mttf, preemptions = run.failures.mttf_hours_per_accelerator, run.failures.preemption_spread
    by_failures = _hours_ratio(run, reliable, [(hours, 1.0) for hours in (mttf.p10, mttf.p90)])
    if preemptions.p10 == preemptions.p90:
        return by_failures
    return product(1.0, (by_failures, _hours_ratio(run, reliable, [(mttf.p50, often) for often in (preemptions.p90, preemptions.p10)])))


def _hours_ratio(run: Run, reliable: Reliability, ends: Sequence[tuple[float, float]]) -> Range:
    """Hours over those at the median; `ends` where most and least is lost: time to failure [h], preemptions over their median [1]."""
    weekly, rate = run.schedule.maintenance_hours_per_week, run.failures.preemptions_per_node_hour
    worst, best = (
        reliability(replace(run.failures, preemptions_per_node_hour=rate * often), run.cluster, weekly, hours).goodput
        for hours, often in ends
    )
    middle = max(reliable.goodput, 1e-9)
    return Range(middle / max(best, middle), 1.0, middle / max(min(worst, middle), 1e-9))


def _check_goodput(reliable: Reliability) -> None:
    """Raise InvalidRequest where failures leave no useful time."""
    if reliable.goodput < 1e-3:
        raise InvalidRequest(
            f"interruptions come every {reliable.mttf_hours * 60:.1f} minutes: the run makes practically no progress; take fewer"
            " accelerators, a higher MTTF, fewer preemptions, or faster checkpoints and restarts",
            "/failures",
        )


def _held_hours(run: Run, speed: Throughput, useful_share: float, spreads: Sequence[Range]) -> Range:
    useful_s = run.data.trained_tokens / (speed.tokens_per_s_per_accelerator.p50 * run.cluster.count)
    return product(useful_s / 3600 / useful_share, (inverse(speed.tokens_per_s_per_accelerator), *spreads))
