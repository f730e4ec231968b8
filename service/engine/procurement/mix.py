"""The best reserved base with peaks on demand: the newsvendor's rule over the demand's distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from service.engine.procurement.demand import Demand, share_above

if TYPE_CHECKING:
    from service.domain.procurement.ownership import Amount

    FloatArray = NDArray[np.float64]

HALVINGS = 40


def reserved_base(demand: Demand, weights: FloatArray, critical_ratio: Amount) -> FloatArray:
    """Accelerators to reserve so that the last one is used for just the critical part of the time.

    Parameters
    ----------
    demand : Demand
        (..., months).
    weights : (..., months) float array
        Discounted price on demand of each month; only ratios count.
    critical_ratio : float or (...) float array
        Discounted price of a reserved accelerator over that of one on demand that is always in use [1].

    Returns
    -------
    (...) float array
        Accelerators; 0 where reserving never pays.

    References
    ----------
    Arrow, Harris & Marschak 1951; for a demand that does not change and is uniform from a to b the base is b - ratio (b - a).
    """
    share = weights / weights.sum(axis=-1, keepdims=True)
    ratio = np.asarray(critical_ratio, dtype=np.float64)
    low = np.zeros(np.broadcast_shapes(demand.low.shape[:-1], share.shape[:-1], ratio.shape))
    high = low + demand.high.max(axis=-1)
    needed = np.less(ratio, 1.0)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        more = np.einsum("...m,...m->...", share, share_above(demand, middle[..., np.newaxis])) > ratio
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return np.where(needed, high, 0.0)
