"""What stays uncertain once a machine's own share of the peak is known: the scatter of published rows about their own set-up.

A set-up is one publication on one accelerator at one precision: its software and its share of the peak are its own. Rows about their
set-up's median say how far shapes, layouts, links and machine sizes change a rate that is measured elsewhere on the same machine: a
measurement on one device leaves that open.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from service.presets.training.throughput_parameters import FittedParameters, load_parameters
from tools.calibration.cases import MeasuredCase, throughput_cases
from tools.calibration.folds import predict_rates
from tools.calibration.spreads import group_weights, weighted_quantile
from tools.calibration.table import Floats

FILE = Path(__file__).parents[2] / "service" / "presets" / "data" / "measured.toml"
# A median of fewer rows is mostly those rows themselves.
LEAST_ROWS = 4
TEXT = """\
# What a measurement on one device leaves unknown: written by `python -m tools.calibration`, not by hand.
#
# p10, p90  measured over predicted rates of published rows about the median of their own set-up (publication, accelerator,
#           precision), every set-up weighing as the square root of its rows, of at most 64 of them
# least     half-width that no measured range goes below: runs of one job on one machine differ by a few per cent from
#           day to day (clocks, temperature, neighbours); chosen, not fitted

[remaining]
p10 = {low:.3f}
p90 = {high:.3f}
least = 0.05
source = "{rows} published rows of {setups} set-ups about their own median, tools/calibration/data"
"""


def setup_residuals(cases: Sequence[MeasuredCase], parameters: FittedParameters) -> list[Floats]:
    """Log of measured over predicted rates of every set-up with enough rows, about the set-up's median."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for case in cases:
        key = (case.source, case.accelerator.name, case.training.precision)
        found.setdefault(key, []).extend(np.log(case.rates / predict_rates([case], parameters)))
    return [np.array(rows) - np.median(rows) for _, rows in sorted(found.items()) if len(rows) >= LEAST_ROWS]


def write_remaining(cases: Sequence[MeasuredCase], parameters: FittedParameters) -> None:
    """Write measured.toml from the cases under the parameters."""
    groups = setup_residuals(cases, parameters)
    values = np.concatenate(groups)
    weights = group_weights([index for index, group in enumerate(groups) for _ in group])
    low, high = (math.exp(weighted_quantile(values, weights, share)) for share in (0.1, 0.9))
    FILE.write_text(TEXT.format(low=low, high=high, rows=len(values), setups=len(groups)), encoding="utf-8")


if __name__ == "__main__":
    write_remaining(throughput_cases(), load_parameters())
