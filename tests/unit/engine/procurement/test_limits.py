"""Limits of the sums: no use, full use, no capital, one year and seven; and laws that hold for any fleet."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.procurement.cash_flows import RentTerms, Scenarios, fleet_streams
from service.engine.procurement.demand import Demand, fleet_demand, mean_above, share_above
from service.engine.procurement.options import UTILISATION, make_scenarios, option_npvs
from service.engine.procurement.ownership import owned_cost
from service.engine.procurement.present_value import discount_factors, payback_months, present_value
from service.engine.procurement.streams import line_flows, streams_npv
from tests.unit.engine.procurement.fleets import DC1, inputs, on_demand, own_npv, owned, rent_npv

shares = st.floats(0.05, 1.0)
rates = st.floats(0.0, 0.3)


def test_without_use_on_demand_is_free_and_a_reservation_is_not() -> None:
    """At a utilisation near 0 owning still costs its capital, a reservation all its hours."""
    assert rent_npv(2.5, RentTerms(), utilisation=1e-9) == pytest.approx(0, abs=0.1)
    full = rent_npv(1.89, RentTerms(36, count=256), utilisation=1.0)
    assert rent_npv(1.89, RentTerms(36, count=256), utilisation=1e-9) == pytest.approx(full)
    assert own_npv(utilisation=1e-9) > 0.7 * own_npv(utilisation=1.0)


@given(rates)
def test_at_full_use_reserved_and_on_demand_cost_the_same(rate: float) -> None:
    """At one price, all hours used."""
    reserved = rent_npv(2.0, RentTerms(36, count=256), utilisation=1.0, cost_of_capital=rate)
    assert rent_npv(2.0, RentTerms(), utilisation=1.0, cost_of_capital=rate) == pytest.approx(reserved)


def test_without_capital_owning_is_its_running_cost() -> None:
    """Power alone, since operation is a share of capital."""
    free = replace(DC1, capex_usd_per_accelerator=0.0)
    energy = 256 * 730 * 1.3 * 1.3 * 0.09 * 0.85
    assert own_npv(free) == pytest.approx(present_value(np.array([0.0] + [energy] * 36), 0.09))


@pytest.mark.parametrize("years", [1, 3, 7])
@given(rate=rates, use=shares)
def test_a_fleet_over_its_life_costs_what_a_comparison_charges(years: int, rate: float, use: float) -> None:
    """The levelised cost of owned hardware, over its life and at its use, is this present value: one truth."""
    cluster = replace(DC1, years=years, cost_of_capital=rate, utilisation=use)
    found = own_npv(cluster, months=12 * years, cost_of_capital=rate, utilisation=use)
    assert found == pytest.approx(owned_cost(cluster).npv_usd)


@given(rate=rates, use=shares, lead=st.floats(0, 12), tax=st.floats(0, 0.4))
def test_flows_have_the_present_value(rate: float, use: float, lead: float, tax: float) -> None:
    """The yearly table and the present value are made of the same streams."""
    fleet = owned(replace(DC1, lead_time_months=lead), depreciation=(0.2, 0.3, 0.5))
    asked = inputs(fleets=(fleet,), on_demand=on_demand(3.0), cost_of_capital=rate, utilisation=use, tax_rate=tax)
    flows = line_flows(fleet_streams(fleet.phases, asked.on_demand, make_scenarios(asked)), 36)
    assert present_value(np.asarray(sum(flows.values())), rate) == pytest.approx(float(option_npvs(asked)[0, 0]))


@given(use=shares, peak=shares, growth=st.floats(-0.2, 0.5), capacity=st.floats(0, 400))
def test_demand_is_served_or_above(use: float, peak: float, growth: float, capacity: float) -> None:
    """Its mean is the utilisation; what is above a capacity is between the mean less it and the mean, and the share between 0 and 1."""
    demand = fleet_demand(256, use, peak, growth, 24)
    above = mean_above(demand, capacity)
    assert demand.mean[0] == pytest.approx(256 * use)
    assert (demand.low >= -1e-9).all()
    assert (above >= np.maximum(demand.mean - capacity, 0) - 1e-9).all()
    assert (above <= demand.mean + 1e-9).all()
    assert ((share_above(demand, capacity) >= 0) & (share_above(demand, capacity) <= 1)).all()


@given(low=st.floats(0, 100), width=st.floats(0.1, 100), capacity=st.floats(0, 250))
def test_partial_expectation_is_that_of_uniform_samples(low: float, width: float, capacity: float) -> None:
    """E[(X - K)+] over an even grid of the interval."""
    demand = Demand(np.array([low]), np.array([low + width]))
    grid = low + width * (np.arange(20_000) + 0.5) / 20_000
    assert mean_above(demand, capacity)[0] == pytest.approx(np.maximum(grid - capacity, 0).mean(), abs=1e-3 * width)
    assert share_above(demand, capacity)[0] == pytest.approx((grid > capacity).mean(), abs=1e-3)


def test_scenarios_are_each_alone() -> None:
    """Many utilisations in one call are answered as one by one."""
    uses = np.array([0.2, 0.5, 0.9])
    asked = inputs(fleets=(owned(),), on_demand=on_demand(2.5))
    assert option_npvs(asked, {UTILISATION: uses})[0] == pytest.approx([own_npv(utilisation=use) for use in uses])


def test_payback_is_the_month_from_which_owning_stays_ahead() -> None:
    """100 at once against 30 a month is ahead a third into the fourth; a late cost takes it back; never is infinite."""
    rent = np.array([0.0] + [30.0] * 6)
    own = np.zeros(7)
    own[0] = 100
    assert float(payback_months(own, rent, 0.0)) == pytest.approx(3 + 1 / 3)
    late = own.copy()
    late[5] = 60
    assert float(payback_months(late, rent, 0.0)) == pytest.approx(5 + 1 / 3)
    assert np.isinf(payback_months(2 * own, rent, 0.0))
    assert float(payback_months(0 * own, rent, 0.0)) == 0
    assert payback_months(np.array([own, late]), rent, 0.0) == pytest.approx([3 + 1 / 3, 5 + 1 / 3])


def test_a_stream_is_discounted_where_it_is_paid() -> None:
    """Nothing is lost between lines and present value without a fleet either."""
    scenarios = Scenarios(fleet_demand(10, 0.5, 1.0, 0.0, 12), 0.1, 0.0)
    assert float(streams_npv([], discount_factors(0.1, 12))) == 0
    assert scenarios.months == 12
