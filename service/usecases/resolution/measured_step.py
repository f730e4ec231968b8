"""A step that the caller measured on another count or layout: what it says of the plan's speed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from service.domain.errors import InvalidRequest
from service.domain.quantities import Range
from service.domain.training.run import MeasuredOn, Run
from service.domain.training.utilisation import Utilisation
from service.engine.numerics.ranges import P90_Z_SCORE
from service.engine.training.measured_step import MeasuredStep, model_measured_step, training_there
from service.presets.training.carried import carried_spread, load_carried_spreads, narrowed
from service.presets.training.run_spread import run_spread
from service.presets.training.throughput_parameters import LayoutKnowledge
from service.presets.training.utilisation import raise_range
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.training import resolve_axes

Section = Mapping[str, Any]

POINTER = "/efficiency/measured_on"
# A ratio beyond this says that the measured and the modelled step are not the same.
MAX_RATIO = 2.0


def resolve_measured_on(given: Section) -> MeasuredOn:
    """Where the caller measured. Raises InvalidRequest for virtual stages without a pipeline."""
    try:
        axes = resolve_axes(given)
    except InvalidRequest as problem:
        raise _there(problem) from problem
    return MeasuredOn(given["count"], axes, "parallelism" in given, given.get("global_batch_tokens"), given.get("seq_len"))


def carry_measured_step(
    run: Run, measured_on: MeasuredOn, utilisation: Utilisation, unmeasured_power: float, notes: AssumptionLog
) -> Utilisation:
    """The utilisation with the speed of the measured step over that modelled for it, in the range of plans carried in that way.

    `unmeasured_power`: exponent of the range for methods without published rates. Raises InvalidRequest for a layout that cannot make up
    the measured count, or a figure above the peak.
    """
    try:
        step = model_measured_step(run, measured_on, utilisation)
    except InvalidRequest as problem:
        raise _there(problem) from problem
    spread, source = _spread(run, measured_on, unmeasured_power)
    _note(measured_on, step, source, notes)
    return replace(
        utilisation, measured_over_modelled=step.ratio, spread=narrowed(utilisation.spread, spread), source=source, borrowed=False
    )


def _spread(run: Run, measured_on: MeasuredOn, power: float) -> tuple[Range, str]:
    """Range of a plan carried from that step, and where it comes from."""
    there, cluster = training_there(run, measured_on), run.cluster
    if measured_on.count == cluster.count and there == run.training:
        repeated = run_spread(cluster.count)
        reach = math.exp(P90_Z_SCORE * repeated.high_cv)
        return Range(1 / reach, 1.0, reach), f"the plan's own job, as {repeated.runs} runs of such size differed from run to run (MLPerf)"
    known: tuple[LayoutKnowledge, LayoutKnowledge] = (
        "layout" if there.axes.mesh_known(measured_on.count) else "goal",
        "layout" if run.training.axes.mesh_known(cluster.count) else "goal",
    )
    found = carried_spread(load_carried_spreads(), *known, cluster.count / measured_on.count)
    text = f"{found.pairs} published rows of {found.documents} documents, each predicted from another of the same model and machine"
    return raise_range(Range(found.p10, 1.0, found.p90), power), text


def _note(measured_on: MeasuredOn, step: MeasuredStep, source: str, notes: AssumptionLog) -> None:
    """Record both speeds of the measured step, and warn where they are too far apart to be of the same step."""
    layout = step.choice.layouts.named(0)
    value = {"measured_tokens_per_s_per_accelerator": step.measured, "modelled_tokens_per_s_per_accelerator": step.modelled}
    text = (
        f"on {measured_on.count} accelerators, in {', '.join(f'{name} {size}' for name, size in layout.items())}; the plan's steps are"
        f" modelled, times {step.ratio:.3g}; range: {source}"
    )
    notes.assume("efficiency.measured_on", value, text)
    if not 1 / MAX_RATIO <= step.ratio <= MAX_RATIO:
        notes.warn(
            f"the measured step is {step.ratio:.2g} times as fast as modelled for {measured_on.count} accelerators: check that the figure"
            " is of this model, precision, sequence and batch, and state efficiency.measured_on.parallelism as it was"
        )
    if not step.choice.fits:
        notes.warn(
            f"by the memory model the measured step does not fit on {measured_on.count} accelerators: check efficiency.measured_on, and"
            " state its activation_recompute, zero_stage and micro_batch"
        )


def _there(problem: InvalidRequest) -> InvalidRequest:
    """The problem of the measured step's training, with pointers into where it was measured."""
    if not problem.pointer.startswith("/training"):
        return problem
    return InvalidRequest(f"where it was measured: {problem.message}", POINTER + problem.pointer.removeprefix("/training"))
