"""How far the speed of a measured step says that of another of the same model and machine. The data are in `data/carried.toml`."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from service.domain.quantities import Range
from service.presets.documents import build, load_document
from service.presets.training.throughput_parameters import LayoutKnowledge


@dataclass(frozen=True, slots=True)
class CarriedSpread:
    """Measured over carried throughput of published rows.

    Attributes
    ----------
    known_there, known : "layout" or "goal"
        Whether the layout of the measured step, and of the planned one, was given or searched.
    from_ratio : float
        Ratio of the counts above which the row holds [1].
    p10, p90 : float
        Percentiles [1].
    pairs, documents : int
        Published rows predicted from another, and the documents they stand in.
    """

    known_there: LayoutKnowledge
    known: LayoutKnowledge
    from_ratio: float
    p10: float
    p90: float
    pairs: int
    documents: int


@functools.cache
def load_carried_spreads() -> tuple[CarriedSpread, ...]:
    """Every row of the data file."""
    return tuple(build(CarriedSpread, row) for row in load_document("carried")["spread"])


def carried_spread(rows: Sequence[CarriedSpread], known_there: LayoutKnowledge, known: LayoutKnowledge, ratio: float) -> CarriedSpread:
    """Spread of a plan carried from a measured step.

    Parameters
    ----------
    rows : sequence of CarriedSpread
        By ascending `from_ratio`.
    known_there, known : "layout" or "goal"
        Whether the layout of the measured step, and of the planned one, is given.
    ratio : float
        Accelerators of the plan over those measured [1].

    Returns
    -------
    CarriedSpread
        Of as many times more or fewer accelerators.
    """
    apart = max(ratio, 1 / ratio)
    return [row for row in rows if (row.known_there, row.known) == (known_there, known) and row.from_ratio < apart][-1]


def narrowed(spread: Range, carried: Range) -> Range:
    """The narrower of two ranges of ratios, on either side: a measurement never says less than none.

    Parameters
    ----------
    spread : Range
        Without the measurement [1].
    carried : Range
        With it [1].

    Returns
    -------
    Range
        [1].
    """
    return Range(max(spread.p10, carried.p10), 1.0, min(spread.p90, carried.p90))
