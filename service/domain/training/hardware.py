"""An accelerator as its data sheet and its operators describe it."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

Precision = Literal["fp32", "tf32", "fp16", "bf16", "fp8", "mxfp8", "nvfp4", "fp4", "int8"]
PRECISIONS: tuple[Precision, ...] = ("fp32", "tf32", "fp16", "bf16", "fp8", "mxfp8", "nvfp4", "fp4", "int8")


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One schedulable device: a GPU, a TPU chip, a GCD, a Trainium chip. Peaks are dense, without sparsity.

    `memory_gb` is the data sheet's figure, `usable_memory_bytes` what a program may allocate.
    `link_gb_per_s` is the sum of both directions between the devices of a node; `internode_gbit_per_s` one direction, a device.
    `link_domain`: accelerators the fast link joins where that is more than a node (a rack, a pod). `tdp_w` is None where the
    vendor publishes no power.
    """

    name: str
    vendor: str
    family: str
    release_year: int
    memory_gb: float
    usable_memory_bytes: float
    memory_bandwidth_gb_per_s: float
    peak_tflops: MappingProxyType[str, float] = field(hash=False)
    link: str
    link_gb_per_s: float | None
    internode_gbit_per_s: float | None
    accelerators_per_node: int
    tdp_w: float | None
    source: str
    verified: bool
    aliases: tuple[str, ...] = ()
    notes: str = ""
    link_domain: int = 1
