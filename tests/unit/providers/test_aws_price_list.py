"""The bulk price list of a region: which rows are a price, and what a reservation comes to an hour."""

from __future__ import annotations

from decimal import Decimal

import pytest

from providers.aws.model import Hardware
from providers.aws.price_list import parse
from providers.offer import ProviderError
from providers.row_parsing import OfferCollector
from tests.unit.providers.aws_samples import price_list, reserved, row
from tests.unit.providers.recorded_samples import collector


@pytest.fixture
def notes() -> OfferCollector:
    """What is rejected or left out goes here."""
    return collector("aws")


def prices(text: str, notes: OfferCollector) -> dict[tuple[str, str], Decimal]:
    """Price by instance type and kind of pricing."""
    found = parse(text.splitlines(), "us-east-1", {}, notes)
    return {(price.instance_type, price.pricing): price.usd_per_hour for price in found}


def test_five_lines_come_before_the_header(notes: OfferCollector) -> None:
    """They tell of the file."""
    assert prices(price_list(row()), notes) == {("p5.48xlarge", "on_demand"): Decimal("55.04")}


@pytest.mark.parametrize(
    "other",
    [
        row(Tenancy="Dedicated"),
        row(Operating_System="Windows"),
        row(**{"Pre Installed S/W": "SQL Std"}),
        row(CapacityStatus="AllocatedCapacityReservation"),
        row(CapacityStatus="UnusedCapacityReservation"),
        row(MarketOption="CapacityBlock", PricePerUnit="0.0000000000"),
        row(Currency="CNY"),
        row(Region_Code="us-east-1-atl-1"),
        row(Instance_Type="m5.large", GPU=""),
    ],
    ids=lambda other: next(value for name, value in other.items() if value != row()[name]),
)
def test_other_kinds_of_sale_are_passed_over(other: dict[str, str], notes: OfferCollector) -> None:
    """They share the instance type and cost something else."""
    other = other | {"SKU": "Linux Shared Used"}
    if other["PricePerUnit"] == row()["PricePerUnit"]:
        other["PricePerUnit"] = "1.0000000000"
    assert prices(price_list(other, row()), notes) == {("p5.48xlarge", "on_demand"): Decimal("55.04")}
    assert notes.rejected == []


def test_a_price_of_zero_is_unknown(notes: OfferCollector) -> None:
    """It is named and does not become an offer."""
    assert prices(price_list(row(PricePerUnit="0.0000000000"), row(Instance_Type="p5.4xlarge")), notes).keys() == {
        ("p5.4xlarge", "on_demand")
    }
    assert [(each.row, each.reason) for each in notes.rejected] == [("us-east-1 p5.48xlarge", "price is 0E-10: unknown, not free")]


def test_two_different_prices_of_one_sale_are_none(notes: OfferCollector) -> None:
    """Nobody can tell which is right; the same price twice is one price."""
    twice = price_list(row(), row(PricePerUnit="44"), row(Instance_Type="p5.4xlarge"), row(Instance_Type="p5.4xlarge"))
    assert prices(twice, notes).keys() == {("p5.4xlarge", "on_demand")}
    assert "2 prices with the unit Hrs" in notes.rejected[0].reason


def test_nothing_upfront_is_the_price_of_a_reservation_where_it_is_sold(notes: OfferCollector) -> None:
    """Even where paying upfront is cheaper."""
    rows = [*reserved("1yr", "No Upfront", {"Hrs": "35.5"}), *reserved("1yr", "All Upfront", {"Hrs": "0", "Quantity": "300000"})]
    (price,) = parse(price_list(*rows).splitlines(), "us-east-1", {}, notes)
    assert (price.pricing, price.usd_per_hour, price.extras) == ("reserved_1y", Decimal("35.5"), {"purchase_option": "No Upfront"})


def test_else_the_cheapest_way_to_pay_is(notes: OfferCollector) -> None:
    """Hourly price plus upfront price over the hours of three years."""
    rows = [
        *reserved("3yr", "Partial Upfront", {"Hrs": "12", "Quantity": "315360"}),  # 12 + 12
        *reserved("3yr", "All Upfront", {"Hrs": "0.0000000000", "Quantity": "604440"}),  # 23
    ]
    (price,) = parse(price_list(*rows).splitlines(), "us-east-1", {}, notes)
    assert (price.pricing, price.usd_per_hour, price.extras) == ("reserved_3y", Decimal(23), {"purchase_option": "All Upfront"})


@pytest.mark.parametrize(
    ("option", "stated"),
    [
        ("Partial Upfront", {"Hrs": "12"}),
        ("Partial Upfront", {"Quantity": "315360"}),
        ("All Upfront", {"Hrs": "0.0000000000"}),
        ("All Upfront", {"Hrs": "0.0000000000", "Quantity": "0"}),
        ("No Upfront", {"Hrs": "0.0000000000"}),
        ("Half Upfront", {"Hrs": "12"}),
    ],
)
def test_half_a_reservation_is_no_price(option: str, stated: dict[str, str], notes: OfferCollector) -> None:
    """One of its rows is missing, or zero where money is due."""
    assert prices(price_list(row(), *reserved("1yr", option, stated)), notes).keys() == {("p5.48xlarge", "on_demand")}
    assert [each.row for each in notes.rejected] == [f"us-east-1 p5.48xlarge 1yr {option}"]


def test_convertible_reservations_are_another_thing(notes: OfferCollector) -> None:
    """The standard class is the one that others compare with."""
    rows = reserved("1yr", "No Upfront", {"Hrs": "40"}, OfferingClass="convertible")
    assert prices(price_list(*rows), notes) == {}


def test_types_that_only_ec2_describes_are_read_too(notes: OfferCollector) -> None:
    """A type newer than the project's table, without a number of GPUs in the list."""
    described = {"trn9.48xlarge": Hardware("Trainium2", None, 16, has_capacity_blocks=False)}
    text = price_list(row(Instance_Type="trn9.48xlarge", GPU=""))
    (price,) = parse(text.splitlines(), "us-east-1", described, notes)
    assert price.instance_type == "trn9.48xlarge"


def test_a_row_that_breaks_off_is_named(notes: OfferCollector) -> None:
    """The last line of a truncated file must not lose a digit of its price."""
    text = price_list(row(), row(Instance_Type="p5.4xlarge"))
    cut = text[: text.rindex('"NA"')]
    assert prices(cut, notes).keys() == {("p5.48xlarge", "on_demand")}
    assert "fields where 17 were expected" in notes.rejected[0].reason


@pytest.mark.parametrize("text", ["", "<html>\n" * 20, price_list().replace("MarketOption", "Market"), "\n" * 5 + "a" * 200_000])
def test_what_is_no_price_list_is_an_error(text: str, notes: OfferCollector) -> None:
    """The columns are looked up by name."""
    with pytest.raises(ProviderError):
        prices(text, notes)
