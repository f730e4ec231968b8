"""TensorDock's samples against values read by hand."""

from __future__ import annotations

from decimal import Decimal

import pytest

from providers.offer import ProviderError
from providers.tensordock import parse
from tests.unit.providers.recorded_samples import collector, recorded


def test_the_documented_location() -> None:
    """Eight H100 at 2.20 with 16 processors, 32 GB of memory and 100 GB of disk."""
    fetched = parse(recorded("tensordock/v2_locations_documented_example.json"), collector("tensordock"))
    assert {o.accelerator_count: o.usd_per_hour for o in fetched.offers} == {
        1: Decimal("2.2190"),
        2: Decimal("4.4330"),
        4: Decimal("8.8610"),
        8: Decimal("17.7170"),
    }
    assert {(o.region, o.accelerator, o.availability) for o in fetched.offers} == {
        ("Austin, Texas, United States", "NVIDIA-H100-80GB-SXM", "live")
    }


def test_the_answer_of_the_version_before_is_no_list_of_locations() -> None:
    """`hostnodes` of v0 have another shape and other units."""
    with pytest.raises(ProviderError, match="data"):
        parse(recorded("tensordock/v0_hostnodes_example.json"), collector("tensordock"))
