"""Vultr's samples against values read by hand."""

from __future__ import annotations

from decimal import Decimal

from providers.vultr import read
from tests.unit.providers.recorded_samples import collector, recorded


def test_plans_with_whole_gpus() -> None:
    """One of three: the others have a twentieth and a half of an A100."""
    found = collector("vultr")
    read(recorded("vultr/v2_plans.json"), "plans", found)
    (offer,) = found.fetched().offers
    assert (offer.instance_type, offer.region, offer.usd_per_hour) == ("vcg-a100-12c-120g-80vram", "ewr", Decimal("2.397"))
    assert (offer.accelerator, offer.accelerator_count, offer.availability) == ("NVIDIA-A100-80GB-PCIe", 1, "offered")
    assert found.skipped == {"a fraction of a GPU": 2, "not sold as spot": 1}


def test_bare_metal_on_demand_and_spot() -> None:
    """Known by the plan's name."""
    found = collector("vultr")
    read(recorded("vultr/v2_plans-metal.json"), "plans_metal", found)
    assert {(o.accelerator, o.accelerator_count, o.region, o.pricing, o.usd_per_hour) for o in found.fetched().offers} == {
        ("AMD-MI300X", 8, "ord", "on_demand", Decimal("17.52")),
        ("AMD-MI300X", 8, "ord", "spot", Decimal("14.72")),
        ("NVIDIA-H100-80GB-SXM", 8, "sea", "on_demand", Decimal("23.92")),
        ("NVIDIA-H100-80GB-SXM", 8, "sea", "spot", Decimal("18.4")),
    }
    assert found.rejected == []
