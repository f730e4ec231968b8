"""Depreciation in the books and the tax that follows from it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from service.engine.procurement.ownership import MONTHS_PER_YEAR

FloatArray = NDArray[np.float64]


def straight_line_shares(years: float) -> tuple[float, ...]:
    """Equal shares of capital a year; the last one is what is left of a fraction of a year.

    Parameters
    ----------
    years : float
        Life in the books [year].

    Returns
    -------
    tuple of float
        Share of capital deducted in each year [1], 1 in all.
    """
    return tuple(min(1.0, years - year) / years for year in range(math.ceil(years)))


def depreciation_by_month(shares: Sequence[float], months: int) -> FloatArray:
    """Share of capital that is deducted at the end of each month, until a sale at the end of the last.

    Parameters
    ----------
    shares : sequence of float
        Share of each year from the order on [1].
    months : int
        Months until the sale.

    Returns
    -------
    (months + 1,) float array
        Deductions at the end of each full year. What is not deducted then is the book value: deducted from the proceeds of the sale, at the
        same moment as the part of a last, broken year would be.
    """
    deducted = np.zeros(months + 1)
    for year, share in enumerate(shares, 1):
        month = int(year * MONTHS_PER_YEAR)
        if month <= months:
            deducted[month] = share
    return deducted
