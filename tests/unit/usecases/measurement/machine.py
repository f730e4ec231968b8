"""A machine that behaves as the model says, with known shares: what a measurement of it has to find."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import date
from types import SimpleNamespace
from typing import Any

from service.domain.training.utilisation import Utilisation
from service.presets.hardware.accelerators import find_accelerator
from service.presets.training.measured import DeviceMeasurement, MeasuredShape, parse_measurement
from service.presets.training.utilisation import find_utilisation
from service.usecases.measurement.measure import PLANS, BenchmarkOptions, benchmark_shapes
from service.usecases.resolution.user_measurements import measured_case

DAY = date(2026, 11, 21)
FREE_BYTES = 78e9
SHARE, OVERHEAD_S = 0.5, 6e-4


def published(name: str = "H100") -> Utilisation:
    return find_utilisation(find_accelerator(name).accelerator, "bf16")


def truth(share: float = SHARE, overhead_s: float = OVERHEAD_S, name: str = "H100") -> Utilisation:
    """The published figures with this share of the peak and launch time."""
    return replace(published(name), matmul_share=share, layer_overhead_s=overhead_s)


def timed_shapes(true: Utilisation, name: str = "H100") -> tuple[MeasuredShape, ...]:
    """The benchmark's own shapes with the times that the machine would take."""
    accelerator = find_accelerator(name).accelerator
    found = benchmark_shapes(PLANS["cuda"], BenchmarkOptions(), FREE_BYTES, accelerator)
    return tuple(replace(shape, seconds=measured_case(shape, accelerator, "bf16").seconds(true)) for shape in found)


def measurement(share: float = SHARE, overhead_s: float = OVERHEAD_S, name: str = "H100") -> DeviceMeasurement:
    return parse_measurement(document(share, overhead_s, name), "this")


def document(share: float = SHARE, overhead_s: float = OVERHEAD_S, name: str = "H100") -> dict[str, Any]:
    """A measurement as it is stored."""
    return {
        "accelerator": find_accelerator(name).accelerator.name,
        "precision": "bf16",
        "measured_on": DAY.isoformat(),
        "torch": "2.9.1",
        "shapes": [asdict(shape) for shape in timed_shapes(truth(share, overhead_s, name), name)],
    }


def bench(share: float = SHARE, device_name: str = "NVIDIA H100 80GB HBM3", memory_gib: float = 79.1) -> SimpleNamespace:
    """What stands in the place of `bench_torch` where there is no GPU: its functions, answered by the model."""
    device = SimpleNamespace(
        name=device_name, kind="cuda", memory_gib=memory_gib, free_bytes=FREE_BYTES, software={"torch": "2.9.1", "cuda": "12.8"}
    )

    def step_seconds(shape: MeasuredShape, _on: object, steps: int) -> list[float]:
        seconds = measured_case(shape, find_accelerator("H100").accelerator, "bf16").seconds(truth(share))
        return [seconds * (1 + 0.01 * index) for index in range(steps)]

    return SimpleNamespace(
        device=lambda: device, step_seconds=step_seconds, matmul_tflops=lambda size, _on: 700.0 + size / 1000, OutOfMemory=MemoryError
    )
