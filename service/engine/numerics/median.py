"""The middle of a few numbers, which numpy takes thirty times as long to look for as to find."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def median(values: NDArray[np.float64]) -> float:
    """The same, to the last bit, as `numpy.median` of one axis of numbers, of which there has to be one at least and none is NaN."""
    ranked = np.sort(values)
    middle = len(ranked) // 2
    return float(ranked[middle]) if len(ranked) % 2 else float((ranked[middle - 1] + ranked[middle]) / 2)
