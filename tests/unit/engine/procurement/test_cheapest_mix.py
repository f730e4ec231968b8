"""How much capacity to commit to: the newsvendor's quantile, the screening curve, and that no other mix costs less."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.scenarios import Floats
from service.engine.procurement.mix import SupplyOption, cheapest_by_use, cheapest_mix, critical_ratio

ON_DEMAND = SupplyOption("on_demand", 0.0, 4.0)
RESERVED = SupplyOption("reserved_1y", 2.4, 0.0)
OWNED = SupplyOption("on_prem:dc", 1.5, 0.3)


def usd_per_hour(committed: float, demand: Floats, weights: Floats) -> float:
    """What a reservation of so many costs with the rest on demand, by brute force."""
    beyond = np.maximum(demand - committed, 0.0)
    return committed * RESERVED.fixed_usd_per_hour + float(np.average(beyond, weights=weights)) * ON_DEMAND.usd_per_used_hour


DEMANDS = st.lists(st.tuples(st.integers(0, 500), st.integers(1, 9)), min_size=1, max_size=12, unique_by=lambda each: each[0])


@given(DEMANDS)
def test_the_newsvendors_commitment_is_the_cheapest_of_all(levels: list[tuple[int, int]]) -> None:
    """Against every whole number of committed accelerators, whatever the demand."""
    demand, weights = (np.array(column, dtype=np.float64) for column in zip(*sorted(levels), strict=True))
    slices = cheapest_mix([ON_DEMAND, RESERVED], demand, weights)
    found = sum(each.usd_per_hour for each in slices)
    assert found == pytest.approx(min(usd_per_hour(each, demand, weights) for each in range(501)), abs=1e-9)


def test_the_commitment_is_the_demands_quantile_of_the_critical_ratio() -> None:
    """1 - 2.4 / 4 = 0.4: of a demand spread evenly over 0 to 100 the 40th percentile."""
    assert critical_ratio(RESERVED, ON_DEMAND) == pytest.approx(0.4)
    demand = np.linspace(0.0, 100.0, 100_001)
    committed, flexible = cheapest_mix([ON_DEMAND, RESERVED], demand, np.ones_like(demand))
    assert (committed.option, committed.last) == (RESERVED, pytest.approx(40.0, abs=0.01))
    assert (flexible.option, flexible.first, flexible.last) == (ON_DEMAND, committed.last, 100.0)
    assert flexible.used_share == pytest.approx(0.3, abs=0.001)


def test_a_reservation_dearer_than_on_demand_is_not_bought() -> None:
    """Its critical ratio is 0."""
    dear = SupplyOption("reserved_1y", 5.0, 0.0)
    assert critical_ratio(dear, ON_DEMAND) == 0.0
    assert [each.option for each in cheapest_mix([ON_DEMAND, dear], np.array([1.0, 9.0]), np.ones(2))] == [ON_DEMAND]


WAYS = st.lists(st.builds(SupplyOption, st.just("way"), st.floats(0.0, 5.0), st.floats(0.0, 5.0)), min_size=1, max_size=6)


@given(WAYS, st.floats(0.0, 1.0))
def test_the_envelope_has_the_cheapest_way_for_every_share(ways: list[SupplyOption], share: float) -> None:
    """What it says for a share costs no more than any way."""
    chosen = [way for begins, way in cheapest_by_use(ways) if begins >= share][-1]
    assert chosen.usd_per_hour(share) <= min(way.usd_per_hour(share) for way in ways) + 1e-9


@given(WAYS, DEMANDS)
def test_no_single_way_serves_a_demand_for_less_than_the_mix(ways: list[SupplyOption], levels: list[tuple[int, int]]) -> None:
    """And the slices stack up to the greatest demand."""
    demand, weights = (np.array(column, dtype=np.float64) for column in zip(*sorted(levels), strict=True))
    slices = cheapest_mix(ways, demand, weights)
    mean = float(np.average(demand, weights=weights))
    alone = min(demand[-1] * way.fixed_usd_per_hour + mean * way.usd_per_used_hour for way in ways)
    assert sum(each.usd_per_hour for each in slices) <= alone + 1e-9
    assert sum(each.last - each.first for each in slices) == pytest.approx(demand[-1])


def test_owned_hardware_serves_what_is_always_needed() -> None:
    """Three ways by falling share of hours in use: owned below reserved is never needed here, on demand for the peak."""
    demand, weights = np.array([10.0, 50.0, 100.0]), np.ones(3)
    assert [each.option for each in cheapest_mix([ON_DEMAND, RESERVED, OWNED], demand, weights)] == [OWNED, ON_DEMAND]


def test_slices_end_where_the_next_way_begins() -> None:
    """Owned up to 1.5 / 3.7 of the hours, on demand for what is used less: the demand that is exceeded for that share."""
    demand = np.arange(1.0, 101.0)
    owned, flexible = cheapest_mix([ON_DEMAND, OWNED], demand, np.ones(100))
    assert (owned.option, owned.first, owned.last) == (OWNED, 0.0, 60.0)
    assert (flexible.first, flexible.last) == (60.0, 100.0)
    assert owned.used_share == pytest.approx((np.arange(1, 61).sum() + 40 * 60) / 100 / 60)
    assert flexible.used_share == pytest.approx(np.arange(1, 41).sum() / 100 / 40)
