"""What several sources need when their answers are read."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from providers.base import Context
from providers.common import MAX_PAGES, accelerator_in_form, isolate_part, read_pages
from providers.oci import OracleCloud
from providers.offer import ProviderError, Rejected
from providers.row_parsing import BadRow, OfferCollector, SkippedRow, parse_decimal
from service.presets.hardware.accelerators import canonical_accelerator


@pytest.fixture
def collector() -> OfferCollector:
    """An empty reading."""
    return OfferCollector("source", "test", datetime(2026, 11, 21, tzinfo=UTC), canonical_accelerator)


def test_a_login_at_a_mirror_is_shown_to_nobody() -> None:
    """The source stands in every answer with a price of it."""
    provider = OracleCloud(Context(canonical_accelerator, urls={"oci": "https://user:password@mirror.example/oci"}))
    assert provider.collector().source == "https://mirror.example/oci"


@pytest.mark.parametrize("written", ["1_0", "\uff14\uff10", "0x10", "4,0", "", "NaN"])
def test_what_only_a_programming_language_takes_for_a_number_is_none(written: str) -> None:
    """A price is digits, a point and an exponent."""
    with pytest.raises(BadRow):
        parse_decimal(written, "price")


def test_where_no_part_answers_that_is_what_is_said(collector: OfferCollector) -> None:
    """And not that its rows were not understood: there were none."""
    for name in ("west", "east"):
        with isolate_part(collector, name):
            raise ProviderError("its name was not found")
    with pytest.raises(ProviderError, match="none of 2 parts could be reached; the first: west: its name was not found"):
        collector.fetched()
    collector.rejected.append(Rejected("row 1", "no price"))
    with pytest.raises(ProviderError, match="none of 3 rows was understood"):
        collector.fetched()


def test_a_part_that_fails_is_named_and_costs_nothing_else(collector: OfferCollector) -> None:
    """Without stock a price is still a price."""
    with isolate_part(collector, "stock"):
        raise ProviderError("gone")
    assert [(rejected.row, rejected.reason) for rejected in collector.rejected] == [("stock", "gone")]
    assert collector.partial


def test_a_part_that_offers_are_named_after_leaves_no_doubt_what_was_in_it(collector: OfferCollector) -> None:
    """What is gone from the other parts is gone."""
    with isolate_part(collector, "west", sold_as=True):
        raise ProviderError("gone")
    assert not collector.partial


def test_pages_are_read_while_there_are_more(collector: OfferCollector) -> None:
    """The last page says that it is the last."""
    seen: list[int] = []
    read_pages(collector, lambda page: (seen.append(page), page < 3)[1])
    assert seen == [1, 2, 3]
    assert collector.rejected == []


def test_trouble_with_the_first_page_is_raised(collector: OfferCollector) -> None:
    """Then nothing at all has come."""

    def gone(page: int) -> bool:
        raise ProviderError(f"page {page} is gone")

    with pytest.raises(ProviderError, match="page 1"):
        read_pages(collector, gone)


def test_trouble_with_a_later_page_is_named(collector: OfferCollector) -> None:
    """What the earlier pages brought stays."""

    def gone_later(page: int) -> bool:
        if page == 2:
            raise ProviderError("page 2 is gone")
        return True

    read_pages(collector, gone_later)
    assert [rejected.reason for rejected in collector.rejected] == ["page 2 is gone"]


def test_pages_without_end_are_left(collector: OfferCollector) -> None:
    """A source whose pages always name another one keeps nobody for ever."""
    seen: list[int] = []
    read_pages(collector, lambda page: (seen.append(page), True)[1])
    assert len(seen) == MAX_PAGES
    assert "more than" in collector.rejected[0].reason


@pytest.mark.parametrize(
    ("model", "form", "memory_gb", "name"),
    [
        ("H100_80GB", "PCIe", None, "NVIDIA-H100-80GB-PCIe"),
        ("H100_80GB", "SXM5", None, "NVIDIA-H100-80GB-SXM"),
        ("A100", "pcie", 80.0, "NVIDIA-A100-80GB-PCIe"),
        ("B200_180GB", "SXM6", None, "NVIDIA-B200-SXM"),
        ("l40s", "pcie", 48.0, "NVIDIA-L40S"),
        ("A6000", "", 48.0, "NVIDIA-RTX-A6000"),
    ],
)
def test_a_model_in_a_form_has_its_canonical_name(
    collector: OfferCollector, model: str, form: str, memory_gb: float | None, name: str
) -> None:
    """Also where the form is stated of a model that there is in one form only."""
    assert accelerator_in_form(collector, model, form, memory_gb) == name


@pytest.mark.parametrize(("model", "form"), [("B200", "PCIe"), ("H200", "PCIe"), ("Z9000", "SXM5")])
def test_a_form_that_the_model_is_not_known_in_is_no_other_form(collector: OfferCollector, model: str, form: str) -> None:
    """A price for the wrong part is worse than no price."""
    with pytest.raises(SkippedRow, match=model):
        accelerator_in_form(collector, model, form)


def test_the_same_thing_has_one_price(collector: OfferCollector) -> None:
    """The second price of what has one is refused, with both."""
    offer = {
        "region": "us",
        "instance_type": "big",
        "accelerator": "NVIDIA-L4",
        "accelerator_count": 1,
        "pricing": "on_demand",
    }
    collector.add(**offer, usd_per_hour=Decimal("0.5"))
    with pytest.raises(BadRow, match=r"0\.5.*0\.7"):
        collector.add(**offer, usd_per_hour=Decimal("0.7"))
    collector.add(**offer | {"region": "eu"}, usd_per_hour=Decimal("0.7"))
    assert len(collector.offers) == 2
