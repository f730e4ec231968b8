"""Readers of instance catalogues: one row for each instance type and zone, with on-demand and spot prices.

Columns are found by name, so that all schema versions are read; a row may have more fields than the header.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

from providers.catalog_files.model import ParseLog, Quote, Source, parse_count, parse_optional_usd
from providers.catalog_files.naming import MachineRow, accelerator_of
from providers.offer import Pricing
from providers.row_parsing import BadRow

Row = dict[str, str]
_MEMORY_MIB = re.compile(r"SizeInMiB\W+(\d+)")  # the same in all four spellings of GpuInfo
_COUNTRY = re.compile(r".*, ([A-Z]{2}), [A-Z]{2}")
COLUMNS = ("InstanceType", "AcceleratorName", "AcceleratorCount", "Region", "Price")
"""Columns of every schema version."""
PRICE_COLUMNS: tuple[tuple[Pricing, str], ...] = (("on_demand", "Price"), ("spot", "SpotPrice"))


def read_catalogue(source: Source, rows: Iterator[Row], log: ParseLog) -> Iterator[Quote]:
    """Quotes of a catalogue of list prices."""
    for row in rows:
        yield from _quotes(source, row, log)


def read_marketplace(source: Source, rows: Iterator[Row], log: ParseLog) -> Iterator[Quote]:
    """Quotes of single hosts; a place such as `Oregon, US, NA` becomes its country."""
    for quote in read_catalogue(source, rows, log):
        country = _COUNTRY.fullmatch(quote.region)
        yield replace(quote, region=country[1] if country else quote.region, zone=quote.region, market="marketplace")


def read_runpod(source: Source, rows: Iterator[Row], log: ParseLog) -> Iterator[Quote]:
    """Quotes of RunPod's catalogue: list prices of its secure cloud, marketplace prices of community hosts."""
    for quote in read_catalogue(source, rows, log):
        yield replace(quote, market="marketplace") if quote.instance_type.endswith("_COMMUNITY") else quote


def read_auction(source: Source, rows: Iterator[Row], log: ParseLog) -> Iterator[Quote]:
    """Quotes of an auction's reserve price: the floor of spot bids, without on-demand price."""
    for quote in read_catalogue(source, rows, log):
        if quote.pricing == "spot":
            yield replace(quote, market="auction_floor")
        else:
            log.reject(quote, "reserve price of an auction, not an on-demand price")


def memory_gb(source: Source, row: Row) -> float | None:
    """Memory of one device [GB as vendors name it, MiB / 1024]; None where the catalogue does not state it.

    Returns
    -------
    float or None
        Memory of one device [GB].

    Raises
    ------
    BadRow
        The figure is the memory of all devices and their number is invalid.
    """
    match = _MEMORY_MIB.search(row.get("GpuInfo") or "")
    if match is None or source.gpu_memory == "unusable":
        return None
    devices = parse_count(row["AcceleratorCount"]) if source.gpu_memory == "row" else 1
    return int(match[1]) / 1024 / devices


def _quotes(source: Source, row: Row, log: ParseLog) -> Iterator[Quote]:
    where = f"{source.key}: {row.get('AvailabilityZone') or row.get('Region')} {row.get('InstanceType')}"
    if not row.get("Region") or not row.get("InstanceType"):
        log.reject(where, "row without region or instance type")
        return
    try:
        memory = memory_gb(source, row)
        machine = MachineRow(source.provider, row["InstanceType"], row["AcceleratorName"], row["AcceleratorCount"], memory)
        found = accelerator_of(machine, log)
    except BadRow as error:
        log.reject(where, str(error))
        return
    if found is None:
        return
    if found[0] != row["AcceleratorName"]:
        memory = None  # the name is exact; AWS rows state 91 GB for an L4 and half a K80
    for pricing, price in prices(row, where, log):
        zone = row.get("AvailabilityZone") or ""
        yield Quote(source, row["Region"], zone, row["InstanceType"], *found, pricing, price, memory)


def prices(row: Row, where: str, log: ParseLog) -> Iterator[tuple[Pricing, Decimal]]:
    """Usable prices of a row by pricing [USD per hour]; invalid ones are rejected with their reason, empty ones ignored."""
    for pricing, column in PRICE_COLUMNS:
        try:
            price = parse_optional_usd(row.get(column))
        except BadRow as error:
            log.reject(f"{where} {pricing}", str(error))
            continue
        if price is not None:
            yield pricing, price
