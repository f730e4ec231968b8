"""The reserved base with peaks on demand: the newsvendor's closed form, and that no other base costs less."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.procurement.cash_flows import OnDemandPrice, RentTerms
from service.engine.procurement.demand import Demand
from service.engine.procurement.mix import reserved_base
from service.engine.procurement.options import RentedCapacity, make_scenarios, mix_npv
from service.engine.procurement.present_value import discount_factors
from tests.unit.engine.procurement.fleets import inputs, on_demand, rent_npv


@given(low=st.floats(0, 200), width=st.floats(1, 200), ratio=st.floats(0.01, 0.99))
def test_the_base_of_a_uniform_demand_is_the_newsvendors(low: float, width: float, ratio: float) -> None:
    """b - ratio (b - a): the last reserved accelerator is used for just the critical part of the time."""
    demand = Demand(np.full(12, low), np.full(12, low + width))
    assert float(reserved_base(demand, np.ones(12), ratio)) == pytest.approx(low + width - ratio * width, abs=1e-6 * (low + width))


@pytest.mark.parametrize(("ratio", "base"), [(1.0, 0.0), (1.5, 0.0), (1e-9, 100.0)])
def test_a_dear_reservation_is_none_and_a_free_one_is_the_peak(ratio: float, base: float) -> None:
    """At the price on demand or above nothing is reserved."""
    assert float(reserved_base(Demand(np.full(3, 50.0), np.full(3, 100.0)), np.ones(3), ratio)) == pytest.approx(base, abs=1e-3)


def test_the_256_h100_by_hand() -> None:
    """1.89 reserved over 2.70 on demand is a critical ratio of 0.7; demand from 0.4 to 1 of 256: 256 (1 - 0.7 x 0.6), in whole nodes."""
    asked = inputs(on_demand=on_demand(2.7))
    rent = RentedCapacity(RentTerms(36), 1.89, instance=8)
    count, npv, ratio = mix_npv(rent, OnDemandPrice(2.7), make_scenarios(asked), discount_factors(0.09, 36))
    assert float(ratio) == pytest.approx(0.7)
    assert float(count) == 8 * round(256 * 0.58 / 8)
    assert float(npv) == pytest.approx(rent_npv(1.89, RentTerms(36, count=float(count)), on_demand=on_demand(2.7)))


@given(
    use=st.floats(0.1, 0.95),
    growth=st.floats(-0.2, 0.4),
    reserved=st.floats(0.5, 4.0),
    change=st.floats(-0.3, 0.3),
    other=st.integers(0, 400),
)
def test_no_other_base_costs_less(use: float, growth: float, reserved: float, change: float, other: int) -> None:
    """With growth, drift and renewals too."""
    asked = inputs(utilisation=use, growth_per_year=growth, list_change_per_year=change, on_demand=on_demand(3.0))
    rent = RentedCapacity(RentTerms(12), reserved)
    _, npv, _ = mix_npv(rent, OnDemandPrice(3.0), make_scenarios(asked), discount_factors(0.09, 36))
    terms = replace(rent.terms, count=float(other))
    elsewhere = rent_npv(reserved, terms, utilisation=use, growth_per_year=growth, list_change_per_year=change, on_demand=on_demand(3.0))
    assert float(npv) <= elsewhere * (1 + 1e-9)
