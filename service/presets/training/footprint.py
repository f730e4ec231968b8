"""Memory of training for each parameter, element and device. The data, with their sources, are in `data/memory.toml`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from service.domain.training.footprint import Footprint
from service.domain.training.hardware import Accelerator
from service.presets.documents import load_document

_GIB = 2**30


def find_footprint(accelerator: Accelerator) -> Footprint:
    """Figures of an accelerator: those of its vendor's software where they differ."""
    return _footprint(accelerator.vendor)


@functools.cache
def _footprint(vendor: str) -> Footprint:
    document = load_document("memory")
    return Footprint(
        moment_bytes=_bytes(document["moments"]),
        master_bytes=document["master"]["bytes"],
        gradient_bytes=_bytes(document["gradient"]),
        quantised_bytes=_bytes(document["quantised"]),
        nf4_bytes=document["nf4"]["bytes"],
        logit_bytes=document["logits"]["bytes"],
        reserve_bytes=document["reserve_of"].get(vendor, document["reserve"])["gib"] * _GIB,
        fragmentation_share=document["fragmentation_of"].get(vendor, document["fragmentation"])["share"],
    )


def _bytes(table: Mapping[str, Mapping[str, Any]]) -> Mapping[str, float]:
    return MappingProxyType({name: float(row["bytes"]) for name, row in table.items()})
