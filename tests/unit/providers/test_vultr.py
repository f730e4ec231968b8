"""Vultr: small answers in the shape of https://www.vultr.com/api/, prices as listed in September 2026."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from providers.offer import Offer
from providers.tables import read_table
from providers.vultr import Vultr
from service.presets.hardware.accelerators import canonical_accelerator
from tests.unit.providers.conformance import Conformance, RecordedAnswer

URL = "https://api.vultr.com/v2"


def cloud(name: str, memory: int, cost: float, gpu: str = "NVIDIA_A100", locations: tuple[str, ...] = ("ewr",)) -> dict[str, object]:
    """A plan with a cloud GPU, as the API writes it."""
    return {"id": name, "type": "vcg", "gpu_type": gpu, "gpu_vram_gb": memory, "hourly_cost": cost, "locations": list(locations)}


def metal(name: str, cost: float, spot: float, locations: tuple[str, ...] = (), **changed: object) -> dict[str, object]:
    """A bare-metal plan, which states no GPU."""
    plan = {"id": name, "type": "NVMe", "hourly_cost": cost, "hourly_cost_preemptible": spot, "locations": list(locations)}
    return plan | changed


PLANS = RecordedAnswer(
    f"{URL}/plans",
    {
        "plans": [
            cloud("vcg-a100-12c-120g-80vram", 80, 2.397, locations=("ewr", "")),
            cloud("vcg-a100-6c-60g-40vram", 40, 1.397),
            cloud("vcg-l40s-64c-750g-192vram", 192, 6.684, "NVIDIA_L40S", ()),
            cloud("vcg-a16-6c-64g-16vram", 16, 0.471, "NVIDIA_A16"),
            {"id": "vc2-1c-0.5gb-free", "type": "vc2", "hourly_cost": 0, "locations": ["sea"]},
        ],
        "meta": {"total": 5, "links": {"next": "", "prev": ""}},
    },
)
METAL = RecordedAnswer(
    f"{URL}/plans-metal",
    {
        "plans_metal": [
            metal("vbm-112c-2048gb-8-h100-gpu", 23.92, 18.4, ("sea",)),
            metal("vbm-64c-2048gb-8-l40-gpu", 13.368, 11.92),
            metal("vbm-256c-3072gb-8-b200-gpu", 68, 25.6, gpu_type="NVIDIA_B200", gpu_count=8, deploy_ondemand=False),
            metal("vbm-4c-32gb", 0.25, 0.2, ("ewr",)),
        ]
    },
)


class TestVultr(Conformance):
    """What the plans become."""

    provider = Vultr
    answers = (PLANS, METAL)

    def sold(self, name: str) -> list[Offer]:
        """The offers of one plan."""
        return [offer for offer in self.fetched().offers if offer.instance_type == name]

    def test_a_cloud_gpu_can_be_ordered_where_the_plan_says(self) -> None:
        """An empty text among the places is none."""
        (offer,) = self.sold("vcg-a100-12c-120g-80vram")
        assert (offer.region, offer.availability, offer.usd_per_hour) == ("ewr", "offered", Decimal("2.397"))
        assert (offer.accelerator, offer.accelerator_count) == ("NVIDIA-A100-80GB-PCIe", 1)

    def test_a_fraction_of_a_gpu_is_left_out(self) -> None:
        """40 GB of an A100 of 80 GB are no A100 of 40 GB."""
        assert self.sold("vcg-a100-6c-60g-40vram") == []
        assert self.fetched().skipped["a fraction of a GPU"] == 1

    def test_the_memory_of_a_plan_says_how_many_gpus_it_has(self) -> None:
        """192 GB are four L40S of 48 GB; without a place the price is listed."""
        (offer,) = self.sold("vcg-l40s-64c-750g-192vram")
        assert (offer.accelerator, offer.accelerator_count) == ("NVIDIA-L40S", 4)
        assert (offer.region, offer.availability) == ("any", "listed")

    def test_bare_metal_is_known_by_its_name(self) -> None:
        """Its answer states no GPU; `l40` in the name is an L40S."""
        offers = self.sold("vbm-112c-2048gb-8-h100-gpu") + self.sold("vbm-64c-2048gb-8-l40-gpu")
        assert {(o.accelerator, o.accelerator_count, o.pricing, o.usd_per_hour) for o in offers} == {
            ("NVIDIA-H100-80GB-SXM", 8, "on_demand", Decimal("23.92")),
            ("NVIDIA-H100-80GB-SXM", 8, "spot", Decimal("18.4")),
            ("NVIDIA-L40S", 8, "on_demand", Decimal("13.368")),
            ("NVIDIA-L40S", 8, "spot", Decimal("11.92")),
        }

    def test_what_cannot_be_deployed_on_demand_has_its_spot_price_alone(self) -> None:
        """Vultr lists both prices and says which it sells."""
        assert {(offer.pricing, offer.usd_per_hour) for offer in self.sold("vbm-256c-3072gb-8-b200-gpu")} == {("spot", Decimal("25.6"))}

    def test_the_free_plan_and_other_processors_are_left_out(self) -> None:
        """They train nothing, and nothing is free."""
        assert self.fetched().skipped["no accelerator"] == 2

    @pytest.mark.parametrize(
        "plan",
        [
            {"id": "vcg-z9-1c-1g-1vram", "type": "vdm", "hourly_cost": 1, "locations": ["ewr"]},
            metal("vbm-999c-1gb-8-z9-gpu", 1, 1),
            cloud("vcg-h100-x", 100, 1, "NVIDIA_H100"),
        ],
    )
    def test_a_plan_whose_gpus_are_not_known_is_named(self, plan: dict[str, object]) -> None:
        """A guess would be a wrong price."""
        fetched = self.fetched((replace(PLANS, body={"plans": [*PLANS.body["plans"], plan]}), METAL))
        assert [rejected.row for rejected in fetched.rejected] == [plan["id"]]

    def test_one_kind_of_plan_stays_where_the_other_cannot_be_read(self) -> None:
        """The call that failed is named."""
        fetched = self.fetched((PLANS, replace(METAL, status=500, body="oops")))
        assert [rejected.row for rejected in fetched.rejected] == ["plans-metal"]
        assert fetched.offers

    def test_further_pages_are_asked_for(self) -> None:
        """As long as an answer names the next one."""
        first: dict[str, Any] = {"plans": PLANS.body["plans"][:1], "meta": {"links": {"next": "bmV4dA=="}}}
        second = {"plans": PLANS.body["plans"][1:]}
        fetched = self.fetched((replace(PLANS, body=first), replace(PLANS, body=second), METAL))
        assert {offer.instance_type for offer in fetched.offers} >= {"vcg-a100-12c-120g-80vram", "vcg-l40s-64c-750g-192vram"}

    def test_every_plan_of_the_table_has_a_canonical_accelerator(self) -> None:
        """All but the A16, which nobody trains on."""
        models = {row["gpu_type"]: canonical_accelerator(row["model"], float(row["memory_gb"])) for row in read_table("vultr_models.csv")}
        assert [gpu_type for gpu_type, name in models.items() if name is None] == ["NVIDIA_A16"]
        assert {row["gpu_type"] for row in read_table("vultr_plans.csv")} <= models.keys()
