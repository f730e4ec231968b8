"""How many accelerators a provider lets without a contract, from `data/capacity.toml`."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from service.domain.training.hardware import Accelerator
from service.presets.documents import build, dated_source, load_document

UNCONTRACTED = ("on_demand", "spot")
"""Kinds of pricing that are taken without a contract."""


@dataclass(frozen=True, slots=True)
class CapacityBand:
    """Accelerators of one job that are let without a contract, by kind of provider; of any vendor where `vendor` is empty."""

    kind: str
    providers: tuple[str, ...]
    most: int
    source: str
    vendor: str = ""


def capacity_band(provider: str, accelerator: Accelerator) -> CapacityBand:
    """The band of a provider for an accelerator; that of all others where it is not named."""
    return next(
        band
        for band in load_capacity_bands()
        if band.vendor in ("", accelerator.vendor) and (provider in band.providers or not band.providers)
    )


def describe_capacity(provider: str, band: CapacityBand) -> str:
    """Text of how many accelerators a provider lets without a contract."""
    return f"more than about {band.most:,} accelerators at {provider} need a contract"


@functools.cache
def load_capacity_bands() -> tuple[CapacityBand, ...]:
    """The bands in the order of the data file."""
    return tuple(build(CapacityBand, row, source=dated_source(row)) for row in load_document("capacity")["band"])
