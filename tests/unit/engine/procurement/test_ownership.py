"""What owned accelerators cost: each part by hand, and laws that hold for any plant."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.procurement.ownership import BOUNDS, OwnedCluster
from service.engine.procurement.ownership import (
    annual_capex,
    capex_usd,
    capital_recovery_factor,
    delivered_hours,
    owned_cost,
    residual_usd,
    value_loss_usd_per_hour,
)

# The example of the API's contract.
DC1 = OwnedCluster(
    "dc1",
    "NVIDIA-H100-80GB-SXM",
    count=128,
    years=4,
    utilisation=0.7,
    capex_usd_per_accelerator=32_000,
    residual_share=0.1,
    cost_of_capital=0.08,
    kw_per_accelerator=1.3,
    pue=1.3,
    usd_per_kwh=0.09,
    opex_share_per_year=0.06,
)
# Inputs that only ever cost.
COSTS = (
    "capex_usd_per_accelerator",
    "network_share",
    "storage_share",
    "installation_share",
    "price_decline_per_year",
    "cost_of_capital",
    "lease_usd_per_month",
    "kw_per_accelerator",
    "load_factor",
    "idle_power_share",
    "pue",
    "usd_per_kwh",
    "colo_usd_per_kw_month",
    "colo_committed_share",
    "maintenance_share_per_year",
    "opex_share_per_year",
    "staff_fte",
    "usd_per_fte_year",
    "licence_usd_per_accelerator_year",
    "lead_time_months",
)
ABOVE_ZERO = {
    "capex_usd_per_accelerator": st.floats(1_000, 100_000),
    "network_share": st.floats(0, 0.3),
    "storage_share": st.floats(0, 0.2),
    "installation_share": st.floats(0, 0.3),
    "price_decline_per_year": st.floats(0, 0.6),
    "cost_of_capital": st.floats(0, 0.3),
    "kw_per_accelerator": st.floats(0.1, 3),
    "load_factor": st.floats(0.5, 1),
    "idle_power_share": st.floats(0, 1),
    "pue": st.floats(1, 2),
    "usd_per_kwh": st.floats(0.01, 0.5),
    "colo_usd_per_kw_month": st.floats(0, 300),
    "opex_share_per_year": st.floats(0, 0.2),
    "staff_fte": st.floats(0, 10),
    "usd_per_fte_year": st.floats(0, 300_000),
    "availability": st.floats(0.5, 1),
    "utilisation": st.floats(0.05, 1),
    "lead_time_months": st.floats(0, 24),
    "years": st.floats(1, 10),
}
plants = st.fixed_dictionaries(ABOVE_ZERO).map(lambda values: OwnedCluster("any", "NVIDIA-H100-80GB-SXM", count=64, **values))


def changed(plant: OwnedCluster, **changes: Any) -> OwnedCluster:
    return replace(plant, **changes)


def hour(plant: OwnedCluster) -> float:
    return owned_cost(plant).usd_per_delivered_accelerator_hour


def test_the_contracts_example_by_hand() -> None:
    """Capital with interest less resale, power all year and 6 % of operation, over the hours used."""
    monthly = 1.08 ** (1 / 12) - 1
    factor = 12 * monthly / (1 - 1.08**-4)
    capital = (32_000 - 3_200 / 1.08**4) * factor
    energy = 1.3 * 1.3 * 0.09 * 8760
    assert hour(DC1) == pytest.approx((capital + energy + 0.06 * 32_000) / (8760 * 0.7))


def test_the_recovery_factor_of_engineering_tables() -> None:
    """10 % over 5 years is 0.26380, as every table of engineering economics prints; without interest it is 1 / n."""
    assert capital_recovery_factor(0.10, 5) == pytest.approx(0.26380, abs=5e-6)
    assert capital_recovery_factor(0.0, 5) == 0.2
    assert capital_recovery_factor(np.array([0.0, 0.10]), 5) == pytest.approx([0.2, 0.26380], abs=5e-6)


def test_a_leases_payment() -> None:
    """100,000 USD over 60 months at 1 % a month are 2,224.44 USD a month, as in any annuity table."""
    assert annual_capex(100_000, 0, 0.01, 60) == pytest.approx(2224.44, abs=0.01)


@given(st.floats(1, 1e9), st.floats(0, 1), st.floats(0.5, 20))
def test_without_interest_capital_is_a_straight_line(capital: float, residual: float, years: float) -> None:
    """At a cost of capital of 0, a year costs what is not resold over the years."""
    assert annual_capex(capital, residual * capital, 0.0, years) == pytest.approx((1 - residual) * capital / years, abs=1e-9 * capital)


def test_interest_grows_out_of_the_straight_line() -> None:
    """A cost of capital near 0 is near none: the factor has no jump there."""
    assert capital_recovery_factor(1e-12, 5) == pytest.approx(0.2, rel=1e-9)


@given(plants, st.floats(1.01, 3))
def test_more_use_makes_an_hour_cheaper(plant: OwnedCluster, times: float) -> None:
    """The same machine used more costs less for each hour delivered, and not less in a year."""
    busier = changed(plant, utilisation=min(1.0, float(plant.utilisation) * times))
    assert hour(busier) <= hour(plant) * (1 + 1e-12)
    assert owned_cost(busier).annual_usd >= owned_cost(plant).annual_usd * (1 - 1e-12)


@pytest.mark.parametrize("name", COSTS)
@given(plant=plants, part=st.floats(0.01, 1))
def test_no_cost_makes_an_hour_cheaper(name: str, plant: OwnedCluster, part: float) -> None:
    """More of any cost never lowers the cost of an hour. Waiting for the machine is one of them."""
    value = getattr(plant, name)
    more = value + part * (BOUNDS[name].high - value) / 10
    assert hour(changed(plant, **{name: more})) >= hour(plant) * (1 - 1e-9)


@given(plants)
def test_the_answer_is_consistent_in_itself(plant: OwnedCluster) -> None:
    """Lines add up, fixed and variable parts make the hour, and a node is its accelerators."""
    cost = owned_cost(plant)
    share = cost.delivered_accelerator_hours_per_year / (plant.count * 8760)
    assert sum(cost.lines_usd_per_year.values()) == pytest.approx(cost.annual_usd)
    made = cost.fixed_usd_per_accelerator_hour / share + cost.variable_usd_per_delivered_accelerator_hour
    assert made == pytest.approx(cost.usd_per_delivered_accelerator_hour)
    assert cost.usd_per_node_hour == pytest.approx(8 * cost.usd_per_accelerator_hour)
    assert cost.usd_per_delivered_accelerator_hour == pytest.approx(cost.usd_per_accelerator_hour / share)


def test_half_the_use_is_twice_the_price() -> None:
    """The same fleet at 40 % costs twice for each delivered hour what it costs at 80 %, where power does not follow use."""
    assert hour(changed(DC1, utilisation=0.4)) == pytest.approx(2 * hour(changed(DC1, utilisation=0.8)))


def test_present_value_is_cash_less_resale() -> None:
    """Capital at the order, three years of cost and resale, each discounted to the order: the levelised year says the same."""
    plant = changed(DC1, years=3, lead_time_months=6)
    cost = owned_cost(plant)
    running = cost.annual_usd - cost.lines_usd_per_year["capital"]
    cash = sum(running / 12 / 1.08 ** (month / 12 + 0.5) for month in range(1, 37)) - cost.residual_usd / 1.08**3.5
    assert cost.npv_usd == pytest.approx(cost.capex_usd + cash)


def test_the_network_is_a_share_of_the_whole() -> None:
    """19 % of a cluster's cost is 0.19 / 0.81 of the rest (Epoch's constant); installation comes on top of both."""
    plain = capex_usd(DC1)
    assert capex_usd(changed(DC1, network_share=0.19)) / plain == pytest.approx(1 / 0.81)
    assert capex_usd(changed(DC1, network_share=0.19, installation_share=0.1)) / plain == pytest.approx(1.1 / 0.81)


def test_resale_by_share_or_by_market() -> None:
    """A stated share is taken; else the market's decline, a year at a time. The books may take another time over it."""
    assert residual_usd(DC1) == pytest.approx(0.1 * capex_usd(DC1))
    market = changed(DC1, residual_share=None, price_decline_per_year=0.3, depreciation_years=6)
    assert residual_usd(market) == pytest.approx(0.7**4 * capex_usd(DC1))
    assert owned_cost(market).depreciation_usd_per_year == pytest.approx(capex_usd(DC1) / 6)
    assert owned_cost(market).book_value_at_sale_usd == pytest.approx(capex_usd(DC1) / 3)


def test_colocation_rents_committed_power_without_pue() -> None:
    """Rent is for kilowatts held; metered energy still pays PUE; rent with power in it leaves no energy to pay."""
    rented = changed(DC1, colo_usd_per_kw_month=184.06, load_factor=0.75)
    lines = owned_cost(rented).lines_usd_per_year
    assert lines["colocation"] == pytest.approx(128 * 1.3 * 184.06 * 12)
    assert lines["energy"] == pytest.approx(128 * 1.3 * 0.75 * 1.3 * 0.09 * 8760)
    assert owned_cost(changed(rented, pue=2.0)).lines_usd_per_year["colocation"] == lines["colocation"]
    assert owned_cost(changed(rented, colo_includes_power=True)).lines_usd_per_year["energy"] == 0
    assert owned_cost(changed(DC1, colo_includes_power=True)).lines_usd_per_year["energy"] > 0


def test_power_follows_use_as_far_as_the_idle_share_says() -> None:
    """An idle machine that draws nothing makes energy wholly variable; one that draws all makes it wholly fixed."""
    energy = 1.3 * 1.3 * 0.09
    follows, flat = owned_cost(changed(DC1, idle_power_share=0.0)), owned_cost(DC1)
    assert follows.variable_usd_per_delivered_accelerator_hour == pytest.approx(energy)
    assert flat.variable_usd_per_delivered_accelerator_hour == 0
    assert flat.fixed_usd_per_accelerator_hour - follows.fixed_usd_per_accelerator_hour == pytest.approx(energy)


def test_a_leased_plant_pays_by_the_month() -> None:
    """A lease is twelve payments a year for the whole plant, with no capital and nothing to sell."""
    leased = OwnedCluster(
        "leased", "NVIDIA-H100-80GB-SXM", count=8, years=3, utilisation=1.0, lease_usd_per_month=12_000, cost_of_capital=0.1
    )
    cost = owned_cost(leased)
    assert (cost.capex_usd, cost.residual_usd) == (0, 0)
    assert cost.usd_per_delivered_accelerator_hour == pytest.approx(144_000 / (8 * 8760))


def test_people_licences_and_maintenance() -> None:
    """Each is its own line: heads at their cost, licences an accelerator, maintenance of all capital."""
    plant = changed(
        DC1,
        staff_fte=2,
        usd_per_fte_year=200_000,
        licence_usd_per_accelerator_year=4_500,
        maintenance_share_per_year=0.1,
        network_share=0.2,
    )
    lines = owned_cost(plant).lines_usd_per_year
    assert (lines["staff"], lines["licences"]) == (400_000, 576_000)
    assert lines["maintenance"] == pytest.approx(0.1 * 128 * 32_000 / 0.8)


def test_waiting_costs_interest_and_a_bridge() -> None:
    """Capital paid half a year early carries half a year's interest; what is needed meanwhile is rented, and told apart."""
    waiting = changed(DC1, lead_time_months=6, bridge_usd_per_accelerator_hour=3.0)
    grown = waiting.count * 32_000 * 1.08**0.5
    assert owned_cost(waiting).lines_usd_per_year["capital"] == pytest.approx(
        12 * annual_capex(grown, 0.1 * 128 * 32_000, 1.08 ** (1 / 12) - 1, 48)
    )
    assert owned_cost(waiting).bridge_usd == pytest.approx(3.0 * float(delivered_hours(DC1)) / 2)
    assert owned_cost(DC1).bridge_usd is None


def test_value_is_lost_fastest_when_new() -> None:
    """Hours add up to the year's decline, and an hour of an older machine loses less."""
    lost = sum(float(value_loss_usd_per_hour(1000.0, 0.3, age / 8760)) for age in np.arange(8760) + 0.5)
    assert lost == pytest.approx(300.0, rel=1e-6)
    assert value_loss_usd_per_hour(1000.0, 0.3, 1.0) == pytest.approx(0.7 * value_loss_usd_per_hour(1000.0, 0.3))
