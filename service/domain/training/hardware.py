"""An accelerator as its data sheet and its operators describe it."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Literal

from service.domain.answer_fields import HIDDEN, Doc

Precision = Literal["fp32", "tf32", "fp16", "bf16", "fp8", "mxfp8", "nvfp4", "fp4", "int8"]
PRECISIONS: tuple[Precision, ...] = ("fp32", "tf32", "fp16", "bf16", "fp8", "mxfp8", "nvfp4", "fp4", "int8")
SIXTEEN_BIT: tuple[Precision, ...] = ("bf16", "fp16")


@dataclass(frozen=True)
class DataSheet:
    """What an accelerator is and where its figures come from."""

    name: Annotated[str, Doc("Canonical name")]
    vendor: Annotated[str, Doc("Name of the vendor")]
    family: Annotated[str, Doc("Architecture family, which measured rates are shared in")]
    release_year: Annotated[int, Doc("Year of release", minimum=1)]
    source: Annotated[str, Doc("Data sheet", max_length=1000)]
    verified: Annotated[bool, Doc("Whether the figures were checked against the data sheet")]


@dataclass(frozen=True)
class DeviceRates:
    """Memory, arithmetic and power of one device. `usable_memory_bytes`: what a program may allocate [B]."""

    memory_gb: Annotated[
        float,
        Doc(
            "Nominal, as the data sheet prints it, to tell parts apart: nearly all sheets count 2^30 bytes to their GB of memory. "
            "What a program may allocate is usable_memory_gb, or usable_memory_gib in the usual unit of the sheets"
        ),
    ]
    usable_memory_bytes: Annotated[float, HIDDEN]
    memory_bandwidth_gb_per_s: Annotated[float, Doc("1e9 bytes a second")]
    peak_tflops: Annotated[MappingProxyType[str, float], Doc("Dense peak by precision, without sparsity, 1e12 FLOP a second")] = field(
        hash=False
    )
    tdp_w: Annotated[float | None, Doc("Thermal design power of one accelerator, W; null where none is published")]


@dataclass(frozen=True)
class Interconnect:
    """Links of one device."""

    link: Annotated[str, Doc("What joins the accelerators of a node (or pod)", min_length=0)]
    link_gb_per_s: Annotated[float | None, Doc("That link, the sum of both directions of one accelerator, 1e9 bytes a second")]
    internode_gbit_per_s: Annotated[float | None, Doc("Usual network of one accelerator beyond it, one direction, 1e9 bits a second")]
    accelerators_per_node: Annotated[int, Doc("Usual accelerators of one node", minimum=1)]


@dataclass(frozen=True)
class Accelerator(DataSheet, DeviceRates, Interconnect):
    """One schedulable device: a GPU, a TPU chip, a GCD, a Trainium chip. GB are 1e9 bytes everywhere but in `memory_gb`."""

    aliases: Annotated[tuple[str, ...], Doc("Other names that requests may use", max_items=100)] = ()
    notes: Annotated[str, Doc("Remarks; empty: none", min_length=0, max_length=2000)] = ""
    link_domain: Annotated[
        int, Doc("Accelerators the fast link joins where that is more than a node (a rack, a pod), else 1", minimum=1)
    ] = 1
