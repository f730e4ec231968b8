"""JarvisLabs: small answers in the shape of its server_meta, prices as of 2026."""

from __future__ import annotations

from decimal import Decimal

from providers.jarvislabs import JarvisLabs
from providers.offer import Fetched
from tests.unit.providers.conformance import Conformance, RecordedAnswer

URL = "https://backendn.jarvislabs.net/misc/server_meta"


def devices(gpu_type: str, region: str, price: object, vram: str, **more: object) -> dict[str, object]:
    """One row of server_meta as the API writes it."""
    row = {"gpu_type": gpu_type, "region": region, "price_per_hour": price, "spot_price": None, "vram": vram, "num_gpus": "4"}
    counts = {"num_free_devices": 3, "effective_num_free_devices": 2, "spot_num_free_devices": 1}
    return {**row, **counts, "cpus_per_gpu": 28, "ram_per_gpu": 112, "workload_type": "vm", **more}


ROWS = [
    devices("L4", "india-noida-01", 0.44, "24", workload_type="container", spot_price=0.29),
    devices("L4", "india-noida-01", 0.44, "24", spot_price=0.29),
    devices("A100-80GB", "india-noida-01", 1.49, "80", effective_num_free_devices=0),
    devices("RTX5000", "india-01", 0.39, "16"),
]


class TestJarvisLabs(Conformance):
    """What the answer's rows become."""

    provider = JarvisLabs
    env = {"JL_API_KEY": "key"}
    answers = (RecordedAnswer(URL, {"server_meta": ROWS}),)

    def brought(self, *rows: dict[str, object]) -> Fetched:
        """What these rows become."""
        return self.fetched((RecordedAnswer(URL, {"server_meta": list(rows)}),))

    def test_the_price_of_one_device_is_multiplied_exactly(self) -> None:
        """Instances of one, two and four are listed where four is the most."""
        found = {offer.instance_type: offer for offer in self.fetched().offers if offer.accelerator == "NVIDIA-A100-80GB-SXM"}
        assert {name: (offer.accelerator_count, offer.usd_per_hour) for name, offer in found.items()} == {
            "1x A100-80GB": (1, Decimal("1.49")),
            "2x A100-80GB": (2, Decimal("2.98")),
            "4x A100-80GB": (4, Decimal("5.96")),
        }

    def test_stock_is_what_is_left_after_reservations(self) -> None:
        """effective_num_free_devices counts before num_free_devices; what does not fit into it is listed only."""
        found = {(o.instance_type, o.pricing): o.availability for o in self.fetched().offers}
        assert [found[f"{size}x L4", "on_demand"] for size in (1, 2, 4)] == ["live", "live", "listed"]
        assert [found[f"{size}x L4", "spot"] for size in (1, 2, 4)] == ["live", "listed", "listed"]
        assert found["1x A100-80GB", "on_demand"] == "listed"

    def test_devices_listed_for_containers_and_machines_are_one_offer(self) -> None:
        """The same devices are listed once for each kind of workload."""
        assert len([o for o in self.fetched().offers if o.instance_type == "1x L4" and o.pricing == "on_demand"]) == 1

    def test_a_spot_price_above_on_demand_is_refused_and_the_other_stays(self) -> None:
        """It is a misread row."""
        fetched = self.brought(devices("L4", "india-noida-01", 0.44, "24", spot_price=0.5))
        assert {offer.pricing for offer in fetched.offers} == {"on_demand"}
        assert [rejected.reason for rejected in fetched.rejected] == ["spot_price is 0.5, above 0.44 on demand"]

    def test_without_a_largest_size_one_device_can_be_had(self) -> None:
        """Older rows have neither num_gpus nor a kind of workload."""
        row = devices("H100", "europe-01", 2.99, "80", workload_type=None)
        del row["num_gpus"]
        assert [offer.instance_type for offer in self.brought(row).offers] == ["1x H100"]

    def test_the_memory_tells_devices_of_one_name_apart(self) -> None:
        """A100 is the 40 GB part where vram says so."""
        (offer, *_) = self.brought(devices("A100", "india-01", 0.79, "40")).offers
        assert offer.accelerator == "NVIDIA-A100-40GB-SXM"
