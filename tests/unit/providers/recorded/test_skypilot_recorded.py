"""Every catalogue file of three schema versions: how many offers it gives, and one price of each read by hand."""

from __future__ import annotations

import csv
from collections import Counter
from decimal import Decimal

import pytest

from providers.offer import Fetched
from providers.skypilot import SkyPilotCloud, clouds, parse
from tests.unit.providers.recorded_samples import collector, sample

CLOUDS = {cloud.name: cloud for cloud in clouds()}


def read(folder: str, cloud: str) -> Fetched:
    """What a file becomes; clouds that the newest schema lacks are read like any other."""
    text = sample(f"{folder}/{cloud}/vms.csv").read_text(encoding="utf-8")
    return parse(CLOUDS.get(cloud, SkyPilotCloud(cloud, cloud, "catalogue", "device", crossed=False)), text, collector("skypilot"))


@pytest.mark.parametrize(
    ("path", "on_demand", "spot", "rejected"),
    [
        ("skypilot-catalog-v8/hyperstack", 20, 0, 0),
        ("skypilot-catalog-v8/mithril", 0, 4, 4),
        ("skypilot-catalog-v8/nebius", 21, 8, 0),
        ("skypilot-catalog-v8/verda", 45, 38, 0),
        ("anycloud-catalog/azure", 608, 588, 0),
        ("anycloud-catalog/gcp", 594, 691, 305),
        ("anycloud-catalog/lambda", 22, 0, 0),
        ("anycloud-catalog/vast", 56, 0, 64),
        ("skypilot-catalog/aws", 363, 357, 0),
        ("skypilot-catalog/azure", 147, 132, 8),
        ("skypilot-catalog/cudo", 38, 0, 0),
        ("skypilot-catalog/fluidstack", 27, 0, 0),
        ("skypilot-catalog/gcp", 332, 331, 22),
        ("skypilot-catalog/ibm", 9, 0, 0),
        ("skypilot-catalog/lambda", 13, 0, 0),
        ("skypilot-catalog/oci", 9, 0, 0),
        ("skypilot-catalog/ovhcloud", 14, 0, 0),
        ("skypilot-catalog/paperspace", 8, 0, 0),
        ("skypilot-catalog/runpod", 44, 16, 0),
        ("skypilot-catalog/scaleway", 2, 0, 0),
        ("skypilot-catalog/scp", 12, 0, 0),
    ],
)
def test_offers_by_file(path: str, on_demand: int, spot: int, rejected: int) -> None:
    """Each thing has one price, and what is not taken is counted."""
    fetched = read(*path.split("/"))
    pricings = Counter(offer.pricing for offer in fetched.offers)
    assert (pricings["on_demand"], pricings["spot"], len(fetched.rejected)) == (on_demand, spot, rejected)
    identities = {(o.provider, o.region, o.instance_type, o.accelerator, o.accelerator_count, o.pricing, o.market) for o in fetched.offers}
    assert len(identities) == len(fetched.offers)


@pytest.mark.parametrize(
    ("path", "region", "instance_type", "accelerator", "count", "price"),
    [
        ("skypilot-catalog-v8/hyperstack", "US-1", "n3-H100-SXM5x8", "NVIDIA-H100-80GB-SXM", 8, "19.2"),
        ("skypilot-catalog-v8/nebius", "us-central1", "gpu-b200-sxm_8gpu-160vcpu-1792gb", "NVIDIA-B200-SXM", 8, "44.00"),
        ("skypilot-catalog-v8/verda", "FIN-03", "8B200.240V", "NVIDIA-B200-SXM", 8, "30.32"),
        ("anycloud-catalog/azure", "australiaeast", "Standard_ND96isr_H200_v5", "NVIDIA-H200-141GB-SXM", 8, "122.96"),
        ("anycloud-catalog/gcp", "us-central1", "a2-highgpu-8g", "NVIDIA-A100-40GB-SXM", 8, "29.38708"),
        ("anycloud-catalog/lambda", "any", "gpu_1x_b200_sxm6", "NVIDIA-B200-SXM", 1, "6.99"),
        ("anycloud-catalog/vast", "VN", "8x-H100_SXM-32-65536", "NVIDIA-H100-80GB-SXM", 8, "14.94"),
        ("skypilot-catalog/aws", "us-east-1", "p5.48xlarge", "NVIDIA-H100-80GB-SXM", 8, "98.32"),
        ("skypilot-catalog/fluidstack", "generic_1_canada", "recbjE6PRB7uP9k5gUY8FJFpF", "NVIDIA-H100-80GB-PCIe", 8, "30"),
        ("skypilot-catalog/ibm", "us-south", "gx2-8x64x1v100", "NVIDIA-V100-16GB-PCIe", 1, "2.497"),
        ("skypilot-catalog/oci", "any", "BM.GPU.A100-v2.8", "NVIDIA-A100-80GB-SXM", 8, "32"),
        ("skypilot-catalog/ovhcloud", "GRA", "a100-180", "NVIDIA-A100-80GB-PCIe", 1, "3.07"),
        ("skypilot-catalog/paperspace", "East Coast (NY2)", "H100x8", "NVIDIA-H100-80GB-SXM", 8, "47.60"),
        ("skypilot-catalog/runpod", "any", "1x_A100-80GB_SECURE", "NVIDIA-A100-80GB-PCIe", 1, "1.99"),
        ("skypilot-catalog/scaleway", "fr-par", "H100-2-80G", "NVIDIA-H100-80GB-PCIe", 2, "5.04"),
        ("skypilot-catalog/scp", "KOREA-WEST-1-SCP-B001", "g1v8v1", "NVIDIA-V100-32GB-SXM2", 1, "2.27"),
    ],
)
def test_prices_read_by_hand(path: str, region: str, instance_type: str, accelerator: str, count: int, price: str) -> None:
    """Whole instances, their accelerators told apart by instance type."""
    (offer,) = [o for o in read(*path.split("/")).offers if (o.region, o.instance_type, o.pricing) == (region, instance_type, "on_demand")]
    assert (offer.accelerator, offer.accelerator_count, offer.usd_per_hour) == (accelerator, count, Decimal(price))
    assert offer.provider == path.split("/")[1]


def test_every_priced_accelerator_row_of_nebius_is_an_offer() -> None:
    """Counted from the file itself: one offer for each price that is written in it."""
    with sample("skypilot-catalog-v8/nebius/vms.csv").open(encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["AcceleratorName"]]
    written = [row[column] for row in rows for column in ("Price", "SpotPrice") if row[column]]
    assert sorted(Decimal(price) for price in written) == sorted(o.usd_per_hour for o in read("skypilot-catalog-v8", "nebius").offers)


def test_the_floor_of_an_auction_is_no_market_price() -> None:
    """Four types at 1.00 a GPU."""
    assert {(o.market, o.usd_per_accelerator_hour) for o in read("skypilot-catalog-v8", "mithril").offers} == {
        ("auction_floor", Decimal(1))
    }
