"""`outlay calibrate --measure`: time a few shapes on this machine and compare them with the model's predictions.

Two kinds of shapes: stacks of tiny layers, whose time is that of launching them, and wide ones, whose time is that of their arithmetic.
`service.usecases.resolution.user_measurements` derives the machine's parameters from them.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from service.domain.errors import UnknownName
from service.domain.training.hardware import Accelerator, Precision
from service.domain.training.utilisation import Utilisation
from service.engine.training.memory.memory_use import memory_use
from service.presets.hardware.accelerators import canonical_accelerator, find_accelerator, load_accelerators
from service.presets.training.measured import MeasuredShape, parse_measurement, store_measurement
from service.presets.training.utilisation import find_utilisation
from service.usecases.resolution.user_measurements import check_measurement, measured_case, step_flops, with_measurement

PRECISION: Precision = "bf16"
FREE_MEMORY_SHARE = 0.6
LARGEST_MICRO_BATCH = 8
NO_TORCH = "`--measure` needs PyTorch 2.5 or newer, which is not installed here: pip install 'torch>=2.5'"
ReportProgress = Callable[[str], None]


class CannotMeasure(Exception):
    """Nothing can be measured here; the text is for the user."""


@dataclass(frozen=True, slots=True)
class BenchmarkOptions:
    """Sizes that the user chooses; None: chosen by the device."""

    layers: int | None = None
    hidden_size: int | None = None
    seq_len: int | None = None
    micro_batch: int | None = None
    steps: int | None = None
    accelerator: str | None = None


@dataclass(frozen=True, slots=True)
class BenchmarkPlan:
    """Default sizes: of a GPU, or of a processor, which only shows that the benchmark runs."""

    layers: int
    hidden_sizes: tuple[int, ...]
    seq_len: int
    steps: int
    products: tuple[int, ...]
    tiny: tuple[int, int]
    """Hidden size and tokens of the tiny layers."""


PLANS: Mapping[str, BenchmarkPlan] = {
    "cuda": BenchmarkPlan(4, (1024, 2048, 4096, 8192), 4096, 20, (2048, 4096, 8192, 16384), (256, 128)),
    "cpu": BenchmarkPlan(2, (128, 256), 64, 3, (128, 256), (64, 16)),
}


def measure(options: BenchmarkOptions, today: date, say: ReportProgress) -> dict[str, Any]:
    """The measurement as a JSON document; `accelerator` is None on a processor, which no estimate knows.

    Raises CannotMeasure, and BadMeasurement for times that cannot be right.
    """
    bench = _bench()
    on = bench.device()
    accelerator = _accelerator(on, options)
    plan = PLANS[on.kind]
    steps = options.steps or plan.steps
    rows = []
    for shape in benchmark_shapes(plan, options, on.free_bytes, accelerator):
        try:
            seconds = bench.step_seconds(shape, on, steps)
        except bench.OutOfMemory:
            say(f"hidden size {shape.hidden_size}, micro-batch {shape.micro_batch}: left out, the device's memory is too small")
            continue
        rows.append(_row(shape, seconds, accelerator))
        say(_progress_line(rows[-1]))
    document = {
        "accelerator": accelerator.name if accelerator else None,
        "device": on.name,
        "precision": PRECISION,
        "measured_on": today.isoformat(),
        **on.software,
        "steps": steps,
        "shapes": rows,
        "products": [{"size": size, "tflops": bench.matmul_tflops(size, on)} for size in plan.products],
    }
    if accelerator is not None:
        check_measurement(parse_measurement(document, "the measurement"))
    return document


def save_measurement(document: Mapping[str, Any], folder: Path) -> Path:
    """The file of the data directory `folder` in which the measurement now is. Raises BadMeasurement, OSError."""
    return store_measurement(document, folder)


def utilisation_with(document: Mapping[str, Any]) -> tuple[Utilisation, Utilisation]:
    """Utilisation of the measured accelerator by published measurements, and with this one. Raises BadMeasurement."""
    published = find_utilisation(find_accelerator(document["accelerator"]).accelerator, document["precision"])
    return published, with_measurement(published, parse_measurement(document, "the measurement"))


def _bench() -> Any:
    try:
        from service.usecases.measurement import torch_benchmark
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise CannotMeasure(NO_TORCH) from error
    return torch_benchmark


def _accelerator(on: Any, options: BenchmarkOptions) -> Accelerator | None:
    """The device's catalogue entry: named by the user, else found by the device's own name and memory."""
    if on.kind == "cpu":
        if options.accelerator is not None:
            raise CannotMeasure(f"PyTorch sees no GPU here: a processor's times cannot stand for {options.accelerator}")
        return None
    found = _named(options.accelerator) if options.accelerator is not None else _recognised(on)
    if PRECISION not in found.peak_tflops:
        raise CannotMeasure(f"the data sheet of {found.name} states no {PRECISION} peak; known: {', '.join(found.peak_tflops)}")
    return found


def _named(name: str) -> Accelerator:
    try:
        return find_accelerator(name).accelerator
    except UnknownName as error:
        raise CannotMeasure(f"--accelerator: {error.message}; `outlay accelerators` lists all") from error


def _recognised(on: Any) -> Accelerator:
    name = canonical_accelerator(on.name, on.memory_gib)
    if name is None:
        raise CannotMeasure(
            f"{on.name!r} with {on.memory_gib:.0f} GiB is no accelerator known here: name it with --accelerator; `outlay accelerators` "
            "lists all, service/presets/data/accelerators.toml is where a new one goes"
        )
    return load_accelerators()[name]


def benchmark_shapes(
    plan: BenchmarkPlan, options: BenchmarkOptions, free_bytes: float, accelerator: Accelerator | None
) -> Iterator[MeasuredShape]:
    """A shallow and a deep stack of tiny layers, then each width that fits the free memory."""
    layers = options.layers or plan.layers
    tiny, tokens = plan.tiny
    for depth in (layers, 4 * layers):
        yield decoder(depth, tiny, tokens, 1)
    for hidden in (options.hidden_size,) if options.hidden_size else plan.hidden_sizes:
        wide = decoder(layers, hidden, options.seq_len or plan.seq_len, options.micro_batch or 1)
        fitting = wide if accelerator is None else _fitting(wide, options, free_bytes * FREE_MEMORY_SHARE, accelerator)
        if fitting is not None:
            yield fitting


def decoder(layers: int, hidden: int, seq_len: int, micro_batch: int) -> MeasuredShape:
    """A decoder in Llama's proportions: heads of 128 (64 in narrow layers), four to a group, a feed-forward of 8/3 in multiples of 256."""
    head_dim = 128 if hidden >= 1024 else 64
    heads = max(hidden // head_dim, 1)
    return MeasuredShape(
        layers=layers,
        hidden_size=hidden,
        attention_heads=heads,
        kv_heads=heads // 4 if heads % 4 == 0 else heads,
        head_dim=head_dim,
        ffn_hidden_size=math.ceil(hidden * 8 / 3 / 256) * 256,
        seq_len=seq_len,
        micro_batch=micro_batch,
        seconds=1.0,
    )


def _fitting(shape: MeasuredShape, options: BenchmarkOptions, room_bytes: float, accelerator: Accelerator) -> MeasuredShape | None:
    """The shape with as many layers and the largest micro-batch that fit; the user's own sizes stay. None: no layer fits."""
    while options.layers is None and _bytes(shape, accelerator) > room_bytes and shape.layers > 1:
        shape = replace(shape, layers=shape.layers // 2)
    if _bytes(shape, accelerator) > room_bytes:
        # The user's own sizes are tried as they are: the count is careful, the device has the last word.
        return shape if options.hidden_size or options.micro_batch else None
    while options.micro_batch is None and shape.micro_batch < LARGEST_MICRO_BATCH:
        larger = replace(shape, micro_batch=2 * shape.micro_batch)
        if _bytes(larger, accelerator) > room_bytes:
            break
        shape = larger
    return shape


def _bytes(shape: MeasuredShape, accelerator: Accelerator) -> float:
    case = measured_case(shape, accelerator, PRECISION)
    return float(memory_use(case.model, case.training, case.layouts).total[0])


def _row(shape: MeasuredShape, seconds: list[float], accelerator: Accelerator | None) -> dict[str, Any]:
    """A timed shape with its rates, and what the published figures predict for it: error above 0 means faster than predicted."""
    median = statistics.median(seconds)
    tokens = shape.micro_batch * shape.seq_len
    # The arithmetic does not depend on the device; any accelerator may ask for it.
    case = measured_case(shape, accelerator or next(iter(load_accelerators().values())), PRECISION)
    tflops = step_flops(case) / median / 1e12
    row = {
        **asdict(replace(shape, seconds=median)),
        "slowest_seconds": max(seconds),
        "fastest_seconds": min(seconds),
        "tokens_per_s": tokens / median,
        "tflops": tflops,
    }
    if accelerator is None:
        return row
    predicted = case.seconds(find_utilisation(accelerator, PRECISION))
    return row | {"mfu": tflops / accelerator.peak_tflops[PRECISION], "predicted_seconds": predicted, "error": predicted / median - 1}


def _progress_line(row: Mapping[str, Any]) -> str:
    return (
        f"hidden size {row['hidden_size']}, {row['layers']} layers, {row['micro_batch']} x {row['seq_len']} tokens: {row['seconds']:.4g} s"
    )
