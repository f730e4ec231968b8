"""Azure: small answers in the shape of its retail prices API, prices as listed in 2026."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
import responses

from providers.azure import Azure, parse
from providers.offer import ProviderError
from tests.unit.providers.conformance import Conformance, RecordedAnswer
from tests.unit.providers.recorded_samples import collector

URL = "https://prices.azure.com/api/retail/prices"
H100 = "Standard_ND96isr_H100_v5"


def item(sku: str = H100, price: object = 98.32, meter: str = "ND96isrH100v5", **others: Any) -> dict[str, Any]:
    """One row as the API writes it."""
    return {
        "currencyCode": "USD",
        "tierMinimumUnits": 0.0,
        "retailPrice": price,
        "unitPrice": price,
        "armRegionName": "eastus",
        "effectiveStartDate": "2024-01-01T00:00:00Z",
        "meterName": meter,
        "productName": "Virtual Machines NDsr H100 v5 Series",
        "skuName": meter,
        "serviceName": "Virtual Machines",
        "unitOfMeasure": "1 Hour",
        "type": "Consumption",
        "isPrimaryMeterRegion": True,
        "armSkuName": sku,
    } | others


def page(*items: dict[str, Any], link: object = None) -> dict[str, Any]:
    """An answer with these rows."""
    return {"BillingCurrency": "USD", "Items": list(items), "NextPageLink": link, "Count": len(items)}


def reserved(term: str, price: float) -> dict[str, Any]:
    """A reservation: its unit says an hour, its price is for the whole term."""
    return item(price=price, type="Reservation", reservationTerm=term)


class TestAzure(Conformance):
    """What one answer of two pages becomes."""

    provider = Azure
    answers = (
        RecordedAnswer(URL, page(item(), reserved("1 Year", 551_880), link="https://prices.azure.com:443/api/retail/prices?page=2")),
        RecordedAnswer("https://prices.azure.com:443/api/retail/prices?page=2", page(item(price=18.169536, meter="ND96isrH100v5 Spot"))),
    )

    def test_the_link_to_the_next_page_is_followed(self) -> None:
        """It names the port that the address leaves out."""
        offers = {(o.pricing, o.usd_per_hour) for o in self.fetched().offers}
        assert offers == {("on_demand", Decimal("98.32")), ("reserved_1y", Decimal(63)), ("spot", Decimal("18.169536"))}

    def test_the_filter_keeps_the_case_of_its_values(self) -> None:
        """Since 2023-01-01-preview `virtual machines` finds nothing."""
        with responses.RequestsMock() as mock:
            mock.get(URL, json=page(item()))
            self.make().fetch()
            asked = mock.calls[0].request.params
        assert asked["api-version"] == "2023-01-01-preview"
        assert asked["$filter"] == "serviceName eq 'Virtual Machines' and contains(armSkuName, 'Standard_N')"

    @pytest.mark.parametrize("link", ["https://prices.example.com/2", "http://prices.azure.com/2", "https://[", 17, ""])
    def test_a_link_to_another_host_is_not_followed(self, link: object) -> None:
        """What came is kept, and the missing rest is named."""
        fetched = self.fetched((RecordedAnswer(URL, page(item(), link=link)),))
        assert [offer.usd_per_hour for offer in fetched.offers] == [Decimal("98.32")]
        assert "NextPageLink" in fetched.rejected[0].reason or "no address" in fetched.rejected[0].reason

    def test_a_page_that_fails_is_named_and_costs_only_the_rest(self) -> None:
        """One bad page must not fail the provider."""
        first, second = self.answers
        fetched = self.fetched((first, replace(second, status=400, body="no")))
        assert {offer.pricing for offer in fetched.offers} == {"on_demand", "reserved_1y"}
        assert [row.row for row in fetched.rejected] == ["further pages"]
        assert fetched.partial

    def test_pages_without_end_are_given_up(self) -> None:
        """A link that leads back to its own page would never end."""
        fetched = self.fetched((RecordedAnswer(URL, page(item(), link=URL)),))
        assert len(fetched.offers) == 1
        assert "more than 200 pages" in fetched.rejected[0].reason

    def test_an_answer_without_rows_is_an_error(self) -> None:
        """A filter that no longer fits must not empty the catalogue."""
        with pytest.raises(ProviderError, match="without rows"):
            self.fetched((RecordedAnswer(URL, page()),))


def read(*items: dict[str, Any]) -> Any:
    """What these rows become."""
    return parse(page(*items), collector("azure"))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (item(productName="Virtual Machines NDsr H100 v5 Series Windows"), "Windows"),
        (item(productName="NC Series Win"), "Windows"),
        (item(meter="ND96isrH100v5 Low Priority"), "Low Priority, retired"),
        (item(productName="NDsr H100 v5 Dedicated Host"), "dedicated host"),
        (item(productName="NC Series Cloud Services"), "Cloud Services, not virtual machines"),
        (item(type="DevTestConsumption"), "price of the type DevTestConsumption"),
        (reserved("2 Years", 1_000_000), "commitment of 2 Years"),
        (item(effectiveStartDate="2027-01-01T00:00:00Z"), "price of a later date"),
        (item(effectiveEndDate="2026-01-01T00:00:00Z"), "price of an earlier date"),
        (item("Standard_NV6ads_A10_v5"), "fractional GPU"),
        (item("Standard_D96s_v5"), "no accelerator"),
    ],
)
def test_rows_that_are_not_for_us_are_counted(row: dict[str, Any], reason: str) -> None:
    """Each by its reason; none becomes a price."""
    fetched = read(row)
    assert (fetched.offers, dict(fetched.skipped)) == ((), {reason: 1})


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (item(price=0), "unknown, not free"),
        (item(unitOfMeasure="1 GB"), "a price in USD for 1 GB"),
        (item(currencyCode="EUR"), "a price in EUR for 1 Hour"),
        (item(type="Reservation"), "reservationTerm is missing"),
        (item(effectiveStartDate="soon"), "effectiveStartDate"),
    ],
)
def test_rows_that_cannot_be_used_are_named(row: dict[str, Any], reason: str) -> None:
    """The good row beside them stays."""
    fetched = read(item(), row)
    assert fetched.offers[0].usd_per_hour == Decimal("98.32")
    assert [reason in rejected.reason for rejected in fetched.rejected] == [True]


def test_a_reservation_is_paid_for_its_whole_term() -> None:
    """8,760 hours a year, whatever the unit says: as eastus listed them in September 2026."""
    offers = read(reserved("1 Year", 551_221), reserved("3 Years", 1_134_310), reserved("5 Years", 1_722_566)).offers
    found = {(o.pricing, o.term_hours, round(o.usd_per_hour, 4)) for o in offers}
    assert found == {
        ("reserved_1y", 8760, Decimal("62.9248")),
        ("reserved_3y", 26280, Decimal("43.1625")),
        ("reserved", 43800, Decimal("39.3280")),
    }


PLANS = [{"term": "1 Year", "retailPrice": 68.8, "unitPrice": 68.8}, {"term": "3 Years", "retailPrice": 54.1, "unitPrice": 54.1}]


def test_a_savings_plan_is_a_discount_where_there_is_no_reservation() -> None:
    """Its price is by the hour; it holds no capacity, and is told from a reservation that another source may know."""
    fetched = read(item(savingsPlan=PLANS), reserved("3 Years", 1_134_310))
    found = {offer.pricing: offer for offer in fetched.offers}
    assert {pricing: offer.usd_per_hour for pricing, offer in found.items() if pricing != "reserved_3y"} == {
        "on_demand": Decimal("98.32"),
        "reserved_1y": Decimal("68.8"),
    }
    assert (found["reserved_1y"].terms.capacity, found["reserved_1y"].extras) == (False, {"purchase_option": "savings plan"})
    assert found["reserved_3y"].extras == {}


@pytest.mark.parametrize(
    "plan",
    [
        {"term": "1 Year", "retailPrice": 0},
        {"term": "1 Year"},
        {"term": "2 Years", "retailPrice": 60.0},
        {"retailPrice": 60.0},
        "text",
        None,
    ],
)
def test_a_savings_plan_without_price_or_known_term_is_none(plan: object) -> None:
    """Blank is not zero, and the row beside it stays, as does the other plan."""
    fetched = read(item(savingsPlan=[plan, PLANS[1]]))
    assert {offer.pricing for offer in fetched.offers} == {"on_demand", "reserved_3y"}
    assert len(fetched.rejected) + len(fetched.skipped) == 1


def test_savings_plans_of_spot_windows_and_no_list_are_none() -> None:
    """Only a Linux price on demand has them."""
    spot = item(price=18.2, meter="ND96isrH100v5 Spot", savingsPlan=PLANS)
    windows = item(productName="Virtual Machines NDsr H100 v5 Series Windows", savingsPlan=PLANS)
    assert {offer.pricing for offer in read(spot, windows, item(savingsPlan=None)).offers} == {"spot", "on_demand"}


def test_spot_above_on_demand_is_rejected() -> None:
    """It is a misread row."""
    fetched = read(item(), item(price=120.5, meter="ND96isrH100v5 Spot"))
    assert [offer.pricing for offer in fetched.offers] == ["on_demand"]
    assert "above the on-demand price" in fetched.rejected[0].reason


def test_the_primary_meter_states_the_price() -> None:
    """Others of the same size and region are not billed."""
    fetched = read(item(price=110, isPrimaryMeterRegion=False), item())
    assert [offer.usd_per_hour for offer in fetched.offers] == [Decimal("98.32")]


def test_two_different_prices_of_one_thing_are_none() -> None:
    """Nobody can tell which is right."""
    fetched = read(item(), item(price=99), item(price=5, armRegionName="westus"))
    assert [offer.region for offer in fetched.offers] == ["westus"]
    assert fetched.rejected[0].reason == "2 prices: 98.32, 99"


@pytest.mark.parametrize(
    ("size", "accelerator", "count"),
    [
        (H100, "NVIDIA-H100-80GB-SXM", 8),
        ("Standard_NC40ads_H100_v5", "NVIDIA-H100-94GB-NVL", 1),
        ("Standard_NC80adis_H100_v5", "NVIDIA-H100-94GB-NVL", 2),
        ("Standard_ND96isr_H200_v5", "NVIDIA-H200-141GB-SXM", 8),
        ("Standard_ND96isr_MI300X_v5", "AMD-MI300X", 8),
        ("Standard_ND128isr_NDR_GB200_v6", "NVIDIA-GB200", 4),
        ("Standard_NC96ads_A100_v4", "NVIDIA-A100-80GB-PCIe", 4),
        ("Standard_ND96amsr_A100_v4", "NVIDIA-A100-80GB-SXM", 8),
        ("Standard_ND96asr_v4", "NVIDIA-A100-40GB-SXM", 8),
    ],
)
def test_what_a_size_holds(size: str, accelerator: str, count: int) -> None:
    """The answer does not say; an H100 of the NC family is the NVL part."""
    (offer,) = read(item(size)).offers
    assert (offer.accelerator, offer.accelerator_count) == (accelerator, count)
