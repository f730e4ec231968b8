"""How fast a run goes and how long it takes: its layout, the speed there, and the hours with what interrupts it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from service.domain.errors import InvalidRequest
from service.domain.quantities import Range
from service.domain.training.run import Cluster, Run
from service.domain.training.utilisation import PlanCalibration, Utilisation
from service.engine.numerics.ranges import inverse, product
from service.engine.training.flops import TrainingFlops, training_flops
from service.engine.training.reliability import Reliability, reliability
from service.engine.training.search.fit_advice import does_not_fit
from service.engine.training.search.layout_search import LayoutChoice, choose_layout
from service.engine.training.step.workload import peak_flops


@dataclass(frozen=True, slots=True)
class Throughput:
    """What the machine does: tokens (or samples) a second and accelerator, with the model's own error, and where it is from."""

    tokens_per_s_per_accelerator: Range
    source: str


@dataclass(frozen=True, slots=True)
class RunTime:
    """A run in time: arithmetic a token, the layout taken, its speed, its interruptions, and its hours on the wall clock.

    `run_over_step_speed`: what a whole run sustains of that speed, interruptions apart.
    """

    flops: TrainingFlops
    choice: LayoutChoice
    speed: Throughput
    run_over_step_speed: float
    reliable: Reliability
    wall_clock_hours: Range

    @property
    def run_over_wall_clock(self) -> float:
        """Speed of the whole run over that of its steps, interruptions included [1]."""
        return self.run_over_step_speed * self.reliable.goodput


def predict_run_time(run: Run, utilisation: Utilisation, planning: PlanCalibration) -> RunTime:
    """How long the run takes, by the arguments of `estimate.estimate`. Raises DoesNotFit, InvalidRequest."""
    choice = choose_layout(run.model, run.training, run.cluster, utilisation)
    if infeasible(run, choice):
        raise does_not_fit(run.model, run.training, run.cluster, choice)
    return predict_run_time_in(run, choice, utilisation, planning)


def infeasible(run: Run, choice: LayoutChoice) -> bool:
    """Whether nothing that was searched fits; a layout of the caller's own is timed as it is."""
    return not choice.fits and not run.training.axes.mesh_stated


def predict_run_time_in(run: Run, choice: LayoutChoice, utilisation: Utilisation, planning: PlanCalibration) -> RunTime:
    """How long the run takes in a layout. Raises InvalidRequest."""
    return predict_run_times_in(run, (choice,), utilisation, planning)[0]


def predict_run_times_in(run: Run, choices: Sequence[LayoutChoice], utilisation: Utilisation, planning: PlanCalibration) -> list[RunTime]:
    """How long the run takes in each of several layouts. Raises InvalidRequest."""
    flops = training_flops(run.model, run.training)
    return _interrupted(run, flops, [(choice, _speed(run, utilisation, flops, choice)) for choice in choices], planning)


def run_times_with_failures(run: Run, timed: Sequence[RunTime], planning: PlanCalibration) -> list[RunTime]:
    """How long a run takes that was timed with other failures: layouts and their speeds stay. Raises InvalidRequest."""
    return _interrupted(run, timed[0].flops, [(each.choice, each.speed) for each in timed], planning)


def _interrupted(
    run: Run, flops: TrainingFlops, going: Sequence[tuple[LayoutChoice, Throughput]], planning: PlanCalibration
) -> list[RunTime]:
    """Layouts and their speeds with what interrupts them, which is the same in all. Raises InvalidRequest."""
    weekly = run.schedule.maintenance_hours_per_week
    reliable = reliability(run.failures, run.cluster, weekly, run.failures.mttf_hours_per_accelerator.p50)
    _check_goodput(reliable)
    sustained = run_over_step_speed(run, planning)
    spreads = [_failure_spread(run, reliable), plan_error(run, planning)]
    return [
        RunTime(flops, choice, speed, sustained, reliable, _wall_clock_hours(run, speed, sustained * reliable.goodput, spreads))
        for choice, speed in going
    ]


def run_over_step_speed(run: Run, planning: PlanCalibration) -> float:
    """What a whole run sustains of its steps' speed: 1 on one node, and where the caller states an efficiency, which is a whole run's.

    Published runs of one node took no longer than their steps, those of many nodes did: evaluation within the run and logging, slow nodes
    and links that all the others wait for, restarts that nobody counts, layouts short of the best. The loss goes with the share of a
    job's peers that are on other nodes (tools/calibration/spreads.py, `lost_between_nodes`).
    """
    return 1.0 if run.efficiency.stated else 1 / (1 + planning.lost_between_nodes * off_node_fraction(run.cluster))


def off_node_fraction(cluster: Cluster) -> float:
    """Share of a job that is not on an accelerator's own node: 0 on one node, 1 - 1 / nodes on whole ones."""
    return 1 - min(1.0, cluster.accelerators_per_node / cluster.count)


def plan_error(run: Run, planning: PlanCalibration) -> Range:
    """How published runs scattered about such a plan, beyond the speed's own error: nothing where the caller states an efficiency,
    nor of a stated layout on one node, where nothing but the speed is open.
    """
    settled = run.training.axes.mesh_known(run.cluster.count) and off_node_fraction(run.cluster) == 0
    return Range.exactly(1.0) if run.efficiency.stated or settled else planning.spread


def _speed(run: Run, utilisation: Utilisation, flops: TrainingFlops, choice: LayoutChoice) -> Throughput:
    """What the caller measured, else the step model. Raises InvalidRequest where a measurement is above the dense peak."""
    efficiency, peak = run.efficiency, peak_flops(run.cluster.accelerator, run.training.precision)
    if efficiency.stated:
        if efficiency.tokens_per_s_per_accelerator is not None:
            rate, field = efficiency.tokens_per_s_per_accelerator, "tokens_per_s_per_accelerator"
        elif efficiency.tflops_per_accelerator is not None:
            rate, field = efficiency.tflops_per_accelerator * 1e12 / flops.total, "tflops_per_accelerator"
        else:
            rate, field = (efficiency.mfu or 0.0) * peak / flops.total, "mfu"
        mfu = rate * flops.total / peak
        if mfu > 1 + 1e-9:
            raise InvalidRequest(
                f"that is {mfu:.0%} of the dense {run.training.precision} peak of {run.cluster.accelerator.name}"
                f" ({peak / 1e12:g} TFLOP/s); state a rate an accelerator, without sparsity and without recomputation",
                f"/efficiency/{field}",
            )
        return Throughput(Range.exactly(rate), "caller")
    tokens = float(choice.steps.batch[0]) * run.training.seq_len / run.cluster.count
    median, ceiling = tokens / float(choice.steps.total[0]), peak / flops.total
    spread = product(median, (utilisation.spread,))
    # No luck makes a step shorter than its matrix work alone.
    fastest = min(spread.p90, ceiling, tokens / float(choice.steps.compute[0]))
    return Throughput(Range(spread.p10, spread.p50, max(spread.p50, fastest)), "modelled")


def _failure_spread(run: Run, reliable: Reliability) -> Range:
    """How the hours move with the failure rate."""
    mttf = run.failures.mttf_hours_per_accelerator
    weekly = run.schedule.maintenance_hours_per_week
    worst, best = (reliability(run.failures, run.cluster, weekly, hours).goodput for hours in (mttf.p10, mttf.p90))
    middle = max(reliable.goodput, 1e-9)
    return Range(middle / max(best, middle), 1.0, middle / max(min(worst, middle), 1e-9))


def _check_goodput(reliable: Reliability) -> None:
    """Raises InvalidRequest where failures come faster than the run can get on."""
    if reliable.goodput < 1e-3:
        raise InvalidRequest(
            f"interruptions come every {reliable.mttf_hours * 60:.1f} minutes: the run never gets on; take fewer accelerators, a higher"
            " MTTF, fewer preemptions, or faster checkpoints and restarts",
            "/failures",
        )


def _wall_clock_hours(run: Run, speed: Throughput, useful_share: float, spreads: Sequence[Range]) -> Range:
    useful_s = run.data.trained_tokens / (speed.tokens_per_s_per_accelerator.p50 * run.cluster.count)
    return product(useful_s / 3600 / useful_share, (inverse(speed.tokens_per_s_per_accelerator), *spreads))
