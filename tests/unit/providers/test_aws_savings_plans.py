"""The list of savings plans of a region: which rates are a price, and which are blank."""

from __future__ import annotations

from decimal import Decimal

import pytest

from providers.aws.model import Price
from providers.aws.savings_plans import file_of, parse, without_reservations
from providers.offer import ProviderError
from providers.row_parsing import BadRow, OfferCollector
from tests.unit.providers.aws_samples import plan, plans_index, plans_list
from tests.unit.providers.recorded_samples import collector


@pytest.fixture
def notes() -> OfferCollector:
    """What is rejected or left out goes here."""
    return collector("aws")


def prices(text: str, notes: OfferCollector) -> dict[tuple[str, str], Decimal]:
    """Rate by instance type and kind of pricing."""
    return {(each.instance_type, each.pricing): each.usd_per_hour for each in parse(text.splitlines(), "us-east-1", {}, notes)}


def test_a_year_of_p5_has_a_plan(notes: OfferCollector) -> None:
    """As listed in September 2026: 34.6752 USD for 8 H100, 4.33 each; three years 23.77728."""
    text = plans_list(plan(), plan(LeaseContractLength="3", DiscountedRate="23.77728"))
    assert prices(text, notes) == {("p5.48xlarge", "reserved_1y"): Decimal("34.6752"), ("p5.48xlarge", "reserved_3y"): Decimal("23.77728")}
    assert notes.rejected == []


def test_the_cheaper_of_both_plans_counts(notes: OfferCollector) -> None:
    """A plan of one family of instances, or of any; where only the latter is sold, it."""
    both = plans_list(plan(), plan(Product_Family="ComputeSavingsPlans", DiscountedRate="43.34"))
    (found,) = parse(both.splitlines(), "us-east-1", {}, notes)
    assert (found.usd_per_hour, found.extras["purchase_option"]) == (Decimal("34.6752"), "EC2InstanceSavingsPlans, No Upfront")
    alone = plans_list(plan(Product_Family="ComputeSavingsPlans", DiscountedRate="43.34"))
    assert prices(alone, notes) == {("p5.48xlarge", "reserved_1y"): Decimal("43.34")}


@pytest.mark.parametrize(
    "other",
    [
        plan(DiscountedOperation="RunInstances:0002"),
        plan(DiscountedUsageType="DedicatedUsage:p5.48xlarge"),
        plan(PurchaseOption="All Upfront"),
        plan(DiscountedServiceCode="AmazonECS"),
        plan(Product_Family="SageMakerSavingsPlans"),
        plan(Currency="CNY"),
        plan(DiscountedRegionCode="us-east-1-atl-1"),
        plan(DiscountedInstanceType="m5.large"),
    ],
    ids=lambda other: next(value for name, value in other.items() if value != plan()[name]),
)
def test_other_rates_are_passed_over(other: dict[str, str], notes: OfferCollector) -> None:
    """Windows, dedicated machines, upfront payment, other services, other places, machines without accelerators."""
    assert prices(plans_list(other | {"DiscountedRate": "1.0"}), notes) == {}
    assert notes.rejected == []


@pytest.mark.parametrize("rate", ["", "0", "0.0000000000", "-3", "free", "NaN"])
def test_a_blank_or_zero_rate_is_no_price(rate: str, notes: OfferCollector) -> None:
    """It is named; the other term stays."""
    text = plans_list(plan(DiscountedRate=rate), plan(LeaseContractLength="3", DiscountedRate="23.77728"))
    assert prices(text, notes) == {("p5.48xlarge", "reserved_3y"): Decimal("23.77728")}
    assert [each.row for each in notes.rejected] == ["us-east-1 p5.48xlarge 1 EC2InstanceSavingsPlans"]


def test_two_rates_of_one_plan_are_none(notes: OfferCollector) -> None:
    """Nobody can tell which is right; a term that is not known is none either."""
    assert prices(plans_list(plan(), plan(DiscountedRate="30")), notes) == {}
    assert prices(plans_list(plan(LeaseContractLength="2")), notes) == {}
    assert [each.reason for each in notes.rejected] == ["2 rates where one was expected: 30, 34.6752", "a plan of 2 years"]


def test_a_row_that_breaks_off_is_named(notes: OfferCollector) -> None:
    """The last line of a truncated file must not lose a digit of its rate."""
    text = plans_list(plan(), plan(DiscountedInstanceType="p5.4xlarge"))
    assert prices(text[: text.rindex(',"EC2Inst')], notes).keys() == {("p5.48xlarge", "reserved_1y")}
    assert "fields where 16 were expected" in notes.rejected[0].reason


@pytest.mark.parametrize("text", ["", "<html>\n" * 20, plans_list().replace("DiscountedRate", "Rate"), "\n" * 5 + "a" * 200_000])
def test_what_is_no_list_is_an_error(text: str, notes: OfferCollector) -> None:
    """The columns are looked up by name."""
    with pytest.raises(ProviderError):
        prices(text, notes)


def test_plans_fill_what_has_no_reservation() -> None:
    """By type and term."""
    year, three = Price("p5.48xlarge", "reserved_1y", Decimal(34)), Price("p5.48xlarge", "reserved_3y", Decimal(23))
    assert without_reservations([year, three], [Price("p5.48xlarge", "reserved_3y", Decimal(24))]) == [year]


def test_the_index_names_paths_on_its_own_host() -> None:
    """A region without plans is said."""
    assert file_of(plans_index("us-east-1"), "us-east-1").endswith("/us-east-1/index.csv")
    for index in (plans_index("eu-north-1"), {"regions": [{"regionCode": "us-east-1", "versionUrl": "@example.com/index.json"}]}):
        with pytest.raises(BadRow):
            file_of(index, "us-east-1")
    with pytest.raises(ProviderError):
        file_of({"regions": {}}, "us-east-1")
