"""Oracle: small answers in the shape of its price list, prices as listed in 2023 and 2026."""

from __future__ import annotations

from decimal import Decimal

from providers.oci import OracleCloud
from tests.unit.providers.conformance import Conformance, RecordedAnswer

URL = "https://apexapps.oracle.com/pls/apex/cetools/api/v1/products/"


def item(part_number: str, name: str, value: object, metric: str = "GPU Per Hour", currency: str = "USD") -> dict[str, object]:
    """One part as the list writes it."""
    prices = [{"model": "PAY_AS_YOU_GO", "value": value}]
    localized = [{"currencyCode": currency, "prices": prices}]
    return {
        "partNumber": part_number,
        "displayName": name,
        "metricName": metric,
        "serviceCategory": "Compute - GPU",
        "currencyCodeLocalizations": localized,
    }


H100 = item("B98415", "Oracle Cloud Infrastructure - Compute - GPU - H100", 10)
V100 = item("B89734", "Compute - GPU Standard - V2", 2.95)
A10 = item("B95909", "Compute  - GPU - A10", 2)
OCPU = item("B93113", "Compute - Standard - E4 - OCPU", 0.025, metric="OCPU Per Hour")


class TestOracle(Conformance):
    """What the list's parts become."""

    provider = OracleCloud
    answers = (RecordedAnswer(URL, {"items": [H100, V100, A10, OCPU]}),)

    def test_a_shape_costs_its_gpus_in_every_region(self) -> None:
        """The price of a GPU includes its host's share."""
        (found,) = [offer for offer in self.fetched().offers if offer.instance_type == "BM.GPU.H100.8"]
        assert (found.region, found.accelerator, found.accelerator_count) == ("any", "NVIDIA-H100-80GB-SXM", 8)
        assert (found.usd_per_hour, found.pricing, found.availability) == (Decimal(80), "on_demand", "listed")

    def test_one_part_is_the_price_of_several_shapes(self) -> None:
        """A10 by ones, twos and fours."""
        found = {o.instance_type: o.usd_per_hour for o in self.fetched().offers if o.accelerator == "NVIDIA-A10"}
        assert found == {"VM.GPU.A10.1": 2, "VM.GPU.A10.2": 4, "BM.GPU.A10.4": 8}

    def test_preemptible_capacity_costs_half_where_the_shape_allows_it(self) -> None:
        """It is a rule and not in the list; bare metal is never preemptible."""
        spot = {offer.instance_type: offer for offer in self.fetched().offers if offer.pricing == "spot"}
        assert {name: offer.usd_per_hour for name, offer in spot.items()} == {
            "VM.GPU3.1": Decimal("1.475"),
            "VM.GPU3.2": Decimal("2.95"),
            "VM.GPU3.4": Decimal("5.90"),
        }
        assert "rule" in spot["VM.GPU3.1"].extras["price"]

    def test_parts_that_are_no_gpus_and_gpus_without_known_shape_are_counted(self) -> None:
        """Nothing is dropped silently."""
        fetched = self.fetched((RecordedAnswer(URL, {"items": [H100, OCPU, item("B00001", "Compute - GPU - X1", 3)]}),))
        assert dict(fetched.skipped) == {
            "not sold by the GPU and hour": 1,
            "no shape known for the part B00001: Compute - GPU - X1": 1,
        }

    def test_a_price_in_another_currency_is_no_price(self) -> None:
        """Dollars were asked for."""
        fetched = self.fetched((RecordedAnswer(URL, {"items": [H100, item("B89734", "V2", 2.95, currency="EUR")]}),))
        assert [rejected.reason for rejected in fetched.rejected] == ["0 pay-as-you-go prices in USD where one was expected"]

    def test_prices_by_quantity_are_not_taken_for_one(self) -> None:
        """A free first tier is no price of the rest."""
        tiered = item("B95909", "Compute  - GPU - A10", 2)
        tiered["currencyCodeLocalizations"] = [
            {"currencyCode": "USD", "prices": [{"model": "PAY_AS_YOU_GO", "value": value} for value in (0, 2)]}
        ]
        fetched = self.fetched((RecordedAnswer(URL, {"items": [H100, tiered]}),))
        assert [rejected.reason for rejected in fetched.rejected] == ["2 pay-as-you-go prices in USD where one was expected"]
