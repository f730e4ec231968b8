"""Memory of training for each parameter, element and device. The data, with their sources, are in `data/memory.toml`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from service.domain.training.footprint import FineTuningFootprint, Footprint
from service.domain.training.hardware import Accelerator
from service.domain.training.run import TODAYS_SOFTWARE
from service.presets.documents import load_document

_GIB = 2**30


def find_footprint(accelerator: Accelerator, software_year: int = TODAYS_SOFTWARE) -> Footprint:
    """Figures of an accelerator: those of its vendor's software, and of the year's, where they differ."""
    return _footprint(accelerator.vendor, software_year)


@functools.cache
def _footprint(vendor: str, software_year: int) -> Footprint:
    document = load_document("memory")

    def known(name: str) -> Mapping[str, Any]:
        """The vendor's own, else the latest that the year's software has on its devices."""
        known_to = [row for row in document[name].values() if vendor in row.get("vendors", (vendor,))]
        rows = [row for row in known_to if row["from_year"] <= software_year]
        entry: Mapping[str, Any] = document[f"{name}_of"].get(vendor) or max(rows, key=lambda row: int(row["from_year"]))
        return entry

    logits = known("logits")
    return Footprint(
        moment_bytes=_bytes(document["moments"]),
        narrow_moment_bytes=MappingProxyType(
            {name: float(row.get("bf16_bytes", row["bytes"])) for name, row in document["moments"].items()}
        ),
        master_bytes=document["master"]["bytes"],
        gradient_bytes=_bytes(document["gradient"]),
        quantised_bytes=_bytes(document["quantised"]),
        nf4_bytes=document["nf4"]["bytes"],
        logit_bytes=float(logits["bytes"]),
        sharded_logit_bytes=float(logits["sharded_bytes"]),
        offloads_checkpoints=vendor in document["offloaded_checkpoints"]["vendors"],
        reserve_bytes=known("reserve")["gib"] * _GIB,
        fragmentation_share=known("fragmentation")["share"],
        filled_share=float(document["filled_of"].get(vendor, document["filled"])["share"]),
        finetuning=_finetuning(document["finetuning"]),
    )


def _finetuning(table: Mapping[str, Mapping[str, Any]]) -> FineTuningFootprint:
    def mapping(name: str) -> Mapping[str, float]:
        return MappingProxyType({key: float(value) for key, value in table[name].items() if key != "source"})

    return FineTuningFootprint(
        norm_bytes=mapping("norm_bytes"),
        gated_tensors=mapping("gated_tensors"),
        logit_bytes=mapping("logit_bytes"),
        sharded_logit_bytes=float(table["sharded_logit_bytes"]["value"]),
        chunk_bytes=float(table["chunk_bytes"]["value"]),
        quantised_input_bytes=float(table["quantised_input_bytes"]["value"]),
        sharded_input_copies=float(table["sharded_input_copies"]["value"]),
        update_copies=mapping("update_copies"),
        paged=frozenset(table["paged"]["optimizers"]),
        reserve_bytes=float(table["reserve"]["gib"]) * _GIB,
        fragmentation_share=float(table["fragmentation"]["share"]),
        filled_share=float(table["filled"]["share"]),
    )


def _bytes(table: Mapping[str, Mapping[str, Any]]) -> Mapping[str, float]:
    return MappingProxyType({name: float(row["bytes"]) for name, row in table.items()})
