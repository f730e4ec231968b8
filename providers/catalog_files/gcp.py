"""Reader of the GCP catalogue, which prices accelerators and their hosts separately.

A GPU row has no instance type: its price is that of the GPUs only, so the host of the same zone is added, by `gcp_hosts.csv`. A4 slices
include their host. A TPU row is a whole slice with its hosts, named by TensorCores or chips, by `gcp_slices.csv`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from providers.catalog_files.catalog import PRICE_COLUMNS, Row, prices
from providers.catalog_files.model import ParseLog, Quote, Source, parse_count, parse_optional_usd, read_catalog_table
from providers.offer import Pricing
from providers.row_parsing import BadRow
from providers.tables import read_thresholds

_SLICE = re.compile(r"tpu-(v\w+)-([1-9]\d*)")
HostPrices = dict[tuple[str, str], Row]


@dataclass(frozen=True, slots=True)
class Host:
    """A machine type for one number of GPUs, and properties of its price."""

    name: str
    accelerator: str
    accelerator_count: int
    host_included: bool
    calendar_priced: bool
    on_demand: bool


@cache
def hosts() -> dict[tuple[str, int], tuple[Host, ...]]:
    """Machine types by GPU label and number of GPUs."""
    found: dict[tuple[str, int], tuple[Host, ...]] = {}
    for row in read_catalog_table("gcp_hosts.csv"):
        flags = [row[name] == "yes" for name in ("host_included", "calendar_priced", "on_demand")]
        host = Host(row["host"], row["accelerator"], int(row["accelerator_count"]), *flags)
        key = (row["label"], int(row["label_count"]))
        found[key] = (*found.get(key, ()), host)
    return found


def slice_of(name: str) -> tuple[str, int] | None:
    """Accelerator and number of chips of a TPU slice by its name, such as `tpu-v5p-8`; None for other names."""
    match = _SLICE.fullmatch(name)
    if match is None or match[1] not in _generations():
        return None
    accelerator, units_per_chip = _generations()[match[1]]
    return accelerator, max(1, int(match[2]) // units_per_chip)


@cache
def _generations() -> dict[str, tuple[str, int]]:
    return {row["generation"]: (row["accelerator"], int(row["units_per_chip"])) for row in read_catalog_table("gcp_slices.csv")}


def read_gcp(source: Source, rows: Iterator[Row], log: ParseLog) -> Iterator[Quote]:
    """Quotes of whole machines and slices; never of a host without GPUs or of GPUs without host."""
    every = list(rows)
    host_rows = {(row["AvailabilityZone"], row["InstanceType"]): row for row in every if not row["AcceleratorName"]}
    sold = [row for row in every if row["AcceleratorName"]]
    highest = _highest_on_demand(sold)
    for row in sold:
        if row["AcceleratorName"].startswith("tpu-"):
            yield from _slice(source, row, log)
        else:
            yield from _machines(source, row, host_rows, highest, log)


def _slice(source: Source, row: Row, log: ParseLog) -> Iterator[Quote]:
    name = row["AcceleratorName"]
    found = slice_of(name)
    if found is None:
        log.skipped[f"no canonical name: {name}"] += 1
        return
    if found[1] & (found[1] - 1):
        log.skipped["TPU slices between powers of two, at the same price a chip"] += 1
        return
    for pricing, price in prices(row, _where(source, row), log):
        yield Quote(source, row["Region"], row["AvailabilityZone"], name, *found, pricing, price)


def _machines(source: Source, row: Row, host_rows: HostPrices, highest: dict[str, Decimal], log: ParseLog) -> Iterator[Quote]:
    where = _where(source, row)
    try:
        count = parse_count(row["AcceleratorCount"])
    except BadRow as error:
        log.reject(where, str(error))
        return
    machines = hosts().get((row["AcceleratorName"], count), ())
    if not machines:
        log.skipped[f"gcp: no host known for {row['AcceleratorCount']} {row['AcceleratorName']}"] += 1
    for pricing, gpus_usd in prices(row, where, log):
        low = gpus_usd / count < highest[row["AcceleratorName"]] * read_thresholds("rules.csv", "catalog_files")["calendar_share"]
        for host in machines:
            host_row = host_rows.get((row["AvailabilityZone"], host.name))
            total = _not_on_demand(host, pricing, low=low) or _total(host, host_row, pricing, gpus_usd)
            if isinstance(total, str):
                log.reject(f"{where} {host.name} {pricing} {gpus_usd}", total)
            else:
                sold = (host.name, host.accelerator, host.accelerator_count)
                yield Quote(source, row["Region"], row["AvailabilityZone"], *sold, pricing, total)


def _not_on_demand(host: Host, pricing: Pricing, *, low: bool) -> str | None:
    """Reason why a price named on-demand is not; None where it is."""
    if pricing != "on_demand":
        return None
    if not host.on_demand:
        return "listed, but cannot be bought on demand"
    if host.calendar_priced and low:
        return "calendar-mode or commitment price under the name of on-demand"
    return None


def _total(host: Host, host_row: Row | None, pricing: Pricing, gpus_usd: Decimal) -> Decimal | str:
    """Price of the machine with its GPUs [USD per hour], or the reason why there is none."""
    if host.host_included:
        return gpus_usd
    if host_row is None:
        return "no host in this zone"
    try:
        host_usd = parse_optional_usd(host_row.get(dict(PRICE_COLUMNS)[pricing]))
    except BadRow:
        host_usd = None
    return "no host price in this zone" if host_usd is None else gpus_usd + host_usd


def _highest_on_demand(rows: list[Row]) -> dict[str, Decimal]:
    """Highest regional price of one GPU by label [USD per hour]."""
    highest: dict[str, Decimal] = defaultdict(Decimal)
    for row in rows:
        try:
            count, gpus_usd = parse_count(row["AcceleratorCount"]), parse_optional_usd(row["Price"])
        except BadRow:
            continue  # rejected with its reason where the row is read
        if gpus_usd is not None:
            highest[row["AcceleratorName"]] = max(highest[row["AcceleratorName"]], gpus_usd / count)
    return highest


def _where(source: Source, row: Row) -> str:
    return f"{source.key}: {row['AvailabilityZone']} {row['AcceleratorCount']}x {row['AcceleratorName']}"
