"""Azure's samples against values read by hand, and against catalogues of the same sizes."""

from __future__ import annotations

import csv
from decimal import Decimal

import pytest

from providers.azure import parse
from tests.unit.providers.recorded_samples import collector, recorded, sample

H100 = "Standard_ND96isr_H100_v5"
CATALOGUES = (
    ("anycloud-catalog/azure/vms.csv", "InstanceType", {"on_demand": "Price", "spot": "SpotPrice"}),
    ("karpenter-pricing/azure_ondemand_linux_2026-06-18.csv", "ArmSkuName", {"on_demand": "OnDemandUSDPerHour"}),
)


def listed(path: str, size: str, region: str) -> dict[str, str]:
    """A catalogue's row of the H100 size in a region."""
    with sample(path).open(encoding="utf-8", newline="") as lines:
        return next(row for row in csv.DictReader(lines) if (row[size], row["Region"]) == (H100, region))


def test_four_meters_of_one_size() -> None:
    """Linux on demand and spot; both Windows meters, one of them Low Priority, are left out."""
    fetched = parse(recorded("azure/retail_prices_ND96isr_H100_v5_eastus.json"), collector("azure"))
    assert {(o.region, o.pricing, o.accelerator, o.accelerator_count, o.usd_per_hour, o.availability) for o in fetched.offers} == {
        ("eastus", "on_demand", "NVIDIA-H100-80GB-SXM", 8, Decimal("98.32"), "listed"),
        ("eastus", "spot", "NVIDIA-H100-80GB-SXM", 8, Decimal("18.169536"), "listed"),
    }
    assert (dict(fetched.skipped), fetched.rejected) == ({"Windows": 2}, ())


def test_an_empty_page_has_no_offers() -> None:
    """Nothing matched the filter."""
    fetched = parse(recorded("azure/retail_prices_empty_page.json"), collector("azure"))
    assert (fetched.offers, fetched.rejected) == ((), ())


def test_a_windows_row_is_known_by_its_product_alone() -> None:
    """It costs 4.416 dollars more than the Linux price that two catalogues state for the same size and region."""
    row = recorded("azure/retail_prices_ND96isr_H100_v5_westeurope_windows_row.json")
    fetched = parse({"Items": [row]}, collector("azure"))
    assert (fetched.offers, dict(fetched.skipped)) == ((), {"Windows": 1})
    for path, size, columns in CATALOGUES:
        assert row["retailPrice"] - Decimal(listed(path, size, "westeurope")[columns["on_demand"]]) == Decimal("4.416")


@pytest.mark.parametrize(("path", "size", "columns"), CATALOGUES)
def test_catalogues_state_the_same_prices(path: str, size: str, columns: dict[str, str]) -> None:
    """Of May and June 2026 against the answer of September."""
    offers = parse(recorded("azure/retail_prices_ND96isr_H100_v5_eastus.json"), collector("azure")).offers
    found = {offer.pricing: offer.usd_per_hour for offer in offers}
    row = listed(path, size, "eastus")
    for pricing, column in columns.items():
        assert Decimal(row[column]) == dict(found)[pricing]
