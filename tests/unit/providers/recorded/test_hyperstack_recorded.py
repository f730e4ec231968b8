"""Hyperstack's samples against values read by hand."""

from __future__ import annotations

import csv
from decimal import Decimal

import pytest

from providers.hyperstack import parse
from providers.offer import Offer, ProviderError
from tests.unit.providers.recorded_samples import collector, recorded, sample

FLAVORS, PRICES = "hyperstack/core_flavors_fixture.json", "hyperstack/pricebook_fixture.json"


def offer() -> Offer:
    """The one offer of both samples."""
    (only,) = parse(recorded(FLAVORS), recorded(PRICES), collector("hyperstack")).offers
    return only


def test_a_flavor_with_its_price() -> None:
    """In stock."""
    found = offer()
    assert (found.instance_type, found.region, found.usd_per_hour) == ("n3-H100x1", "CANADA-1", Decimal("1.90"))
    assert (found.accelerator, found.accelerator_count, found.availability) == ("NVIDIA-H100-80GB-PCIe", 1, "live")


def test_the_catalogue_of_another_project_has_the_same_price() -> None:
    """Of the same flavor in the same region."""
    with sample("skypilot-catalog-v8/hyperstack/vms.csv").open(encoding="utf-8") as file:
        prices = {(row["InstanceType"], row["Region"]): Decimal(row["Price"]) for row in csv.DictReader(file)}
    assert prices["n3-H100x1", "CANADA-1"] == offer().usd_per_hour


def test_an_error_with_status_200_is_raised_with_its_message() -> None:
    """It is no price list."""
    wrong = recorded("hyperstack/error_status_false_in_200_fixture.json")
    with pytest.raises(ProviderError, match="Insufficient resources"):
        parse(wrong, recorded(PRICES), collector("hyperstack"))
