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


def payback_months(own_usd: FloatArray, rent_usd: FloatArray, cost_of_capital: float) -> FloatArray:
    """Time by which owning has cost less than renting, discounted, and stays so.

    Parameters
    ----------
    own_usd, rent_usd : (..., months + 1) float array
        Flows of both, of one length [USD].
    cost_of_capital : float
        Rate [1/year].

    Returns
    -------
    (...) float array
        Months from the start, between two ends of a month in proportion; infinite where owning costs more in the end.
    """
    discount = discount_factors(cost_of_capital, own_usd.shape[-1] - 1)
    behind = np.atleast_2d(np.cumsum((own_usd - rent_usd) * discount, axis=-1))
    last = behind.shape[-1] - np.argmax(behind[:, ::-1] > 0, axis=-1)
    at = np.clip(np.stack([last - 1, last], axis=-1), 0, behind.shape[-1] - 1)
    before, after = np.take_along_axis(behind, at, axis=-1).T
    months = last - 1 + np.divide(before, before - after, out=np.zeros(before.shape), where=before > after)
    found = np.where(behind[:, -1] > 0, np.inf, np.where((behind > 0).any(axis=-1), months, 0.0))
    return found.reshape(np.shape(own_usd - rent_usd)[:-1])
