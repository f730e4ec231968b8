"""Energy and carbon of a run: average draw, times hours, times PUE; grid intensity, and what was embodied in the making.

Formula as in Patterson et al. 2021 (arXiv 2104.10350, section 2) and Luccioni et al. 2022 (arXiv 2211.02001, section 4).
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from service.domain.training.run import Energy

Quantity = TypeVar("Quantity", float, NDArray[np.float64])


def energy_mwh(accelerator_hours: float, energy: Energy) -> float:
    """MWh at the meter: accelerators with their share of the node, and the building's overhead."""
    return mwh_at(accelerator_hours, energy, energy.pue)


def carbon_tco2e(accelerator_hours: float, energy: Energy) -> float:
    """Tonnes of CO2 equivalent: of the electricity, and of the hardware's making where the caller states it."""
    return tco2e_at(accelerator_hours, energy, energy_mwh(accelerator_hours, energy), energy.grid_gco2_per_kwh)


def mwh_at(accelerator_hours: Quantity | float, energy: Energy, pue: Quantity) -> Quantity:
    """`energy_mwh` in a building of that PUE, or in many buildings."""
    return accelerator_hours * energy.watts_per_accelerator * pue / 1e6


def tco2e_at(accelerator_hours: Quantity | float, energy: Energy, mwh: Quantity, grid_gco2_per_kwh: Quantity) -> Quantity:
    """`carbon_tco2e` of so much electricity of that grid, or of many grids."""
    return mwh * grid_gco2_per_kwh / 1e3 + accelerator_hours * energy.embodied_gco2e_per_accelerator_hour / 1e6
