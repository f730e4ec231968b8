"""Shadeform's samples against values read by hand."""

from __future__ import annotations

import csv
from decimal import Decimal

from providers.offer import Fetched
from providers.shadeform import parse
from tests.unit.providers.recorded_samples import collector, recorded, sample


def fetched(name: str) -> Fetched:
    """What a sample becomes."""
    return parse(recorded(f"shadeform/{name}.json"), collector("shadeform"))


def test_types_with_and_without_stock() -> None:
    """Cents of the whole instance; one type states no memory."""
    found = {
        (o.instance_type, o.region, o.accelerator_count, o.usd_per_hour, o.availability) for o in fetched("instances_types_fixture").offers
    }
    assert found == {
        ("massedcompute/A6000", "us-central-2", 1, Decimal("0.57"), "live"),
        ("massedcompute/A6000", "helsinki-finland-1", 1, Decimal("0.57"), "live"),
        ("massedcompute/A6000", "us-east-1", 1, Decimal("0.57"), "listed"),
        ("hyperstack/A6000x2", "canada-1", 2, Decimal("1.00"), "live"),
    }
    assert {o.accelerator for o in fetched("instances_types_fixture").offers} == {"NVIDIA-RTX-A6000"}


def test_spot_in_dollars_beside_cents() -> None:
    """Without `configuration`; 5352 is cents and "26.76" dollars."""
    found = {
        (o.instance_type, o.accelerator, o.pricing, o.usd_per_hour, o.availability)
        for o in fetched("instances_types_spot_fixture_2026-09").offers
    }
    assert found == {
        ("verda/B300x8", "NVIDIA-B300-SXM", "on_demand", Decimal("61.64"), "listed"),
        ("lambdalabs/B200x8", "NVIDIA-B200-SXM", "on_demand", Decimal("53.52"), "listed"),
        ("lambdalabs/B200x8", "NVIDIA-B200-SXM", "spot", Decimal("26.76"), "live"),
    }


def test_the_clouds_own_catalogues_have_the_same_prices() -> None:
    """Two A6000 at Hyperstack and eight B200 at Lambda: Shadeform passes them on as they are."""
    own = {}
    for path in ("skypilot-catalog-v8/hyperstack/vms.csv", "anycloud-catalog/lambda/vms.csv"):
        with sample(path).open(encoding="utf-8") as file:
            own |= {(row["AcceleratorName"], float(row["AcceleratorCount"] or 0)): Decimal(row["Price"]) for row in csv.DictReader(file)}
    offers = (*fetched("instances_types_fixture").offers, *fetched("instances_types_spot_fixture_2026-09").offers)
    sold = {offer.instance_type: offer.usd_per_hour for offer in offers if offer.pricing == "on_demand"}
    assert sold["hyperstack/A6000x2"] == own["RTX-A6000", 2]
    assert sold["lambdalabs/B200x8"] == own["B200", 8]
