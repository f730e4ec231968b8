"""The bill of one run in many trials at once: the lines of `cost.cost_lines`, without rounding. A test holds the two together."""

from __future__ import annotations

import numpy as np

from service.domain.scenarios import Floats, RunModel
from service.domain.training.run import Run
from service.engine.training.cost import HOURS_PER_MONTH, idle_accelerators, overhead_share
from service.engine.training.reliability import checkpoints_written


def run_usd(model: RunModel, hours: Floats, usd_per_accelerator_hour: Floats | float, around: Floats | float) -> Floats:
    """USD of a run made once, that takes so many wall-clock hours. `around`: work around it as a share of its compute."""
    usd: Floats = _accelerator_hours(model.run, hours, around)
    usd *= usd_per_accelerator_hour
    usd += _kept_usd(model, hours)
    return usd


def usd_per_hour(model: RunModel) -> float:
    """What an hour more costs of a run made once, a reservation's terms left aside."""
    run = model.run
    machine = run.cluster.count * (1 + overhead_share(run)) + idle_accelerators(run)
    return machine * run.usd_per_accelerator_hour + model.energy_mwh_per_hour * 1000 * (run.energy.usd_per_kwh or 0.0)


def _accelerator_hours(run: Run, hours: Floats, around: Floats | float) -> Floats:
    """Those that are paid: at work, idle, work around the run; whole terms of a reservation."""
    count, idle = run.cluster.count, idle_accelerators(run)
    if not run.term_hours:
        return np.asarray(hours * (count * (1 + around) + idle))
    return np.asarray(np.ceil(hours * (1 + around) / run.term_hours) * (run.term_hours * (count + idle)))


def _kept_usd(model: RunModel, hours: Floats) -> Floats | float:
    """Storage, network, people and power."""
    run, people, storage = model.run, model.run.personnel, model.run.storage
    staff_hours = people.evaluation_hours + people.analysis_hours + people.oncall_hours
    fixed = run.network.egress_tb * run.network.usd_per_tb + staff_hours * people.usd_per_hour
    powered = model.energy_mwh_per_hour * 1000 * (run.energy.usd_per_kwh or 0.0)
    held_tb = _held_tb(model, hours)
    if not powered and not np.any(held_tb):
        return fixed
    months = storage.retention_months + hours / HOURS_PER_MONTH
    return np.asarray(fixed + powered * hours + held_tb * storage.usd_per_tb_month * months)


def _held_tb(model: RunModel, hours: Floats) -> Floats | float:
    """Data, logs and checkpoints, of which no more are kept than are written."""
    storage = model.run.storage
    fixed = storage.dataset_tb + storage.logs_tb
    if not storage.checkpoints_kept:
        return fixed
    if hours.size and float(hours.min()) >= storage.checkpoints_kept * model.interval_hours:
        return fixed + storage.checkpoints_kept * model.checkpoint_tb
    return fixed + np.minimum(storage.checkpoints_kept, checkpoints_written(hours, model.interval_hours)) * model.checkpoint_tb
