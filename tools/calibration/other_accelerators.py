"""Shares of the peak of families without rows in the large fit, one at a time, with everything else as fitted.

Their rows are few, of one publication a family and of software that is seldom the accelerator's best: they say how far the share is from
the relative's that would be borrowed, and nothing of links, launches or kernels. Each share has a prior about that of the relative.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from service.presets.training.utilisation import FittedParameters, Key, MatmulShare, nearest
from tools.calibration.cases import MeasuredCase, other_cases, parameter_key
from tools.calibration.folds import predict_rates
from tools.calibration.priors import other_family_prior

SHARES = np.geomspace(0.15, 0.92, 60)


def with_other_families(parameters: FittedParameters) -> FittedParameters:
    """The parameters with shares of the families that only the small table has."""
    found: dict[Key, list[MeasuredCase]] = defaultdict(list)
    for case in other_cases():
        key = parameter_key(case, parameters)
        if key not in parameters.matmul:
            found[key].append(case)
    shares = {key: _share(parameters, key, cases) for key, cases in sorted(found.items())}
    return replace(parameters, matmul={**parameters.matmul, **shares})


def _share(parameters: FittedParameters, key: Key, cases: Sequence[MeasuredCase]) -> MatmulShare:
    """The most likely share of a family, of those on a grid."""
    borrowed = parameters.matmul[nearest(parameters, parameters.matmul, key)].share
    factor, scatter = other_family_prior()
    prior = (np.log(SHARES / borrowed) / np.log(factor)) ** 2 / 2
    losses = prior + [_misses(_with_share(parameters, key, share), cases, scatter) for share in SHARES]
    share = float(SHARES[int(np.argmin(losses))])
    sources = sorted({case.source for case in cases})
    source = ", ".join(f"{name} ({sum(case.source == name for case in cases)} rows)" for name in sources)
    # No power: few rows of one board say nothing of how power moves the share of its successors.
    return MatmulShare(round(share, 4), 0.0, source, tuple(sorted({case.accelerator.name for case in cases})))


def _with_share(parameters: FittedParameters, key: Key, share: float) -> FittedParameters:
    return replace(parameters, matmul={**parameters.matmul, key: MatmulShare(share, 0.0, "")})


def _misses(parameters: FittedParameters, cases: Sequence[MeasuredCase], scatter: float) -> float:
    """Soft-L1 loss of the rows."""
    rates = np.array([case.rates[0] for case in cases])
    rows = np.log(rates / predict_rates(cases, parameters)) / scatter
    return float((np.sqrt(1 + rows**2) - 1).sum())
