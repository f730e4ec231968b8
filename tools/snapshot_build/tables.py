"""Readers of price tables: one row an instance type and region, with the price in a named column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal

from providers.catalog_files.model import ParseLog, Quote, Source, parse_optional_usd
from providers.catalog_files.naming import MachineRow, accelerator_of
from providers.offer import Pricing
from providers.row_parsing import BadRow
from tools.snapshot_build.sources import table

Row = dict[str, str]
ON_DEMAND: Mapping[str, Pricing] = {"OnDemandUSDPerHour": "on_demand"}
WITH_RESERVED: Mapping[str, Pricing] = {**ON_DEMAND, "ReservedUSDPerHour": "reserved_1y"}


def read_karpenter(source: Source, rows: Iterator[Row], log: ParseLog) -> Iterator[Quote]:
    """Quotes of an on-demand table that names instance types and no accelerators."""
    for row in rows:
        yield from _quotes(source, row, ON_DEMAND, log)


def read_reserved(source: Source, rows: Iterator[Row], log: ParseLog) -> Iterator[Quote]:
    """Quotes of a table with on-demand prices beside those of a reservation of one year without upfront payment.

    The table names no term. It comes from instances.vantage.sh, whose preset is one year, no upfront, standard class, and its
    figures, 62 to 70 % of on-demand, are of that term's size.
    """
    for row in rows:
        yield from _quotes(source, row, WITH_RESERVED, log)


def read_yuan(source: Source, rows: Iterator[Row], log: ParseLog) -> Iterator[Quote]:
    """No quotes: AWS bills its China regions in CNY, and the table carries those figures in a column called USD."""
    for row in rows:
        if accelerator_of(MachineRow(source.provider, row["InstanceType"]), ParseLog()) is not None:
            log.reject(f"{source.key}: {row['Region']} {row['InstanceType']}", "price in CNY under the name USD")
    yield from ()


def read_listed(source: Source, _: Iterator[Row], log: ParseLog) -> Iterator[Quote]:
    """Quotes of `listed.csv` under this source's key: single published prices, each read and dated on its own."""
    for row in table("listed.csv"):
        if row["source"] != source.key:
            continue
        price = _price(row["usd_per_hour"], f"{source.key}: {row['instance_type']}", log)
        if price is not None:
            pricing: Pricing = "spot" if row["pricing"] == "spot" else "on_demand"
            count = int(row["accelerator_count"])
            yield Quote(source, row["region"], "", row["instance_type"], row["accelerator"], count, pricing, price)


def _quotes(source: Source, row: Row, columns: Mapping[str, Pricing], log: ParseLog) -> Iterator[Quote]:
    instance_type = (row.get("InstanceType") or row.get("ArmSkuName") or "").strip()
    where = f"{source.key}: {row.get('Region')} {instance_type}"
    if not row.get("Region") or not instance_type:
        log.reject(where, "row without region or instance type")
        return
    found = accelerator_of(MachineRow(source.provider, instance_type), log)
    if found is None:
        return
    for column, pricing in columns.items():
        price = _price(row.get(column), f"{where} {pricing}", log)
        if price is not None:
            yield Quote(source, row["Region"], "", instance_type, *found, pricing, price)


def _price(text: str | None, where: str, log: ParseLog) -> Decimal | None:
    try:
        return parse_optional_usd(text)
    except BadRow as error:
        log.reject(where, str(error))
        return None
