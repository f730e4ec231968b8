"""How wide the engine's answers have to be: percentiles of residuals on publications it was not fitted to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from service.calibration.cases import Case, read
from service.calibration.predict import Floats, Residuals, weighted_quantile
from service.calibration.runs import planned_hours, published_runs
from service.presets.accelerators import find_accelerator
from service.presets.models import find_model
from service.presets.utilisation import Key, Parameters, Share

# A spread of a family's own needs rows of at least this many publications, each predicted without itself.
PUBLICATIONS_FOR_OWN_SPREAD = 3


@dataclass(frozen=True)
class Planning:
    """Actual over planned hours of published runs: the median, percentiles, and those beyond the speed's own error."""

    runs: int
    median: float
    p10: float
    p90: float
    beyond_p10: float
    beyond_p90: float


def quantiles(values: Floats, weights: Floats) -> tuple[float, float]:
    """p10 and p90 of measured over predicted, from log residuals; 1 always lies between them."""
    low, high = (math.exp(weighted_quantile(values, weights, share)) for share in (0.1, 0.9))
    return min(low, 1.0), max(high, 1.0)


def spread_of(key: Key, away: Residuals, without: str = "") -> tuple[float, float]:
    """p10 and p90 for a family and class, of its own rows where enough publications have some, else of all rows.

    `without` leaves out a publication, so that its coverage is no answer to itself.
    """
    others = np.array([source != without for source in away.source])
    mine = others & np.array([other == key for other in away.key])
    publications = {source for source, own in zip(away.source, mine, strict=True) if own}
    used = mine if len(publications) >= PUBLICATIONS_FOR_OWN_SPREAD else others
    return quantiles(away.log_ratio[used], away.weight[used])


def with_spreads(parameters: Parameters, cases: Sequence[Case], away: Residuals) -> Parameters:
    """The parameters with the spread and the rows behind every share of the peak."""
    shares = {}
    for key, share in parameters.matmul.items():
        low, high = spread_of(key, away)
        shares[key] = Share(share.share, low, high, _evidence(key, cases, parameters))
    return replace(parameters, matmul=shares)


def _evidence(key: Key, cases: Sequence[Case], parameters: Parameters) -> str:
    rows: dict[str, int] = {}
    for case in cases:
        if (case.accelerator.family, parameters.classes[case.training.precision]) == key:
            rows[case.source] = rows.get(case.source, 0) + len(case.rates)
    return ", ".join(f"{source} ({count} rows)" for source, count in sorted(rows.items()))


def other_shares(parameters: Parameters) -> dict[Key, Share]:
    """Share of the peak that ResNet-50 reaches, by family and class: the only such network with published rates."""
    found: dict[Key, list[float]] = {}
    for key, share in vision_shares(parameters):
        found.setdefault(key, []).append(share)
    return {
        key: Share(float(np.median(shares)), 0.7, 1.4, f"ResNet-50 v1.5 (nvidia-resnet, {len(shares)} rows)")
        for key, shares in sorted(found.items())
    }


def vision_shares(parameters: Parameters) -> list[tuple[Key, float]]:
    """Share of the peak of every ResNet-50 row, with its family and class."""
    model = find_model("resnet-50").model
    flops = 3 * getattr(model, "flops_per_sample", math.nan)
    found = []
    for row in read("throughput.csv"):
        if row["table"] == "resnet":
            part = find_accelerator(row["accelerator"]).accelerator
            share = float(row["per_s"]) * flops / (part.peak_tflops[row["precision"]] * 1e12)
            found.append(((part.family, parameters.classes[row["precision"]]), share))
    return found


def planning(parameters: Parameters, folds: Mapping[str, Parameters], away: Residuals) -> Planning:
    """How actual hours of published runs scatter about planned ones, and how much of that the speed's spread does not hold."""
    ratios = np.array([math.log(run.hours / planned_hours(run, folds.get(run.publication, parameters))) for run in published_runs()])
    weights = np.ones(len(ratios))
    median = weighted_quantile(ratios, weights, 0.5)
    low, high = (weighted_quantile(ratios, weights, share) for share in (0.1, 0.9))
    # Hours go as one over speed: a slow tenth of the speeds is a long tenth of the hours.
    slow, fast = quantiles(away.log_ratio, away.weight)
    beyond_low = -math.sqrt(max(low**2 - math.log(fast) ** 2, 0.0))
    beyond_high = math.sqrt(max(high**2 - math.log(slow) ** 2, 0.0))
    return Planning(len(ratios), *(math.exp(value) for value in (median, low, high, beyond_low, beyond_high)))
