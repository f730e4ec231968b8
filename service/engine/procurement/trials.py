"""Monte Carlo simulation of all options with the same draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from service.domain.quantities import Range
from service.engine.numerics.quantiles import range_quantiles

if TYPE_CHECKING:
    FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class UncertainInput:
    """An input with a range; `low` and `high` bound its draws. `shift` is added to the range before a log-normal is put through it."""

    path: str
    quantity: Range
    low: float
    high: float
    shift: float = 0.0


def draw_inputs(inputs: tuple[UncertainInput, ...], trials: int, seed: int) -> dict[str, FloatArray]:
    """Values of uncertain inputs, drawn independently.

    Parameters
    ----------
    inputs : tuple of UncertainInput
        Two-piece log-normal around the median. Inputs of several fleets with the same field have the same draws: it is one market.
    trials : int
        Number of trials.
    seed : int
        Seed of the generator.

    Returns
    -------
    dict of path to (trials,) float array
        In each input's unit.
    """
    fields = list(dict.fromkeys(_field(entry.path) for entry in inputs))
    scores = dict(zip(fields, np.random.default_rng(seed).standard_normal((len(fields), trials)), strict=True))
    return {entry.path: _draw(entry, scores[_field(entry.path)]) for entry in inputs}


def probability_best(npv_usd: FloatArray) -> FloatArray:
    """Share of the trials in which each option costs least; of equal ones the first.

    Parameters
    ----------
    npv_usd : (options, trials) float array
        Present values [USD].

    Returns
    -------
    (options,) float array
        Probabilities [1], 1 in all.
    """
    return np.asarray(np.bincount(npv_usd.argmin(axis=0), minlength=len(npv_usd)) / npv_usd.shape[1])


def range_around(median: float, draws: FloatArray) -> Range:
    """The 10th and 90th percentile of draws around a median that was computed apart, which they are made to hold."""
    low, high = np.quantile(draws, (0.1, 0.9))
    return Range(min(float(low), median), median, max(float(high), median))


def ranges_around(medians: FloatArray, draws: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same of several figures: `medians` (figures,), `draws` (trials, figures), or (figures,) where nothing is uncertain."""
    if draws.ndim == 1:
        return medians, medians
    low, high = np.quantile(np.ascontiguousarray(draws.T), (0.1, 0.9), axis=-1, overwrite_input=True)
    return np.minimum(low, medians), np.maximum(high, medians)


def _field(path: str) -> str:
    return path.rpartition(".")[2]


def _draw(entry: UncertainInput, scores: FloatArray) -> FloatArray:
    shifted: Mapping[str, float] = {name: getattr(entry.quantity, name) + entry.shift for name in ("p10", "p50", "p90")}
    drawn = range_quantiles(Range(**shifted), scores) - entry.shift
    return np.clip(drawn, entry.low, entry.high)
