"""Energy and carbon: a product of hours, power, PUE and grid, and nothing hidden."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.training.run import Energy
from service.engine.training.energy import carbon_tco2e, energy_mwh

PLAIN = Energy("world", grid_gco2_per_kwh=480, pue=1.2, watts_per_accelerator=500, embodied_gco2e_per_accelerator_hour=0, usd_per_kwh=None)
factors = st.floats(1, 100)


def test_one_megawatt_hour() -> None:
    """A thousand accelerator-hours at 500 W and PUE 1.2 are 0.6 MWh, and 0.288 t at 480 g/kWh."""
    assert energy_mwh(1000, PLAIN) == pytest.approx(0.6)
    assert carbon_tco2e(1000, PLAIN) == pytest.approx(0.288)


@given(st.floats(0, 1e9), factors)
def test_energy_is_linear_in_each_factor(hours: float, times: float) -> None:
    """Twice the hours, the power or the PUE is twice the energy."""
    once = times * energy_mwh(hours, PLAIN)
    assert energy_mwh(times * hours, PLAIN) == pytest.approx(once)
    assert energy_mwh(hours, replace(PLAIN, pue=times * PLAIN.pue)) == pytest.approx(once)
    assert energy_mwh(hours, replace(PLAIN, watts_per_accelerator=times * PLAIN.watts_per_accelerator)) == pytest.approx(once)


def test_the_grid_moves_carbon_and_not_energy() -> None:
    """A cleaner grid is less carbon for the same energy; a clean one leaves what was embodied."""
    clean = replace(PLAIN, grid_gco2_per_kwh=0, embodied_gco2e_per_accelerator_hour=25)
    assert energy_mwh(1000, clean) == energy_mwh(1000, PLAIN)
    assert carbon_tco2e(1000, replace(clean, embodied_gco2e_per_accelerator_hour=0)) == 0
    assert carbon_tco2e(1000, clean) == pytest.approx(0.025)
