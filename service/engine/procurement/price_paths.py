"""Rents over time: list prices drift, prices under contract are fixed for their term and renewed at the list price of that day."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from service.engine.procurement.ownership import HOURS_PER_YEAR, MONTHS_PER_YEAR

if TYPE_CHECKING:
    from service.domain.procurement.ownership import Amount

    FloatArray = NDArray[np.float64]

HOURS_PER_MONTH = HOURS_PER_YEAR / MONTHS_PER_YEAR


def list_price_index(change_per_year: Amount, months: int, fixed_months: int = 1) -> FloatArray:
    """List price of each month over that of the start, (1 + change)^(m/12).

    Parameters
    ----------
    change_per_year : float or (scenarios,) float array
        Signed drift of list prices [1/year].
    months : int
        Number of months.
    fixed_months : int
        A price is taken at the start of every such number of months and held: the term of a contract; 1 follows the list.

    Returns
    -------
    (scenarios, months) or (months,) float array
        Index [1], 1 in the first month.
    """
    change = np.asarray(change_per_year, dtype=np.float64)[..., np.newaxis]
    return (1 + change) ** (np.arange(months) // fixed_months * fixed_months / MONTHS_PER_YEAR)


def paid_months(term_months: int, months: int) -> int:
    """Months of all whole terms that cover a horizon: the rest of the last one is paid."""
    return -(-months // term_months) * term_months


def reserved_flows(change_per_year: Amount, term_months: int, upfront_share: float, months: int) -> FloatArray:
    """Flows of one reserved accelerator at a price of 1 USD an hour today, all hours of whole terms.

    Parameters
    ----------
    change_per_year : float or (scenarios,) float array
        Signed drift of list prices, at which terms after the first are renewed [1/year].
    term_months : int
        Length of a term.
    upfront_share : float
        Part of a term's price that is paid at its start; the rest at the end of each month [1].
    months : int
        Length of the horizon; the last term is paid to its end.

    Returns
    -------
    (scenarios, paid months + 1) or (paid months + 1,) float array
        Flows at the start and at the end of each month [USD].
    """
    paid = paid_months(term_months, months)
    price = list_price_index(change_per_year, paid, term_months) * HOURS_PER_MONTH
    flows = np.zeros((*price.shape[:-1], paid + 1))
    flows[..., 1:] = price * (1 - upfront_share)
    flows[..., 0:paid:term_months] += price[..., ::term_months] * (upfront_share * term_months)
    return flows
