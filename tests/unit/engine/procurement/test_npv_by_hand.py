"""Present values by hand: a spreadsheet's arithmetic, month by month, against the engine to the cent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.engine.procurement.cash_flows import FleetPhase, RentTerms
from service.engine.procurement.depreciation import straight_line_shares
from service.engine.procurement.options import OwnedFleet, option_npvs
from tests.unit.engine.procurement.fleets import DC1, inputs, on_demand, own_npv, rent_npv

CENT = 0.005
HOURS = 730
KW_HOUR = 1.3 * 1.3 * 0.09
CAPEX = 256 * 32_000
OPERATION = CAPEX * 0.06 / 12
MACRS = (0.2, 0.32, 0.192, 0.1152, 0.1152, 0.0576)


def sheet(flows: dict[int, float], rate: float = 0.09) -> float:
    """Sum of the flows by month, each over (1 + rate) to the power of its years."""
    return sum(usd / (1 + rate) ** (month / 12) for month, usd in flows.items())


def power(used: float) -> float:
    """Energy of a month: half of full power idle, the rest by use [USD]."""
    return 256 * HOURS * KW_HOUR * (0.5 + 0.5 * used)


def test_own() -> None:
    """Capital at the start, power and operation each month, a quarter back at the end."""
    flows = {0: float(CAPEX)} | {month: OPERATION + power(0.7) for month in range(1, 37)}
    flows[36] -= 0.25 * CAPEX
    assert own_npv() == pytest.approx(sheet(flows), abs=CENT)
    assert round(own_npv()) == 8_668_973


def test_reserved_without_upfront() -> None:
    """All hours of the fleet each month, used or not."""
    flows = dict.fromkeys(range(1, 37), 256 * HOURS * 1.89)
    assert rent_npv(1.89, RentTerms(36, count=256)) == pytest.approx(sheet(flows), abs=CENT)
    assert round(sheet(flows)) == 11_164_412


def test_reserved_with_upfront() -> None:
    """Forty per cent of the whole term at its start, the rest each month."""
    term = 256 * HOURS * 36 * 1.89
    flows = {0: 0.4 * term} | dict.fromkeys(range(1, 37), 0.6 * term / 36)
    assert rent_npv(1.89, RentTerms(36, upfront_share=0.4, count=256)) == pytest.approx(sheet(flows), abs=CENT)


@pytest.mark.parametrize("utilisation", [0.2, 0.5, 0.9])
def test_on_demand(utilisation: float) -> None:
    """Used hours alone."""
    flows = dict.fromkeys(range(1, 37), 256 * utilisation * HOURS * 2.5)
    assert rent_npv(2.5, RentTerms(), utilisation=utilisation) == pytest.approx(sheet(flows), abs=CENT)


def test_on_demand_at_falling_list_prices() -> None:
    """Each month costs that month's list price, 20 % less a year."""
    flows = {month: 256 * 0.7 * HOURS * 2.5 * 0.8 ** ((month - 1) / 12) for month in range(1, 37)}
    assert rent_npv(2.5, RentTerms(), list_change_per_year=-0.2) == pytest.approx(sheet(flows), abs=CENT)


def test_a_year_renewed_at_rising_list_prices() -> None:
    """Fixed for twelve months, then at the list price of the day, 10 % more each time; a quarter of each term upfront."""
    flows = dict.fromkeys(range(37), 0.0)
    for year in range(3):
        price = 2.2 * 1.1**year
        flows[12 * year] += 0.25 * 256 * HOURS * 12 * price
        for month in range(1, 13):
            flows[12 * year + month] += 0.75 * 256 * HOURS * price
    terms = RentTerms(12, upfront_share=0.25, count=256)
    assert rent_npv(2.2, terms, list_change_per_year=0.1) == pytest.approx(sheet(flows), abs=CENT)


def test_growth_above_the_fleet() -> None:
    """Demand uniform between 0.6 and 1.2 of its first mean grows by 30 % a year; what is above 256 is rented on demand."""
    flows = {0: float(CAPEX), 36: -0.25 * CAPEX}
    for month in range(1, 37):
        growth = 1.3 ** ((month - 1) / 12)
        low, high = 256 * 0.6 * growth, 256 * 1.0 * growth
        above = 0.0 if high <= 256 else (high - 256) ** 2 / (2 * (high - low)) if low < 256 else (low + high) / 2 - 256
        used = ((low + high) / 2 - above) / 256
        flows[month] = flows.get(month, 0.0) + OPERATION + power(used) + above * HOURS * 3.0
    found = own_npv(utilisation=0.8, growth_per_year=0.3, on_demand=on_demand(3.0))
    assert found == pytest.approx(sheet(flows), abs=CENT)


def test_growth_above_a_reservation() -> None:
    """The same demand on 256 reserved accelerators."""
    flows = {}
    for month in range(1, 37):
        growth = 1.3 ** ((month - 1) / 12)
        low, high = 256 * 0.6 * growth, 256 * 1.0 * growth
        above = 0.0 if high <= 256 else (high - 256) ** 2 / (2 * (high - low)) if low < 256 else (low + high) / 2 - 256
        flows[month] = 256 * HOURS * 1.89 + above * HOURS * 3.0
    found = rent_npv(1.89, RentTerms(36, count=256), utilisation=0.8, growth_per_year=0.3, on_demand=on_demand(3.0))
    assert found == pytest.approx(sheet(flows), abs=CENT)


def test_lead_time_with_its_bridge() -> None:
    """Two and a half months on demand, with nothing to run; capital is paid at the order."""
    flows = {0: float(CAPEX)}
    for month in range(1, 37):
        served = 0.0 if month <= 2 else 0.5 if month == 3 else 1.0
        flows[month] = served * (OPERATION + power(0.7)) + (1 - served) * 256 * 0.7 * HOURS * 3.0
    flows[36] -= 0.25 * CAPEX
    late = replace(DC1, lead_time_months=2.5)
    assert own_npv(late, on_demand=on_demand(3.0)) == pytest.approx(sheet(flows), abs=CENT)
    assert own_npv(replace(late, bridge_usd_per_accelerator_hour=3.0)) == pytest.approx(sheet(flows), abs=CENT)


@pytest.mark.parametrize(
    ("name", "shares", "by_year"),
    [
        ("straight line over five years", straight_line_shares(5), (0.2, 0.2, 0.2)),
        ("MACRS, five years", MACRS, (0.2, 0.32, 0.192)),
    ],
)
def test_tax(name: str, shares: tuple[float, ...], by_year: tuple[float, ...]) -> None:
    """A quarter of what is deducted comes back: costs when paid, depreciation at the year's end; a gain over book value is taxed."""
    flows = {0: float(CAPEX)} | {month: 0.75 * (OPERATION + power(0.7)) for month in range(1, 37)}
    for year, share in enumerate(by_year, 1):
        flows[12 * year] -= 0.25 * share * CAPEX
    flows[36] += -0.25 * CAPEX + 0.25 * (0.25 * CAPEX - (1 - sum(by_year)) * CAPEX)
    assert own_npv(phase={"depreciation": shares}, tax_rate=0.25) == pytest.approx(sheet(flows), abs=CENT), name


def test_tax_of_rent() -> None:
    """Rent is deducted when it is paid."""
    flows = dict.fromkeys(range(1, 37), 0.75 * 256 * HOURS * 1.89)
    assert rent_npv(1.89, RentTerms(36, count=256), tax_rate=0.25) == pytest.approx(sheet(flows), abs=CENT)


def test_the_rest_of_a_longer_term_is_paid() -> None:
    """Three years for a demand of one: all 36 months are paid, when they fall due."""
    flows = dict.fromkeys(range(1, 37), 256 * HOURS * 1.89)
    assert rent_npv(1.89, RentTerms(36, count=256), months=12) == pytest.approx(sheet(flows), abs=CENT)


def test_a_market_decline_in_place_of_a_resale_share() -> None:
    """What 27.6 % a year leaves after 32 months of age: the lead time is no age."""
    flows = {0: float(CAPEX)} | {month: OPERATION + power(0.7) for month in range(5, 37)}
    flows |= dict.fromkeys(range(1, 5), 256 * 0.7 * HOURS * 3.0)
    flows[36] -= CAPEX * 0.724 ** (32 / 12)
    aged = replace(DC1, residual_share=None, price_decline_per_year=0.276, lead_time_months=4)
    assert own_npv(aged, on_demand=on_demand(3.0)) == pytest.approx(sheet(flows), abs=CENT)


def test_two_generations() -> None:
    """Sold after two years for the share of its capital; the next does the work of two and is half as many."""
    flows = {0: float(CAPEX)} | {month: OPERATION + power(0.7) for month in range(1, 25)}
    flows[24] += -0.25 * CAPEX + 128 * 40_000
    for month in range(25, 37):
        energy = 128 * HOURS * KW_HOUR * (0.5 + 0.5 * 0.7)
        flows[month] = 128 * 40_000 * 0.06 / 12 + energy
    flows[36] -= 0.25 * 128 * 40_000
    next_one = replace(DC1, count=128, capex_usd_per_accelerator=40_000)
    fleet = OwnedFleet("dc1", (FleetPhase(DC1, 0, 24), FleetPhase(next_one, 24, 36, speedup=2.0)))
    assert float(option_npvs(inputs(fleets=(fleet,)))[0, 0]) == pytest.approx(sheet(flows), abs=CENT)
