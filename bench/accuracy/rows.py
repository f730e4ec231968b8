"""A scored measurement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class ScoredRow:
    """One measurement and what is predicted of it, in the unit of `measured`: tokens a second and accelerator, or accelerator-hours.

    `constant` is the table's own median share of the peak, which has seen it. `covered`: within p10 to p90, both found without
    its document. `year`: of a whole run's software.
    """

    id: str
    table: str
    source: str
    accelerator: str
    family: str
    precision: str
    count: int
    params: float
    layout_known: Literal["stated", "partly", "goal"]
    kind: Literal["throughput", "hours"]
    measured: float
    predicted_left_out: float
    predicted_publication_out: float
    predicted_in_sample: float
    baseline: float
    constant: float
    covered: bool
    year: int = 0
