"""A user's own measurement of an accelerator, and how it replaces published utilisation in their estimates."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from service.context import AppContext
from service.domain.quantities import Range
from service.domain.training.hardware import Accelerator, Precision
from service.domain.training.model import Transformer
from service.domain.training.run import Cluster, Run, Training
from service.domain.training.utilisation import BadMeasurement, Utilisation
from service.engine.training.flops import training_flops
from service.engine.training.layouts import Layouts
from service.engine.training.step.step_time import StepTime, step_time
from service.presets.hardware.accelerators import load_accelerators
from service.presets.training.footprint import find_footprint
from service.presets.training.measured import FILE, DeviceMeasurement, Key, MeasuredShape, read_measurements, residual_spread
from service.presets.training.utilisation import find_utilisation
from service.usecases.resolution.assumption_log import AssumptionLog

MIN_SHARE, MAX_SHARE = 0.05, 1.0
MAX_LAYER_OVERHEAD_S = 0.1
# A shape is launch-bound where it takes this many times its arithmetic time.
LAUNCH_BOUND_RATIO = 2.0
# A shape is compute-bound where it takes this many times its launch time.
COMPUTE_BOUND_RATIO = 1.3
# With fewer shapes the published range stays.
MIN_SHAPES_FOR_SPREAD = 3
_HALVINGS = 50


@dataclass(frozen=True, slots=True)
class MeasuredCase:
    """A timed shape as arguments of the step model."""

    model: Transformer
    training: Training
    cluster: Cluster
    layouts: Layouts

    def steps(self, utilisation: Utilisation) -> StepTime:
        return step_time(self.model, self.training, self.cluster, utilisation, self.layouts)

    def seconds(self, utilisation: Utilisation) -> float:
        """Predicted time of one step [s]."""
        return float(self.steps(utilisation).total[0])


def measured_case(shape: MeasuredShape, accelerator: Accelerator, precision: Precision) -> MeasuredCase:
    """Decoder layers without embeddings or head, one micro-batch a step, on one device."""
    model = Transformer(
        layers=shape.layers,
        hidden_size=shape.hidden_size,
        attention_heads=shape.attention_heads,
        kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        ffn_hidden_size=shape.ffn_hidden_size,
        vocab_size=0,
    )
    training = Training("pretrain", precision, "adamw", shape.seq_len, shape.micro_batch, find_footprint(accelerator))
    return MeasuredCase(model, training, Cluster(accelerator, 1, 1, 0.0), Layouts.single(micro_batch=shape.micro_batch))


def step_flops(asked: MeasuredCase, *, full_attention: bool = True) -> float:
    """FLOPs of one step as papers count them; without `full_attention`, the masked half of attention is left out."""
    training = replace(asked.training, count_full_attention=full_attention)
    return float(training_flops(asked.model, training).total) * training.seq_len * training.global_batch


def load_measurements(folder: Path) -> Mapping[Key, DeviceMeasurement]:
    """The measurements of a data directory. Raises BadMeasurement for an unusable one."""
    found = read_measurements(folder)
    for measurement in found.values():
        try:
            check_measurement(measurement)
        except BadMeasurement as error:
            raise BadMeasurement(f"{FILE}: {error}") from error
    return found


@functools.lru_cache(maxsize=256)
def check_measurement(measurement: DeviceMeasurement) -> None:
    """Raise BadMeasurement for rates above the peak, an unknown precision, or shapes too small to show the arithmetic."""
    accelerator = load_accelerators()[measurement.accelerator]
    where = f"the measurement of {accelerator.name} at {measurement.precision}"
    if measurement.precision not in accelerator.peak_tflops:
        raise BadMeasurement(f"{where}: its data sheet states no {measurement.precision} peak; known: {', '.join(accelerator.peak_tflops)}")
    for shape in measurement.shapes:
        reached = step_flops(measured_case(shape, accelerator, measurement.precision), full_attention=False) / shape.seconds / 1e12
        peak = accelerator.peak_tflops[measurement.precision]
        if reached > peak:
            raise BadMeasurement(
                f"{where}: hidden size {shape.hidden_size} in {shape.seconds:g} s is {reached:.0f} TFLOP/s, above the dense peak of "
                f"{peak:g}: another accelerator than the named one, or a clock read before the device was done"
            )
    with_measurement(find_utilisation(accelerator, measurement.precision), measurement)


@functools.lru_cache(maxsize=256)
def with_measurement(utilisation: Utilisation, measurement: DeviceMeasurement) -> Utilisation:
    """The utilisation that reproduces the measured times: share of the peak, launch time of a layer, and range.

    The launch time comes from the small shapes where they show it, the share is the one under which the large shapes'
    predicted times are right in the median. What concerns links and scale stays as published.
    """
    accelerator = load_accelerators()[measurement.accelerator]
    asked = [(measured_case(shape, accelerator, measurement.precision), shape) for shape in measurement.shapes]
    overhead = _layer_overhead_s(asked, utilisation)
    used = utilisation if overhead is None else replace(utilisation, layer_overhead_s=overhead)
    large = [(one, shape) for one, shape in asked if shape.seconds >= COMPUTE_BOUND_RATIO * used.layer_overhead_s * shape.layers]
    if not large:
        raise BadMeasurement(
            f"the measurement of {accelerator.name} at {measurement.precision} has no shape large enough to keep the device busy: "
            "measure wider layers or larger micro-batches"
        )
    used = replace(used, matmul_share=_share(large, used))
    return replace(
        used,
        spread=_spread(large, used),
        source=f"measured on this machine {measurement.measured_on}, {len(large)} shapes, torch {measurement.torch}",
        borrowed=False,
    )


Cases = Sequence[tuple[MeasuredCase, MeasuredShape]]


def _layer_overhead_s(asked: Cases, utilisation: Utilisation) -> float | None:
    """Launch time of a layer [s]: the extra time of a deeper stack of equal small layers, divided by the extra layers.

    None where no two shapes differ in depth alone, or where arithmetic alone explains their time.
    """
    by_width: dict[MeasuredShape, list[MeasuredShape]] = {}
    for one, shape in asked:
        work = one.seconds(replace(utilisation, layer_overhead_s=0.0))
        if shape.seconds > LAUNCH_BOUND_RATIO * work:
            by_width.setdefault(replace(shape, layers=1, seconds=1.0), []).append(shape)
    slopes = [_slope(sorted(stack, key=lambda shape: shape.layers)) for stack in by_width.values()]
    told = [slope for slope in slopes if slope is not None and 0 < slope <= MAX_LAYER_OVERHEAD_S]
    # The smallest slope: other waiting adds to it.
    return min(told, default=None)


def _slope(stack: Sequence[MeasuredShape]) -> float | None:
    shallow, deep = stack[0], stack[-1]
    if deep.layers == shallow.layers:
        return None
    return (deep.seconds - shallow.seconds) / (deep.layers - shallow.layers)


def _share(large: Cases, utilisation: Utilisation) -> float:
    """The share of the peak at which predicted over measured times have a median of 1."""

    def too_slow(share: float) -> bool:
        return float(np.median(_log_ratios(large, replace(utilisation, matmul_share=share)))) > 0

    return _bisect(too_slow, MIN_SHARE, MAX_SHARE)


def _bisect(rises: Callable[[float], bool], low: float, high: float) -> float:
    """The value in [low, high] where `rises` turns from true to false, by bisection; the nearer end where it never turns."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if rises(middle) else (low, middle)
    return (low + high) / 2


def _log_ratios(large: Cases, utilisation: Utilisation) -> list[float]:
    """Log of measured over predicted rates."""
    return [math.log(one.seconds(utilisation) / shape.seconds) for one, shape in large]


def _spread(large: Cases, utilisation: Utilisation) -> Range:
    """Range of the shapes' scatter and of what one device cannot show (links, scale, other layouts); independent, so squares add."""
    if len(large) < MIN_SHAPES_FOR_SPREAD:
        return utilisation.spread
    unknown = residual_spread()
    ratios = _log_ratios(large, utilisation)
    low = math.hypot(min(float(np.quantile(ratios, 0.1)), 0.0), math.log(unknown.spread.p10))
    high = math.hypot(max(float(np.quantile(ratios, 0.9)), 0.0), math.log(unknown.spread.p90))
    least = math.log1p(unknown.least)
    return Range(math.exp(-max(low, least)), 1.0, math.exp(max(high, least)))


def apply_measurement(context: AppContext, run: Run, utilisation: Utilisation, notes: AssumptionLog) -> Utilisation:
    """The utilisation of a run by the user's measurement of its accelerator and precision, unchanged without one.

    A file that went bad while the service runs is a warning: the published figures answer.
    """
    if not isinstance(run.model, Transformer):
        return utilisation
    try:
        found = context.measurements()
    except BadMeasurement as error:
        notes.warn(f"your measurements are not used: {error}")
        return utilisation
    accelerator = run.cluster.accelerator
    measurement = found.get((accelerator.name, run.training.precision))
    if measurement is None:
        return utilisation
    used = with_measurement(utilisation, measurement)
    value = {"matmul_share": used.matmul_share, "layer_overhead_s": used.layer_overhead_s, "p10": used.spread.p10, "p90": used.spread.p90}
    notes.assume("throughput.calibration", value, used.source)
    return used
