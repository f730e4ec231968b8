"""Verda's samples against values read by hand."""

from __future__ import annotations

import csv
from decimal import Decimal

from providers.offer import Fetched
from providers.verda import parse, parse_locations, parse_stock
from tests.unit.providers.recorded_samples import collector, recorded, sample


def fetched() -> Fetched:
    """All three samples, of which that of the stock is for spot."""
    empty = collector("verda")
    stock = parse_stock(recorded("verda/v1_instance-availability_spot.json"), empty)
    places = parse_locations(recorded("verda/v1_locations.json"), empty)
    return parse(recorded("verda/v1_instance-types.json"), {"spot": stock}, places, empty)


def test_types_with_stock_and_countries() -> None:
    """Only the spot stock is known here, and the H100 has none."""
    assert {
        (o.instance_type, o.pricing, o.region, o.accelerator, o.accelerator_count, o.usd_per_hour, o.availability) for o in fetched().offers
    } == {
        ("1H100.80S.30V", "on_demand", "any", "NVIDIA-H100-80GB-SXM", 1, Decimal("3.95"), "listed"),
        ("1H100.80S.30V", "spot", "any", "NVIDIA-H100-80GB-SXM", 1, Decimal("1.70"), "listed"),
        ("2A6000.20V", "on_demand", "any", "NVIDIA-RTX-A6000", 2, Decimal("1.98"), "listed"),
        ("2A6000.20V", "spot", "FIN-01", "NVIDIA-RTX-A6000", 2, Decimal("0.70"), "live"),
        ("1V100.6V", "on_demand", "any", "NVIDIA-V100-16GB-SXM2", 1, Decimal("0.89"), "listed"),
        ("1V100.6V", "spot", "FIN-01", "NVIDIA-V100-16GB-SXM2", 1, Decimal("0.25"), "live"),
    }
    assert {o.extras.get("country") for o in fetched().offers if o.region == "FIN-01"} == {"FI"}
    assert (fetched().rejected, fetched().skipped) == ((), {"no accelerator": 1})


def test_a_catalogue_of_2026_has_the_same_instances_at_lower_prices() -> None:
    """The sample is of 2024, before Verda's price cuts: the same product, on demand, at less than then."""
    with sample("skypilot-catalog-v8/verda/vms.csv").open(encoding="utf-8") as file:
        later = {row["InstanceType"]: (int(float(row["AcceleratorCount"])), Decimal(row["Price"])) for row in csv.DictReader(file)}
    for offer in fetched().offers:
        if offer.pricing == "on_demand":
            count, price = later[offer.instance_type]
            assert count == offer.accelerator_count
            assert price < offer.usd_per_hour
