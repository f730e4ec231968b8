"""What is assumed of owned machines: every figure with a source and a date, and a plant that leaves nothing open."""

from __future__ import annotations

import re

import pytest

from service.domain.errors import InvalidRequest
from service.domain.procurement.ownership import BOUNDS, OwnedCluster
from service.domain.quantities import Range
from service.domain.training.hardware import Accelerator
from service.presets.defaults import default
from service.presets.hardware.accelerators import find_accelerator, load_accelerators
from service.presets.procurement.ownership import cluster_defaults, complete_cluster, input_ranges, load_input_ranges, published_purchases
from tests.support.rows import for_each

H100 = load_accelerators()["NVIDIA-H100-80GB-SXM"]
# The entry of the API's contract, without its name.
CONTRACT = {
    "count": 128,
    "capex_usd_per_accelerator": 32_000,
    "years": 4,
    "residual_share": 0.1,
    "cost_of_capital": 0.08,
    "utilisation": 0.7,
    "kw_per_accelerator": 1.3,
    "pue": 1.3,
    "usd_per_kwh": 0.09,
    "opex_share_per_year": 0.06,
}
DEFAULTS = cluster_defaults(H100, ())


@pytest.mark.parametrize("name", DEFAULTS)
def test_every_default_is_in_its_bounds_and_says_why(name: str) -> None:
    """A value that makes sense, a source to show, and what is usual where nothing is counted."""
    found = DEFAULTS[name]
    assert BOUNDS[name].low <= found.value <= BOUNDS[name].high
    assert len(found.source) > 20
    assert found.typical is None or found.typical != found.value


@pytest.mark.parametrize(("name", "known"), load_input_ranges().items())
def test_every_range_is_of_an_input_and_says_why(name: str, known: object) -> None:
    """Percentiles around the middle, a source and a date."""
    found = load_input_ranges()[name]
    assert name in BOUNDS
    assert found.factor.p10 < found.factor.p50 < found.factor.p90
    assert len(found.source) > 20
    assert re.fullmatch(r"20\d\d(-\d\d)?", found.date)


def test_nothing_is_assumed_that_the_owner_stated() -> None:
    """The contract's entry keeps its ten figures; all else is neutral and reported, market decline not, since resale was stated."""
    plant, assumed = complete_cluster(H100, CONTRACT | {"name": "dc1"})
    assert {name: getattr(plant, name) for name in CONTRACT} == CONTRACT
    assert (plant.name, plant.accelerator, plant.accelerators_per_node) == ("dc1", "NVIDIA-H100-80GB-SXM", 8)
    fields = {assumption.field for assumption in assumed}
    assert fields.isdisjoint(CONTRACT)
    assert "price_decline_per_year" not in fields
    assert {"network_share", "staff_fte", "availability", "lead_time_months", "idle_power_share"} <= fields
    assert all(assumption.source for assumption in assumed)


def test_stated_power_is_taken_as_drawn() -> None:
    """A load factor is assumed for rated power only: 1.275 kW an H100, at 0.75 of it."""
    stated, _ = complete_cluster(H100, CONTRACT)
    rated, _ = complete_cluster(H100, {name: value for name, value in CONTRACT.items() if name != "kw_per_accelerator"})
    assert (stated.kw_per_accelerator, stated.load_factor) == (1.3, 1)
    assert rated.kw_per_accelerator == pytest.approx(10.2 / 8, rel=0.01)
    assert rated.load_factor == 0.75


@for_each("part", load_accelerators().values(), ids=lambda part: part.name)
def test_every_accelerator_can_be_owned(part: Accelerator) -> None:
    """A price and a count are enough: from a few watts to the 23 kW of a wafer."""
    plant, _ = complete_cluster(part, {"count": 4, "capex_usd_per_accelerator": 10_000})
    assert 0.01 < float(plant.kw_per_accelerator) < 30
    assert plant.pue == 1.63


def test_market_decline_stands_in_for_resale() -> None:
    """Without a stated share the machine is resold at what the market leaves; None is as good as not stated."""
    plant, assumed = complete_cluster(H100, CONTRACT | {"residual_share": None})
    assert plant.residual_share is None
    assert plant.price_decline_per_year == pytest.approx(1 - 10**-0.14, abs=5e-4)
    assert "price_decline_per_year" in {assumption.field for assumption in assumed}


def test_a_machine_that_costs_nothing_is_asked_about() -> None:
    """Without a price or a lease there is nothing to compare: the message names both fields."""
    with pytest.raises(InvalidRequest, match="lease_usd_per_month") as caught:
        complete_cluster(H100, {"count": 8})
    assert caught.value.pointer == "/capex_usd_per_accelerator"
    leased, _ = complete_cluster(H100, {"count": 8, "lease_usd_per_month": 20_000})
    assert leased.capex_usd_per_accelerator == 0


def test_people_cost_the_same_everywhere() -> None:
    """A year of staff is 2,080 hours of the rate that runs are planned with."""
    assert DEFAULTS["usd_per_fte_year"].value == 2_080 * default("personnel.usd_per_hour").value


def test_ranges_are_around_the_plants_own_values() -> None:
    """Factors scale with the plant; what it has none of is certain."""
    plant = OwnedCluster("any", "H100", 8, 4, 0.7, 32_000, residual_share=0.1)
    ranges = input_ranges(plant)
    assert ranges["capex_usd_per_accelerator"] == Range(25_600, 32_000, 41_600)
    assert {"staff_fte", "price_decline_per_year", "usd_per_kwh"}.isdisjoint(ranges)


def test_stated_ranges_are_the_owners() -> None:
    """The owner's range replaces the published one."""
    plant = OwnedCluster("any", "H100", 8, 4, 0.7, 32_000)
    assert input_ranges(plant, {"utilisation": Range(0.6, 0.7, 0.75)})["utilisation"] == Range(0.6, 0.7, 0.75)


def test_published_prices_are_of_known_accelerators_and_sourced() -> None:
    for name, published in published_purchases().items():
        assert find_accelerator(name).accelerator.name == name
        assert 1000 < published.usd < 200_000
        assert published.source.endswith(published.date)


def test_hardware_without_a_price_is_refused_with_the_published_one() -> None:
    """Where one is published; it is no default."""
    for name, said in (("H100", "published: 31,268 USD, server of eight"), ("A100", "or both")):
        with pytest.raises(InvalidRequest, match=said) as caught:
            complete_cluster(find_accelerator(name).accelerator, {"count": 8})
        assert caught.value.pointer == "/capex_usd_per_accelerator"
