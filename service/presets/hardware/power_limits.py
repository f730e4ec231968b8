"""What a power limit costs in time and saves in power. The data are in `data/power_limits.toml`."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from service.domain.quantities import Range
from service.presets.documents import build, load_document


@dataclass(frozen=True, slots=True)
class PowerLimit:
    """A card at a power limit, over the same card at its highest.

    Attributes
    ----------
    share : float
        The limit over the highest one [1].
    relative_time : Range
        Time of the same work [1].
    relative_power : float
        Mean draw [1].
    """

    share: float
    relative_time: Range
    relative_power: float


@functools.cache
def load_power_limits() -> tuple[PowerLimit, ...]:
    """Measured limits, by rising share."""
    rows = load_document("power_limits")["limit"]
    return tuple(PowerLimit(row["share"], build(Range, row["relative_time"]), row["relative_power"]) for row in rows)


def power_limit_source() -> str:
    """Publication, and what was measured."""
    return str(load_document("power_limits")["source"])


def find_power_limit(share: float) -> PowerLimit:
    """Time and draw at a limit: between two measured ones, linear in the logarithm of the time and in the draw.

    Parameters
    ----------
    share : float
        The limit over the highest one [1], from the lowest measured share to 1.

    Returns
    -------
    PowerLimit
        At that share.
    """
    rows = load_power_limits()
    shares = [row.share for row in rows]
    times = (np.log([getattr(row.relative_time, name) for row in rows]) for name in ("p10", "p50", "p90"))
    relative_time = Range(*(float(np.exp(np.interp(share, shares, column))) for column in times))
    return PowerLimit(share, relative_time, float(np.interp(share, shares, [row.relative_power for row in rows])))
