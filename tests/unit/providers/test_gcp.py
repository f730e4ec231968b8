"""Google Cloud: small pages in the shape of the Cloud Billing catalogue, prices as listed between 2023 and 2026."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest

from providers.gcp import GoogleCloud
from providers.gcp.machines import machines
from providers.offer import Offer, ProviderError
from providers.testing import mock_answers
from tests.unit.providers.conformance import Conformance, RecordedAnswer

COMPUTE = re.compile(r"https://cloudbilling\.googleapis\.com/v1/services/6F81-5844-456A/skus\?.*")
TPU = re.compile(r"https://cloudbilling\.googleapis\.com/v1/services/E000-3F24-B8AA/skus\?.*")


def sku(description: str, price: str, usage: str = "OnDemand", unit: str = "h", region: str = "us-central1") -> dict[str, Any]:
    """One price of a part as the catalogue writes it: dollars as a text, billionths as a number."""
    units, _, nanos = price.partition(".")
    money = {"currencyCode": "USD", "units": units, "nanos": int(nanos.ljust(9, "0"))}
    group = "TPU" if "tpu" in description.lower() else "GPU" if "gpu" in description.lower() else "CPU"
    return {
        "description": description,
        "category": {"resourceFamily": "Compute", "resourceGroup": group, "usageType": usage},
        "serviceRegions": [region],
        "pricingInfo": [{"pricingExpression": {"usageUnit": unit, "tieredRates": [{"startUsageAmount": 0, "unitPrice": money}]}}],
    }


A100 = (
    sku("Nvidia Tesla A100 GPU running in Americas", "2.933908"),
    sku("A2 Instance Core running in Americas", "0.031611"),
    sku("A2 Instance Ram running in Americas", "0.004237", unit="GiBy.h"),
)
A100_SPOT = (
    sku("Nvidia Tesla A100 GPU attached to Spot Preemptible VMs running in Americas", "1.467", "Preemptible"),
    sku("Spot Preemptible A2 Instance Core running in Americas", "0.0158", "Preemptible"),
    sku("Spot Preemptible A2 Instance Ram running in Americas", "0.0021", "Preemptible", unit="GiBy.h"),
)
H100 = (
    sku("Nvidia H100 80GB GPU running in Americas", "9.796550569"),
    sku("A3 Instance Core running in Americas", "0.029317"),
    sku("A3 Instance Ram running in Americas", "0.001796", unit="GiBy.h"),
    sku("SSD backed Local Storage in Americas", "0.08", unit="GiBy.mo"),
)
A3_PLUS = (
    sku("A3Plus Instance Core running in Americas", "0.029317"),
    sku("A3Plus Instance Ram running in Americas", "0.001796", unit="GiBy.h"),
    H100[3],
)


def pages(*skus: dict[str, Any]) -> tuple[RecordedAnswer, ...]:
    """One page of Compute Engine's prices, and none of the old TPUs'."""
    return (RecordedAnswer(COMPUTE, {"skus": list(skus), "nextPageToken": ""}), RecordedAnswer(TPU, {"skus": [], "nextPageToken": ""}))


class TestGoogleCloud(Conformance):
    """What the catalogue's parts become."""

    provider = GoogleCloud
    env = {"GOOGLE_API_KEY": "key"}
    answers = pages(*A100)

    def offers(self, *skus: dict[str, Any]) -> dict[tuple[str, str], Offer]:
        """The offers of a page by instance type and pricing."""
        return {(offer.instance_type, offer.pricing): offer for offer in self.fetched(pages(*skus)).offers}

    def test_a_machine_costs_its_cores_memory_and_gpus(self) -> None:
        """12 x 0.031611 + 85 x 0.004237 + 2.933908, to the last digit."""
        found = self.offers(*A100)["a2-highgpu-1g", "on_demand"]
        assert found.usd_per_hour == Decimal("3.673385")
        assert (found.region, found.accelerator, found.accelerator_count) == ("us-central1", "NVIDIA-A100-40GB-SXM", 1)
        assert self.offers(*A100)["a2-megagpu-16g", "on_demand"].usd_per_hour == Decimal("55.739504")

    def test_bundled_disks_are_part_of_the_price(self) -> None:
        """6,000 GiB at 0.08 a month of 730 hours, the machine then at the 88.49 of Google's price page."""
        found = self.offers(*H100)["a3-highgpu-8g", "on_demand"]
        assert found.usd_per_hour == Decimal("88.489986799")

    def test_a_machine_without_all_its_parts_is_left_out_with_the_reason(self) -> None:
        """A host without its GPUs is no price, and neither are GPUs without their host."""
        fetched = self.fetched(pages(*A100, *H100[1:]))
        assert not [offer for offer in fetched.offers if offer.instance_type.startswith("a3")]
        assert fetched.skipped["a3-highgpu-8g: the list has no price of its gpu H100"] == 1
        fetched = self.fetched(pages(*A100, H100[0]))
        assert fetched.skipped["a3-highgpu-8g: its on_demand price lacks core a3 and ram a3 and local ssd in some regions"] == 1

    @pytest.mark.parametrize("name", ["Nvidia H100 80GB Mega GPU", "Nvidia H100 Mega 80GB GPU", "Nvidia H100 80GB Plus GPU"])
    def test_mega_and_plus_are_names_of_the_same_gpu(self, name: str) -> None:
        """It sits in a3-megagpu, whose cores are called A3Plus."""
        found = self.offers(sku(f"{name} running in Americas", "10.34427571"), *A3_PLUS)
        assert set(found) == {("a3-megagpu-8g", "on_demand")}
        assert found["a3-megagpu-8g", "on_demand"].usd_per_hour == Decimal("92.871787927")

    def test_spot_is_told_by_usage_type_or_by_the_description(self) -> None:
        """Some B200 prices are spot by their description alone."""
        assert self.offers(*A100, *A100_SPOT)["a2-highgpu-1g", "spot"].usd_per_hour == Decimal("1.8351")
        slices = sku("Spot Preemptible A4 Nvidia B200 (1 gpu slice) running in Americas", "4.9542", "OnDemand")
        assert self.offers(slices)["a4-highgpu-8g", "spot"].usd_per_hour == Decimal("39.6336")

    def test_a_slice_includes_its_host_and_what_cannot_be_bought_on_demand_is_no_offer(self) -> None:
        """A4 is sold as spot, by commitment and in calendar mode."""
        fetched = self.fetched(pages(*A100, sku("A4 Nvidia B200 (1 gpu slice) running in Americas", "16.11")))
        assert {offer.accelerator for offer in fetched.offers} == {"NVIDIA-A100-40GB-SXM"}
        assert fetched.skipped["a4-highgpu-8g: listed, but cannot be bought on demand"] == 1

    def test_commitments_are_reserved_prices_where_all_parts_have_one(self) -> None:
        """A commitment names cores as Cpu; three years have cores only here."""
        found = self.offers(
            *A100,
            sku("Commitment v1: Nvidia Tesla A100 GPU running in Americas for 1 Year", "1.84836", "Commit1Yr"),
            sku("Commitment v1: A2 Cpu in Americas for 1 Year", "0.019915", "Commit1Yr"),
            sku("Commitment v1: A2 Ram in Americas for 1 Year", "0.002669", "Commit1Yr", unit="GiBy.h"),
            sku("Commitment v1: A2 Cpu in Americas for 3 Years", "0.011064", "Commit3Yr"),
        )
        assert found["a2-highgpu-1g", "reserved_1y"].usd_per_hour == Decimal("2.314205")
        assert ("a2-highgpu-1g", "reserved_3y") not in found

    @pytest.mark.parametrize(
        "description",
        [
            "Nvidia Tesla A100 GPU attached to DWS Defined Duration VMs running in Americas",
            "DWS Calendar Mode A4 Nvidia B200 (1 gpu slice) running in Americas",
            "Sole Tenancy Premium for A2 Instance Core running in Americas",
            "Reserved Nvidia Tesla A100 GPU in Americas",
            "A2 Custom Instance Core running in Americas",
            "Capacity Optimized TpuV6e running in Columbus",
        ],
    )
    def test_other_ways_to_buy_a_part_are_not_its_price(self, description: str) -> None:
        """The machine costs what it costs without them."""
        found = self.offers(*A100, sku(description, "0.5"))
        assert found["a2-highgpu-1g", "on_demand"].usd_per_hour == Decimal("3.673385")
        assert {name for name, _ in found} == {f"a2-highgpu-{n}g" for n in (1, 2, 4, 8)} | {"a2-megagpu-16g"}

    def test_gpus_of_no_known_machine_are_counted(self) -> None:
        """A new GPU is seen before it is known."""
        fetched = self.fetched(pages(*A100, sku("Nvidia Z9000 GPU running in Americas", "1.0")))
        assert fetched.skipped["no machine known that is composed of: Nvidia Z9000 GPU"] == 1

    def test_spot_above_on_demand_is_rejected(self) -> None:
        """A misread row must not stand as a price."""
        dear = sku("Nvidia Tesla A100 GPU attached to Spot Preemptible VMs running in Americas", "9.0", "Preemptible")
        fetched = self.fetched(pages(*A100, dear, *A100_SPOT[1:]))
        assert {offer.pricing for offer in fetched.offers} == {"on_demand"}
        assert {"more than on demand" in rejected.reason for rejected in fetched.rejected} == {True}

    def test_a_price_in_another_currency_is_rejected(self) -> None:
        """Excerpts of the catalogue carry rupiah."""
        foreign = sku("Nvidia Tesla A100 GPU running in Americas", "44000.0")
        foreign["pricingInfo"][0]["pricingExpression"]["tieredRates"][0]["unitPrice"]["currencyCode"] = "IDR"
        with pytest.raises(ProviderError, match="a price in IDR"):
            self.fetched(pages(foreign, *A100[1:]))

    @pytest.mark.parametrize("nanos", [-1, 10**9])
    def test_billionths_are_less_than_a_dollar(self, nanos: int) -> None:
        """Anything else is no part of one."""
        wrong = sku("Nvidia Tesla A100 GPU running in Americas", "2.933908")
        wrong["pricingInfo"][0]["pricingExpression"]["tieredRates"][0]["unitPrice"]["nanos"] = nanos
        with pytest.raises(ProviderError, match="no billionths of a dollar"):
            self.fetched(pages(wrong, *A100[1:]))

    def test_an_absurd_price_is_rejected(self) -> None:
        """Eight of it would be more than a number here can hold to the billionth."""
        fetched = self.fetched(pages(*A100, sku("TpuV6e running in Columbus", "900000000000000000000000.0")))
        assert [rejected.row for rejected in fetched.rejected] == ["TpuV6e running in Columbus"]
        assert len(fetched.offers) == 5

    def test_new_tpus_are_priced_by_the_chip(self) -> None:
        """v5p slices are named by cores, two a chip; v5e and v6e by chips."""
        found = self.offers(
            sku("TpuV5p running in Columbus", "4.2"),
            sku("TpuV6e running in Columbus", "2.7"),
            sku("TpuV6e attached to Spot Preemptible VMs running in Columbus", "1.4033", "Preemptible"),
        )
        assert found["tpu-v5p-8", "on_demand"].usd_per_hour == Decimal("16.8")
        assert (found["tpu-v5p-8", "on_demand"].accelerator_count, found["tpu-v5p-8", "on_demand"].accelerator) == (4, "Google-TPU-v5p")
        assert found["tpu-v6e-256", "on_demand"].usd_per_hour == Decimal("691.2")
        assert found["tpu-v6e-8", "spot"].usd_per_hour == Decimal("11.2264")

    def test_old_tpus_are_priced_by_eight_cores_and_dearer_in_a_pod(self) -> None:
        """v2-8 at 4.50 has four chips; 32 cores of a pod cost four times 6.00."""
        old = [sku("Tpu-v2 Accelerator USA", "4.5"), sku("Tpu-v2 Pod USA", "6.0"), sku("Preemptible Tpu-v4 Pod USA", "5.0", "Preemptible")]
        answers = (pages()[0], RecordedAnswer(TPU, {"skus": old, "nextPageToken": ""}))
        found = {(offer.instance_type, offer.pricing): offer for offer in self.fetched(answers).offers}
        assert (found["tpu-v2-8", "on_demand"].usd_per_hour, found["tpu-v2-8", "on_demand"].accelerator_count) == (Decimal("4.5"), 4)
        assert (found["tpu-v2-32", "on_demand"].usd_per_hour, found["tpu-v2-32", "on_demand"].accelerator_count) == (Decimal(24), 16)
        assert found["tpu-v4-16", "spot"].usd_per_hour == Decimal(10)

    def test_a_commitments_price_under_the_name_of_on_demand_is_rejected(self) -> None:
        """The catalogue does that to TPUs in some regions."""
        same = (sku("TpuV6e running in Columbus", "1.89"), sku("Commitment v1: TpuV6e running in Columbus for 1 Year", "1.89", "Commit1Yr"))
        fetched = self.fetched(pages(*same))
        assert {offer.pricing for offer in fetched.offers} == {"reserved_1y"}
        assert {"under another name" in rejected.reason for rejected in fetched.rejected} == {True}

    def test_pages_are_followed_to_the_last(self) -> None:
        """By their tokens, with the key in a header, where no message can show it."""
        one = RecordedAnswer(COMPUTE, {"skus": [A100[0]], "nextPageToken": "two"})
        two = RecordedAnswer(re.compile(COMPUTE.pattern + "pageToken=two"), {"skus": list(A100[1:]), "nextPageToken": ""})
        with mock_answers((one, two, RecordedAnswer(TPU, {"skus": []}))) as mock:
            offers = self.make().fetch().offers
            assert ["pageToken=two" in str(call.request.url) for call in mock.calls] == [False, True, False]
            assert {call.request.headers["X-Goog-Api-Key"] for call in mock.calls} == {"key"}
        assert len(offers) == 5

    def test_pages_without_end_are_an_error(self) -> None:
        """A token that comes back would be followed for ever."""
        with pytest.raises(ProviderError, match="do not end"):
            self.fetched((RecordedAnswer(COMPUTE, {"skus": [], "nextPageToken": "again"}), self.answers[1]))

    def test_an_invalid_key_is_a_provider_error_with_googles_words(self) -> None:
        """Also where a proxy makes a 200 of it."""
        error = {"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}}
        with pytest.raises(ProviderError, match="INVALID_ARGUMENT: API key not valid"):
            self.fetched((RecordedAnswer(COMPUTE, error), self.answers[1]))

    def test_old_tpus_that_cannot_be_read_cost_nothing_else(self) -> None:
        """Their service is named among what was rejected."""
        fetched = self.fetched((self.answers[0], RecordedAnswer(TPU, {}, status=500)))
        assert len(fetched.offers) == 5
        assert [rejected.row for rejected in fetched.rejected] == ["service E000-3F24-B8AA"]


def test_every_machine_of_the_hosts_table_has_its_cores_and_memory() -> None:
    """A host without a shape would be found when its GPU is first priced."""
    assert len(machines()) == 40
    assert all(len(machine.parts) >= 3 or machine.name == "a4-highgpu-8g" for machine in machines())
