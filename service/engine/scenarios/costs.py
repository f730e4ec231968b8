"""Cost of one run in many trials, the lines of `training.cost.cost_lines` without rounding, and its price between two regimes."""

from __future__ import annotations

import numpy as np

from service.domain.scenarios import Floats, Regimes, RunModel
from service.domain.training.run import Run
from service.engine.training.cost import HOURS_PER_MONTH, idle_accelerators, overhead_share
from service.engine.training.reliability import checkpoints_written


def run_usd(model: RunModel, hours: Floats, usd_per_accelerator_hour: Floats | float, overhead: Floats | float) -> Floats:
    """Cost of one repeat of a run.

    Parameters
    ----------
    model : RunModel
        The run.
    hours : (trials,) float array
        Wall-clock hours of the repeat [h].
    usd_per_accelerator_hour : float or (trials,) float array
        Price [USD/h].
    overhead : float or (trials,) float array
        Evaluation, debugging and reruns, as a share of the run's compute [1].

    Returns
    -------
    (trials,) float array
        Accelerators, storage, network, people, power and the run's own evaluation [USD].
    """
    usd: Floats = _accelerator_hours(model, hours, overhead)
    usd *= usd_per_accelerator_hour
    usd += _other_usd(model, hours) + model.evaluation.other_usd
    return usd


def usd_per_hour(model: RunModel) -> float:
    """Marginal cost of a wall-clock hour of one repeat, whole terms of a reservation ignored [USD/h]."""
    if model.phases:
        hours = [phase.useful_hours for phase in model.phases]
        return sum(usd_per_hour(phase) * own for phase, own in zip(model.phases, hours, strict=True)) / sum(hours)
    run = model.run
    machine = run.cluster.count * (1 + overhead_share(run)) + idle_accelerators(run)
    return machine * run.billing.counted_usd_per_hour + model.energy_mwh_per_hour * 1000 * (run.energy.usd_per_kwh or 0.0)


def scarce_share_moments(regimes: Regimes, hours: Floats) -> tuple[float, Floats]:
    """Mean and variance of the share of a period that is scarce, for a stationary two-state Markov process.

    The process's correlation falls as exp(-s t), with s the sum of the two switching rates.

    Parameters
    ----------
    regimes : Regimes
        Mean duration of both regimes [h].
    hours : (trials,) float array
        Length of the period [h].

    Returns
    -------
    float, (trials,) float array
        Mean and variance of the share [1].

    References
    ----------
    Cox and Miller 1965, section 4.5.
    """
    share = regimes.scarce_hours / (regimes.scarce_hours + regimes.calm_hours)
    switching = np.maximum((1 / regimes.scarce_hours + 1 / regimes.calm_hours) * hours, 1e-6)
    return share, 2 * share * (1 - share) / switching * (1 + np.expm1(-switching) / switching)


def draw_price_factor(regimes: Regimes, hours: Floats, rng: np.random.Generator) -> Floats:
    """Mean price of each run over the stated price; the scarce share is drawn from a beta distribution with its mean and variance.

    Parameters
    ----------
    regimes : Regimes
        Factors [1] and mean durations [h] of both regimes.
    hours : (trials,) float array
        Wall-clock hours of the run [h].
    rng : Generator
        Source of the shares.

    Returns
    -------
    (trials,) float array
        Factor on the stated price [1].
    """
    mean, variance = scarce_share_moments(regimes, hours)
    strength = np.maximum(mean * (1 - mean) / variance - 1, 1e-9)
    scarce = rng.beta(mean * strength, (1 - mean) * strength)
    return np.asarray(regimes.calm_factor + (regimes.scarce_factor - regimes.calm_factor) * scarce)


def _accelerator_hours(model: RunModel, hours: Floats, overhead: Floats | float) -> Floats:
    """Paid accelerator-hours: at work, idle, overhead and evaluation; whole terms of a reservation."""
    run, evaluation = model.run, model.evaluation
    count, idle = run.cluster.count, idle_accelerators(run)
    if not run.billing.term_hours:
        return np.asarray(hours * (count * (1 + overhead) + idle) + evaluation.accelerator_hours)
    beside = evaluation.accelerator_hours - count * evaluation.waited_hours
    return _term_accelerator_hours(run, hours * (1 + overhead) + evaluation.waited_hours) + beside


def unused_term_hours(run: Run, hours: Floats, overhead: Floats | float) -> Floats:
    """Accelerator-hours of whole terms that phases on one machine leave unused.

    Parameters
    ----------
    run : Run
        Machine and term.
    hours : (trials,) float array
        Wall-clock hours of all these phases [h].
    overhead : float or (trials,) float array
        Work around the run, as a share of its compute [1].

    Returns
    -------
    (trials,) float array
        [accelerator-hours].
    """
    used = hours * (run.cluster.count * (1 + overhead) + idle_accelerators(run))
    return _term_accelerator_hours(run, hours * (1 + overhead)) - used


def _term_accelerator_hours(run: Run, used_hours: Floats) -> Floats:
    """Accelerator-hours of the whole terms that so many hours take, those of idle accelerators included."""
    term = run.billing.term_hours
    return np.asarray(np.ceil(used_hours / term) * (term * (run.cluster.count + idle_accelerators(run))))


def _other_usd(model: RunModel, hours: Floats) -> Floats | float:
    """Storage, network, people and power."""
    run, people, storage = model.run, model.run.personnel, model.run.storage
    staff_hours = people.evaluation_hours + people.analysis_hours + people.oncall_hours
    fixed = run.network.egress_tb * run.network.usd_per_tb + staff_hours * people.usd_per_hour
    power_usd_per_hour = model.energy_mwh_per_hour * 1000 * (run.energy.usd_per_kwh or 0.0)
    stored_tb = _stored_tb(model, hours)
    if not power_usd_per_hour and not np.any(stored_tb):
        return fixed
    months = storage.retention_months + hours / HOURS_PER_MONTH
    return np.asarray(fixed + power_usd_per_hour * hours + stored_tb * storage.usd_per_tb_month * months)


def _stored_tb(model: RunModel, hours: Floats) -> Floats | float:
    """Data, logs and checkpoints; no more checkpoints are stored than are written."""
    storage = model.run.storage
    fixed = storage.dataset_tb + storage.logs_tb
    if not storage.checkpoints_kept:
        return fixed
    if hours.size and float(hours.min()) >= storage.checkpoints_kept * model.interval_hours:
        return fixed + storage.checkpoints_kept * model.checkpoint_tb
    return fixed + np.minimum(storage.checkpoints_kept, checkpoints_written(hours, model.interval_hours)) * model.checkpoint_tb
