"""Shadeform: small answers in the shape of https://docs.shadeform.ai/api-reference, prices as listed in September 2026."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from providers.shadeform import Shadeform
from tests.unit.providers.conformance import Conformance, RecordedAnswer

URL = "https://api.shadeform.ai/v1/instances/types"


def kind(cloud: str, name: str, cents: int, gpus: dict[str, Any], *places: dict[str, Any]) -> dict[str, Any]:
    """One instance type as the API writes it."""
    return {"cloud": cloud, "shade_instance_type": name, "hourly_price": cents, "configuration": gpus, "availability": list(places)}


def place(region: str, *, available: bool = True, **rest: object) -> dict[str, Any]:
    """One region of an instance type."""
    return {"region": region, "available": available, "display_name": region, **rest}


B200 = kind(
    "lambdalabs",
    "B200x8",
    5352,
    {"gpu_type": "B200", "num_gpus": 8, "vram_per_gpu_in_gb": 180, "interconnect": "sxm6"},
    place("dulles-usa-1", available=False, rental_type="on_demand"),
    place("dulles-usa-1", rental_type="spot", hourly_price="26.76"),
)
H100 = {"gpu_type": "H100", "num_gpus": 1, "vram_per_gpu_in_gb": 80, "interconnect": "pcie"}
TYPES = [
    B200,
    kind("hyperstack", "H100", 190, H100, place("montreal-canada-2"), place("houston-usa-1", available=False)),
    kind("massedcompute", "H100", 235, H100, place("montreal-canada-2")),
    kind("excesssupply", "A4000", 20, {"gpu_type": "A4000", "num_gpus": 1}, place("us")),
]


class TestShadeform(Conformance):
    """What the instance types become."""

    provider = Shadeform
    env = {"SHADEFORM_API_KEY": "key"}
    answers = (RecordedAnswer(URL, {"instance_types": TYPES}),)

    def test_outside_are_cents_and_within_dollars_as_a_text(self) -> None:
        """5352 and "26.76" in one row are 53.52 and 26.76 dollars."""
        found = {o.pricing: o for o in self.fetched().offers if o.instance_type == "lambdalabs/B200x8"}
        assert {pricing: offer.usd_per_hour for pricing, offer in found.items()} == {
            "on_demand": Decimal("53.52"),
            "spot": Decimal("26.76"),
        }
        assert {pricing: offer.availability for pricing, offer in found.items()} == {"on_demand": "listed", "spot": "live"}
        assert {(offer.accelerator, offer.accelerator_count) for offer in found.values()} == {("NVIDIA-B200-SXM", 8)}

    def test_the_cloud_behind_is_told_and_makes_another_thing(self) -> None:
        """Two clouds sell one type in one region at two prices."""
        found = {o.extras["cloud"]: o for o in self.fetched().offers if o.region == "montreal-canada-2"}
        assert {cloud: offer.usd_per_hour for cloud, offer in found.items()} == {
            "hyperstack": Decimal("1.90"),
            "massedcompute": Decimal("2.35"),
        }
        assert {offer.provider for offer in found.values()} == {"shadeform"}

    def test_the_form_is_read_from_the_interconnect(self) -> None:
        """An H100 on PCIe is not an H100 SXM."""
        assert {o.accelerator for o in self.fetched().offers if "H100" in o.instance_type} == {"NVIDIA-H100-80GB-PCIe"}

    def test_without_a_configuration_its_fields_stand_in_the_row(self) -> None:
        """Both shapes are answered."""
        flat = {name: value for name, value in B200.items() if name != "configuration"} | B200["configuration"]
        assert len(self.fetched((RecordedAnswer(URL, {"instance_types": [flat]}),)).offers) == 2

    @pytest.mark.parametrize(("price", "reason"), [(2676, "no text"), ("99", "above"), (None, "no text")])
    def test_a_spot_price_in_an_unknown_unit_or_above_on_demand_is_rejected_alone(self, price: object, reason: str) -> None:
        """The price on demand stays."""
        places = (place("us"), place("us", rental_type="spot", hourly_price=price))
        row = kind("lambdalabs", "B200x8", 5352, B200["configuration"], *places)
        fetched = self.fetched((RecordedAnswer(URL, {"instance_types": [row]}),))
        assert [offer.pricing for offer in fetched.offers] == ["on_demand"]
        assert reason in fetched.rejected[0].reason

    def test_other_ways_of_renting_are_counted(self) -> None:
        """Nothing is dropped silently."""
        row = kind("x", "H100", 190, H100, place("us"), place("us", rental_type="reserved"))
        assert self.fetched((RecordedAnswer(URL, {"instance_types": [row]}),)).skipped == {"rental type reserved": 1}
