"""How much repeated runs of one job differ in time. The data are in `data/run_spread.toml`."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from service.presets.documents import load_document


@dataclass(frozen=True, slots=True)
class RunSpread:
    """Runs of one submission on machines of `from_count` accelerators and more, up to the next row's.

    Attributes
    ----------
    from_count : int
        Accelerators.
    usual_cv, high_cv : float
        Coefficient of variation of the time, median and 90th percentile over submissions [1].
    runs : int
        Runs behind it.
    """

    from_count: int
    usual_cv: float
    high_cv: float
    runs: int


@functools.cache
def load_run_spreads() -> tuple[RunSpread, ...]:
    """Every size, the smallest first."""
    rows = load_document("run_spread")["size"]
    return tuple(RunSpread(row["from_count"], row["step_cv"]["p50"], row["step_cv"]["p90"], row["runs"]) for row in rows)


def run_spread(count: int) -> RunSpread:
    """Spread of repeated runs on so many accelerators."""
    return [row for row in load_run_spreads() if row.from_count <= count][-1]
