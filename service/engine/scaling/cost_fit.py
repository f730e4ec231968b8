"""Cost as a smooth function of the size: a sum of powers with coefficients of 0 or more, fitted to costs of single sizes.

Latencies do not grow with the size, communication grows slower than the arithmetic, and pipeline bubbles faster, so a cost is a sum of
powers of the size. Such a sum rises with the size, and the logarithm of it is convex in that of the size (Boyd and Vandenberghe 2004,
Convex Optimization, section 4.5): the optimum of a budget then moves without jumps. Single sizes lie off it by how evenly their layers and
heads divide among the accelerators.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from service.engine.scaling.laws import Floats

REFERENCE_PARAMS = 1e9
# Powers 0, 1/4, ... to 3/2 of the size.
POWERS, STEPS_PER_POWER = 7, 4
# Sizes at which a parameter costs many times the least hardly count: no optimum lies there, and their costs follow no power.
WEIGHT_EXPONENT = 2.0


@dataclass(frozen=True, slots=True)
class PowerSum:
    """Sum of a_k (N / 1e9)^(k / 4).

    Attributes
    ----------
    coefficients : tuple of float
        a_0, a_1, ..., each 0 or more, in the unit of the cost.
    """

    coefficients: tuple[float, ...]

    def at(self, params: Floats) -> Floats:
        """Cost of each size."""
        roots = (np.asarray(params) / REFERENCE_PARAMS) ** (1 / STEPS_PER_POWER)
        return np.asarray(np.polyval(self.coefficients[::-1], roots))

    def through(self, params: float, cost: float) -> PowerSum:
        """The same sum times the factor that gives one size that cost; unchanged where it costs nothing at that size."""
        fitted = float(self.at(np.asarray(params)))
        return PowerSum(tuple(coefficient * cost / fitted for coefficient in self.coefficients)) if fitted > 0 else self


def fit_power_sum(params: Floats, costs: Floats) -> PowerSum:
    """Sum of powers with the least squared relative errors.

    Parameters
    ----------
    params : (sizes,) float array
    costs : (sizes,) float array
        In any unit; sizes of cost 0 are left out, which rounding to cents makes of tiny ones.

    Returns
    -------
    PowerSum
        0 throughout where every cost is 0. Errors of a size weigh by (least cost per parameter / its cost per parameter)^2.

    References
    ----------
    Lawson and Hanson 1995, Solving Least Squares Problems, chapter 23 (non-negative least squares).
    """
    from scipy.optimize import nnls  # takes a third of a second to load: only where an optimum is asked for

    priced = costs > 0
    if not priced.any():
        return PowerSum((0.0,) * POWERS)
    sizes, known_costs = params[priced], costs[priced]
    per_param = known_costs / sizes
    weights = (per_param.min() / per_param) ** WEIGHT_EXPONENT
    exponents = np.arange(POWERS) / STEPS_PER_POWER
    columns = (sizes[:, None] / REFERENCE_PARAMS) ** exponents / known_costs[:, None]
    scale = columns.max(axis=0)
    coefficients, _ = nnls(columns / scale * weights[:, None], weights)
    return PowerSum(tuple(map(float, coefficients / scale)))
