"""Readers and checks of price catalogues in CSV: the live SkyPilot catalogue and the files of the shipped snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import MappingProxyType

from providers.catalog_files import catalog, gcp
from providers.catalog_files.model import ParseLog, Quote, Source

Reader = Callable[[Source, Iterator[dict[str, str]], ParseLog], Iterator[Quote]]
READERS: MappingProxyType[str, Reader] = MappingProxyType(
    {
        "catalogue": catalog.read_catalogue,
        "marketplace": catalog.read_marketplace,
        "runpod": catalog.read_runpod,
        "auction": catalog.read_auction,
        "gcp": gcp.read_gcp,
    }
)
