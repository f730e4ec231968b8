"""Lambda: small answers in the shape of https://docs-api.lambda.ai/api/cloud, prices as listed in 2025 and 2026."""

from __future__ import annotations

from decimal import Decimal

from providers.lambda_cloud import LambdaCloud
from tests.unit.providers.conformance import Conformance, RecordedAnswer

URL = "https://cloud.lambda.ai/api/v1/instance-types"


def entry(name: str, gpu: str, cents: int, gpus: int, regions: tuple[str, ...] = ()) -> dict[str, object]:
    """One instance type as the API writes it."""
    specs = {"vcpus": 26 * gpus, "memory_gib": 225 * gpus, "storage_gib": 2816 * gpus, "gpus": gpus}
    kind = {"name": name, "description": f"{gpus}x {gpu}", "gpu_description": gpu, "price_cents_per_hour": cents, "specs": specs}
    return {"instance_type": kind, "regions_with_capacity_available": [{"name": region, "description": ""} for region in regions]}


TYPES = {
    "gpu_8x_h100_sxm5": entry("gpu_8x_h100_sxm5", "H100 (80 GB SXM5)", 3192, 8, ("us-east-1", "us-west-2")),
    "gpu_8x_a100": entry("gpu_8x_a100", "A100", 1592, 8),
    "gpu_8x_a100_80gb_sxm4": entry("gpu_8x_a100_80gb_sxm4", "A100 (80 GB SXM4)", 1432, 8),
    "gpu_1x_unheard_of": entry("gpu_1x_unheard_of", "Z9000", 10, 1, ("us-east-1",)),
}


class TestLambda(Conformance):
    """What the answer's rows become."""

    provider = LambdaCloud
    env = {"LAMBDA_API_KEY": "key"}
    answers = (RecordedAnswer(URL, {"data": TYPES}),)

    def test_an_instance_with_stock_is_one_live_offer_a_region(self) -> None:
        """Cents of the whole instance become dollars of the whole instance."""
        found = [offer for offer in self.fetched().offers if offer.instance_type == "gpu_8x_h100_sxm5"]
        assert {(o.region, o.usd_per_hour, o.availability) for o in found} == {
            ("us-east-1", Decimal("31.92"), "live"),
            ("us-west-2", Decimal("31.92"), "live"),
        }
        assert {(o.accelerator, o.accelerator_count) for o in found} == {("NVIDIA-H100-80GB-SXM", 8)}

    def test_a_sold_out_instance_keeps_its_price_without_stock(self) -> None:
        """Price and stock are different things."""
        found = {offer.instance_type: offer for offer in self.fetched().offers if offer.availability == "listed"}
        assert found["gpu_8x_a100"].accelerator == "NVIDIA-A100-40GB-SXM"
        assert found["gpu_8x_a100_80gb_sxm4"].accelerator == "NVIDIA-A100-80GB-SXM"

    def test_an_accelerator_without_a_canonical_name_is_counted_as_left_out(self) -> None:
        """Nothing is dropped silently."""
        assert dict(self.fetched().skipped) == {"no canonical name: Z9000": 1}

    def test_old_answers_without_specs_gpus_are_read_from_the_description(self) -> None:
        """Answers before 2024 lack specs.gpus."""
        old = entry("gpu_1x_a100_sxm4", "A100 (40 GB SXM4)", 110, 1)
        kind = old["instance_type"]
        assert isinstance(kind, dict)
        kind["specs"] = {"vcpus": 24}
        fetched = self.fetched((RecordedAnswer(URL, {"data": {"gpu_1x_a100_sxm4": old}}),))
        assert [offer.accelerator_count for offer in fetched.offers] == [1]
