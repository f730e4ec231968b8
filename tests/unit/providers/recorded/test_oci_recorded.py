"""Oracle's price list against values read by hand."""

from __future__ import annotations

import csv
from decimal import Decimal

from providers.oci import parse
from tests.unit.providers.recorded_samples import collector, recorded, sample


def test_the_price_list() -> None:
    """450 parts, seven of them by the GPU and hour: two of X7 have no shape here, five become thirteen offers."""
    fetched = parse(recorded("oci/products_usd.json"), collector("oci"))
    assert {(o.instance_type, o.accelerator, o.accelerator_count, o.usd_per_hour) for o in fetched.offers if o.pricing == "on_demand"} == {
        ("BM.GPU3.8", "NVIDIA-V100-16GB-SXM2", 8, Decimal("23.6")),
        ("VM.GPU3.1", "NVIDIA-V100-16GB-SXM2", 1, Decimal("2.95")),
        ("VM.GPU3.2", "NVIDIA-V100-16GB-SXM2", 2, Decimal("5.9")),
        ("VM.GPU3.4", "NVIDIA-V100-16GB-SXM2", 4, Decimal("11.8")),
        ("BM.GPU4.8", "NVIDIA-A100-40GB-SXM", 8, Decimal("24.4")),
        ("BM.GPU.A100-v2.8", "NVIDIA-A100-80GB-SXM", 8, Decimal(32)),
        ("VM.GPU.A10.1", "NVIDIA-A10", 1, Decimal(2)),
        ("VM.GPU.A10.2", "NVIDIA-A10", 2, Decimal(4)),
        ("BM.GPU.A10.4", "NVIDIA-A10", 4, Decimal(8)),
        ("BM.GPU.H100.8", "NVIDIA-H100-80GB-SXM", 8, Decimal(80)),
    }
    assert {(o.instance_type, o.usd_per_hour) for o in fetched.offers if o.pricing == "spot"} == {
        ("VM.GPU3.1", Decimal("1.475")),
        ("VM.GPU3.2", Decimal("2.95")),
        ("VM.GPU3.4", Decimal("5.9")),
    }
    assert fetched.rejected == ()
    assert sum(fetched.skipped.values()) == 445


def test_it_agrees_with_the_catalogue_of_2024() -> None:
    """Nine shapes stand in both, at the same price in all 33 regions there."""
    listed = {
        o.instance_type: o.usd_per_hour
        for o in parse(recorded("oci/products_usd.json"), collector("oci")).offers
        if o.pricing == "on_demand"
    }
    with sample("skypilot-catalog/oci/vms.csv").open(encoding="utf-8", newline="") as lines:
        catalogue = {(row["InstanceType"], Decimal(row["Price"])) for row in csv.DictReader(lines) if row["InstanceType"] in listed}
    assert len(catalogue) == 9
    assert {(name, listed[name]) for name, _ in catalogue} == catalogue
