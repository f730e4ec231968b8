"""The utilisation a run's machine achieves: published, measured by the user, or learned from finished runs."""

from __future__ import annotations

from dataclasses import replace

from service.context import AppContext
from service.domain.quantities import Range
from service.domain.training.model import GenericNetwork
from service.domain.training.run import TUNED, Efficiency, Run
from service.domain.training.utilisation import Utilisation
from service.engine.training.power_limit import limit_power
from service.engine.training.run_time import run_over_step_speed
from service.engine.training.step.step_time import typical_share
from service.presets.defaults import default
from service.presets.hardware.power_limits import find_power_limit, power_limit_source
from service.presets.training.finetuning import finetuning_spread
from service.presets.training.models import find_model
from service.presets.training.throughput_parameters import LayoutKnowledge, load_parameters
from service.presets.training.utilisation import (
    find_utilisation,
    nearest,
    plan_calibration,
    raise_range,
    scale_power,
    spread_of,
    unmeasured_spread,
)
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.feedback import apply_throughput_feedback
from service.usecases.resolution.measured_step import carry_measured_step
from service.usecases.resolution.user_measurements import apply_measurement

# Methods whose arithmetic is that of measured pre-training runs; ranges of the others are raised to a power.
MEASURED_METHODS = ("pretrain", "continued_pretrain", *TUNED)
UNMEASURED_POWER = 1.5
UNMEASURED = "no published throughput of"
"""How the warning of a borrowed rate begins."""
# Methods that train in layouts as published pre-training does; the speed of the others is fitted to steps in layouts that teams ran.
IN_TYPICAL_LAYOUTS = ("pretrain", "continued_pretrain", "distill")
# The only network counted by samples with published rates; its share of the peak is used for all.
MEASURED_NETWORK = "resnet-50"
MEASURED_NETWORK_SOURCE = "github NVIDIA/DeepLearningExamples PyTorch/Classification/ConvNets/resnet50v1.5/README.md"


def resolve_utilisation(context: AppContext, run: Run, notes: AssumptionLog) -> Utilisation:
    """The utilisation of the run's machine; what is borrowed or unknown is recorded as assumption or warning."""
    cluster = run.cluster
    known: LayoutKnowledge = "layout" if run.training.axes.mesh_known(cluster.count) else "goal"
    utilisation = find_utilisation(cluster.accelerator, run.training.precision, known, cluster.count, run.training.software_year)
    if run.training.finetuning is not None:
        utilisation = replace(utilisation, spread=_no_narrower(finetuning_spread(), utilisation))
    if run.efficiency.stated:
        _note_stated_efficiency(run, notes)
        return utilisation
    measured = _limit_power(run, apply_measurement(context, run, utilisation, notes), notes)
    if run.efficiency.measured_on is not None:
        power = 1.0 if run.training.method in MEASURED_METHODS else UNMEASURED_POWER
        utilisation = carry_measured_step(run, run.efficiency.measured_on, measured, power, notes)
    else:
        utilisation = _widen_unmeasured(run, apply_throughput_feedback(context, run, measured, notes), known, notes)
        utilisation = _in_typical_layouts(run, utilisation, known, notes)
    _note_whole_run_losses(run, notes)
    return utilisation


def _no_narrower(own: Range, utilisation: Utilisation) -> Range:
    """Range of a method, no narrower than that of the machine's pre-training."""
    machine = utilisation.spread
    return Range(min(own.p10, machine.p10), 1.0, max(own.p90, machine.p90))


def _limit_power(run: Run, utilisation: Utilisation, notes: AssumptionLog) -> Utilisation:
    """The utilisation at the machine's power limit."""
    if run.cluster.power_share == 1:
        return utilisation
    found = find_power_limit(run.cluster.power_share)
    value = {"relative_time": round(found.relative_time.p50, 4), "relative_power": round(found.relative_power, 4)}
    text = f"at {found.share:.0%} of the TDP, one card and small networks: {power_limit_source()}"
    notes.assume("throughput.power_limit", value, text)
    return limit_power(utilisation, found.relative_time)


def _widen_unmeasured(run: Run, utilisation: Utilisation, known: LayoutKnowledge, notes: AssumptionLog) -> Utilisation:
    """Warn of borrowed rates, and widen the range for methods without published rates."""
    accelerator, training = run.cluster.accelerator, run.training
    if isinstance(run.model, GenericNetwork):
        utilisation = _borrow_for_generic_network(run, utilisation, known, notes)
    elif utilisation.borrowed:
        relative = utilisation.source.partition(":")[0]
        notes.warn(f"{UNMEASURED} {accelerator.name} at {training.precision}: {relative}, with a wider range")
    if training.method in MEASURED_METHODS:
        return utilisation
    if training.rl is not None:
        return replace(utilisation, spread=_no_narrower(training.rl.rates.spread, utilisation))
    notes.warn(f"no throughput of method {training.method} is published, so the range is wider")
    return replace(utilisation, spread=raise_range(utilisation.spread, UNMEASURED_POWER))


def _borrow_for_generic_network(run: Run, utilisation: Utilisation, known: LayoutKnowledge, notes: AssumptionLog) -> Utilisation:
    """The utilisation of a network counted by samples: the published share of one network, on the nearest accelerator family it ran on.

    So does that family's range, wider where the share is borrowed.
    """
    accelerator, parameters = run.cluster.accelerator, load_parameters()
    wanted = (accelerator.family, parameters.classes[run.training.precision])
    taken = nearest(parameters, parameters.other, wanted)
    ran = f"{MEASURED_NETWORK} on {taken[0]} at {taken[1]}"
    notes.assume("throughput.peak_share", utilisation.other_share, f"{ran} ({MEASURED_NETWORK_SOURCE})")
    power, spread = scale_power(parameters.scales, known, run.cluster.count), spread_of(parameters.spreads, taken, known)
    if taken != wanted or run.model != find_model(MEASURED_NETWORK).model:
        power, spread = power * parameters.borrowed_power, unmeasured_spread(parameters.spreads, known)
        asked = f"this network on {accelerator.name} at {run.training.precision}"
        notes.warn(f"{UNMEASURED} {asked}: borrowed from {ran}, with a wider range")
    return replace(utilisation, spread=raise_range(spread, power))


def _note_stated_efficiency(run: Run, notes: AssumptionLog) -> None:
    """Record that a stated efficiency is a whole run's, and warn where one of steps would leave out a loss that counts."""
    source = (
        "used as the speed of the whole run: only interruptions reduce it, and it has no range; if it was measured on steps, state"
        " efficiency.measured_on"
    )
    notes.assume("efficiency", "of the whole run", source)
    lost = 1 - run_over_step_speed(replace(run, efficiency=Efficiency()), plan_calibration())
    if lost > default("efficiency.loss_worth_a_warning").value:
        notes.warn(
            f"the stated efficiency is used for the whole run, but runs of this size usually lose another {lost:.0%} outside of steps and"
            " interruptions; if it was measured on steps, state efficiency.measured_on"
        )


def _in_typical_layouts(run: Run, utilisation: Utilisation, known: LayoutKnowledge, notes: AssumptionLog) -> Utilisation:
    """The utilisation with what teams lose by running other layouts than the fastest that is found, where one is searched."""
    if known == "layout" or run.training.method not in IN_TYPICAL_LAYOUTS:
        return utilisation
    utilisation = replace(utilisation, layout_loss=load_parameters().layout_loss)
    share = typical_share(utilisation, run.cluster)
    if share < 1:
        source = (
            "speed over that of the fastest layout: the median of published jobs on several nodes, which rarely run the fastest one. Its"
            " speed is throughput.best_tokens_per_s_per_accelerator; state training.parallelism to plan with your own layout"
        )
        notes.assume("throughput.typical_share", round(share, 4), source)
    return utilisation


def _note_whole_run_losses(run: Run, notes: AssumptionLog) -> None:
    """Record what whole runs lose beyond their steps and failures, and how uncertain that is."""
    found = plan_calibration()
    ratio = run_over_step_speed(run, found)
    if ratio == 1:
        return
    year = min(run.training.software_year, found.measured.last_year)
    source = (
        f"published runs on such a machine, with software of {year} or the nearest measured year, took {1 / ratio:.3g} times as long as"
        " their steps and failures alone (single nodes with recent software: no longer). The ranges of time and cost cover from none to"
        " twice this loss; to leave it out, state the efficiency of a whole run"
    )
    notes.assume("throughput.run_over_step_speed", ratio, source)
