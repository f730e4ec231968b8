"""Google Cloud's samples against values read by hand."""

from __future__ import annotations

import csv
from decimal import Decimal

import pytest

from providers.gcp import parse, skus_of
from providers.offer import ProviderError
from tests.unit.providers.recorded_samples import collector, recorded, sample


def test_the_excerpt_of_2023_composes_the_a2_machines() -> None:
    """Seven prices: A100, A2 core and memory in three regions, and four of other machines in rupiah, which do not matter."""
    skus, token = skus_of(recorded("gcp/cloudbilling_skus_opencost.json"))
    fetched = parse(skus, collector("gcp"))
    assert len(skus) == 7
    assert token.startswith("APKCS1HVa0Ypwgy")
    assert {(o.instance_type, o.accelerator_count, o.usd_per_hour) for o in fetched.offers} == {
        ("a2-highgpu-1g", 1, Decimal("3.673385")),
        ("a2-highgpu-2g", 2, Decimal("7.34677")),
        ("a2-highgpu-4g", 4, Decimal("14.69354")),
        ("a2-highgpu-8g", 8, Decimal("29.38708")),
        ("a2-megagpu-16g", 16, Decimal("55.739504")),
    }
    assert {o.region for o in fetched.offers} == {"us-central1", "us-east1", "us-west1"}
    assert fetched.rejected == ()
    assert fetched.skipped["a3-ultragpu-8g: the list has no price of its gpu H200"] == 1


def test_it_agrees_with_the_catalogue_of_2026() -> None:
    """A2 has not moved since 2023: host and 16 GPUs there, to the fifth digit."""
    with sample("anycloud-catalog/gcp/vms.csv").open(encoding="utf-8", newline="") as lines:
        zone = [row for row in csv.DictReader(lines) if row["AvailabilityZone"] == "us-central1-a"]
    host = next(Decimal(row["Price"]) for row in zone if row["InstanceType"] == "a2-megagpu-16g")
    gpus = next(Decimal(row["Price"]) for row in zone if (row["AcceleratorName"], row["AcceleratorCount"]) == ("A100", "16"))
    skus, _ = skus_of(recorded("gcp/cloudbilling_skus_opencost.json"))
    ours = {(o.region, o.instance_type): o.usd_per_hour for o in parse(skus, collector("gcp")).offers}
    assert abs(ours["us-central1", "a2-megagpu-16g"] - (host + gpus)) < Decimal("0.0001")


def test_an_invalid_key_is_a_provider_error() -> None:
    """The body of a 400."""
    with pytest.raises(ProviderError, match="INVALID_ARGUMENT: API key not valid"):
        skus_of(recorded("gcp/cloudbilling_error.json"))
