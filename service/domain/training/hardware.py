"""An accelerator as its data sheet and its operators describe it."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

Precision = Literal["fp32", "tf32", "fp16", "bf16", "fp8", "mxfp8", "nvfp4", "fp4", "int8"]
PRECISIONS: tuple[Precision, ...] = ("fp32", "tf32", "fp16", "bf16", "fp8", "mxfp8", "nvfp4", "fp4", "int8")
SIXTEEN_BIT: tuple[Precision, ...] = ("bf16", "fp16")


@dataclass(frozen=True)
class DataSheet:
    """What an accelerator is and where its figures come from; `verified`: read in the source."""

    name: str
    vendor: str
    family: str
    release_year: int
    source: str
    verified: bool


@dataclass(frozen=True)
class DeviceRates:
    """Memory, arithmetic and power of one device.

    Attributes
    ----------
    memory_gb : float
        Memory by the data sheet [GB].
    usable_memory_bytes : float
        Memory that a program may allocate [B].
    memory_bandwidth_gb_per_s : float
        [GB/s].
    peak_tflops : mapping of str to float
        Dense peak by precision, without sparsity [TFLOP/s].
    tdp_w : float, optional
        Thermal design power [W]; None where the vendor publishes none.
    """

    memory_gb: float
    usable_memory_bytes: float
    memory_bandwidth_gb_per_s: float
    peak_tflops: MappingProxyType[str, float] = field(hash=False)
    tdp_w: float | None


@dataclass(frozen=True)
class Interconnect:
    """Links of one device.

    Attributes
    ----------
    link_gb_per_s : float, optional
        Link between the devices of a node, the sum of both directions [GB/s].
    internode_gbit_per_s : float, optional
        Network of one device in one direction [Gbit/s].
    accelerators_per_node : int
        Devices of a node.
    """

    link: str
    link_gb_per_s: float | None
    internode_gbit_per_s: float | None
    accelerators_per_node: int


@dataclass(frozen=True)
class Accelerator(DataSheet, DeviceRates, Interconnect):
    """One schedulable device: a GPU, a TPU chip, a GCD, a Trainium chip.

    Attributes
    ----------
    aliases : tuple of str
        Other names.
    link_domain : int
        Accelerators that the fast link joins where that is more than a node (a rack, a pod).
    """

    aliases: tuple[str, ...] = ()
    notes: str = ""
    link_domain: int = 1
