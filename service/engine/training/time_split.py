"""Where a run's time on the clock goes: into the parts of its steps, and into what is beside them."""

from __future__ import annotations

from dataclasses import replace

from service.domain.training.estimate import STEP_PARTS, TimePart
from service.domain.training.model import GenericNetwork, Transformer
from service.domain.training.run import Run
from service.domain.training.utilisation import Utilisation
from service.engine.training.reliability import HOURS_PER_WEEK
from service.engine.training.run_time import RunTime
from service.engine.training.step.step_time import PARTS, exchange_times, typical_share
from service.engine.training.step.step_work import step_work

LEAST_SHARE = 1e-9
"""Parts below this are left out: rounding [1]."""


def time_split(
    run: Run, timed: RunTime, utilisation: Utilisation, step_s: float, mfu: float, executed: float
) -> tuple[TimePart, ...] | None:
    """Parts of the time on the clock, those of a step first.

    The model times a step's parts; they are scaled to the step that is answered. Its arithmetic at the dense peak is the MFU's share of it.

    Parameters
    ----------
    run : Run
        Model, cluster, failures.
    timed : RunTime
        Its layout and interruptions.
    utilisation : Utilisation
        What the accelerator achieves.
    step_s : float
        Duration of a step, median [s].
    mfu : float
        Model FLOPs utilisation of a step, median [1].
    executed : float
        FLOPs of a token with recomputation [FLOP].

    Returns
    -------
    tuple of TimePart, or None
        Shares that add up to 1; None where the speed is the caller's, or a step has phases of its own.
    """
    if run.efficiency.stated or run.training.rl is not None:
        return None
    steps = timed.run_over_wall_clock / step_s
    parts = _step_parts(run, timed, utilisation, step_s, mfu, executed)
    named = [TimePart(name, parts[name], parts[name] * steps) for name in STEP_PARTS]
    found = [*named, *(TimePart(name, None, part) for name, part in _beside_steps(run, timed).items())]
    return tuple(part for part in found if part.share >= LEAST_SHARE)


def _step_parts(run: Run, timed: RunTime, utilisation: Utilisation, step_s: float, mfu: float, executed: float) -> dict[str, float]:
    """Parts of a step [s], which add up to its duration."""
    steps, share = timed.choice.steps, typical_share(utilisation, run.cluster)
    scale = step_s / float(steps.total[0])
    parts = {name: scale * float(getattr(steps, name)[0]) for name in PARTS}
    machine = sum(parts.values())
    compute, memory, launch, network, pipeline = (share * parts[name] for name in PARTS)
    recompute = compute * (1 - timed.flops.total / executed)
    arithmetic = min(mfu * step_s, compute - recompute)
    return {
        "arithmetic": arithmetic,
        "kernels": compute - recompute - arithmetic,
        "recompute": recompute,
        "memory": memory,
        "launch": launch,
        **_exchange_parts(run, timed, utilisation, network),
        "pipeline": pipeline,
        "input": max(0.0, step_s - machine),
        "layout": (1 - share) * machine,
    }


def _exchange_parts(run: Run, timed: RunTime, utilisation: Utilisation, network_s: float) -> dict[str, float]:
    """The time of exchanges by whom they are between [s]."""
    if isinstance(run.model, GenericNetwork) and utilisation.other_share:
        utilisation = replace(utilisation, matmul_share=utilisation.other_share)
    work = step_work(run.model, run.training, run.cluster, timed.choice.layouts.only())
    kinds = {name: float(seconds) for name, seconds in exchange_times(work, utilisation).items()}
    routed = isinstance(run.model, Transformer) and run.model.experts is not None
    kinds["expert" if routed else "stage"] += kinds.pop("overlapped")
    whole = sum(kinds.values())
    return {name: network_s * seconds / whole if whole else 0.0 for name, seconds in kinds.items()}


def _beside_steps(run: Run, timed: RunTime) -> dict[str, float]:
    """Shares of the time on the clock that no step has [1]."""
    failures, held, goodput = run.failures, timed.capacity_share, timed.reliable.goodput
    maintenance = run.schedule.maintenance_hours_per_week / HOURS_PER_WEEK
    # After each interval of work training waits for one write, however often either is repeated.
    blocking = failures.checkpoint_write_minutes * failures.checkpoint_blocking_share / timed.reliable.checkpoint_interval_minutes
    return {
        "whole_run": held * goodput * (1 - timed.run_over_step_speed),
        "checkpoints": held * goodput * blocking,
        "failures": held * max(0.0, 1 - goodput * (1 + blocking) - maintenance),
        "maintenance": held * maintenance,
        "capacity": 1 - held,
    }
