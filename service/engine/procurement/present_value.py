"""Present values of monthly flows: the yearly cost of capital, compounded monthly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from service.engine.procurement.ownership import MONTHS_PER_YEAR

if TYPE_CHECKING:
    from service.domain.procurement.ownership import Amount

    FloatArray = NDArray[np.float64]


def discount_factors(cost_of_capital: Amount, months: int) -> FloatArray:
    """Value at the start of a dollar at the end of each month, (1 + r)^(-m/12).

    Parameters
    ----------
    cost_of_capital : float or (scenarios,) float array
        Rate r [1/year].
    months : int
        Last month.

    Returns
    -------
    (scenarios, months + 1) or (months + 1,) float array
        Factors [1], the first of month 0, which is the start.
    """
    rate = np.asarray(cost_of_capital, dtype=np.float64)[..., np.newaxis]
    return (1 + rate) ** (-np.arange(months + 1) / MONTHS_PER_YEAR)


def present_value(flows_usd: FloatArray, cost_of_capital: float) -> float:
    """Present value at the start of flows by month.

    Parameters
    ----------
    flows_usd : (months + 1,) float array
        Flows at the start and at the end of each month [USD].
    cost_of_capital : float
        Rate [1/year].

    Returns
    -------
    float
        Present value [USD].
    """
    return float(flows_usd @ discount_factors(cost_of_capital, len(flows_usd) - 1))


def payback_month(own_usd: FloatArray, rent_usd: FloatArray, cost_of_capital: float) -> int | None:
    """Month by whose end owning has cost less than renting, discounted, and stays so.

    Parameters
    ----------
    own_usd, rent_usd : (months + 1,) float array
        Flows of both; a shorter one has no flows after its end [USD].
    cost_of_capital : float
        Rate [1/year].

    Returns
    -------
    int or None
        Month [1]; None where owning costs more in the end.
    """
    months = max(len(own_usd), len(rent_usd))
    difference = np.zeros(months)
    difference[: len(own_usd)] += own_usd
    difference[: len(rent_usd)] -= rent_usd
    ahead = np.cumsum(difference * discount_factors(cost_of_capital, months - 1)) > 0
    return None if ahead[-1] else int(months - np.argmax(ahead[::-1])) if ahead.any() else 0
