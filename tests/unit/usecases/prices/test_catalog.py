"""What is known, filtered: offers, accelerators and models."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from providers.offer import Fetched, Offer, Provider
from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.errors import UnknownName
from service.prices.catalog import PriceCatalog
from service.prices.snapshots import SnapshotRepository
from service.usecases.prices.catalog import find_offers
from service.usecases.prices.fleet import fleet_cost
from service.usecases.prices.known_names import find_accelerators, find_models

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def offer(accelerator: str, usd: str, **changes: Any) -> Offer:
    row: dict[str, Any] = {
        "provider": "aws",
        "region": "us-east-1",
        "instance_type": "one",
        "accelerator": accelerator,
        "accelerator_count": 1,
        "pricing": "on_demand",
        "usd_per_hour": Decimal(usd),
        "observed_at": NOW,
        "source": "price list",
    }
    return Offer(**row | changes)


SXM = offer("NVIDIA-H100-80GB-SXM", "6.88")
SPOT = offer("NVIDIA-H100-80GB-SXM", "2.10", pricing="spot")
PCIE = offer("NVIDIA-H100-80GB-PCIe", "1.90", provider="hyperstack", region="CANADA-1")
V100 = offer("NVIDIA-V100-16GB-SXM2", "3.06", region="eu-west-1")


class Four(Provider):
    """Four offers."""

    name = "snapshot"
    fresh_for = timedelta(days=180)

    def fetch(self) -> Fetched:
        return Fetched((V100, SPOT, SXM, PCIE), "prices-1")


@pytest.fixture
def context(settings: Settings) -> AppContext:
    """A context whose shipped prices are those four, with a real, empty store."""
    context = build_context(settings)
    context.store.migrate()
    return replace(context, catalog=PriceCatalog(SnapshotRepository(Four, context.store)))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, [PCIE, SXM, SPOT, V100]),
        ({"provider": "aws"}, [SXM, SPOT, V100]),
        ({"provider": "aws", "region": "us-east-1", "pricing": "spot"}, [SPOT]),
        ({"accelerator": "NVIDIA-H100-80GB-SXM"}, [SXM, SPOT]),
        ({"accelerator": "h100"}, [PCIE, SXM, SPOT]),
        ({"max_usd_per_accelerator_hour": 2.1}, [PCIE, SPOT]),
        ({"max_usd_per_accelerator_hour": 0.0}, []),
        ({"provider": "AWS", "region": "canada-1"}, []),
        ({"provider": "lambda"}, []),
        ({"jurisdiction": "US"}, [SXM, SPOT]),
        ({"jurisdiction": "eu"}, [V100]),
        ({"jurisdiction": "IRL", "accelerator": "h100"}, []),
        ({"provider": "hyperstack, AWS", "accelerator": "h100"}, [PCIE, SXM, SPOT]),
        ({"accelerator": "v100,NVIDIA-H100-80GB-PCIe"}, [V100, PCIE]),
        ({"region": "eu-west-1,canada-1"}, [PCIE, V100]),
        ({"jurisdiction": "USA,IRL"}, [SXM, SPOT, V100]),
    ],
)
def test_offers_answer_all_filters_in_the_books_order(context: AppContext, given: dict[str, Any], expected: list[Offer]) -> None:
    """An alias that may mean several parts lists the offers of all of them; known names that nothing answers give nothing."""
    book, found = find_offers(context, given)
    assert (book.name, found) == ("prices-1", expected)


def test_a_recorded_snapshot_can_be_listed(context: AppContext) -> None:
    """By the name it was kept under, whatever is current."""
    context.store.save_snapshot("snapshot", Fetched((V100,), "prices-0"), NOW, lambda done, total: None)
    book, found = find_offers(context, {"snapshot": "prices-0"})
    assert (book.name, found) == ("prices-0", [V100])


@pytest.mark.parametrize(
    ("name", "value"),
    [("accelerator", "H10"), ("snapshot", "prices-9"), ("provider", "hyperstak"), ("region", "us-est-1"), ("jurisdiction", "EUU")],
)
def test_an_unknown_name_points_at_its_own_filter(context: AppContext, name: str, value: str) -> None:
    """And not into an estimate request, where the same names stand elsewhere."""
    with pytest.raises(UnknownName) as caught:
        find_offers(context, {name: value})
    assert caught.value.pointer == f"/{name}"
    assert caught.value.near


def test_accelerators_by_vendor_come_ordered_by_name() -> None:
    """Vendors are case-blind; an unknown one is told; without a filter all are listed."""
    everything = find_accelerators({})
    assert len(everything) >= 45
    assert [part.name for part in everything] == sorted(part.name for part in everything)
    amd = find_accelerators({"vendor": "amd"})
    assert {part.vendor for part in amd} == {"AMD"}
    with pytest.raises(UnknownName, match="no vendor is called 'NVIDA'; near names: NVIDIA"):
        find_accelerators({"vendor": "NVIDA"})


def test_an_accelerator_is_found_by_any_of_its_names() -> None:
    """The usual part of an alias; an unknown name points at the filter."""
    assert [part.name for part in find_accelerators({"accelerator": "a100-80gb"})] == ["NVIDIA-A100-80GB-SXM"]
    with pytest.raises(UnknownName) as caught:
        find_accelerators({"accelerator": "H10"})
    assert caught.value.pointer == "/accelerator"


def test_models_by_developer_architecture_and_size() -> None:
    """All bounds are inclusive, developers case-blind, the list ordered by name."""
    everything = find_models({})
    assert len(everything) >= 80
    assert [preset.name for preset in everything] == sorted(preset.name for preset in everything)
    assert "llama-2-7b" in {preset.name for preset in find_models({"developer": "META"})}
    assert {preset.architecture for preset in find_models({"architecture": "diffusion"})} == {"diffusion"}
    gpt_3 = next(preset for preset in everything if preset.params > 150e9)
    assert gpt_3 in find_models({"min_params": gpt_3.params, "max_params": gpt_3.params})
    assert find_models({"min_params": 10**16}) == []
    with pytest.raises(UnknownName, match="no developer is called 'Mta'; near names: Meta") as caught:
        find_models({"developer": "Mta"})
    assert caught.value.pointer == "/developer"


def test_a_fleet_costs_its_hours_at_each_firm_price() -> None:
    floor = replace(SPOT, market="auction_floor", usd_per_hour=Decimal("0.01"))
    fleet = fleet_cost([SXM, SPOT, PCIE, floor], {"count": 4, "hours": 10.0, "usd_per_accelerator_hour": 2.5})
    assert fleet is not None
    assert (fleet.accelerator_hours, fleet.least_usd, fleet.median_usd, fleet.most_usd) == (40, 76.0, 84.0, 275.2)
    assert fleet.stated_usd == 100


def test_a_fleet_without_a_price_costs_nothing_known() -> None:
    fleet = fleet_cost([], {"count": 4})
    assert fleet is not None
    assert (fleet.hours, fleet.least_usd, fleet.stated_usd) == (1, None, None)
    assert fleet_cost([SXM], {"accelerator": "H100"}) is None
