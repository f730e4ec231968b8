"""Energy and carbon of a run: average draw times hours times PUE; grid intensity, and carbon embodied in the hardware."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from service.domain.training.run import Energy

Quantity = TypeVar("Quantity", float, NDArray[np.float64])


def energy_mwh(accelerator_hours: float, energy: Energy) -> float:
    """Electricity at the meter: accelerators with their share of the node, and the building's overhead.

    Parameters
    ----------
    accelerator_hours : float
        Accelerators times hours [h].
    energy : Energy
        Draw of one accelerator [W] and PUE [1].

    Returns
    -------
    float
        [MWh].

    References
    ----------
    Patterson et al. 2021 (arXiv 2104.10350), section 2.
    """
    return mwh_at(accelerator_hours, energy, energy.pue)


def carbon_tco2e(accelerator_hours: float, energy: Energy) -> float:
    """Carbon of the electricity, and of the hardware's making where the caller states it.

    Parameters
    ----------
    accelerator_hours : float
        Accelerators times hours [h].
    energy : Energy
        Draw, PUE, grid intensity, embodied carbon.

    Returns
    -------
    float
        [tCO2e].

    References
    ----------
    Luccioni et al. 2022 (arXiv 2211.02001), section 4.
    """
    return tco2e_at(accelerator_hours, energy, energy_mwh(accelerator_hours, energy), energy.grid_gco2_per_kwh)


def mwh_at(accelerator_hours: Quantity | float, energy: Energy, pue: Quantity) -> Quantity:
    """`energy_mwh` at the PUE of one building or of many.

    Parameters
    ----------
    accelerator_hours : float or (n,) float array
        Accelerators times hours [h].
    energy : Energy
        Draw of one accelerator [W].
    pue : float or (n,) float array
        Power usage effectiveness [1].

    Returns
    -------
    float or (n,) float array
        [MWh].
    """
    return accelerator_hours * energy.watts_per_accelerator * pue / 1e6


def tco2e_at(accelerator_hours: Quantity | float, energy: Energy, mwh: Quantity, grid_gco2_per_kwh: Quantity) -> Quantity:
    """`carbon_tco2e` of electricity from one grid or from many.

    Parameters
    ----------
    accelerator_hours : float or (n,) float array
        Accelerators times hours [h].
    energy : Energy
        Embodied carbon of one accelerator-hour [gCO2e/h].
    mwh : float or (n,) float array
        Electricity [MWh].
    grid_gco2_per_kwh : float or (n,) float array
        Grid intensity [gCO2e/kWh].

    Returns
    -------
    float or (n,) float array
        [tCO2e].
    """
    return mwh * grid_gco2_per_kwh / 1e3 + accelerator_hours * energy.embodied_gco2e_per_accelerator_hour / 1e6
