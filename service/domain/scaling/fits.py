"""Fits of scaling laws to training runs, and their predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from service.domain.answer_fields import Doc, share
from service.domain.quantities import Range

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TrainingRuns:
    """Finished training runs.

    Attributes
    ----------
    params, tokens : (runs,) float arrays
        Parameters and training tokens.
    loss : (runs,) float array
        Final loss [nats/token].
    """

    params: Floats
    tokens: Floats
    loss: Floats

    def __len__(self) -> int:
        return len(self.params)

    def select(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> TrainingRuns:
        """The runs of these rows."""
        return TrainingRuns(self.params[rows], self.tokens[rows], self.loss[rows])


@dataclass(frozen=True, slots=True)
class LawPrior:
    """Normal prior of a law's parameters, from published laws.

    Columns of `centre` and `deviation`: logs of the parameter term and of the data term over the mean loss, log of E over the lowest loss,
    alpha, beta.
    """

    centre: Floats
    deviation: Floats
    source: str


@dataclass(frozen=True, slots=True)
class HoldOutCheck:
    """Prediction of the runs of most compute by a fit to the other runs."""

    points: Annotated[int, Doc("Runs that were left out", minimum=1)]
    error: Annotated[float, Doc("Median relative error of their predicted loss", "1", minimum=-1e308, maximum=1e308)]
    covered: Annotated[float, share("Part of them within their interval of 80 %")]
    miss: Annotated[float, Doc("Typical error over the expected one", "1", minimum=-1e308, maximum=1e308)]


@dataclass(frozen=True, slots=True)
class ScalingFit:
    """A fitted law L = E + A / N^alpha + B / D^beta.

    Attributes
    ----------
    points : TrainingRuns
    prior : LawPrior
    parameters : (5,) float array
        E, A, B, alpha, beta.
    draws : (resamples, 5) float array
        The same for each resample.
    scatter : float
        Mean absolute residual of the log-loss, by degrees of freedom [1].
    held_out : HoldOutCheck or None
    warnings : tuple of str
    """

    points: TrainingRuns
    prior: LawPrior
    parameters: Floats
    draws: Floats
    scatter: float
    held_out: HoldOutCheck | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LossPrediction:
    """A predicted run: loss with its interval of 80 %, the best fit's loss, and the run's size over the largest fitted one."""

    p10: Annotated[float, Doc("10th percentile of the predicted loss", "nats per token", minimum=-1e308, maximum=1e308)]
    p50: Annotated[float, Doc("Median of the predicted loss", "nats per token", minimum=-1e308, maximum=1e308)]
    p90: Annotated[float, Doc("90th percentile of the predicted loss", "nats per token", minimum=-1e308, maximum=1e308)]
    params: Annotated[float, Doc("Parameters of the run", "parameters", minimum=-1e308, maximum=1e308)]
    tokens: Annotated[float, Doc("Training tokens of the run", "tokens", minimum=-1e308, maximum=1e308)]
    best_fit: Annotated[float, Doc("Loss by the fitted law itself, without resamples", "nats per token", minimum=-1e308, maximum=1e308)]
    beyond: Annotated[Mapping[str, float], Doc("How many times it exceeds the largest fitted run")]
    warnings: Annotated[tuple[str, ...], Doc("What to check before relying on it", max_items=10, max_length=5000)]

    @property
    def interval(self) -> Range:
        """The loss with its interval of 80 % [nats/token]."""
        return Range(self.p10, self.p50, self.p90)
