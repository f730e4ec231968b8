"""A scaling law fitted to training runs: the points it is made from, what is found, and what it foretells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.domain.quantities import Range

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TrainingRuns:
    """Finished training runs, one element each: parameters, training tokens, final loss [nats a token]."""

    params: Floats
    tokens: Floats
    loss: Floats

    def __len__(self) -> int:
        return len(self.params)

    def select(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> TrainingRuns:
        return TrainingRuns(self.params[rows], self.tokens[rows], self.loss[rows])


@dataclass(frozen=True, slots=True)
class LawPrior:
    """What published laws have, for what the runs leave open: `centre` and standard `deviation` of a normal prior.

    Columns: the logs of the parameter term and of the data term over the middle loss, the log of E over the lowest loss, alpha, beta.
    """

    centre: Floats
    deviation: Floats
    source: str


@dataclass(frozen=True, slots=True)
class HoldOutCheck:
    """The runs of the most compute, foretold by a fit that did not see them.

    `error` is the median of |predicted / measured - 1|, `covered` the share of runs within their interval of 80 %, and `miss` the
    typical error in units of the expected one: 1 as expected, 3 three times too far out.
    """

    points: int
    error: float
    covered: float
    miss: float


@dataclass(frozen=True, slots=True)
class ScalingFit:
    """L = E + A / N^alpha + B / D^beta: `parameters` in that order (E, A, B, alpha, beta), and one row of `draws` for each resample.

    `scatter` is the typical relative distance of a run from the law (mean absolute residual of the log-loss, by degrees of freedom);
    `typical` is what the fit leant on.
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
    """What a fitted law says of a run: the best fit's loss, its interval of 80 %, and how many times the run lies beyond the data."""

    params: float
    tokens: float
    loss: float
    interval: Range
    beyond: dict[str, float]
    warnings: tuple[str, ...]
